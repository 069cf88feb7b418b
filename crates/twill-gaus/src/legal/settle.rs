//! Legal with dependences alone: every operation as near to its wish as its neighbours let it.

use crate::model::Model;

/// Where an operation goes when its wish and its neighbours' are at odds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Readers give way and start later (the paper's legaliser).
    Later,
    /// Producers give way and start earlier.
    Earlier,
    /// Halfway between the two, which is legal as well: the floor of the mean of two schedules keeps every dependence
    /// that both keep (own).
    Middle,
}

/// The schedule near `wishes` that keeps dependences, recurrences and windows. There always is one: windows have been
/// found feasible. Resources are not looked at.
pub(crate) fn settle(model: &Model<'_>, wishes: &[f64], side: Side) -> Vec<i64> {
    let near = |v: usize| (wishes[v].round() as i64).clamp(model.earliest[v], model.latest[v]);
    let wishes: Vec<i64> = (0..model.len()).map(near).collect();
    // Raised from at most `latest`, which keeps every dependence, starts stay at most that; and lowered likewise.
    let mut later = wishes.clone();
    let mut earlier = wishes;
    let raised = side == Side::Earlier || model.precedence.raise(&mut later);
    let lowered = side == Side::Later || model.precedence.lower(&mut earlier);
    debug_assert!(raised && lowered, "windows exist, so cycles are satisfied");
    match side {
        Side::Later => later,
        Side::Earlier => earlier,
        Side::Middle => later.iter().zip(&earlier).map(|(a, b)| (a + b).div_euclid(2)).collect(),
    }
}
