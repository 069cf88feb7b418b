//! Budgets: limits of time, work and memory, and interrupts.

use crate::proof_log::Log;
use batsat::Callbacks;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use twill_graph::MemoryBudget;
use twill_graph::proof::ProofStep;
use web_time::Instant;

/// The clock that limits of time count by: what tells the moment. It is asked often, so it must be fast.
#[derive(Clone, Copy, Debug)]
pub struct Clock(pub fn() -> Instant);

impl Clock {
    /// The moment that it is.
    pub fn now(self) -> Instant {
        self.0()
    }

    /// What has passed since a moment of this clock.
    pub fn since(self, begun: Instant) -> Duration {
        self.now().saturating_duration_since(begun)
    }
}

impl Default for Clock {
    /// Wall-clock time.
    fn default() -> Clock {
        Clock(Instant::now)
    }
}

/// When a search gives up, of one loop or of sibling loops together. The default never does.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// What `time` and `until` are measured by.
    pub clock: Clock,
    /// Time for the whole search. Where it ends depends on the machine, so results that
    /// were stopped by it are not reproducible; those stopped by `work` are.
    pub time: Option<Duration>,
    /// Units of work for the whole search (bounds asserted in the difference system, in large graphs
    /// several for each; about a million a second).
    pub work: Option<u64>,
    /// The moment at which everything is to be over: of several searches, the same for all of them. `time` counts from the
    /// beginning of each.
    pub until: Option<Instant>,
    /// Memory of the process.
    pub memory: Option<MemoryBudget>,
    /// Set from outside (Ctrl-C) to stop at the next opportunity.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// A running [`MemoryBudget`].
#[derive(Clone, Debug)]
struct MemoryMeter {
    budget: MemoryBudget,
    is_full: Rc<Cell<bool>>,
}

impl MemoryMeter {
    fn start(budget: MemoryBudget) -> MemoryMeter {
        MemoryMeter { budget, is_full: Rc::new(Cell::new(false)) }
    }

    /// Returns whether there was too much once: what comes after a search that was stopped would take as much again.
    fn is_full(&self) -> bool {
        self.is_full.set(self.is_full.get() || self.budget.is_used_up());
        self.is_full.get()
    }
}

/// A running budget.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    clock: Clock,
    deadline: Option<Instant>,
    work: Rc<Cell<u64>>,
    /// Work at which to stop; may be lowered for a part of the search.
    limit: Rc<Cell<u64>>,
    /// The same, but for attempts within a part after which it goes on.
    allowed: Rc<Cell<u64>>,
    total: u64,
    memory: Option<MemoryMeter>,
    interrupt: Option<Arc<AtomicBool>>,
    /// Set while something small must be finished whatever the budget says.
    unhindered: Rc<Cell<bool>>,
}

impl Meter {
    pub(crate) fn start(budget: &Budget) -> Meter {
        let total = budget.work.unwrap_or(u64::MAX);
        // A deadline too far to represent is no deadline.
        let own = budget.time.and_then(|t| budget.clock.now().checked_add(t));
        Meter {
            clock: budget.clock,
            deadline: own.into_iter().chain(budget.until).min(),
            work: Rc::new(Cell::new(0)),
            limit: Rc::new(Cell::new(total)),
            allowed: Rc::new(Cell::new(total)),
            total,
            memory: budget.memory.map(MemoryMeter::start),
            interrupt: budget.interrupt.clone(),
            unhindered: Rc::new(Cell::new(false)),
        }
    }

    /// A budget for keeping what is known when a search is stopped: a few tenths of a second, whatever the search may take.
    pub(crate) fn grace() -> Meter {
        const WORK: u64 = 500_000;
        Meter::start(&Budget { work: Some(WORK), ..Budget::default() })
    }

    /// A budget of half of what is left, for a part of the search; its work counts here too.
    pub(crate) fn half(&self) -> Meter {
        let now = self.clock.now();
        let total = self.work.get() + self.total.saturating_sub(self.work.get()) / 2;
        Meter {
            clock: self.clock,
            deadline: self.deadline.map(|end| now + end.saturating_duration_since(now) / 2),
            work: Rc::clone(&self.work),
            limit: Rc::new(Cell::new(total)),
            allowed: Rc::new(Cell::new(total)),
            total,
            memory: self.memory.clone(),
            interrupt: self.interrupt.clone(),
            unhindered: Rc::clone(&self.unhindered),
        }
    }

    /// The counter that the theory advances.
    pub(crate) fn counter(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.work)
    }

    /// Counts work that is done outside the solver.
    pub(crate) fn spend(&self, work: u64) {
        self.work.set(self.work.get().saturating_add(work));
    }

    /// The reason for the end of the search, if it was ended.
    pub(crate) fn stopped(&self) -> Option<&'static str> {
        if self.interrupt.as_ref().is_some_and(|i| i.load(Ordering::Relaxed)) {
            return Some("interrupt");
        }
        if self.work.get() >= self.total {
            return Some("work budget");
        }
        if self.memory.as_ref().is_some_and(MemoryMeter::is_full) {
            return Some("memory budget");
        }
        self.deadline.filter(|d| self.clock.now() >= *d).map(|_| "time budget")
    }

    /// Returns whether the search is over, and nothing small is left to be finished.
    pub(crate) fn is_over(&self) -> bool {
        !self.unhindered.get() && self.stopped().is_some()
    }

    /// Returns whether the current part of the search should end.
    pub(crate) fn pause(&self) -> bool {
        !self.unhindered.get() && (self.work.get() >= self.limit.get() || self.stopped().is_some())
    }

    /// Runs `part`, which decides nothing and takes little, to its end.
    pub(crate) fn unhindered<T>(&self, part: impl FnOnce() -> T) -> T {
        self.unhindered.set(true);
        let result = part();
        self.unhindered.set(false);
        result
    }

    /// Runs `part`, an attempt, with at most `work` units of what is allowed now.
    pub(crate) fn within<T>(&self, work: u64, part: impl FnOnce() -> T) -> T {
        let before = self.limit.get();
        self.limit.set(before.min(self.work.get().saturating_add(work)));
        let result = part();
        self.limit.set(before);
        result
    }

    /// A meter for a search within this one, which may do this much work.
    pub(crate) fn part(&self, work: u64) -> Meter {
        let total = self.total.min(self.work.get().saturating_add(work));
        Meter { limit: Rc::new(Cell::new(total)), allowed: Rc::new(Cell::new(total)), total, ..self.clone() }
    }

    /// Units of work that are left.
    pub(crate) fn left(&self) -> u64 {
        self.total.saturating_sub(self.work.get())
    }

    /// Allows the next part of the search at most `work` units.
    pub(crate) fn allow(&self, work: Option<u64>) {
        let limit = work.map_or(u64::MAX, |w| self.work.get().saturating_add(w));
        self.limit.set(limit.min(self.total));
        self.allowed.set(self.limit.get());
    }

    /// Returns whether the part of the search is over that [`allow`](Self::allow) began, whatever is small and left to
    /// be finished.
    pub(crate) fn is_used_up(&self) -> bool {
        self.work.get() >= self.allowed.get() || self.stopped().is_some()
    }
}

/// Stops the SAT solver when its meter says so, counts conflicts, and writes down what is learnt.
#[derive(Debug)]
pub(crate) struct SolverCallbacks {
    pub(crate) meter: Meter,
    pub(crate) conflicts: u64,
    pub(crate) log: Log,
}

impl Callbacks for SolverCallbacks {
    fn on_new_clause(&mut self, clause: &[batsat::Lit], kind: batsat::ClauseKind) {
        self.log.step(clause, ProofStep::Learn);
        if kind == batsat::ClauseKind::Learnt {
            self.conflicts += 1;
        }
    }

    fn on_delete_clause(&mut self, clause: &[batsat::Lit]) {
        self.log.step(clause, ProofStep::Delete);
    }

    fn stop(&self) -> bool {
        self.meter.pause()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SearchOptions;
    use crate::search::Search;
    use std::sync::LazyLock;
    use std::sync::atomic::AtomicU64;
    use twill_graph::{
        Bytes, Columns, ComputePool, FixedGroup, ModelOptions, Problem, RegisterFile, Resources, Unit, builtin,
    };

    /// A loop whose search takes more than any of the budgets here.
    fn hard(copies: u32) -> Problem {
        let graph = builtin::find("attention-forward-hopper").unwrap().graph.unrolled(copies).unwrap();
        let unit = |name: &str| Unit { name: name.into(), capacity: 1 };
        let loads = FixedGroup { warps: 1, allocated_warps: 4, registers_per_thread: 40 };
        let machine = Resources {
            name: "hard".into(),
            units: ["tensor", "tma", "xu", "fma", "alu", "lsu"].map(unit).to_vec(),
            shared_memory: Bytes(400_000),
            tensor_memory: Columns(0),
            shared_bytes_per_cycle: None,
            registers: RegisterFile {
                words: 65_536,
                minimum_per_thread: 24,
                maximum_per_thread: 255,
                granularity: 8,
                reserve_per_thread: 24,
            },
            variable_latency_group: Some(loads),
            issue_group: None,
            compute_groups: ComputePool { warps: 4, maximum: 3 },
        };
        Problem::new(graph, machine, ModelOptions::default()).unwrap()
    }

    /// Units of work that a search within a budget takes, and what ended it.
    fn used(problem: &Problem, budget: Budget) -> (u64, Option<&'static str>) {
        let meter = Meter::start(&budget);
        let options = SearchOptions { budget, ..SearchOptions::default() };
        Search::new(problem, &options, meter.clone(), &mut |_| {}).settle();
        (meter.work.get(), meter.stopped())
    }

    #[test]
    fn work_budgets_are_kept() {
        for (copies, limit) in [(2, 20_000), (2, 200_000), (3, 100_000), (4, 500_000)] {
            let problem = hard(copies);
            let (used, by) = used(&problem, Budget { work: Some(limit), ..Budget::default() });
            // Read by tests/hostile/budgets.py.
            println!("work: {} operations limit {limit} used {used}", problem.graph().operations().len());
            assert!(by.is_none() || used <= limit + limit / 10, "{limit}: {used}");
        }
    }

    #[test]
    fn a_search_stops_where_memory_is_used_up() {
        static USED: AtomicU64 = AtomicU64::new(0);
        // It grows with every look.
        let memory = MemoryBudget { bytes: 1000, used: || USED.fetch_add(1, Ordering::Relaxed) };
        let (_, by) = used(&hard(3), Budget { memory: Some(memory), ..Budget::default() });
        assert_eq!(by, Some("memory budget"));
        let looks = USED.load(Ordering::Relaxed);
        assert!(looks <= 1002, "{looks}");
    }

    #[test]
    fn limits_of_time_are_those_of_their_clock() {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        let time = Some(Duration::from_millis(1));
        let work = Some(200_000);
        let stands = Budget { clock: Clock(|| *BEGUN), time, work, ..Budget::default() };
        assert_eq!(used(&hard(3), stands.clone()).1, Some("work budget"));
        assert_eq!(used(&hard(3), Budget { clock: Clock::default(), ..stands }).1, Some("time budget"));
    }

    #[test]
    fn a_moment_that_is_over_ends_every_search() {
        let budget = Budget { until: Some(Instant::now()), ..Budget::default() };
        assert_eq!(used(&hard(2), budget.clone()).1, Some("time budget"));
        assert!(Meter::start(&budget).half().stopped().is_some());
    }
}
