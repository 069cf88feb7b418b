//! `registers`, `shared_memory` and `tensor_memory`: what is alive in every slot.

use super::Search;
use twill_graph::{GroupRole, Storage};

/// The live items in each slot of an interval.
struct Slots(Vec<u64>);

impl Slots {
    fn new(interval: i64) -> Slots {
        Slots(vec![0; interval as usize])
    }

    /// `amount` is alive in every cycle from `start` to before `end`.
    fn live(&mut self, start: i64, end: i64, amount: u64) {
        for cycle in start..end {
            let slot = cycle.rem_euclid(self.0.len() as i64);
            self.0[slot as usize] += amount;
        }
    }

    fn most(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

/// The registers a thread of the compute group that is given most; `None` where a memory or the registers do not suffice.
pub(super) fn fits(search: &Search, cycles: &[i64]) -> Option<i64> {
    let (machine, reserved) = (search.problem.resources(), search.problem.graph().reserved());
    let mut tensor = Slots::new(search.interval);
    let mut shared = Slots::new(search.interval);
    let mut rings = 0;
    for v in 0..cycles.len() {
        let uses = || search.dependences().iter().filter(move |d| d.from.index() == v && d.carries_value);
        let issue = |to: usize, distance: u32| cycles[to] + i64::from(distance) * search.interval;
        let last_read = || uses().map(|d| issue(d.to.index(), d.distance) + d.hold.0).max();
        let over = |to: usize| search.op(to).completion().0;
        match search.op(v).storage {
            Storage::None => {}
            Storage::Tensor(columns) => tensor.live(cycles[v], last_read().unwrap_or(cycles[v]), columns.0),
            Storage::Shared(bytes) if search.op(v).streaming => {
                let first = uses().map(|d| issue(d.to.index(), d.distance)).min();
                let last = uses().map(|d| issue(d.to.index(), d.distance) + over(d.to.index())).max();
                let lasts = first.zip(last).map_or(0, |(first, last)| search.op(v).transfer_latency.0 + last - first);
                let slots = lasts.div_euclid(search.interval) + i64::from(lasts.rem_euclid(search.interval) > 0);
                rings += bytes.0 * slots.max(1) as u64;
            }
            Storage::Shared(bytes) => shared.live(cycles[v], last_read().unwrap_or(cycles[v]), bytes.0),
            Storage::Registers(words) => {
                let away = uses().filter(|d| search.crosses(d));
                let end = away.map(|d| issue(d.to.index(), d.distance) + over(d.to.index())).max();
                shared.live(cycles[v], end.unwrap_or(cycles[v]), 4 * words.0);
            }
        }
    }
    let enough = reserved.tensor.0 + tensor.most() <= machine.tensor_memory.0
        && reserved.shared.0 + rings + shared.most() <= machine.shared_memory.0;
    if enough { registers(search, cycles) } else { None }
}

fn registers(search: &Search, cycles: &[i64]) -> Option<i64> {
    let machine = search.problem.resources();
    let file = &machine.registers;
    let fixed = [machine.variable_latency_group, machine.issue_group];
    let allocated =
        fixed.iter().flatten().map(|g| 32 * u64::from(g.allocated_warps) * u64::from(g.registers_per_thread));
    let mut total: u64 = allocated.sum();
    let mut largest = 0;
    for (g, group) in search.problem.groups().iter().enumerate().filter(|(g, _)| search.group.contains(g)) {
        let words = words(search, cycles, g);
        let holds = |registers: u32| {
            let usable = registers.min(file.maximum_per_thread).saturating_sub(file.reserve_per_thread);
            words <= 32 * u64::from(group.warps) * u64::from(usable)
        };
        match group.role {
            GroupRole::VariableLatency
                if machine.variable_latency_group.is_some_and(|g| holds(g.registers_per_thread)) => {}
            GroupRole::Issue if machine.issue_group.is_some_and(|g| holds(g.registers_per_thread)) => {}
            GroupRole::VariableLatency | GroupRole::Issue => return None,
            GroupRole::Compute => {
                let most = file.maximum_per_thread.next_multiple_of(file.granularity);
                let least = file.minimum_per_thread.max(file.reserve_per_thread).next_multiple_of(file.granularity);
                let mut choices = (least..=most).step_by(file.granularity as usize);
                let given = choices.find(|&registers| holds(registers))?;
                total += 32 * u64::from(group.warps) * u64::from(given);
                largest = largest.max(i64::from(given));
            }
        }
    }
    (total <= file.words).then_some(largest)
}

/// Most tile words that a group holds at once.
fn words(search: &Search, cycles: &[i64], group: usize) -> u64 {
    let mut held = Slots::new(search.interval);
    for v in 0..cycles.len() {
        let Storage::Registers(words) = search.op(v).storage else { continue };
        let uses = || search.dependences().iter().filter(move |d| d.from.index() == v && d.carries_value);
        if search.group[v] == group {
            let end = uses().map(|d| cycles[d.to.index()] + i64::from(d.distance) * search.interval + d.hold.0).max();
            held.live(cycles[v], end.unwrap_or(cycles[v]), words.0);
        }
        for d in uses().filter(|d| search.crosses(d) && search.group[d.to.index()] == group) {
            let reader = search.op(d.to.index());
            if search.problem.options().consumer_registers && !reader.variable_latency {
                held.live(cycles[d.to.index()], cycles[d.to.index()] + reader.span().0, words.0);
            }
        }
    }
    held.most()
}
