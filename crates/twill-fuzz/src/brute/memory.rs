//! `registers`, `shared_memory` and `tensor_memory`: what is alive in every cycle.

use super::Search;
use twill_graph::{GroupRole, Liveness, Storage};

/// What is alive in each cycle: of an interval, or of the straight line of the paper.
struct Cycles {
    alive: Vec<u64>,
    interval: i64,
    line: Option<Line>,
}

/// The straight line that runs the steady state once: as many iterations as there are stages, which begin and end inside it.
#[derive(Clone, Copy)]
struct Line {
    first: i64,
    copies: i64,
    end: i64,
}

impl Cycles {
    fn new(search: &Search, cycles: &[i64]) -> Cycles {
        let interval = search.interval;
        if search.problem.options().liveness == Liveness::Folded {
            return Cycles { alive: vec![0; interval as usize], interval, line: None };
        }
        let first = cycles.iter().min().copied().unwrap_or(0);
        let last = cycles.iter().enumerate().map(|(v, t)| t + search.op(v).span().0).max().unwrap_or(0);
        let copies = (last - first).div_euclid(interval) + i64::from((last - first).rem_euclid(interval) > 0);
        let end = last + (copies - 1) * interval;
        Cycles { alive: vec![0; (end - first).max(0) as usize], interval, line: Some(Line { first, copies, end }) }
    }

    /// `amount` is alive in every cycle from `start` to before the last read, each so many iterations later.
    fn live(&mut self, start: i64, reads: &[(i64, u32)], amount: u64) {
        let Some(Line { first, copies, end }) = self.line else {
            let reads = reads.iter().map(|(cycle, later)| cycle + i64::from(*later) * self.interval);
            for cycle in start..reads.max().unwrap_or(start) {
                self.alive[cycle.rem_euclid(self.interval) as usize] += amount;
            }
            return;
        };
        for copy in 0..copies {
            // Iterations beyond the line read nothing; what the loop carries leaves it at its end.
            let inside = reads.iter().filter(|(_, later)| copy + i64::from(*later) < copies);
            let last = inside.map(|(cycle, later)| cycle + (copy + i64::from(*later)) * self.interval).max();
            let leaves = copy + 1 == copies && reads.iter().any(|(_, later)| *later > 0);
            let last = if leaves { end } else { last.unwrap_or(i64::MIN) };
            for cycle in start + copy * self.interval..last.min(end) {
                self.alive[(cycle - first) as usize] += amount;
            }
        }
    }

    fn most(&self) -> u64 {
        self.alive.iter().copied().max().unwrap_or(0)
    }
}

/// The registers a thread of the compute group that is given most; `None` where a memory or the registers do not suffice.
pub(super) fn fits(search: &Search, cycles: &[i64]) -> Option<i64> {
    let (machine, reserved) = (search.problem.resources(), search.problem.graph().reserved());
    let mut tensor = Cycles::new(search, cycles);
    let mut shared = Cycles::new(search, cycles);
    let mut rings = 0;
    for v in 0..cycles.len() {
        let uses = || search.dependences().iter().filter(move |d| d.from.index() == v && d.carries_value);
        let issue = |to: usize, distance: u32| cycles[to] + i64::from(distance) * search.interval;
        let reads = || uses().map(|d| (cycles[d.to.index()] + d.hold.0, d.distance)).collect::<Vec<_>>();
        let over = |to: usize| search.op(to).completion().0;
        match search.op(v).storage {
            Storage::None => {}
            Storage::Tensor(columns) => tensor.live(cycles[v], &reads(), columns.0),
            Storage::Shared(bytes) if search.op(v).streaming => {
                let first = uses().map(|d| issue(d.to.index(), d.distance)).min();
                let last = uses().map(|d| issue(d.to.index(), d.distance) + over(d.to.index())).max();
                let lasts = first.zip(last).map_or(0, |(first, last)| search.op(v).transfer_latency.0 + last - first);
                let slots = lasts.div_euclid(search.interval) + i64::from(lasts.rem_euclid(search.interval) > 0);
                rings += bytes.0 * slots.max(1) as u64;
            }
            Storage::Shared(bytes) => shared.live(cycles[v], &reads(), bytes.0),
            Storage::Registers(words) => {
                let away = uses().filter(|d| search.crosses(d));
                let away: Vec<_> = away.map(|d| (cycles[d.to.index()] + over(d.to.index()), d.distance)).collect();
                shared.live(cycles[v], &away, 4 * words.0);
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
    let mut held = Cycles::new(search, cycles);
    for v in 0..cycles.len() {
        let Storage::Registers(words) = search.op(v).storage else { continue };
        let uses = || search.dependences().iter().filter(move |d| d.from.index() == v && d.carries_value);
        if search.group[v] == group {
            let reads: Vec<_> = uses().map(|d| (cycles[d.to.index()] + d.hold.0, d.distance)).collect();
            held.live(cycles[v], &reads, words.0);
        }
        for d in uses().filter(|d| search.crosses(d) && search.group[d.to.index()] == group) {
            let reader = search.op(d.to.index());
            if search.problem.options().consumer_registers && !reader.variable_latency {
                let issue = cycles[d.to.index()];
                held.live(issue, &[(issue + reader.span().0, 0)], words.0);
            }
        }
    }
    held.most()
}
