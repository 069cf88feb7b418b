//! Required against available: the least amount at which an interval becomes feasible, all else
//! being equal, found by asking.

use super::ask::{Asker, Feasibility, Relaxation, Sample, changed};
use crate::bounds;
use crate::constraints::resource;
use twill_graph::saturate;
use twill_graph::{Bytes, Columns, Cycles, Demand, Families, Family, Problem, Quantity, Storage, UnitId};

/// As many registers a thread as a problem may state.
const PLENTY_PER_THREAD: u32 = 1 << 16;
/// More registers than any schedule holds.
const PLENTY_OF_WORDS: u64 = 1 << 40;
/// Work for a question about an amount, in questions about who takes part: the last ones are close.
const PATIENCE: u64 = 4;
/// Compute groups that are tried beyond those there are.
const MORE_GROUPS: u32 = 3;

/// The demands of a family within `keeps`, the conflict or the whole problem, and the schedule that
/// needs least where that was looked for. `without` is a schedule without the family.
pub(crate) fn of(
    asker: &Asker,
    problem: &Problem,
    interval: i64,
    family: Family,
    keeps: &Relaxation,
    without: Option<&Sample>,
) -> (Vec<Demand>, Option<Box<Sample>>) {
    let suffices = *keeps == Relaxation::of(Families::ALL);
    let patient = Asker { meter: asker.meter.clone(), work: asker.work.saturating_mul(PATIENCE) };
    let search = Search { asker: &patient, problem, interval, keeps, suffices };
    let resources = problem.resources();
    match family {
        Family::SharedMemory => search.memory(
            Quantity::SharedMemory,
            (resources.shared_memory.0, problem.graph().reserved().shared.0, without.map(|s| s.shared)),
            |sample| sample.shared,
            |bytes| changed(problem, |r| r.shared_memory = Bytes(bytes)),
        ),
        Family::TensorMemory => search.memory(
            Quantity::TensorMemory,
            (resources.tensor_memory.0, problem.graph().reserved().tensor.0, without.map(|s| s.tensor)),
            |sample| sample.tensor,
            |columns| changed(problem, |r| r.tensor_memory = Columns(columns)),
        ),
        Family::Registers if without.is_some() => search.registers(),
        Family::Bandwidth => (shared_traffic(problem, interval).into_iter().collect(), None),
        Family::Exclusive => (search.groups(), None),
        Family::Handoff if without.is_some() => (search.handoff().into_iter().collect(), None),
        _ => (Vec::new(), None),
    }
}

/// The cycles of a unit in one iteration against those that it has.
pub(crate) fn unit_cycles(problem: &Problem, interval: i64, unit: UnitId) -> Demand {
    let capacity = i64::from(problem.resources().units[unit.index()].capacity);
    Demand {
        quantity: Quantity::UnitCycles,
        required: u64::try_from(resource::busy(problem, unit)).ok(),
        available: saturate::<u64>(interval.saturating_mul(capacity)),
        proved: true,
        suffices: false,
    }
}

/// The bytes that an iteration moves through shared memory against those that an interval has time for.
fn shared_traffic(problem: &Problem, interval: i64) -> Option<Demand> {
    let rate = problem.resources().shared_bytes_per_cycle?;
    let bytes = problem.graph().traffic().shared;
    Some(Demand {
        quantity: Quantity::SharedTraffic,
        required: Some(bytes.0),
        available: rate.0.saturating_mul(saturate::<u64>(interval)),
        proved: true,
        suffices: false,
    })
}

struct Search<'a> {
    asker: &'a Asker,
    problem: &'a Problem,
    interval: i64,
    /// The constraints that a schedule must keep.
    keeps: &'a Relaxation,
    /// That is the whole problem.
    suffices: bool,
}

impl Search<'_> {
    fn ask(&self, problem: Option<Problem>) -> Feasibility {
        match problem {
            Some(problem) => self.asker.ask(&problem, self.interval, self.keeps),
            None => Feasibility::Unknown,
        }
    }

    /// The least amount that is enough: more than `too_little`, at most what `best` uses. Amounts
    /// differ by multiples of `step`. Proved unless a question stays open.
    fn least(
        &self,
        mut too_little: u64,
        mut best: Box<Sample>,
        step: u64,
        used: impl Fn(&Sample) -> u64,
        with: impl Fn(u64) -> Option<Problem>,
    ) -> (Box<Sample>, bool) {
        let step = step.max(1);
        loop {
            let enough = used(&best);
            // Below `enough`, and as near to the middle as the steps allow.
            let Some(next) = enough.checked_sub(step).filter(|next| *next > too_little) else { return (best, true) };
            let down = (next - too_little) / 2 / step * step;
            let middle = next - down;
            match self.ask(with(middle)) {
                Feasibility::Feasible(sample) => best = sample,
                Feasibility::Infeasible => too_little = middle,
                Feasibility::Unknown => return (best, false),
            }
        }
    }

    /// The least size of a memory: what there is, what is reserved, what a schedule without the limit
    /// uses.
    fn memory(
        &self,
        quantity: Quantity,
        (available, reserved, unlimited): (u64, u64, Option<u64>),
        used: impl Fn(&Sample) -> u64,
        with: impl Fn(u64) -> Option<Problem>,
    ) -> (Vec<Demand>, Option<Box<Sample>>) {
        let Some(Feasibility::Feasible(sample)) = unlimited.map(|u| self.ask(with(u))) else {
            return (Vec::new(), None);
        };
        let sizes = self.problem.graph().operations().iter().map(|op| match op.storage {
            Storage::Registers(words) => 4 * words.0,
            Storage::Shared(bytes) => bytes.0,
            Storage::Tensor(columns) => columns.0,
            Storage::None => 0,
        });
        let step = sizes.fold(0, greatest_common_divisor);
        // No amount between what is reserved and the next multiple is used.
        let too_little = available - available.saturating_sub(reserved) % step.max(1);
        let (best, proved) = self.least(too_little, sample, step, &used, with);
        (vec![Demand { quantity, required: Some(used(&best)), available, proved, suffices: self.suffices }], Some(best))
    }

    /// Registers of a thread, of the file, or of both.
    fn registers(&self) -> (Vec<Demand>, Option<Box<Sample>>) {
        let file = self.problem.resources().registers;
        let with = |per_thread: u32, words: u64| {
            changed(self.problem, |r| {
                r.registers.maximum_per_thread = per_thread;
                r.registers.words = words;
            })
        };
        let threads = self.problem.resources().compute_group_cost(1);
        let words = self.problem.graph().operations().iter().map(|op| op.register_words().0);
        let step = words.fold(0, greatest_common_divisor);
        let step = if step.is_multiple_of(threads) { step / threads } else { 1 };
        let per_thread = |r: u64| u32::try_from(r).unwrap_or(PLENTY_PER_THREAD);
        let reserve = u64::from(file.reserve_per_thread);
        let most = u64::from(file.maximum_per_thread);
        let too_few = most - most.saturating_sub(reserve) % step.max(1);
        let (mut demands, mut shown) = (Vec::new(), None);
        let mut settle = |quantity, available, found: (Box<Sample>, bool), used: u64| {
            demands.push(Demand {
                quantity,
                required: Some(used),
                available,
                proved: found.1,
                suffices: self.suffices,
            });
            shown.get_or_insert(found.0);
        };
        let (mut a_thread, mut all) = (Feasibility::Infeasible, Feasibility::Infeasible);
        if u64::from(PLENTY_PER_THREAD) > most {
            a_thread = self.ask(with(PLENTY_PER_THREAD, file.words));
        }
        if PLENTY_OF_WORDS > file.words {
            all = self.ask(with(file.maximum_per_thread, PLENTY_OF_WORDS));
        }
        let neither = matches!((&a_thread, &all), (Feasibility::Infeasible, Feasibility::Infeasible));
        if let Feasibility::Feasible(sample) = a_thread {
            let with = |r| with(per_thread(r), file.words);
            let found = self.least(too_few, sample, step, |s| s.per_thread, with);
            let used = found.0.per_thread;
            settle(Quantity::RegistersPerThread, most, found, used);
        }
        if let Feasibility::Feasible(sample) = all {
            let step = self.problem.resources().compute_group_cost(file.granularity);
            let found = self.least(file.words, sample, step, |s| s.file, |w| with(file.maximum_per_thread, w));
            let used = found.0.file;
            settle(Quantity::RegisterFile, file.words, found, used);
        }
        if neither && let Feasibility::Feasible(sample) = self.ask(with(PLENTY_PER_THREAD, PLENTY_OF_WORDS)) {
            let with = |r| with(per_thread(r), PLENTY_OF_WORDS);
            let found = self.least(too_few, sample, step, |s| s.per_thread, with);
            let used = found.0.per_thread;
            settle(Quantity::RegistersPerThreadAndFile, most, found, used);
        }
        (demands, shown)
    }

    /// Synchronous work against the cycles of all compute groups, and how many groups are enough.
    fn groups(&self) -> Vec<Demand> {
        let groups = self.problem.resources().compute_groups.maximum;
        let work = bounds::compute_work(self.problem, Families::ALL);
        let mut demands = vec![Demand {
            quantity: Quantity::SynchronousCycles,
            required: u64::try_from(work.0).ok(),
            available: saturate::<u64>((Cycles(self.interval) * groups).0),
            proved: true,
            suffices: false,
        }];
        let mut proved = true;
        for more in groups.saturating_add(1)..=groups.saturating_add(MORE_GROUPS) {
            let with = changed(self.problem, |r| r.compute_groups.maximum = more);
            let all = Relaxation::of(Families::ALL);
            match with.map_or(Feasibility::Unknown, |p| self.asker.ask(&p, self.interval, &all)) {
                Feasibility::Feasible(_) => {
                    let (required, available) = (Some(u64::from(more)), groups.into());
                    demands.push(Demand {
                        quantity: Quantity::ComputeGroups,
                        required,
                        available,
                        proved,
                        suffices: true,
                    });
                    break;
                }
                Feasibility::Infeasible => {}
                Feasibility::Unknown => proved = false,
            }
        }
        demands
    }

    /// The most that handoffs may take.
    fn handoff(&self) -> Option<Demand> {
        let graph = self.problem.graph();
        let longest = graph.operations().iter().map(|op| op.handoff.0).max().unwrap_or(0);
        let capped = |most: i64| {
            let cap = |op: &mut twill_graph::Operation| op.handoff = op.handoff.min(Cycles(most));
            let graph = graph.map(cap, |_| {}).ok()?;
            Problem::new(graph, self.problem.resources().clone(), *self.problem.options()).ok()
        };
        let available = saturate::<u64>(longest);
        let suffices = self.suffices;
        let demand =
            |required, proved| Demand { quantity: Quantity::HandoffCycles, required, available, proved, suffices };
        if longest == 0 {
            return None; // It is the carried values, which must stay.
        }
        match self.ask(capped(0)) {
            Feasibility::Feasible(_) => {}
            Feasibility::Infeasible => return Some(demand(None, true)),
            Feasibility::Unknown => return None,
        }
        let (mut enough, mut too_much) = (0, longest);
        while enough + 1 < too_much {
            let middle = enough + (too_much - enough) / 2;
            match self.ask(capped(middle)) {
                Feasibility::Feasible(_) => enough = middle,
                Feasibility::Infeasible => too_much = middle,
                Feasibility::Unknown => return Some(demand(u64::try_from(enough).ok(), false)),
            }
        }
        Some(demand(u64::try_from(enough).ok(), true))
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::greatest_common_divisor;

    #[test]
    fn sizes_that_are_zero_do_not_count() {
        assert_eq!([0, 48, 0, 36].into_iter().fold(0, greatest_common_divisor), 12);
    }
}
