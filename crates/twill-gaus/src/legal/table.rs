//! A reservation table: what is in use in every step, or in every slot of the interval.

use crate::model::{Model, Use};

/// Usage by resource and slot, in whole units.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    usage: Vec<Vec<i64>>,
}

impl Table {
    pub fn new(model: &Model<'_>) -> Self {
        Self { usage: vec![vec![0; model.slots]; model.limits.len()] }
    }

    pub fn of(model: &Model<'_>, steps: &[i64]) -> Self {
        let mut table = Self::new(model);
        for (v, &step) in steps.iter().enumerate() {
            table.add(model, v, step, 1);
        }
        table
    }

    /// The slots that a use covers when its operation starts at `step`, one for each step it is held.
    pub fn slots(model: &Model<'_>, used: Use, step: i64) -> impl Iterator<Item = usize> {
        let slots = model.slots;
        let mut slot = model.slot(step + used.offset);
        (0..used.steps).map(move |_| {
            let now = slot;
            slot = if slot + 1 == slots { 0 } else { slot + 1 };
            now
        })
    }

    /// Adds `times` times what `v` takes when it starts at `step`.
    pub fn add(&mut self, model: &Model<'_>, v: usize, step: i64, times: i64) {
        for &used in &model.uses[v] {
            for slot in Self::slots(model, used, step) {
                self.usage[used.resource][slot] += times * used.amount;
            }
        }
    }

    /// Returns whether usage stays within `caps` in all slots that `v` covers from `step`, of which it is part already.
    pub fn within(&self, model: &Model<'_>, v: usize, step: i64, caps: &[Option<i64>]) -> bool {
        model.uses[v].iter().all(|&used| {
            let usage = &self.usage[used.resource];
            caps[used.resource].is_none_or(|cap| Self::slots(model, used, step).all(|slot| usage[slot] <= cap))
        })
    }

    /// By how many steps `v`, which is part of usage from `step` on, has to begin later, or earlier, to leave those slots
    /// that are above their cap; `None` where there are none.
    pub fn clear(&self, model: &Model<'_>, v: usize, step: i64, caps: &[Option<i64>]) -> Option<(i64, i64)> {
        model.uses[v].iter().find_map(|&used| {
            let (usage, cap) = (&self.usage[used.resource], caps[used.resource]?);
            // Where it covers a slot more than once, it covers others as often a step later.
            let parts = model.uses[v].iter().filter(|other| other.resource == used.resource).count();
            let once = parts == 1 && used.steps <= model.slots as i64;
            let mut above = Self::slots(model, used, step).zip(0..).filter(|&(slot, _)| usage[slot] > cap);
            let (_, first) = above.next()?;
            let last = above.last().map_or(first, |(_, last)| last);
            Some(if once { (last + 1, used.steps - first) } else { (1, 1) })
        })
    }

    /// The first resource and slot that is above its cap among those that `v` covers from `step`.
    pub fn above(&self, model: &Model<'_>, v: usize, step: i64, caps: &[Option<i64>]) -> Option<(usize, usize)> {
        model.uses[v].iter().find_map(|&used| {
            let cap = caps[used.resource]?;
            let slot = Self::slots(model, used, step).find(|&slot| self.usage[used.resource][slot] > cap)?;
            Some((used.resource, slot))
        })
    }

    /// Usage of a resource, slot by slot.
    pub fn usage(&self, resource: usize) -> &[i64] {
        &self.usage[resource]
    }

    /// Greatest usage, by resource.
    pub fn peaks(&self) -> Vec<i64> {
        self.usage.iter().map(|usage| usage.iter().copied().max().unwrap_or(0)).collect()
    }
}
