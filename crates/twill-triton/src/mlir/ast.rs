//! A kernel as operations, regions, blocks and values, each in an arena and named by an index of its own type.

use std::sync::Arc;

use indexmap::IndexMap;

use super::attributes::Attributes;
use super::location::SourceLocation;
use super::types::Type;

macro_rules! index_type {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(super) u32);

        impl $name {
            /// The index in the module's arena, for tables about it.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type! {
    /// Names an [`Operation`] of one [`Module`].
    OperationId
}
index_type! {
    /// Names a [`Region`] of one [`Module`].
    RegionId
}
index_type! {
    /// Names a [`Block`] of one [`Module`].
    BlockId
}
index_type! {
    /// Names a [`Value`] of one [`Module`].
    ValueId
}

/// One operation, whichever form it was written in.
///
/// The two forms are brought to one:
/// - `name` is the full name: `builtin.module` for `module`, `tt.reduce.return`.
/// - `operands` stand in the order of the generic form, whatever the custom form prints. In particular
///   `tt.descriptor_store` and `tt.descriptor_reduce` have descriptor, source, indices (the custom form has the indices
///   first); `tt.make_tensor_descriptor` has base, extents, strides; `tt.dot_scaled` has a, b, c, then the scale of a and
///   the scale of b where they are given; `scf.for` has lower bound, upper bound, step, initial values; branches have
///   their condition and then the arguments of each successor in turn.
/// - `attributes` holds what MLIR calls properties and attributes together, under the names of the generic form
///   (`cache`, `evict`, `predicate`, `axis`, …). Enumerations are [`Attribute::Enumeration`](super::Attribute), by name.
/// - Attributes with their default value are absent: `cache = none`, `evict = evict_normal`, `isVolatile = false`, an
///   empty `boundaryCheck`, `inputPrecision = ieee`, `maxNumImpreciseAcc = 0`, `fastmath` and `overflowFlags` of `none`.
///   `operandSegmentSizes` is absent where the operands say as much; it stays for `tt.dot_scaled` and `cf.cond_br`.
/// - A function has `sym_name`, `sym_visibility`, `function_type`, and `arg_attrs` and `res_attrs` if any of those has an
///   attribute; its arguments are those of its entry block.
/// - `scf.if` has two regions, the second without blocks if there is no `else`; every block of `scf.for`, `scf.if` and
///   `scf.while` ends in its terminator, also where the custom form omits it.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The full name, such as `arith.addf`.
    pub name: String,
    /// Its definitions.
    pub results: Vec<ValueId>,
    /// Its use of resources.
    pub operands: Vec<ValueId>,
    /// Its constants.
    pub attributes: Attributes,
    /// The blocks it may branch to.
    pub successors: Vec<BlockId>,
    /// The regions nested in it.
    pub regions: Vec<RegionId>,
    /// The block it stands in; `None` for the module itself.
    pub block: Option<BlockId>,
    /// Where in the Python source it comes from.
    pub location: Option<Arc<SourceLocation>>,
    /// Its line in the MLIR text, from one.
    pub line: u32,
    /// Its column in the MLIR text, from one.
    pub column: u32,
}

/// A list of blocks nested in an operation.
#[derive(Debug, Clone)]
pub struct Region {
    /// The operation it belongs to.
    pub operation: OperationId,
    /// Its blocks, the entry first.
    pub blocks: Vec<BlockId>,
}

/// A list of operations, with arguments.
#[derive(Debug, Clone)]
pub struct Block {
    /// The region it belongs to.
    pub region: RegionId,
    /// Its arguments.
    pub arguments: Vec<ValueId>,
    /// Its operations in order.
    pub operations: Vec<OperationId>,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definition {
    /// A result of an operation.
    Result {
        /// The operation.
        operation: OperationId,
        /// Which of its results.
        index: usize,
    },
    /// An argument of a block.
    Argument {
        /// The block.
        block: BlockId,
        /// Which of its arguments.
        index: usize,
    },
}

/// One operand that is a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// The operation.
    pub operation: OperationId,
    /// Which of its operands.
    pub index: usize,
}

/// A value.
#[derive(Debug, Clone)]
pub struct Value {
    /// Its type.
    pub kind: Type,
    /// Where it comes from.
    pub definition: Definition,
    /// Every operand that is this value, in the order of the text.
    pub uses: Vec<Use>,
    /// Its name in the text without the `%`, such as `acc_12`, or `0#1` for the second result of `%0:2`.
    pub name: String,
}

/// A kernel as it was read: the arenas, and the operation that holds everything else.
#[derive(Debug, Clone)]
pub struct Module {
    pub(super) file: String,
    pub(super) top: OperationId,
    pub(super) operations: Vec<Operation>,
    pub(super) regions: Vec<Region>,
    pub(super) blocks: Vec<Block>,
    pub(super) values: Vec<Value>,
    pub(super) attribute_aliases: IndexMap<String, String>,
}

/// Identifiers are handed out by one module and belong to it alone: asking another module about them may panic.
impl Module {
    /// The name under which the text was read.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The `builtin.module` operation around everything; made up if the text has none.
    pub fn top(&self) -> OperationId {
        self.top
    }

    /// The operation of this identifier.
    pub fn operation(&self, id: OperationId) -> &Operation {
        &self.operations[id.index()]
    }

    /// The region of this identifier.
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    /// The block of this identifier.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// The value of this identifier.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The type of a value.
    pub fn type_of(&self, id: ValueId) -> &Type {
        &self.value(id).kind
    }

    /// Where a value comes from.
    pub fn definition(&self, id: ValueId) -> Definition {
        self.value(id).definition
    }

    /// The operation that defines a value, unless it is the argument of a block.
    pub fn defining_operation(&self, id: ValueId) -> Option<OperationId> {
        match self.definition(id) {
            Definition::Result { operation, .. } => Some(operation),
            Definition::Argument { .. } => None,
        }
    }

    /// Every operand that is this value.
    pub fn uses(&self, id: ValueId) -> &[Use] {
        &self.value(id).uses
    }

    /// The result of an operation that is read, the first of them; its first result if none is.
    pub fn read_result(&self, id: OperationId) -> Option<ValueId> {
        let results = &self.operation(id).results;
        results.iter().find(|value| !self.uses(**value).is_empty()).or(results.first()).copied()
    }

    /// How many operations there are, for tables indexed by [`OperationId::index`].
    pub fn operation_count(&self) -> usize {
        self.operations.len()
    }

    /// How many values there are, for tables indexed by [`ValueId::index`].
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// The operation whose region holds this one.
    pub fn parent(&self, id: OperationId) -> Option<OperationId> {
        Some(self.region(self.block(self.operation(id).block?).region).operation)
    }

    /// The entry block of the operation's first region: the body of a function or a loop.
    pub fn body(&self, id: OperationId) -> Option<BlockId> {
        self.region(*self.operation(id).regions.first()?).blocks.first().copied()
    }

    /// The last operation of a block.
    pub fn terminator(&self, id: BlockId) -> Option<OperationId> {
        self.block(id).operations.last().copied()
    }

    /// The text after an attribute alias such as `#blocked`.
    pub fn attribute_alias(&self, alias: &str) -> Option<&str> {
        self.attribute_aliases.get(alias).map(String::as_str)
    }

    /// The functions of the module, in the order of the text.
    pub fn functions(&self) -> impl Iterator<Item = OperationId> {
        let body = self.body(self.top).map_or(&[][..], |block| &self.block(block).operations);
        body.iter().copied().filter(|id| matches!(self.operation(*id).name.as_str(), "tt.func" | "func.func"))
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<OperationId> {
        self.functions().find(|id| self.function_name(*id) == Some(name))
    }

    /// The functions that are kernels: those not private.
    pub fn kernels(&self) -> impl Iterator<Item = OperationId> {
        self.functions().filter(|id| self.operation(*id).attributes.text("sym_visibility") != Some("private"))
    }

    /// The name of a function.
    pub fn function_name(&self, function: OperationId) -> Option<&str> {
        self.operation(function).attributes.text("sym_name")
    }

    /// The arguments of a function with a body.
    pub fn arguments(&self, function: OperationId) -> &[ValueId] {
        self.body(function).map_or(&[], |block| &self.block(block).arguments)
    }
}
