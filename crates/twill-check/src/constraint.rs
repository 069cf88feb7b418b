//! The constraint that a violation breaks.

use crate::Violation;

/// The constraints, as docs/model.md names them; each has a file of its own in this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Constraint {
    /// Lengths, lists and claims that follow from the placements.
    Structure,
    /// `dependence`.
    Dependence,
    /// `resource`.
    Resource,
    /// `bandwidth`.
    Bandwidth,
    /// `assignment`.
    Assignment,
    /// `handoff`.
    Handoff,
    /// `concurrency`.
    Concurrency,
    /// `exclusive`.
    Exclusive,
    /// `registers`.
    Registers,
    /// `shared_memory`.
    SharedMemory,
    /// `tensor_memory`.
    TensorMemory,
    /// Channels between groups.
    Channels,
    /// Rings of streaming loads.
    Rings,
}

impl Violation {
    /// The constraint that is broken.
    pub fn constraint(&self) -> Constraint {
        match self {
            Violation::Interval { .. }
            | Violation::OtherInterval { .. }
            | Violation::StepsTooLarge { .. }
            | Violation::LatencyBound { .. }
            | Violation::PlacementCount { .. }
            | Violation::UnknownGroup { .. }
            | Violation::NegativeCycle { .. }
            | Violation::Length { .. }
            | Violation::UnlistedGroup { .. }
            | Violation::IdleGroup { .. }
            | Violation::GroupOrder { .. }
            | Violation::GroupKind { .. }
            | Violation::TooManyCopies { .. } => Constraint::Structure,
            Violation::Dependence { .. } => Constraint::Dependence,
            Violation::Resource { .. } => Constraint::Resource,
            Violation::Bandwidth { .. } => Constraint::Bandwidth,
            Violation::AssignmentWidth { .. }
            | Violation::AssignmentVariableLatency { .. }
            | Violation::AssignmentIssue { .. }
            | Violation::AssignmentSubTile { .. } => Constraint::Assignment,
            Violation::HandoffEarly { .. } | Violation::HandoffCarried { .. } | Violation::HandoffForbidden { .. } => {
                Constraint::Handoff
            }
            Violation::Concurrency { .. } => Constraint::Concurrency,
            Violation::Exclusive { .. } => Constraint::Exclusive,
            Violation::Registers { .. }
            | Violation::RegisterGranularity { .. }
            | Violation::RegisterRange { .. }
            | Violation::RegisterFile { .. } => Constraint::Registers,
            Violation::SharedMemory { .. } => Constraint::SharedMemory,
            Violation::TensorMemory { .. } => Constraint::TensorMemory,
            Violation::MissingChannel { .. }
            | Violation::UnusedChannel { .. }
            | Violation::ChannelKind { .. }
            | Violation::ChannelDepth { .. } => Constraint::Channels,
            Violation::MissingRing { .. }
            | Violation::UnusedRing { .. }
            | Violation::RingBytes { .. }
            | Violation::RingDepth { .. } => Constraint::Rings,
        }
    }
}
