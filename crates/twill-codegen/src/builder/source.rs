//! The loops of a kernel with their schedules, and the producers of their values.

use crate::ir::Region;
use crate::passes::steps::program::{BufferId, BufferKind, LoopProgram};
use crate::passes::steps::scheduled_graph::ReorderingOptions;
use crate::target::hopper;
use std::collections::{HashMap, HashSet};
use twill_check::Verified;
use twill_graph::{GroupId, OpId, Problem, Schedule};
use twill_triton::mlir::{ForLoop, Module, OperationId, Type, ValueId};
use twill_triton::tile::{self, Role, TileId, TileLoop, TileOpKind, TileOperation, Transfer};
use twill_triton::{Access, AxisInfos, Lowered, Stands};

/// A loop that was lowered and scheduled.
#[derive(Clone, Copy, Debug)]
pub struct ScheduledLoop<'a> {
    /// What it was lowered to.
    pub lowered: &'a Lowered,
    /// Its scheduling problem.
    pub problem: &'a Problem,
    /// The schedule that was found.
    pub schedule: &'a Verified<Schedule>,
}

/// The operation of a loop that makes a part of a value.
#[derive(Clone, Debug)]
pub(crate) struct Producer {
    /// The operation of the graph.
    pub op: OpId,
    /// Which part of the value.
    pub region: Region,
    /// For which of the programs that share the CTA.
    pub program: Option<u32>,
}

/// A loop with the tables that code generation asks.
pub(crate) struct LoopFacts<'a> {
    pub parts: ForLoop<'a>,
    pub tiles: &'a TileLoop,
    pub problem: &'a Problem,
    pub schedule: &'a Schedule,
    pub program: LoopProgram,
    pub stands_for: &'a [Stands],
    /// The operations that make a value of the TTIR.
    pub producers: HashMap<ValueId, Vec<Producer>>,
    /// The operation that stores a tile to shared memory.
    pub to_shared: HashMap<tile::ValueId, OpId>,
    /// Sums that are carried in per-thread partials, by the operation that makes the new sum.
    pub sums: HashMap<OpId, crate::builder::planned::CarriedSum>,
    /// The graph's operation for an operation on tiles.
    pub ops: HashMap<TileId, OpId>,
    /// How threads move what the pointers of a load point to.
    accesses: HashMap<OpId, Access>,
    /// `wgmma` multiplies elements of 32 bits.
    tf32: bool,
    /// A left operand of 8 bits may be in registers.
    left_of_8_bits: bool,
    /// Operations that store a tile transposed, as right operands of 32 bits are to lie along the depth.
    turned: HashSet<OpId>,
}

impl<'a> LoopFacts<'a> {
    pub fn new(
        module: &'a Module,
        infos: &AxisInfos<'_>,
        one: ScheduledLoop<'a>,
        options: &crate::options::Options,
    ) -> Option<LoopFacts<'a>> {
        let programs = options.programs.is_some();
        let tiles = &one.lowered.tiles;
        let parts = module.for_loop(tiles.statement())?;
        let reordering = ReorderingOptions {
            mma_batches: options.mma_batches,
            ring_depth: options.ring_depth,
            // Half a multicast tile arrives in each CTA.
            shared_barriers: options.shared_barriers && !options.cluster,
            shorter_pipelines: options.shorter_pipelines,
        };
        let mut facts = LoopFacts {
            parts,
            tiles,
            problem: one.problem,
            schedule: one.schedule,
            program: LoopProgram::for_code(one.problem, one.schedule, reordering),
            stands_for: &one.lowered.stands_for,
            producers: HashMap::new(),
            to_shared: HashMap::new(),
            sums: HashMap::new(),
            ops: HashMap::new(),
            accesses: HashMap::new(),
            tf32: options.tf32 && !options.shares.mma_sync_of_32_bits,
            left_of_8_bits: options.left_of_8_bits,
            turned: HashSet::new(),
        };
        for (op, stands) in one.problem.graph().op_ids().zip(facts.stands_for) {
            match *stands {
                Stands::Tile(id) => {
                    facts.ops.insert(id, op);
                    let operation = tiles.operation(id);
                    if let (TileOpKind::Load(Transfer::Pointer), Some(load)) =
                        (&operation.kind, operation.statements.last())
                        && let [pointers, rest @ ..] = module.operation(*load).operands.as_slice()
                    {
                        let access = infos.access(*pointers, rest.first().copied());
                        let part = facts.region(module, operation).extents;
                        facts.accesses.insert(op, within(access, &part));
                    }
                    if let (Some(value), Some(_)) = (value_of(module, operation), operation.result) {
                        let program = if programs { operation.sub_tile } else { None };
                        let region = facts.region(module, operation);
                        facts.producers.entry(value).or_default().push(Producer { op, region, program });
                    }
                }
                Stands::ToShared(value) => {
                    facts.to_shared.insert(value, op);
                }
                Stands::ToTensor(_) | Stands::Accumulator(_) | Stands::FromTensor(..) => {}
            }
        }
        facts.turned = facts.stored_transposed(module);
        Some(facts)
    }

    /// The operations that store a tile of the loop which is a right operand of MMAs in tf32, and nothing else of MMAs.
    fn stored_transposed(&self, module: &Module) -> HashSet<OpId> {
        let (mut along_depth, mut others) = (HashSet::new(), HashSet::new());
        for op in self.problem.graph().op_ids() {
            let Some(tile) = self.tile_operation(op).filter(|o| matches!(o.kind, TileOpKind::Dot { .. })) else {
                continue;
            };
            let Some(id) = tile.statements.last().copied() else { continue };
            let &[left, right, ..] = module.operation(id).operands.as_slice() else { continue };
            let own = untransposed(module, right);
            let is_along = self.tf32 && own == right && is_tf32(module, id);
            (if is_along { &mut along_depth } else { &mut others }).insert(own);
            others.insert(untransposed(module, left));
        }
        let stores = |value: &ValueId| {
            let made = self.producers.get(value).into_iter().flatten().filter(|producer| !self.is_load(producer.op));
            made.filter_map(|producer| self.to_shared.get(&self.tile_operation(producer.op)?.result?).copied())
                .collect::<Vec<_>>()
        };
        along_depth.difference(&others).flat_map(stores).collect()
    }

    /// The operation on tiles that an operation of the graph is.
    pub fn tile_operation(&self, op: OpId) -> Option<&'a TileOperation> {
        match self.stands_for.get(op.index())? {
            Stands::Tile(id) => Some(self.tiles.operation(*id)),
            _ => None,
        }
    }

    pub fn group(&self, op: OpId) -> GroupId {
        self.schedule.placement(op).group
    }

    /// Which part of the tensor of the source an operation makes, or stores.
    pub fn region(&self, module: &Module, operation: &TileOperation) -> Region {
        let shape = |value: ValueId| module.type_of(value).known_shape().unwrap_or_default();
        let index = operation.sub_tile.unwrap_or(0);
        if let (Some(result), Some(value)) = (operation.result, value_of(module, operation)) {
            return Region::part(&shape(value), &self.tiles.tile(result).shape, index);
        }
        let stored = operation.statements.last().and_then(|id| module.operation(*id).operands.get(1));
        let input = operation.operand(Role::Input);
        match (stored, input) {
            (Some(value), Some(input)) => Region::part(&shape(*value), &input.shape, index),
            // A constant is no tile of the loop, and is not cut.
            (Some(value), None) => Region::whole(&shape(*value)),
            (None, _) => Region::whole(&[]),
        }
    }

    /// The buffer of the loop's program that an operation's result is in.
    pub fn buffer(&self, op: OpId) -> Option<BufferId> {
        let data = |kind: BufferKind| !matches!(kind, BufferKind::Order(_));
        let position = self.program.buffers.iter().position(|b| data(b.kind) && b.values.iter().any(|v| v.op == op));
        position.map(BufferId)
    }

    /// Whether an operation is a load.
    pub fn is_load(&self, op: OpId) -> bool {
        self.tile_operation(op).is_some_and(|o| matches!(o.kind, TileOpKind::Load(_)))
    }

    /// Whether the tile that an operation loads is put transposed into shared memory, as it lies in global memory.
    pub fn is_turned(&self, op: OpId) -> bool {
        if self.turned.contains(&op) {
            return true;
        }
        let Some(tile) = self.tile_operation(op) else { return false };
        match self.accesses.get(&op) {
            Some(access) => access.dimension == 0 && tile.result.is_some_and(|r| self.tiles.tile(r).shape.len() == 2),
            None => {
                tile.statements.last().and_then(|id| self.tiles.matrix_tile(*id)).is_some_and(|tile| tile.transposed)
            }
        }
    }

    /// How threads move what the pointers of a load point to; none for other operations.
    pub fn access(&self, op: OpId) -> Option<Access> {
        self.accesses.get(&op).copied()
    }

    /// Whether threads load a tile through registers: `cp.async` copies no less than [`Self::LEAST_COPIED`].
    pub fn loads_through_registers(&self, module: &Module, op: OpId) -> bool {
        let value = self.tile_operation(op).and_then(|tile| value_of(module, tile));
        let bits = value.and_then(|value| module.type_of(value).element().scalar_bits()).map_or(0, u64::from);
        self.access(op).is_some_and(|access| access.elements * bits < 8 * Self::LEAST_COPIED)
    }

    /// Bytes that `cp.async` copies at least (PTX ISA, `cp.async`: 4, 8 or 16).
    const LEAST_COPIED: u64 = 4;

    /// Whether `wgmma` does an MMA: 64 rows or a multiple of them, in elements of 16 bits, or of 8 or 32 bits (tf32) whose depth is
    /// contiguous in shared memory (PTX ISA, `wgmma.mma_async`: only elements of 16 bits may be transposed).
    pub fn is_wgmma(&self, module: &Module, op: OpId) -> bool {
        let Some(tile) = self.tile_operation(op).filter(|o| matches!(o.kind, TileOpKind::Dot { .. })) else {
            return false;
        };
        let operands = tile.statements.last().map(|id| module.operation(*id).operands.as_slice()).unwrap_or_default();
        let &[left, right, sum, ..] = operands else { return false };
        let kinds = [left, right, sum].map(|value| module.type_of(value).element().clone());
        let is_of = match kinds {
            [Type::Float(a), Type::Float(b), Type::Float(_)] if a.bits() == 16 && b.bits() == 16 => true,
            [Type::Float(a), Type::Float(b), Type::Float(_)] if a.bits() == 8 && b.bits() == 8 => {
                self.are_by_depth(module, left, right)
            }
            [Type::Integer(8), Type::Integer(8), Type::Integer(32)] => self.are_by_depth(module, left, right),
            [Type::Float(a), Type::Float(b), Type::Float(_)] if a.bits() == 32 && b.bits() == 32 => {
                self.tf32
                    && tile.statements.last().is_some_and(|id| is_tf32(module, *id))
                    && self.are_by_depth(module, left, right)
            }
            _ => false,
        };
        let rows = self.region(module, tile).extents.first().copied().unwrap_or(0);
        is_of && rows > 0 && rows.is_multiple_of(hopper::MMA_ROWS)
    }

    /// Bits of an element of an MMA's operands.
    pub fn mma_bits(&self, module: &Module, op: OpId) -> u32 {
        let statement = self.tile_operation(op).and_then(|tile| tile.statements.last().copied());
        let left = statement.and_then(|id| module.operation(id).operands.first().copied());
        left.and_then(|left| module.type_of(left).element().scalar_bits()).unwrap_or(16)
    }

    /// Whether both operands' elements follow each other along the depth where they stand in shared memory.
    fn are_by_depth(&self, module: &Module, left: ValueId, right: ValueId) -> bool {
        // What threads of the loop make of 8 bits is a left operand in registers, which lie in either order.
        let is_made = || self.producers.get(&left).and_then(|all| all.first()).is_some_and(|p| !self.is_load(p.op));
        let in_registers = self.left_of_8_bits && module.type_of(left).element().scalar_bits() == Some(8) && is_made();
        (in_registers || self.contiguous_dimension(module, left) == Some(1))
            && self.contiguous_dimension(module, right) == Some(0)
    }

    /// The dimension along which a matrix is contiguous where it stands in shared memory; `None` where that is not known.
    fn contiguous_dimension(&self, module: &Module, value: ValueId) -> Option<usize> {
        if let Some(producer) = self.producers.get(&value).and_then(|all| all.first())
            && self.is_load(producer.op)
        {
            return Some(if self.is_turned(producer.op) { 0 } else { 1 });
        }
        // What threads of the loop make is stored row by row, unless it is to be transposed.
        if let Some(producer) = self.producers.get(&value).and_then(|all| all.first())
            && module.type_of(value).element().scalar_bits() == Some(32)
        {
            let stored = self.tile_operation(producer.op).and_then(|tile| self.to_shared.get(&tile.result?));
            return Some(if stored.is_some_and(|op| self.turned.contains(op)) { 0 } else { 1 });
        }
        let operation = module.operation(module.defining_operation(value)?);
        match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.trans", [inner]) => self.contiguous_dimension(module, *inner).map(|d| 1 - d),
            ("tt.descriptor_load", _) => Some(1),
            _ => None,
        }
    }

    /// Which carried value an argument of the body is.
    pub fn carried(&self, value: ValueId) -> Option<usize> {
        self.parts.carried.iter().position(|v| *v == value)
    }
}

/// How threads move a part of these extents: along its last dimension, which the first of two becomes.
fn within(access: Access, part: &[u64]) -> Access {
    let last = part.len().saturating_sub(1);
    if access.dimension != last && part.len() != 2 {
        return Access { dimension: last, elements: 1 };
    }
    let extent = part.get(access.dimension).copied().unwrap_or(1);
    Access { elements: access.elements.min(extent), ..access }
}

/// The value of the TTIR that an operation makes.
pub(crate) fn value_of(module: &Module, operation: &TileOperation) -> Option<ValueId> {
    let last: OperationId = *operation.statements.last()?;
    module.read_result(last)
}

/// Whether an MMA of 32-bit elements may round them to tf32.
fn is_tf32(module: &Module, id: OperationId) -> bool {
    let is_of_32_bits = |value: &ValueId| module.type_of(*value).element().scalar_bits() == Some(32);
    let operation = module.operation(id);
    operation.attributes.text("inputPrecision") == Some("tf32") && operation.operands.first().is_some_and(is_of_32_bits)
}

/// What a value is the transposition of, or itself.
fn untransposed(module: &Module, value: ValueId) -> ValueId {
    let operation = module.defining_operation(value).map(|id| module.operation(id));
    match operation.map(|operation| (operation.name.as_str(), operation.operands.as_slice())) {
        Some(("tt.trans", [inner])) => untransposed(module, *inner),
        _ => value,
    }
}
