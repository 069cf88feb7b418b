//! Live storage of a schedule, slot by slot, kept up to date move by move.

use crate::model::Model;

/// Usage, and how much of it is above a target.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub usage: Vec<i64>,
    pub target: i64,
    /// `Σ max(0, usage − target)`.
    pub above: i64,
    /// `τ`, where a smooth maximum is kept.
    temperature: Option<f64>,
    /// `Σ exp((usage − target)/τ)` then.
    sum: f64,
}

impl Level {
    pub fn new(usage: Vec<i64>, target: i64) -> Self {
        let mut level = Self { usage, target, above: 0, temperature: None, sum: 0.0 };
        level.aim(target);
        level
    }

    /// Sets another target.
    pub fn aim(&mut self, target: i64) {
        self.target = target;
        self.above = self.usage.iter().map(|&usage| (usage - target).max(0)).sum();
    }

    /// Keeps a smooth maximum of this temperature from now on, and forgets rounding errors.
    pub fn smooth(&mut self, temperature: f64) {
        self.aim(self.peak());
        self.temperature = Some(temperature);
        self.sum = self.usage.iter().map(|&usage| ((usage - self.target) as f64 / temperature).exp()).sum();
    }

    /// The smooth maximum, if one is kept, or else what is above the target.
    pub fn height(&self) -> f64 {
        match self.temperature {
            Some(temperature) => self.target as f64 + temperature * self.sum.ln(),
            None => self.above as f64,
        }
    }

    pub fn add(&mut self, slot: usize, amount: i64) {
        let before = self.usage[slot];
        let after = before + amount;
        self.usage[slot] = after;
        match self.temperature {
            Some(temperature) => {
                let share = |usage: i64| ((usage - self.target) as f64 / temperature).exp();
                self.sum += share(after) - share(before);
            }
            None => self.above += (after - self.target).max(0) - (before - self.target).max(0),
        }
    }

    pub fn peak(&self) -> i64 {
        self.usage.iter().copied().max().unwrap_or(0)
    }
}

/// Values that are live in every slot.
#[derive(Clone, Debug)]
pub(crate) struct LiveLevel {
    pub level: Level,
    /// Last read of each operation's value, by its producer's clock.
    pub ends: Vec<i64>,
}

impl LiveLevel {
    pub fn new(model: &Model<'_>, steps: &[i64], target: i64) -> Self {
        let ends: Vec<i64> = (0..model.len()).map(|v| end(model, steps, v)).collect();
        // Where storage begins and ends: in time by values, however long they live.
        let (mut changes, mut always) = (vec![0_i64; model.slots + 1], 0);
        for (v, &start) in steps.iter().enumerate() {
            let (amount, mut life) = (model.storage[v], (ends[v] - start).max(0));
            if let Some(interval) = model.interval {
                always += life / interval * amount;
                life %= interval;
            }
            let (first, last) = (model.slot(start), model.slot(start) + life as usize);
            changes[first] += amount;
            if last > model.slots {
                changes[0] += amount;
                changes[last - model.slots] -= amount;
            } else {
                changes[last] -= amount;
            }
        }
        let mut live = always;
        let usage = changes[..model.slots].iter().map(|change| {
            live += change;
            live
        });
        Self { level: Level::new(usage.collect(), target), ends }
    }

    /// Adds `amount` in steps `from .. to`, if there are any.
    fn hold(&mut self, model: &Model<'_>, from: i64, to: i64, amount: i64) {
        if from >= to || amount == 0 {
            return;
        }
        let mut slot = model.slot(from);
        for _ in from..to {
            self.level.add(slot, amount);
            slot = if slot + 1 == model.slots { 0 } else { slot + 1 };
        }
    }

    /// A value that was live in `old` is live in `new`; steps in both are left alone.
    fn change(&mut self, model: &Model<'_>, v: usize, old: (i64, i64), new: (i64, i64)) {
        let amount = model.storage[v];
        let (old, new) = ((old.0, old.1.max(old.0)), (new.0, new.1.max(new.0)));
        if old.1 <= new.0 || new.1 <= old.0 {
            self.hold(model, old.0, old.1, -amount);
            self.hold(model, new.0, new.1, amount);
            return;
        }
        self.hold(model, old.0, new.0, -amount);
        self.hold(model, new.0, old.0, amount);
        self.hold(model, new.1, old.1, -amount);
        self.hold(model, old.1, new.1, amount);
    }

    /// `v` has moved from `before` to where `steps` has it.
    pub fn moved(&mut self, model: &Model<'_>, steps: &[i64], v: usize, before: i64) {
        let now = steps[v];
        if model.storage[v] > 0 && !model.edges_of(v).is_empty() {
            let end = self.ends[v];
            self.change(model, v, (before, end), (now, end));
        }
        for (p, &edge) in model.precedence.predecessors(v).iter().zip(model.edges_into(v)) {
            let producer = p.op();
            if model.storage[producer] == 0 {
                continue;
            }
            let shift = model.edges()[edge as usize].shift;
            let was = self.ends[producer];
            let ends = if now + shift >= was {
                now + shift
            } else if before + shift == was {
                end(model, steps, producer)
            } else {
                continue;
            };
            self.ends[producer] = ends;
            let start = steps[producer];
            self.change(model, producer, (start, was), (start, ends));
        }
    }
}

fn end(model: &Model<'_>, steps: &[i64], v: usize) -> i64 {
    let reads = model.edges()[model.edges_of(v)].iter().map(|edge| steps[edge.to] + edge.shift);
    reads.max().unwrap_or(steps[v])
}
