//! A problem as plain numbers, in the order in which `twill-gaus` has it.

/// A use of a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Used {
    /// Where it is added up; `None` where it has a part in no loss.
    pub track: Option<usize>,
    /// Its first step, after the operation's start.
    pub offset: f64,
    /// The step after its last one, for uses of several steps.
    pub end: Option<f64>,
    /// How much it uses.
    pub amount: f64,
}

/// An operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// What it uses.
    pub uses: Vec<Used>,
    /// Storage of its value.
    pub stored: f64,
    /// What communication grows by when it starts a step later, times its weight in the objective.
    pub later: f64,
    /// Its earliest and latest start.
    pub window: [f64; 2],
    /// Its readers: operation, lag, and steps by which the read is later on this operation's clock.
    pub out: Vec<(u32, f64, f64)>,
    /// Whom it waits for: operation, lag, and the dependence's place among all of `out`, operation by operation.
    pub into: Vec<(u32, f64, u32)>,
}

/// What is added up over steps, of a resource or of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Profile {
    /// The tracks whose sum it is.
    pub tracks: [Option<usize>; 2],
    /// The most it may be.
    pub limit: Option<f64>,
    /// The weight of its peak in the objective; 0 for none.
    pub peak: f64,
}

/// A problem for [`Descent`](crate::Descent).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Problem {
    /// By level of the grids, where its cells begin, and where the last one's end.
    pub first_cells: Vec<u32>,
    /// Steps of profiles.
    pub length: usize,
    /// Slots that they are folded to.
    pub slots: usize,
    /// Slots that means are taken over.
    pub mean_slots: f64,
    /// By track: whether what begins and what ends are laid, rather than what is there.
    pub ends: Vec<bool>,
    /// Resources, then storage.
    pub profiles: Vec<Profile>,
    /// Whether the last profile, and the last track, is that of storage.
    pub has_storage: bool,
    /// Operations.
    pub operations: Vec<Row>,
    /// Whether a broken dependence counts by its probability, not by its expected shortfall.
    pub counts_probability: bool,
}

impl Problem {
    /// What amounts are counted in on the grids, parts of 1: a power of two by which all of them together fit in 62 bits.
    pub(crate) fn unit(&self) -> f64 {
        let of = |row: &Row| 2.0 * row.stored + row.uses.iter().map(|used| 2.0 * used.amount).sum::<f64>();
        let all: f64 = self.operations.iter().map(of).sum();
        (62.0 - all.max(1.0).log2().ceil()).min(40.0).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_amounts_fit() {
        let row = |stored| Row { stored, ..Row::default() };
        let of = |stored| Problem { operations: vec![row(stored)], ..Problem::default() }.unit();
        assert_eq!(of(3.0), 2_f64.powi(40));
        assert_eq!(of(2_f64.powi(60)), 2.0);
    }
}
