//! The linear program of a problem over `x_v(t) = [s_v ≤ t]`, laid out in rows of steps.

use crate::Mobility;
use twill_graph::{DataflowObjective, DataflowProblem};

/// When something happens: the start of an operation, or the last read of a value.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Its window: `x = 0` before, and `x = 1` from the last step on.
    pub first: i64,
    pub last: i64,
    /// Position of its first variable, and how many there are.
    pub at: usize,
    pub len: usize,
    /// Cost of a step that it comes later.
    pub linear: i64,
    /// Its terms.
    pub terms: std::ops::Range<usize>,
}

/// `amount · x(t)` is added to `track` at `t + shift`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub track: usize,
    pub shift: i64,
    pub amount: i64,
}

/// `x_to(t) ≤ x_from(t − lag)` at some steps `t`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Position of the first variable of each side.
    pub to: usize,
    pub from: usize,
    /// Position of its first multiplier, and how many there are.
    pub at: usize,
    pub len: usize,
    /// `t` of the first.
    pub step: i64,
    pub dependence: u32,
    /// Whether it is a read of a value by one of several readers.
    pub is_read: bool,
}

#[derive(Debug)]
pub(super) struct Program {
    pub rows: Vec<Row>,
    pub terms: Vec<Term>,
    pub pairs: Vec<Pair>,
    /// Variables and multipliers of pairs.
    pub variables: usize,
    pub multipliers: usize,
    /// Of each track, `Σ amount` of what is at 1 by itself at a step.
    pub constant: Vec<Vec<i64>>,
    /// What the weights of a track add up to.
    pub peak: u64,
}

/// Dependences that count, and for each operation the row of the last read of its value, windows of rows added to
/// those of operations.
struct Ends {
    windows: Vec<(i64, i64)>,
    ends: Vec<Option<usize>>,
}

impl Ends {
    fn new(problem: &DataflowProblem, mobility: &Mobility) -> Ends {
        let window = |(&first, &last): (&u64, &u64)| (first as i64, last as i64);
        let mut windows: Vec<(i64, i64)> = mobility.earliest.iter().zip(&mobility.latest).map(window).collect();
        let operations = windows.len();
        let mut ends = vec![None; operations];
        if problem.objective == DataflowObjective::Storage {
            for d in problem.graph.dependences().iter().filter(|d| d.distance == 0) {
                let (from, to) = (d.from.index(), d.to.index());
                match ends[from] {
                    None => ends[from] = Some(to),
                    Some(end) if end == to => {}
                    Some(end) => {
                        let (a, b) = (windows[end], windows[to]);
                        let window = (a.0.max(b.0), a.1.max(b.1));
                        if end < operations {
                            ends[from] = Some(windows.len());
                            windows.push(window);
                        } else {
                            windows[end] = window;
                        }
                    }
                }
            }
        }
        Ends { windows, ends }
    }

    /// Rows that are kept apart: from, to, lag, dependence, and whether it is a read.
    fn pairs(&self, problem: &DataflowProblem) -> impl Iterator<Item = (usize, usize, i64, u32, bool)> {
        let operations = self.ends.len();
        let counted = problem.graph.dependences().iter().enumerate().filter(|(_, d)| d.distance == 0);
        counted.flat_map(move |(k, d)| {
            let own = (d.from.index(), d.to.index(), d.delay, k as u32, false);
            let stored = problem.graph.operations()[d.from.index()].storage > 0;
            let end = self.ends[d.from.index()].filter(|&end| stored && end >= operations);
            [Some(own), end.map(|end| (d.to.index(), end, 0, k as u32, true))].into_iter().flatten()
        })
    }

    /// Steps at which a pair says something that windows do not say.
    fn steps(&self, from: usize, to: usize, lag: i64) -> (i64, i64) {
        (self.windows[to].0, self.windows[from].1.saturating_add(lag).min(self.windows[to].1))
    }
}

/// Variables and multipliers of the program.
pub(super) fn size(problem: &DataflowProblem, mobility: &Mobility) -> usize {
    let ends = Ends::new(problem, mobility);
    let length = |(first, last): (i64, i64)| (last - first).max(0) as usize;
    let rows = ends.windows.iter().map(|w| length(*w)).sum::<usize>();
    let pairs = ends.pairs(problem).map(|(from, to, lag, ..)| length(ends.steps(from, to, lag)));
    rows.saturating_add(pairs.fold(0, usize::saturating_add))
}

/// Most that sums of amounts times steps may be.
const LARGEST: i128 = 1 << 60;

impl Program {
    /// `None` where numbers are too large, or there is nothing to find out.
    pub fn new(problem: &DataflowProblem, mobility: &Mobility) -> Option<Program> {
        let graph = &problem.graph;
        let ends = Ends::new(problem, mobility);
        let (tracks, peak, alpha) = match problem.objective {
            DataflowObjective::Storage => (1, 1, 0),
            DataflowObjective::Resources { peak, communication } => (graph.resources().len(), peak, communication),
            DataflowObjective::Latency => return None,
        };
        let counted = || graph.dependences().iter().filter(|d| d.distance == 0);
        let costs: i128 = counted().map(|d| i128::from(d.communication) * i128::from(alpha)).sum();
        let uses = || graph.operations().iter().flat_map(|op| &op.uses);
        let amounts: i128 = uses().map(|used| i128::from(used.amount)).sum();
        let longest = uses().map(|used| i64::from(used.offset) + i64::from(used.steps)).max().unwrap_or(0);
        let length = i64::try_from(mobility.latency).ok()?.checked_add(longest)?.checked_add(1)?;
        let most = (costs + amounts * i128::from(peak)).checked_mul(i128::from(length))?;
        if peak == 0 || peak > 1 << 20 || alpha > 1 << 20 || most > LARGEST || length > 1 << 22 {
            return None;
        }
        let (mut linear, mut stored) = (vec![0_i64; ends.windows.len()], vec![0_i64; ends.windows.len()]);
        for d in counted() {
            linear[d.to.index()] += (alpha * d.communication) as i64;
            linear[d.from.index()] -= (alpha * d.communication) as i64;
        }
        for (v, op) in graph.operations().iter().enumerate() {
            if let Some(end) = ends.ends[v] {
                stored[v] += op.storage as i64;
                stored[end] -= op.storage as i64;
            }
        }
        let mut program = Program {
            rows: Vec::with_capacity(ends.windows.len()),
            terms: Vec::new(),
            pairs: Vec::new(),
            variables: 0,
            multipliers: 0,
            constant: vec![vec![0; length as usize]; tracks],
            peak,
        };
        for (row, &(first, last)) in ends.windows.iter().enumerate() {
            let begin = program.terms.len();
            if problem.objective == DataflowObjective::Storage {
                if stored[row] != 0 {
                    program.terms.push(Term { track: 0, shift: 0, amount: stored[row] });
                }
            } else if let Some(op) = graph.operations().get(row) {
                for used in &op.uses {
                    let (track, offset) = (used.resource.index(), i64::from(used.offset));
                    let amount = used.amount as i64;
                    program.terms.push(Term { track, shift: offset, amount });
                    program.terms.push(Term { track, shift: offset + i64::from(used.steps), amount: -amount });
                }
            }
            let len = (last - first) as usize;
            let terms = begin..program.terms.len();
            for term in &program.terms[terms.clone()] {
                let from = (last + term.shift).max(0) as usize;
                if let Some(constant) = program.constant[term.track].get_mut(from) {
                    *constant += term.amount;
                }
            }
            let (at, linear) = (program.variables, linear[row]);
            program.rows.push(Row { first, last, at, len, linear, terms });
            program.variables += len;
        }
        for track in &mut program.constant {
            for step in 1..track.len() {
                track[step] += track[step - 1];
            }
        }
        for (from, to, lag, dependence, is_read) in ends.pairs(problem) {
            let (first, end) = ends.steps(from, to, lag);
            let len = (end - first).max(0) as usize;
            if len == 0 {
                continue;
            }
            let position = |row: &Row, step: i64| row.at + (step - row.first) as usize;
            program.pairs.push(Pair {
                to: position(&program.rows[to], first),
                from: position(&program.rows[from], first - lag),
                at: program.multipliers,
                len,
                step: first,
                dependence,
                is_read,
            });
            program.multipliers += len;
        }
        (program.variables > 0 && tracks > 0).then_some(program)
    }

    /// Steps that may have a weight.
    pub fn steps(&self) -> usize {
        self.constant.first().map_or(1, Vec::len)
    }

    /// Variables and multipliers.
    pub fn size(&self) -> usize {
        self.variables + self.multipliers
    }
}
