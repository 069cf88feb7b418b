//! What of a loop can run ahead of it: loads through pointers whose addresses need nothing that the loop computes, and that see nothing
//! of what it writes.

use super::{Builder, constant, rings};
use crate::builder::bases::{bases, may_meet};
use crate::ir::ExpressionKind;
use std::collections::{BTreeSet, HashSet};
use twill_triton::kernel::is_pure;
use twill_triton::mlir::{Attribute, Definition, ForLoop, Operation, OperationId, ValueId};

/// Least bytes that a thread copies at once (PTX, `cp.async`).
const LEAST_COPIED: u64 = 4;
/// Least bytes of a tile that is worth a slot, and of a row. Both are reckoned; others were not timed.
const LEAST_TILE: u64 = 512;
const LEAST_ROW: u64 = 64;
/// Most bytes of a tile that is loaded to registers ahead.
const MOST_PREFETCHED: u64 = 8 << 10;
/// Most slots of a ring. That, and the two numbers of bytes below, are chosen by reckoning; others were not timed.
const MOST_SLOTS: u32 = 4;
/// Most slots where a number of stages is asked for.
const MOST_STAGES: u32 = 8;
/// Warps of the CTAs that the next two are for.
const USUAL_WARPS: u64 = 4;
/// Bytes of all rings of a loop up to which there are as many slots: so several CTAs share a multiprocessor.
const SEVERAL_CTAS: u64 = 72 << 10;
/// Bytes of all rings up to which there are three.
const TWO_CTAS: u64 = 104 << 10;
/// Most bytes that the threads that run ahead load at once and wait for: indices.
const MOST_INDICES: u64 = 4096;

/// A load that is made by `cp.async`.
#[derive(Clone, Copy)]
pub(super) struct AsyncLoad {
    pub id: OperationId,
    /// Neighbours that a thread copies at once.
    pub elements: u64,
    /// Neighbours in memory are those along the first dimension.
    pub turned: bool,
}

/// What of a loop runs ahead.
pub(super) struct Plan {
    /// What is copied.
    pub copies: Vec<AsyncLoad>,
    /// What computes the addresses, in the order of the text.
    pub slice: Vec<OperationId>,
    /// What the loop carries for it.
    pub carried: BTreeSet<usize>,
    /// Slots of the rings; none where nothing is copied.
    pub slots: u32,
    /// What is loaded to registers an iteration ahead.
    pub prefetched: Vec<OperationId>,
}

impl Builder<'_> {
    /// What of a loop runs ahead; none where nothing can.
    pub(super) fn plan(&self, parts: &ForLoop<'_>) -> Option<Plan> {
        let module = self.module;
        let operations = &module.block(parts.body).operations;
        let within: Vec<OperationId> = module.walk(parts.operation).skip(1).collect();
        let name = |id: &OperationId| module.operation(*id).name.as_str();
        let is_unsigned = module.operation(parts.operation).attributes.flag("unsignedCmp");
        if is_unsigned || within.iter().any(|id| matches!(name(id), "scf.for" | "scf.while")) {
            return None;
        }
        let trips = match [parts.lower, parts.upper, parts.step].map(|v| module.integer_constant(v)) {
            [Some(lower), Some(upper), Some(step)] if step > 0 => Some((upper - lower + step - 1) / step),
            _ => None,
        };
        if trips.is_some_and(|trips| trips < 2) {
            return None;
        }
        let ahead = self.ahead?;
        // Triton's `num_stages`: of the loop, or of all loops that multiply in each iteration.
        let own = module.operation(parts.operation).attributes.integer("tt.num_stages");
        let multiplies = operations.iter().any(|id| name(id).starts_with("tt.dot"));
        let stages = match (own.and_then(|n| u32::try_from(n).ok()), ahead.stages) {
            (Some(own), _) => Some(own),
            (None, Some(stages)) => Some(if multiplies { stages } else { 1 }),
            (None, None) => None,
        };
        if stages.is_some_and(|stages| stages <= 1) {
            return None;
        }
        // What is written in the loop, and what has effects that nobody knows.
        let mut written = Vec::new();
        for id in &within {
            let operation = module.operation(*id);
            match operation.name.as_str() {
                // What is loaded behind one that others signal by may be what they wrote before.
                "tt.atomic_rmw" | "tt.atomic_cas" if self.is_used(operation.results.first()) => return None,
                "tt.store"
                | "tt.atomic_rmw"
                | "tt.atomic_cas"
                | "tt.descriptor_store"
                | "tt.descriptor_reduce"
                | "tt.descriptor_scatter" => {
                    written.push(bases(module, self.function, *operation.operands.first()?));
                }
                "tt.load"
                | "tt.descriptor_load"
                | "tt.descriptor_gather"
                | "scf.if"
                | "scf.yield"
                | "llvm.intr.assume" => {}
                _ if is_pure(operation) || self.is_of_combination(*id) => {}
                _ => return None,
            }
        }
        let is_written = |pointers: ValueId| {
            let read = bases(module, self.function, pointers);
            written.iter().any(|written| may_meet(&read, written))
        };
        let (mut found, mut prefetched) = (Vec::new(), Vec::new());
        for id in operations {
            let operation = module.operation(*id);
            let Some(pointers) = operation.operands.first().filter(|_| operation.name == "tt.load") else { continue };
            if !is_written(*pointers)
                && !is_volatile(operation)
                && let Some(needs) = self.needs(parts, &operation.operands)
                && !needs.0.iter().any(|id| name(id) == "tt.load" && is_written(module.operation(*id).operands[0]))
            {
                match self.access(*id) {
                    Some((elements, turned)) => found.push((AsyncLoad { id: *id, elements, turned }, needs)),
                    None if self.bytes(operation.results[0]) <= MOST_PREFETCHED => prefetched.push(*id),
                    None => {}
                }
            }
        }
        // What others need to find their addresses is waited for.
        let needed: HashSet<OperationId> = found.iter().flat_map(|(_, needs)| needs.0.iter().copied()).collect();
        let of_prefetched = |id: &OperationId| self.needs(parts, &module.operation(*id).operands);
        let by_prefetched: HashSet<OperationId> =
            prefetched.iter().filter_map(of_prefetched).flat_map(|n| n.0).collect();
        found.retain(|(one, _)| !needed.contains(&one.id) && !by_prefetched.contains(&one.id));
        prefetched.retain(|id| self.is_read(parts, *id, &needed));
        if found.is_empty() {
            let is_any = !prefetched.is_empty();
            let (copies, slice, carried) = (Vec::new(), Vec::new(), BTreeSet::new());
            return is_any.then_some(Plan { copies, slice, carried, slots: 0, prefetched });
        }
        let slice: BTreeSet<OperationId> = found.iter().flat_map(|(_, needs)| needs.0.iter().copied()).collect();
        let carried = found.iter().flat_map(|(_, needs)| needs.1.iter().copied()).collect();
        let copies: Vec<AsyncLoad> = found.iter().map(|(one, _)| *one).collect();
        let bytes: u64 = copies.iter().map(|one| self.bytes(module.operation(one.id).results[0])).sum();
        let most = stages.map_or(MOST_SLOTS, |stages| stages.clamp(2, MOST_STAGES));
        let most = trips.map_or(most, |trips| u32::try_from(trips).unwrap_or(most).min(most));
        // More of smaller CTAs share a multiprocessor.
        let of = |bytes: u64| (bytes * u64::from(ahead.warps) / USUAL_WARPS).min(ahead.ring_bytes);
        let limit = |slots: u32| match slots {
            3 if stages.is_none() => of(TWO_CTAS),
            4.. if stages.is_none() => of(SEVERAL_CTAS),
            _ => ahead.ring_bytes,
        };
        let fits = |slots: &u32| {
            bytes * u64::from(*slots) <= limit(*slots) && self.ring_bytes(&copies, *slots) <= ahead.ring_bytes
        };
        let slots = (2..=most).rev().find(fits)?;
        let slice = operations.iter().copied().filter(|id| slice.contains(id)).collect();
        Some(Plan { copies, slice, carried, slots, prefetched })
    }

    /// Whether something of an iteration reads what a load brings, besides addresses of what runs ahead.
    fn is_read(&self, parts: &ForLoop<'_>, load: OperationId, ahead: &HashSet<OperationId>) -> bool {
        let module = self.module;
        let value = module.operation(load).results[0];
        let is_reader = |id: &OperationId| module.operation(*id).operands.contains(&value);
        !ahead.contains(&load) || module.walk(parts.operation).filter(is_reader).any(|id| !ahead.contains(&id))
    }

    fn is_used(&self, value: Option<&ValueId>) -> bool {
        let module = self.module;
        value.is_some_and(|value| module.walk(self.function).any(|id| module.operation(id).operands.contains(value)))
    }

    /// Whether an operation is of the region by which elements are combined.
    fn is_of_combination(&self, id: OperationId) -> bool {
        let module = self.module;
        let around = module.operation(id).block.map(|block| module.region(module.block(block).region).operation);
        around.is_some_and(|around| matches!(module.operation(around).name.as_str(), "tt.reduce" | "tt.scan"))
    }

    pub(super) fn bytes(&self, value: ValueId) -> u64 {
        let kind = self.module.type_of(value);
        rings::bytes(&kind.known_shape().unwrap_or_default(), kind.element())
    }

    /// How a load is copied, if it can be: how many neighbours at once, and whether they lie along the first dimension.
    fn access(&self, id: OperationId) -> Option<(u64, bool)> {
        let module = self.module;
        let operation = module.operation(id);
        let (pointers, result) = (*operation.operands.first()?, *operation.results.first()?);
        let kind = module.type_of(result);
        let shape = kind.known_shape().filter(|shape| matches!(shape.len(), 1 | 2))?;
        let bits = kind.element().scalar_bits().filter(|bits| *bits >= 8)?;
        if self.bytes(result) < if shape.len() == 1 { LEAST_ROW } else { LEAST_TILE } {
            return None;
        }
        if let Some(other) = operation.operands.get(2) {
            let zero = constant(module, *other)?;
            if !matches!(zero.kind, ExpressionKind::Integer(0))
                && !matches!(zero.kind, ExpressionKind::Float(x) if x == 0.0 && x.is_sign_positive())
            {
                return None;
            }
        }
        let access = self.axis_infos.access(pointers, operation.operands.get(1).copied());
        let turned = shape.len() == 2 && access.dimension == 0;
        (access.elements * u64::from(bits) / 8 >= LEAST_COPIED).then_some((access.elements, turned))
    }

    /// What of a loop's body values need, and what the loop carries for it; none where that is more than addresses are made of.
    pub(super) fn needs(
        &self,
        parts: &ForLoop<'_>,
        values: &[ValueId],
    ) -> Option<(HashSet<OperationId>, BTreeSet<usize>)> {
        let module = self.module;
        let (mut needed, mut carried) = (HashSet::new(), BTreeSet::new());
        let mut work = values.to_vec();
        let mut seen: HashSet<ValueId> = HashSet::new();
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            match module.definition(value) {
                Definition::Argument { block, index } if block == parts.body => {
                    if let Some(k) = index.checked_sub(1) {
                        carried.insert(k);
                        work.push(*parts.yielded.get(k)?);
                    }
                }
                Definition::Result { operation: id, .. } => {
                    let operation = module.operation(id);
                    if operation.block != Some(parts.body) {
                        // Of outside; what is made within a branch is read there alone.
                        continue;
                    }
                    let is_index =
                        operation.name == "tt.load" && !is_volatile(operation) && self.bytes(value) <= MOST_INDICES;
                    let is_arithmetic = |id: OperationId| {
                        let operation = module.operation(id);
                        is_pure(operation) && !operation.name.starts_with("tt.dot")
                    };
                    // What a flattened loop computes anew with each tile.
                    let is_within = |id: OperationId| {
                        matches!(module.operation(id).name.as_str(), "scf.if" | "scf.yield") || is_arithmetic(id)
                    };
                    let is_branch = operation.name == "scf.if" && module.walk(id).all(is_within);
                    if !(is_index || is_arithmetic(id) || is_branch) {
                        return None;
                    }
                    needed.insert(id);
                    work.extend(&operation.operands);
                    if is_branch {
                        work.extend(module.walk(id).flat_map(|id| &module.operation(id).operands));
                    }
                }
                Definition::Argument { .. } => {}
            }
        }
        Some((needed, carried))
    }
}

/// Whether a load must be made where it stands: each time anew from memory.
fn is_volatile(operation: &Operation) -> bool {
    let cache = operation.attributes.get("cache");
    let is_cv = matches!(cache, Some(Attribute::Enumeration(word) | Attribute::Other(word)) if word == "cv");
    operation.attributes.flag("isVolatile") || is_cv
}
