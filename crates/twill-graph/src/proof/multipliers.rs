//! A certificate of a lower bound on the objective of a [`DataflowProblem`](crate::DataflowProblem): Lagrange
//! multipliers.

use crate::OpId;

/// A multiplier at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPrice {
    /// Of what: a resource or a dependence, by its position in the graph.
    pub index: u32,
    /// The step, from 0.
    pub step: u32,
    /// The multiplier, over [`Multipliers::scale`].
    pub price: u64,
}

/// Weights of steps and prices of dependences, from which a lower bound follows by adding up.
///
/// A peak is at least any weighted mean over steps. Of that, with the broken dependences at their prices on top, each
/// operation has a part that depends on its own start alone; the least of each part within the operation's window of
/// starts add up to a lower bound on the objective (weak duality: Geoffrion, "Lagrangean relaxation for integer
/// programming", Mathematical Programming Study 2, 1974). The relaxation of start times by steps is that of Möhring,
/// Schulz, Stork, Uetz, "Solving Project Scheduling Problems by Minimum Cut Computations", Management Science 49,
/// 2003.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Multipliers {
    /// The claim: no schedule has a smaller objective.
    pub least: i128,
    /// What weights and prices are divided by, at least 1.
    pub scale: u64,
    /// Weight of a step of a resource; for storage, `index` is 0. Those of one resource add up to `peak · scale` at
    /// most, those of storage to `scale`.
    pub weights: Vec<StepPrice>,
    /// Price of `[s_to ≤ step] ≤ [s_from ≤ step − delay]`.
    pub dependences: Vec<StepPrice>,
    /// Price of `[end ≤ step] ≤ [s_to ≤ step]`, where `end` is the last read of the value of the dependence's
    /// producer, if that is read by several operations.
    pub reads: Vec<StepPrice>,
}

/// A certificate of a lower bound on storage: what is live when an operation starts.
///
/// In the step in which `op` starts, all have started that it depends on, and none that depend on it. Which of the
/// others have is open; prices of dependences make a bound of it that is added up operation by operation, as in
/// [`Multipliers`]. This is the wavefront of Elango, Rastello, Pouchet, Ramanujam, Sadayappan, "On Characterizing the
/// Data Movement Complexity of Computational DAGs for Parallel Execution" (SPAA 2014, section 4), for schedules
/// instead of sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wavefront {
    /// The operation.
    pub op: OpId,
    /// The claim: no schedule has less storage.
    pub least: i128,
    /// Dependences, by their position, with the price of: if the reader has started, so has the producer.
    pub dependences: Vec<(u32, u64)>,
    /// Dependences with the price of: if the last read is over, so is this one; for values of several readers.
    pub reads: Vec<(u32, u64)>,
}
