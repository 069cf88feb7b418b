//! Every knob of the engine.

use crate::descent::Descent;
use crate::legal::Side;
use crate::polish::Polish;

/// Where the search begins.
#[derive(Clone, Debug, PartialEq)]
pub enum StartFrom {
    /// The middle of each operation's mobility window (paper).
    Middle,
    /// A schedule, such as a list scheduler's (paper).
    Given(Vec<u64>),
    /// Anywhere in the window, by the seed.
    Random,
    /// Drawn, by the seed, from normal distributions around the means that an earlier gradient ended at, as wide as those
    /// that a gradient begins with (own).
    Near(Vec<f64>),
}

/// How to search. With the same options and no limit of time, the answer is the same on any machine and on any number of
/// threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The seed of random choices. Default 1.
    pub seed: u64,
    /// Where the search begins. Default the middle (paper).
    pub start: StartFrom,
    /// Schedules that are known, such as those of baselines: what is found is no worse than any of them that is legal, and
    /// rounds after the first may begin there. Default none (own).
    pub known: Vec<Vec<u64>>,
    /// An objective below which there is nothing, by proof: a schedule that has it ends the search. Default none (own).
    pub target: Option<i128>,
    /// Rounds: each goes downhill from the best schedule so far, moved a little, then legalises and polishes. Default 2
    /// (own: with the same time in all, 1 to 3 are within a percent of each other).
    pub rounds: u32,
    /// The gradient phase; `None` to leave it out, so that the same start goes to the legaliser and on. Default on.
    pub descent: Option<Descent>,
    /// The end that gives way when wishes break a dependence. Default the middle (own).
    pub side: Side,
    /// Placements of the reservation table before it is given up, in multiples of the number of operations. Default 10
    /// (own; Rau 1994 uses 6).
    pub ejections: u32,
    /// Orders that are tried before an interval or a latency is given up, where these are searched for. Default 8 (own).
    pub tries: u32,
    /// How often the interval or the latency just below the best is tried, each time with other orders, before the best is
    /// the answer. Default 3 (own).
    pub patience: u32,
    /// Local improvement after each legalisation. Default on.
    pub polish: Polish,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            start: StartFrom::Middle,
            known: Vec::new(),
            target: None,
            rounds: 2,
            descent: Some(Descent::default()),
            side: Side::Middle,
            ejections: 10,
            tries: 8,
            patience: 3,
            polish: Polish::default(),
        }
    }
}
