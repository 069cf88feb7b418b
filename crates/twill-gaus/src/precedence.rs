//! The precedence graph at a given interval, in compressed rows: the view that everything here sweeps over.

use crate::control::Clock;
use twill_graph::Dataflow;

/// One end of a dependence, seen from the other: `s_to ≥ s_from + lag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    op: u32,
    dependence: u32,
    /// `delay − distance · II`.
    pub lag: i64,
}

impl Neighbour {
    /// The operation at the other end.
    pub fn op(self) -> usize {
        self.op as usize
    }

    /// The dependence, by its position in the graph.
    pub fn dependence(self) -> usize {
        self.dependence as usize
    }
}

/// Successors and predecessors of every operation. Dependences that do not count (distance above 0, without an interval)
/// are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precedence {
    order: Vec<u32>,
    successors: Rows,
    predecessors: Rows,
    /// Dependences between iterations.
    back: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rows {
    first: Vec<u32>,
    entries: Vec<Neighbour>,
}

impl Rows {
    /// `ends`: (row, entry), in the order in which a row keeps them.
    fn new(rows: usize, ends: impl Iterator<Item = (usize, Neighbour)> + Clone) -> Rows {
        let mut first = vec![0_u32; rows + 1];
        for (row, _) in ends.clone() {
            first[row + 1] += 1;
        }
        for row in 0..rows {
            first[row + 1] += first[row];
        }
        let mut next = first.clone();
        let mut entries = vec![Neighbour { op: 0, dependence: 0, lag: 0 }; first[rows] as usize];
        for (row, entry) in ends {
            entries[next[row] as usize] = entry;
            next[row] += 1;
        }
        Rows { first, entries }
    }

    fn row(&self, row: usize) -> &[Neighbour] {
        &self.entries[self.first[row] as usize..self.first[row + 1] as usize]
    }
}

impl Precedence {
    /// Lowest lag there is; far below any step, so that what it says always holds, and sums of two do not overflow.
    const LOWEST: i64 = -(1 << 60);

    /// The dependences of `graph` that count at `interval`, with their lags.
    pub fn new(graph: &Dataflow, interval: Option<u64>) -> Precedence {
        let count = graph.operations().len();
        let lag = |delay: i64, distance: u32| {
            let apart = i128::from(distance) * i128::from(interval.unwrap_or(0));
            (i128::from(delay) - apart).max(i128::from(Self::LOWEST)) as i64
        };
        let counted = graph.dependences().iter().enumerate();
        let counted = counted.filter(|(_, d)| d.distance == 0 || interval.is_some()).map(|(index, d)| {
            let entry =
                |op: usize| Neighbour { op: op as u32, dependence: index as u32, lag: lag(d.delay, d.distance) };
            (d.from.index(), entry(d.from.index()), d.to.index(), entry(d.to.index()))
        });
        Precedence {
            // `Dataflow::new` refuses what has no order.
            order: graph.order().unwrap_or_default().into_iter().map(|op| op.index() as u32).collect(),
            successors: Rows::new(count, counted.clone().map(|(from, _, _, to)| (from, to))),
            predecessors: Rows::new(count, counted.map(|(_, from, to, _)| (to, from))),
            back: graph.dependences().iter().filter(|d| d.distance > 0 && interval.is_some()).count(),
        }
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns whether there are no operations; never so for the precedence of a [`Dataflow`].
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// All operations, in an order in which dependences of distance 0 go forward.
    pub fn order(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + '_ {
        self.order.iter().map(|&op| op as usize)
    }

    /// The successors of `op`.
    pub fn successors(&self, op: usize) -> &[Neighbour] {
        self.successors.row(op)
    }

    /// Whom `op` waits for.
    pub fn predecessors(&self, op: usize) -> &[Neighbour] {
        self.predecessors.row(op)
    }

    /// Returns whether dependences between iterations count, so that one sweep in [`order`](Self::order) may not settle
    /// all.
    pub fn loops(&self) -> bool {
        self.back > 0
    }

    /// Raises `starts` to the least steps, at or above them, that keep every dependence. `false` when there are none,
    /// which is when operations wait for each other around a cycle of positive lag; `starts` is then of no use.
    #[must_use]
    pub fn raise(&self, starts: &mut [i64]) -> bool {
        self.settle(|| self.raise_once(starts))
    }

    /// One sweep; whether anything changed.
    fn raise_once(&self, starts: &mut [i64]) -> bool {
        let mut changed = false;
        for v in self.order() {
            let needed = self.predecessors(v).iter().map(|p| starts[p.op()].saturating_add(p.lag)).max();
            if let Some(needed) = needed.filter(|&needed| needed > starts[v]) {
                (starts[v], changed) = (needed, true);
            }
        }
        changed
    }

    /// The same, as long as there is time; `None` when it was over before.
    pub(crate) fn raise_within(&self, starts: &mut [i64], clock: &Clock<'_>) -> Option<bool> {
        let mut over = false;
        let settled = self.settle(|| {
            over = clock.is_over();
            !over && self.raise_once(starts)
        });
        (!over).then_some(settled)
    }

    /// Lowers `starts` to the greatest steps, at or below them, that keep every dependence; `false` as for
    /// [`raise`](Self::raise).
    #[must_use]
    pub fn lower(&self, starts: &mut [i64]) -> bool {
        self.settle(|| {
            let mut changed = false;
            for v in self.order().rev() {
                let allowed = self.successors(v).iter().map(|s| starts[s.op()].saturating_sub(s.lag)).min();
                if let Some(allowed) = allowed.filter(|&allowed| allowed < starts[v]) {
                    (starts[v], changed) = (allowed, true);
                }
            }
            changed
        })
    }

    /// Sweeps over all operations, which say whether anything changed, until nothing does; `false` if that never comes.
    fn settle(&self, mut sweep: impl FnMut() -> bool) -> bool {
        // A sweep settles a path up to its next dependence between iterations, and a longest path takes each of these
        // at most once, as it does each operation. The last sweep finds nothing to do.
        let most = if self.back == 0 { 1 } else { self.len().min(self.back + 1) + 1 };
        (0..most).any(|_| !sweep()) || self.back == 0
    }
}
