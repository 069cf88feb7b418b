//! docs/model.md, word by word: every slot, every cycle, nothing clever. Only for small numbers.

use std::collections::BTreeSet;
use twill_check::Constraint;
use twill_graph::{
    Bytes, ChannelStorage, ConcurrencyWindow, Dependence, Execution, GroupRole, Liveness, OpId, Operation, Problem,
    Schedule, Storage, WarpAssignment,
};

struct Literal<'a> {
    problem: &'a Problem,
    schedule: &'a Schedule,
    interval: i64,
}

/// An item that takes storage: in its own iteration from `start` until each of `reads`, some of them in
/// later iterations.
struct Taken {
    start: i64,
    reads: Vec<(i64, i64)>,
    amount: u64,
}

/// The constraints that the schedule breaks.
pub fn broken(problem: &Problem, schedule: &Schedule) -> BTreeSet<Constraint> {
    if schedule.placements.iter().any(|p| p.cycle.0 < 0) {
        return BTreeSet::from([Constraint::Structure]);
    }
    let this = Literal { problem, schedule, interval: schedule.interval.0 };
    [
        (Constraint::Structure, this.structure()),
        (Constraint::Dependence, this.dependence()),
        (Constraint::Resource, this.resource()),
        (Constraint::Bandwidth, this.bandwidth()),
        (Constraint::Assignment, this.assignment()),
        (Constraint::Handoff, this.handoff()),
        (Constraint::Concurrency, this.concurrency()),
        (Constraint::Exclusive, this.exclusive()),
        (Constraint::Registers, this.registers()),
        (Constraint::SharedMemory, this.shared_memory()),
        (Constraint::TensorMemory, this.tensor_memory()),
        (Constraint::Channels, this.channels()),
        (Constraint::Rings, this.rings()),
    ]
    .into_iter()
    .filter_map(|(constraint, holds)| (!holds).then_some(constraint))
    .collect()
}

impl Literal<'_> {
    fn ids(&self) -> Vec<OpId> {
        self.problem.graph().op_ids().collect()
    }
    fn op(&self, v: OpId) -> &Operation {
        self.problem.graph().operation(v)
    }
    fn t(&self, v: OpId) -> i64 {
        self.schedule.placements[v.index()].cycle.0
    }
    fn w(&self, v: OpId) -> usize {
        self.schedule.placements[v.index()].group.index()
    }
    fn values(&self) -> Vec<&Dependence> {
        self.problem.graph().dependences().iter().filter(|d| d.carries_value).collect()
    }
    fn uses(&self, u: OpId) -> Vec<&Dependence> {
        self.values().into_iter().filter(|d| d.from == u).collect()
    }
    fn completion(&self, v: OpId) -> i64 {
        std::cmp::max(self.op(v).occupancy.0, self.op(v).latency.0)
    }
    fn span(&self, v: OpId) -> i64 {
        std::cmp::max(1, self.op(v).occupancy.0)
    }
    fn length(&self) -> i64 {
        self.ids().into_iter().map(|v| self.t(v) + self.span(v)).max().unwrap()
    }
    fn in_registers(&self, u: OpId) -> bool {
        matches!(self.op(u).storage, Storage::Registers(_))
    }
    fn synchronous(&self, v: OpId) -> bool {
        self.op(v).execution == Execution::Synchronous
    }
    fn slot(&self, time: i64) -> i64 {
        time.rem_euclid(self.interval)
    }
    fn used(&self) -> BTreeSet<usize> {
        self.ids().into_iter().map(|v| self.w(v)).collect()
    }

    fn structure(&self) -> bool {
        let listed: Vec<usize> = self.schedule.groups.iter().map(|g| g.id.index()).collect();
        self.schedule.length.0 == self.length()
            && listed == self.used().into_iter().collect::<Vec<_>>()
            && self.schedule.groups.iter().all(|g| {
                let pool = self.problem.groups()[g.id.index()];
                pool.role == g.role && pool.warps == g.warps
            })
    }

    fn dependence(&self) -> bool {
        self.problem
            .graph()
            .dependences()
            .iter()
            .all(|d| self.t(d.to) + i64::from(d.distance) * self.interval >= self.t(d.from) + d.delay.0)
    }

    fn resource(&self) -> bool {
        self.problem.resources().units.iter().all(|unit| {
            let mut held = vec![0; self.interval as usize];
            for v in self.ids() {
                for reservation in self.op(v).reservations.iter().filter(|x| x.unit == unit.name) {
                    for c in reservation.start.0..reservation.start.0 + reservation.cycles.0 {
                        held[self.slot(self.t(v) + c) as usize] += 1;
                    }
                }
            }
            held.into_iter().all(|held| held <= unit.capacity)
        })
    }

    fn bandwidth(&self) -> bool {
        let bytes: u64 = self.ids().into_iter().map(|v| self.op(v).traffic.shared.0).sum();
        let rate = self.problem.resources().shared_bytes_per_cycle;
        rate.is_none_or(|rate| bytes <= rate.0 * u64::try_from(self.interval).unwrap())
    }

    fn assignment(&self) -> bool {
        let machine = self.problem.resources();
        self.ids().into_iter().all(|v| {
            let (op, group) = (self.op(v), self.problem.groups()[self.w(v)]);
            let wide_enough = group.warps >= op.issue_width;
            let loads = machine.variable_latency_group.is_none()
                || op.variable_latency == (group.role == GroupRole::VariableLatency);
            let other = !(machine.variable_latency_group.is_some() && op.variable_latency);
            let issues = machine.issue_group.is_none()
                || match (op.issue_width, group.role) {
                    (1, role) => !other || role == GroupRole::Issue,
                    (_, role) => role != GroupRole::Issue,
                };
            // Compute groups stand last in the pool.
            let first = self.problem.groups().iter().position(|g| g.role == GroupRole::Compute).unwrap();
            let turn = op.sub_tile.map_or(0, |s| s as usize % (self.problem.groups().len() - first));
            let chosen = group.role != GroupRole::Compute
                || self.problem.options().warp_assignment == WarpAssignment::Free
                || self.w(v) == first + turn;
            wide_enough && loads && issues && chosen
        })
    }

    fn handoff(&self) -> bool {
        self.values().into_iter().filter(|d| self.in_registers(d.from) && self.w(d.from) != self.w(d.to)).all(|d| {
            self.problem.options().cross_group_registers
                && d.distance == 0
                && self.t(d.to) >= self.t(d.from) + d.delay.0 + self.op(d.from).handoff.0
        })
    }

    fn concurrency(&self) -> bool {
        let waits = |v: OpId| {
            self.problem.graph().dependences().iter().any(|d| {
                let elsewhere = d.carries_value && self.in_registers(d.from) && self.w(d.from) != self.w(v);
                d.to == v && ((d.blocking && d.from != v) || elsewhere)
            })
        };
        let window = |o: OpId| match self.problem.options().concurrency_window {
            ConcurrencyWindow::Issue if !self.synchronous(o) => 1,
            _ => self.op(o).occupancy.0,
        };
        self.ids().into_iter().filter(|v| waits(*v)).all(|v| {
            self.ids()
                .into_iter()
                .filter(|o| *o != v && self.w(*o) == self.w(v))
                .all(|o| !(0..window(o)).contains(&self.slot(self.t(v) - self.t(o))))
        })
    }

    fn exclusive(&self) -> bool {
        !self.problem.options().exclusive_issue
            || self.used().into_iter().all(|g| {
                let mut busy = vec![0; self.interval as usize];
                for v in self.ids().into_iter().filter(|v| self.w(*v) == g && self.synchronous(*v)) {
                    for c in 0..self.op(v).occupancy.0 {
                        busy[self.slot(self.t(v) + c) as usize] += 1;
                    }
                }
                busy.into_iter().all(|busy| busy <= 1)
            })
    }

    fn life(&self, v: OpId, amount: u64) -> Taken {
        let reads = self.uses(v).iter().map(|d| (self.t(d.to) + d.hold.0, i64::from(d.distance))).collect();
        Taken { start: self.t(v), reads, amount }
    }

    fn buffer(&self, v: OpId, amount: u64) -> Taken {
        let away = self.uses(v).into_iter().filter(|d| self.w(d.to) != self.w(v));
        let reads = away.map(|d| (self.t(d.to) + self.completion(d.to), i64::from(d.distance))).collect();
        Taken { start: self.t(v), reads, amount }
    }

    /// `#{k ∈ ℤ : start ≤ r + kI < end}` for every slot.
    fn folded(&self, taken: &Taken) -> Vec<u64> {
        let mut slots = vec![0; self.interval as usize];
        let end = taken.reads.iter().map(|(end, later)| end + later * self.interval).max().unwrap_or(taken.start);
        (taken.start..end).for_each(|x| slots[self.slot(x) as usize] += 1);
        slots
    }

    fn copies(&self, taken: &Taken) -> u64 {
        self.folded(taken).into_iter().max().unwrap().max(1)
    }

    fn most(&self, taken: &[Taken]) -> u64 {
        if self.problem.options().liveness == Liveness::Folded {
            let folded: Vec<Vec<u64>> = taken.iter().map(|x| self.folded(x)).collect();
            let sum = |r: usize| folded.iter().zip(taken).map(|(slots, x)| slots[r] * x.amount).sum();
            return (0..self.interval as usize).map(sum).max().unwrap();
        }
        let (length, interval) = (self.length(), self.interval);
        let copies = (length + interval - 1) / interval;
        let mut program = vec![0; ((copies - 1) * interval + length) as usize];
        for x in taken {
            for i in 0..copies {
                let reads = x.reads.iter().filter(|(_, later)| i + later < copies);
                let mut end = reads.map(|(end, later)| end + (i + later) * interval).max().unwrap_or(0);
                if i == copies - 1 && x.reads.iter().any(|(_, later)| *later > 0) {
                    end = program.len() as i64;
                }
                (x.start + i * interval..end.min(program.len() as i64)).for_each(|c| program[c as usize] += x.amount);
            }
        }
        program.into_iter().max().unwrap()
    }

    fn registers(&self) -> bool {
        let machine = self.problem.resources();
        let file = &machine.registers;
        let mut total: u64 = [machine.variable_latency_group, machine.issue_group]
            .into_iter()
            .flatten()
            .map(|g| 32 * u64::from(g.allocated_warps) * u64::from(g.registers_per_thread))
            .sum();
        for given in &self.schedule.groups {
            let (g, r) = (given.id.index(), given.registers_per_thread);
            match self.problem.groups()[g].role {
                GroupRole::VariableLatency if r != machine.variable_latency_group.unwrap().registers_per_thread => {
                    return false;
                }
                GroupRole::Issue if r != machine.issue_group.unwrap().registers_per_thread => return false,
                _ => {}
            }
            let compute = self.problem.groups()[g].role == GroupRole::Compute;
            let warps = u64::from(self.problem.groups()[g].warps);
            total += if compute { 32 * warps * u64::from(r) } else { 0 };
            let mut taken = Vec::new();
            for u in self.ids() {
                let Storage::Registers(words) = self.op(u).storage else { continue };
                if self.w(u) == g {
                    taken.push(self.life(u, words.0));
                }
                for d in self.uses(u) {
                    let v = d.to;
                    let operand = self.w(u) != g && self.w(v) == g && !self.op(v).variable_latency;
                    if operand && self.problem.options().consumer_registers {
                        let reads = vec![(self.t(v) + self.span(v), 0)];
                        taken.push(Taken { start: self.t(v), reads, amount: words.0 });
                    }
                }
            }
            // A fixed group smaller than the reserve holds nothing; a compute group cannot be so small.
            let usable = i64::from(r.min(file.maximum_per_thread)) - i64::from(file.reserve_per_thread);
            let available = 32 * warps as i64 * if compute { usable } else { usable.max(0) };
            if self.most(&taken) as i64 > available
                || compute && r % file.granularity != 0
                || compute && r < file.minimum_per_thread
                || compute && r >= file.maximum_per_thread + file.granularity
            {
                return false;
            }
        }
        total <= file.words
    }

    fn shared_memory(&self) -> bool {
        let (mut always, mut taken) = (self.problem.graph().reserved().shared.0, Vec::new());
        for v in self.ids() {
            match self.op(v).storage {
                Storage::Shared(bytes) if self.op(v).streaming => always += bytes.0 * self.slots(v),
                Storage::Shared(bytes) => taken.push(self.life(v, bytes.0)),
                Storage::Registers(words) => taken.push(self.buffer(v, 4 * words.0)),
                Storage::None | Storage::Tensor(_) => {}
            }
        }
        always + self.most(&taken) <= self.problem.resources().shared_memory.0
    }

    fn tensor_memory(&self) -> bool {
        let mut taken = Vec::new();
        for v in self.ids() {
            if let Storage::Tensor(columns) = self.op(v).storage {
                taken.push(self.life(v, columns.0));
            }
        }
        self.problem.graph().reserved().tensor.0 + self.most(&taken) <= self.problem.resources().tensor_memory.0
    }

    /// Slots of a ring, counted.
    fn slots(&self, load: OpId) -> u64 {
        let issue = |d: &&Dependence| self.t(d.to) + i64::from(d.distance) * self.interval;
        let uses = self.uses(load);
        let Some(first) = uses.iter().map(issue).min() else { return 1 };
        let end = uses.iter().map(|d| issue(d) + self.completion(d.to)).max().unwrap();
        let start = first - self.op(load).transfer_latency.0;
        self.copies(&Taken { start, reads: vec![(end, 0)], amount: 1 })
    }

    fn channels(&self) -> bool {
        let mut expected = BTreeSet::new();
        for d in self.values().into_iter().filter(|d| self.w(d.from) != self.w(d.to)) {
            let v = d.from;
            let (storage, copies) = match self.op(v).storage {
                Storage::None => unreachable!(),
                Storage::Registers(words) => {
                    (ChannelStorage::Handoff(Bytes(4 * words.0)), self.copies(&self.buffer(v, 0)))
                }
                Storage::Shared(bytes) if self.op(v).streaming => (ChannelStorage::Shared(bytes), self.slots(v)),
                Storage::Shared(bytes) => (ChannelStorage::Shared(bytes), self.copies(&self.life(v, 0))),
                Storage::Tensor(columns) => (ChannelStorage::Tensor(columns), self.copies(&self.life(v, 0))),
            };
            expected.insert((v, self.w(v), self.w(d.to), format!("{storage:?}"), copies));
        }
        let given: Vec<_> = self.schedule.channels.iter().collect();
        given.len() == expected.len()
            && given.into_iter().all(|c| {
                let storage = format!("{:?}", c.storage);
                expected.contains(&(c.value, c.from.index(), c.to.index(), storage, c.depth.into()))
            })
    }

    fn rings(&self) -> bool {
        let loads: Vec<OpId> = self
            .ids()
            .into_iter()
            .filter(|v| self.op(*v).streaming && matches!(self.op(*v).storage, Storage::Shared(_)))
            .collect();
        self.schedule.rings.len() == loads.len()
            && loads.into_iter().all(|v| {
                self.schedule.rings.iter().any(|r| {
                    r.load == v && self.op(v).storage == Storage::Shared(r.bytes) && u64::from(r.depth) == self.slots(v)
                })
            })
    }
}
