//! Items that take room, from when to when (docs/model.md: live values, consumer registers, handoff buffers,
//! reservations), in the folded variant: every item recurs once an interval.

use super::atoms::is_register_value;
use twill_graph::proof::{Item, Pool};
use twill_graph::{OpId, Problem, Storage};

/// Two operations on different groups.
pub(super) type Apart = (OpId, OpId);

/// Where an item lies: from `start` to the latest of its `ends`, each the issue of an operation and cycles
/// after it.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    /// On whose group.
    pub(super) owner: OpId,
    pub(super) weight: u64,
    pub(super) start: (OpId, i64),
    /// An end counts if its operations are apart.
    pub(super) ends: Vec<(OpId, i64, Option<Apart>)>,
    /// It exists if these are apart.
    pub(super) exists: Option<Apart>,
}

/// Where an item of a pool lies; `None` when there is no such item.
pub(super) fn extent(problem: &Problem, interval: i64, pool: Pool, item: Item) -> Option<Extent> {
    let graph = problem.graph();
    let known = |v: OpId| (v.index() < graph.operations().len()).then(|| graph.operation(v));
    match item {
        Item::Value(v) => {
            let operation = known(v)?;
            let weight = match (pool, operation.storage) {
                (Pool::Registers, Storage::Registers(words)) => words.0,
                (Pool::Shared, Storage::Shared(bytes)) if !operation.streaming => bytes.0,
                (Pool::Tensor, Storage::Tensor(columns)) => columns.0,
                _ => return None,
            };
            let ends = graph.uses(v).map(|d| (d.to, i64::from(d.distance) * interval + d.hold.0, None)).collect();
            Some(Extent { owner: v, weight, start: (v, 0), ends, exists: None })
        }
        Item::Operand(id) => {
            let d = graph.dependences().get(id.index())?;
            let charged = pool == Pool::Registers && problem.options().consumer_registers;
            let reader = known(d.to)?;
            if !charged || !is_register_value(problem, d) || reader.variable_latency {
                return None;
            }
            let ends = vec![(d.to, reader.span().0, None)];
            let weight = known(d.from)?.register_words().0;
            Some(Extent { owner: d.to, weight, start: (d.to, 0), ends, exists: Some((d.from, d.to)) })
        }
        Item::Buffer(v) => {
            let weight = known(v)?.register_words().0.checked_mul(4)?;
            let handed = graph.uses(v).filter(|d| pool == Pool::Shared && is_register_value(problem, d));
            let end = |d: &twill_graph::Dependence| {
                let read = i64::from(d.distance) * interval + graph.operation(d.to).completion().0;
                (d.to, read, Some((v, d.to)))
            };
            Some(Extent { owner: v, weight, start: (v, 0), ends: handed.map(end).collect(), exists: None })
        }
        Item::Reservation(v, at) => {
            let held = known(v)?.reservations.get(at)?;
            let unit = *problem.units_of(v).get(at)?;
            let ends = vec![(v, held.start.0 + held.cycles.0, None)];
            let extent = Extent { owner: v, weight: 1, start: (v, held.start.0), ends, exists: None };
            (pool == Pool::Unit(unit)).then_some(extent)
        }
    }
}
