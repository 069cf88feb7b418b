//! Loads and stores through pointers that read or write a tile of a matrix, as a tensor descriptor would.
//!
//! The rule. A `tt.load` of two dimensions in a loop is such a load if, read as polynomials in the element's indices `x₀`
//! and `x₁`, the iteration's number and scalars of before the loop,
//!
//! - its pointers are `base + row · stride + column`, with `row = x₀ + r`, `column = x₁ + c` (or, for a tile that is read
//!   transposed, `row = x₁ + r`, `column = x₀ + c`), and no index in `r`, `c` and `stride`;
//! - its mask is `row < rows ∧ column < columns` and nothing else, in any order and form (`depth < K - k` says
//!   `k + depth < K`), where `rows` and `columns` are arguments of the kernel or constants;
//! - `row % rows` in the pointers instead of `row < rows` in the mask is as good, if no store writes what is computed from rows
//!   beyond the matrix ([`super::wrapped`]); so for columns;
//! - `r` and `c` cannot be negative: they are sums, with positive coefficients, of products of program numbers, iterations
//!   and what is computed of these, of constants and of arguments, or `tl.assume` says so; the launcher sees to it that those arguments are not
//!   negative. A descriptor reads zeros at negative coordinates, pointers read what stands there;
//! - what is masked off reads as zero, or is not specified;
//! - `base` and `stride` are arguments of the kernel (`stride` perhaps a constant), and multiples of 16 bytes: the caller
//!   promises so by `tt.divisibility`;
//! - the kernel writes nothing through `base`, and the load is not volatile.
//!
//! A `tt.store` outside of loops is such a store if the same holds of its pointers and mask, it is not transposed, and nothing
//! else is written through its `base`. A descriptor writes nothing at negative coordinates or beyond the matrix.
//!
//! The masks say which numbers row and column are, and the pointers must agree; so nothing is guessed. All is equal as long
//! as the kernel's own arithmetic does not overflow, where it would read elsewhere.

use std::collections::BTreeSet;

use crate::mlir::{Definition, ForLoop, Module, OperationId, Type, ValueId};

use crate::operations::{Memory, memory};
use crate::polynomial::{Polynomial, Symbol};
use crate::tile::{Amount, Matrix, MatrixTile};

use super::affine::Reader;
use super::wrapped::{self, Wrap};

/// Bytes that TMA moves at least, and of which addresses and strides are multiples.
const GRANULE: u64 = 16;

/// The tile of a matrix that a `tt.load` of a loop's body reads; `None` where that is not proved.
pub(super) fn tile(
    module: &Module,
    function: OperationId,
    parts: &ForLoop<'_>,
    load: OperationId,
) -> Option<MatrixTile> {
    let operation = module.operation(load);
    let [pointers, mask, rest @ ..] = operation.operands.as_slice() else { return None };
    if operation.name != "tt.load" || operation.attributes.get("isVolatile").is_some() {
        return None;
    }
    let is_zero = |v: &ValueId| module.float_constant(*v) == Some(0.0) || module.integer_constant(*v) == Some(0);
    let kind = module.type_of(*operation.results.first()?);
    let bytes = element_bytes(kind.element())?;
    let shape = <[u64; 2]>::try_from(kind.known_shape()?).ok()?;
    if !rest.iter().all(is_zero) {
        return None;
    }
    let recognizer = Recognizer { module, function, reader: Reader::new(module, function, Some(parts)) };
    let loaded = *operation.results.first()?;
    recognizer.tile(Access { pointers: *pointers, mask: *mask, shape, bytes, store: None, loaded: Some(loaded) })
}

/// The tile of a matrix that a `tt.store` outside of loops writes; `None` where that is not proved.
pub(super) fn stored(module: &Module, function: OperationId, store: OperationId) -> Option<MatrixTile> {
    let operation = module.operation(store);
    let [pointers, value, mask] = operation.operands.as_slice() else { return None };
    if operation.name != "tt.store" {
        return None;
    }
    let kind = module.type_of(*value);
    let bytes = element_bytes(kind.element())?;
    let shape = <[u64; 2]>::try_from(kind.known_shape()?).ok()?;
    let recognizer = Recognizer { module, function, reader: Reader::new(module, function, None) };
    let access = Access { pointers: *pointers, mask: *mask, shape, bytes, store: Some(store), loaded: None };
    recognizer.tile(access).filter(|tile| !tile.transposed)
}

/// The memory that is read or written.
struct Access {
    pointers: ValueId,
    mask: ValueId,
    shape: [u64; 2],
    /// The size of an element.
    bytes: u64,
    /// The operation, if it writes.
    store: Option<OperationId>,
    /// Its operands.
    loaded: Option<ValueId>,
}

impl Recognizer<'_> {
    fn tile(&self, Access { pointers, mask, shape, bytes, store, loaded }: Access) -> Option<MatrixTile> {
        let along = [Some(0), Some(1)];
        let (base, offset) = self.reader.pointer(pointers, &along)?;
        let wraps = self.reader.take_wraps();
        let mut conditions = self.reader.conditions(mask, &along)?;
        // A mask that begins again says nothing of what lies beyond the end.
        if !self.reader.take_wraps().is_empty() {
            return None;
        }
        let is_hidden = |value, wrap: &Wrap| wrapped::is_hidden(self.module, self.function, value, wrap);
        if !wraps.iter().all(|wrap| loaded.is_some_and(|value| is_hidden(value, wrap))) {
            return None;
        }
        conditions.extend(wraps.into_iter().map(|wrap| wrap.before_end));
        if !self.is_multiple_of_16(base) || self.is_written(base, store) {
            return None;
        }
        if conditions.iter().any(|c| !c.mentions(Symbol::Index(0)) && !c.mentions(Symbol::Index(1))) {
            return None;
        }
        let bounds = [self.bounds(&conditions, 0)?, self.bounds(&conditions, 1)?];
        [false, true].into_iter().find_map(|transposed| {
            let order = if transposed { [1, 0] } else { [0, 1] };
            let [row, column] = order;
            // The tensor core reads columns of 16 bits as well as rows.
            if transposed && bytes != 2 || shape[column].checked_mul(bytes)? % GRANULE != 0 {
                return None;
            }
            let stride = stride(&offset, row).filter(|stride| self.is_aligned(*stride, bytes))?;
            let pairs = bounds[row].iter().flat_map(|r| bounds[column].iter().map(move |c| (r, c)));
            pairs.into_iter().find_map(|(rows, columns)| {
                let tile_origin = [rows.start.clone(), columns.start.clone()];
                let agrees = offset_of(&tile_origin, stride, order).as_ref() == Some(&offset);
                let matrix = Matrix { base, extents: [rows.extent, columns.extent], stride };
                let natural = rows.natural.union(&columns.natural).copied().collect();
                agrees.then_some(MatrixTile { matrix, tile_origin, transposed, natural })
            })
        })
    }
}

/// The statements that a mask may make about an index.
struct Bound {
    /// The extent of the matrix.
    extent: Amount,
    /// Where the tile begins.
    start: Polynomial,
    /// Arguments that must not be negative, so that `start` is not.
    natural: BTreeSet<ValueId>,
}

/// Bytes of an element, if TMA moves such.
fn element_bytes(element: &Type) -> Option<u64> {
    match element.scalar_bits()? {
        bits @ (8 | 16 | 32) => Some(u64::from(bits / 8)),
        _ => None,
    }
}

/// The stride of the index along the matrix's rows.
fn stride(offset: &Polynomial, row: usize) -> Option<Amount> {
    let mut with_row = offset.terms().filter(|(product, _)| product.contains(&Symbol::Index(row)));
    let (Some(one), None) = (with_row.next(), with_row.next()) else { return None };
    match one {
        ([Symbol::Index(_)], elements) => Some(Amount::Constant(u64::try_from(elements).ok()?)),
        ([Symbol::Index(_), Symbol::Scalar(value)], 1) => Some(Amount::Argument(*value)),
        _ => None,
    }
}

/// The offset of the tile's element from the matrix's first one.
fn offset_of(tile_origin: &[Polynomial; 2], stride: Amount, order: [usize; 2]) -> Option<Polynomial> {
    let [row, column] = [0, 1].map(|k| tile_origin[k].plus(&Polynomial::symbol(Symbol::Index(order[k]))));
    let stride = match stride {
        Amount::Argument(value) => Polynomial::symbol(Symbol::Scalar(value)),
        Amount::Constant(elements) => Polynomial::constant(i128::from(elements)),
    };
    row?.times(&stride)?.plus(&column?)
}

struct Recognizer<'m> {
    module: &'m Module,
    function: OperationId,
    reader: Reader<'m>,
}

impl Recognizer<'_> {
    /// The statements that a condition may make about an index.
    fn bounds(&self, conditions: &[Polynomial], dimension: usize) -> Option<Vec<Bound>> {
        let index = Symbol::Index(dimension);
        let mut about = conditions.iter().filter(|c| c.mentions(index));
        let condition = about.next()?;
        if about.any(|other| other != condition) {
            return None;
        }
        // extent - (index + start) > 0
        let rest = condition.plus(&Polynomial::symbol(index))?;
        let is_index = |symbol: &Symbol| matches!(symbol, Symbol::Index(_));
        if rest.terms().any(|(product, _)| product.iter().any(is_index)) {
            return None;
        }
        let mut extents = Vec::new();
        for (product, coefficient) in rest.terms() {
            match (product, coefficient) {
                ([Symbol::Scalar(value)], 1) if self.is_argument(*value) => extents.push(Amount::Argument(*value)),
                ([], constant) => extents.extend(u64::try_from(constant).ok().map(Amount::Constant)),
                _ => {}
            }
        }
        let start = |extent: Amount| {
            let extent = match extent {
                Amount::Argument(value) => Polynomial::symbol(Symbol::Scalar(value)),
                Amount::Constant(elements) => Polynomial::constant(i128::from(elements)),
            };
            extent.minus(&rest)
        };
        let bound = |extent: Amount| {
            let start = start(extent)?;
            Some(Bound { extent, natural: self.natural_if(&start)?, start })
        };
        Some(extents.into_iter().filter_map(bound).collect())
    }

    /// Arguments such that a coordinate is not negative if they are not. It has 32 bits.
    fn natural_if(&self, start: &Polynomial) -> Option<BTreeSet<ValueId>> {
        let mut natural = BTreeSet::new();
        for (product, coefficient) in start.terms() {
            for symbol in product {
                match symbol {
                    Symbol::Scalar(value) if *self.module.type_of(*value) == Type::Integer(32) => {
                        natural.extend(self.reader.natural_if(*value)?);
                    }
                    Symbol::Iteration => {}
                    Symbol::Scalar(_) | Symbol::Index(_) => return None,
                }
            }
            if coefficient < 0 {
                return None;
            }
        }
        Some(natural)
    }

    fn is_argument(&self, value: ValueId) -> bool {
        self.module.arguments(self.function).contains(&value)
    }

    /// Returns whether the caller promises an argument that is a multiple of 16 (bytes, if it is a pointer).
    fn is_multiple_of_16(&self, value: ValueId) -> bool {
        let index = self.module.arguments(self.function).iter().position(|v| *v == value);
        let attributes = index.and_then(|index| self.module.argument_attributes(self.function, index));
        let divisor = attributes.and_then(|a| a.integer("tt.divisibility"));
        divisor.is_some_and(|divisor| divisor > 0 && divisor % 16 == 0)
    }

    fn is_aligned(&self, stride: Amount, bytes: u64) -> bool {
        match stride {
            Amount::Argument(value) => self.is_multiple_of_16(value),
            Amount::Constant(elements) => elements.checked_mul(bytes).is_some_and(|b| b > 0 && b % GRANULE == 0),
        }
    }

    /// Returns whether an address at which the kernel writes, but for one store, is made of this argument.
    fn is_written(&self, base: ValueId, but: Option<OperationId>) -> bool {
        let module = self.module;
        let mut seen = vec![false; module.value_count()];
        let mut next: Vec<ValueId> = Vec::new();
        for id in module.walk(self.function).filter(|id| Some(*id) != but) {
            let operation = module.operation(id);
            if let Some(Memory::Store { .. } | Memory::Atomic { .. }) = memory(&operation.name) {
                next.extend(operation.operands.first());
            }
        }
        while let Some(value) = next.pop() {
            if value == base {
                return true;
            }
            if std::mem::replace(&mut seen[value.index()], true) {
                continue;
            }
            match module.definition(value) {
                // Nested operations may make its result.
                Definition::Result { operation, .. } => {
                    next.extend(module.walk(operation).flat_map(|id| &module.operation(id).operands));
                }
                Definition::Argument { .. } if self.is_argument(value) => {}
                Definition::Argument { .. } => {
                    let carried = |l: &ForLoop<'_>| l.carried.iter().position(|v| *v == value);
                    let of_loop = module.for_loops(self.function).find_map(|l| Some((l, carried(&l)?)));
                    let Some((l, k)) = of_loop else { return true };
                    next.extend([l.initial[k], l.yielded[k]]);
                }
            }
        }
        false
    }
}
