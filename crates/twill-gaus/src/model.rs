//! A problem, laid out for the sweeps of the engine.

use crate::{Mobility, MobilityError, Precedence};
use thiserror::Error;
use twill_graph::{Dataflow, DataflowObjective, DataflowProblem};

/// Most steps, and most steps times resources, that profiles are kept for.
const MOST_STEPS: u64 = 1 << 24;

/// Most that storage may add up to over all steps, so that sums fit.
const MOST_STORED: u128 = 1 << 62;

/// Why a problem is not one for this engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GausError {
    /// Dependences alone rule out every schedule.
    #[error(transparent)]
    Mobility(#[from] MobilityError),
    /// Profiles would be too long.
    #[error(
        "schedules of {steps} steps over {resources} resources are too long: the profiles of all resources may have \
         2^24 steps together; scale the delays down"
    )]
    TooLong {
        /// Steps of the longest schedule looked at.
        steps: u64,
        /// Resources.
        resources: usize,
    },
    /// Sums would not fit.
    #[error("values of {stored} in all, live for up to {steps} steps, add up to more than 2^62; count in larger units")]
    TooMuchStored {
        /// Storage of all values together.
        stored: u128,
        /// Steps of the longest schedule looked at.
        steps: u64,
    },
    /// The schedule to start from is one of another graph.
    #[error("the schedule to start from has {given} steps; the graph has {operations} operations")]
    Start {
        /// Steps given.
        given: usize,
        /// Operations of the graph.
        operations: usize,
    },
}

/// An operation's use of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    pub resource: usize,
    pub offset: i64,
    pub steps: i64,
    pub amount: i64,
}

/// The uses of all operations.
#[derive(Debug)]
pub(crate) struct Uses {
    first: Vec<u32>,
    all: Vec<Use>,
}

impl Uses {
    fn new(graph: &Dataflow) -> Self {
        let mut uses = Self { first: vec![0], all: Vec::with_capacity(graph.operations().len()) };
        for op in graph.operations() {
            uses.all.extend(op.uses.iter().map(|used| Use {
                resource: used.resource.index(),
                offset: i64::from(used.offset),
                steps: i64::from(used.steps),
                amount: used.amount as i64,
            }));
            uses.first.push(uses.all.len() as u32);
        }
        uses
    }

    /// All of them, by operation.
    pub fn all(&self) -> &[Use] {
        &self.all
    }
}

impl std::ops::Index<usize> for Uses {
    type Output = [Use];

    fn index(&self, op: usize) -> &[Use] {
        &self.all[self.first[op] as usize..self.first[op + 1] as usize]
    }
}

/// A dependence, seen from its producer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub to: usize,
    pub lag: i64,
    /// `δ · II`: a read at `s_to` is one at `s_to + shift` on the producer's clock.
    pub shift: i64,
    pub communication: f64,
}

/// A problem with its windows.
#[derive(Debug)]
pub(crate) struct Model<'p> {
    pub problem: &'p DataflowProblem,
    pub precedence: &'p Precedence,
    pub interval: Option<i64>,
    pub earliest: Vec<i64>,
    pub latest: Vec<i64>,
    pub latencies: Vec<i64>,
    pub uses: Uses,
    pub limits: Vec<Option<i64>>,
    pub storage: Vec<i64>,
    first_edge: Vec<u32>,
    edges: Vec<Edge>,
    /// By operation, the edges that end there, as positions in `edges`.
    first_in: Vec<u32>,
    edges_in: Vec<u32>,
    /// Steps that profiles have before they are folded.
    pub length: usize,
    /// Slots that they have then: the interval, or `length`.
    pub slots: usize,
}

impl<'p> Model<'p> {
    /// `latency` bounds the finish of every operation.
    pub fn new(problem: &'p DataflowProblem, precedence: &'p Precedence, latency: u64) -> Result<Self, GausError> {
        let graph = &problem.graph;
        let mobility = Mobility::within(graph, precedence, Some(latency), problem.interval)?;
        let resources = graph.resources().len();
        let ii = problem.interval.unwrap_or(0);
        let shift = |distance: u32| u64::from(distance).saturating_mul(ii);
        let spans = graph.operations().iter().flat_map(|op| &op.uses);
        let longest_use = spans.map(|used| u64::from(used.offset) + u64::from(used.steps)).max().unwrap_or(0);
        let counted = |distance: u32| distance == 0 || problem.interval.is_some();
        let distances = graph.dependences().iter().filter(|d| counted(d.distance)).map(|d| shift(d.distance));
        let steps = latency.saturating_add(longest_use.max(distances.max().unwrap_or(0))).saturating_add(2);
        let tracks = resources as u64 + 1;
        if steps.max(ii).saturating_mul(tracks) > MOST_STEPS {
            return Err(GausError::TooLong { steps: steps.max(ii), resources });
        }
        let stored: u128 = graph.operations().iter().map(|op| u128::from(op.storage)).sum();
        if stored * u128::from(steps) > MOST_STORED {
            return Err(GausError::TooMuchStored { stored, steps });
        }
        let count = graph.operations().len();
        let (mut first_edge, mut edges) = (vec![0], Vec::with_capacity(graph.dependences().len()));
        let mut position = vec![0_u32; graph.dependences().len()];
        for v in 0..count {
            for s in precedence.successors(v) {
                let dependence = &graph.dependences()[s.dependence()];
                position[s.dependence()] = edges.len() as u32;
                let communication = dependence.communication as f64;
                edges.push(Edge { to: s.op(), lag: s.lag, shift: shift(dependence.distance) as i64, communication });
            }
            first_edge.push(edges.len() as u32);
        }
        let (mut first_in, mut edges_in) = (vec![0], Vec::with_capacity(edges.len()));
        for v in 0..count {
            edges_in.extend(precedence.predecessors(v).iter().map(|p| position[p.dependence()]));
            first_in.push(edges_in.len() as u32);
        }
        let signed = |steps: Vec<u64>| steps.into_iter().map(|s| s as i64).collect();
        Ok(Self {
            problem,
            precedence,
            interval: problem.interval.map(|ii| ii as i64),
            earliest: signed(mobility.earliest),
            latest: signed(mobility.latest),
            latencies: graph.operations().iter().map(|op| i64::from(op.latency)).collect(),
            uses: Uses::new(graph),
            limits: graph.resources().iter().map(|r| r.limit.map(|limit| limit as i64)).collect(),
            storage: graph.operations().iter().map(|op| op.storage as i64).collect(),
            first_edge,
            edges,
            first_in,
            edges_in,
            length: steps as usize,
            slots: if problem.interval.is_some() { ii } else { steps } as usize,
        })
    }

    pub fn len(&self) -> usize {
        self.earliest.len()
    }

    pub fn objective(&self) -> DataflowObjective {
        self.problem.objective
    }

    /// Positions of the edges that leave `op`.
    pub fn edges_of(&self, op: usize) -> std::ops::Range<usize> {
        self.first_edge[op] as usize..self.first_edge[op + 1] as usize
    }

    /// All edges, by producer.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Positions of the edges that end at `op`.
    pub fn edges_into(&self, op: usize) -> &[u32] {
        &self.edges_in[self.first_in[op] as usize..self.first_in[op + 1] as usize]
    }

    pub fn width(&self, op: usize) -> i64 {
        self.latest[op] - self.earliest[op]
    }

    /// The middle of every window.
    pub fn middle(&self) -> Vec<f64> {
        self.earliest.iter().zip(&self.latest).map(|(a, b)| (a + b) as f64 / 2.0).collect()
    }

    /// The slot of a step.
    pub fn slot(&self, step: i64) -> usize {
        match self.interval {
            Some(ii) => step.rem_euclid(ii) as usize,
            None => step as usize,
        }
    }
}
