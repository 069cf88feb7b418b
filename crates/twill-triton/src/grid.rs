//! The grid that a kernel is launched on: axes, sets of them, and how a loop is split into parts.

use std::fmt;

/// An axis of the grid: what `tl.program_id` is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// `tl.program_id(0)`.
    X,
    /// `tl.program_id(1)`.
    Y,
    /// `tl.program_id(2)`.
    Z,
}

impl Axis {
    /// Its number in Python.
    pub fn number(self) -> u32 {
        match self {
            Axis::X => 0,
            Axis::Y => 1,
            Axis::Z => 2,
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        })
    }
}

/// A set of axes of the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Axes(u8);

impl Axes {
    /// No axis.
    pub const NONE: Axes = Axes(0);
    /// Every axis.
    pub const ALL: Axes = Axes(0b111);

    /// Returns whether the axis is in the set.
    pub fn contains(self, axis: Axis) -> bool {
        self.0 & Axes::from(axis).0 != 0
    }

    /// The axes that are in either set.
    #[must_use]
    pub fn union(self, other: Axes) -> Axes {
        Axes(self.0 | other.0)
    }
}

impl From<Axis> for Axes {
    fn from(axis: Axis) -> Axes {
        Axes(1 << axis.number())
    }
}

impl FromIterator<Axes> for Axes {
    fn from_iter<I: IntoIterator<Item = Axes>>(sets: I) -> Axes {
        sets.into_iter().fold(Axes::NONE, Axes::union)
    }
}

/// How a loop is split into parts that warp groups can share out: the `sub_tile` of an operation is its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Not at all.
    Whole,
    /// The rows of its tile are cut into N sub-tiles, at least two.
    Rows(u32),
    /// Consecutive programs of the grid share a CTA: part `s` is that of the program whose `tl.program_id` is
    /// `count` times that of the CTA, plus `s`.
    Programs {
        /// How many, at least two.
        count: u32,
        /// Along which axis they follow each other.
        axis: Axis,
    },
}

impl Split {
    /// How many parts there are.
    pub fn parts(self) -> u32 {
        match self {
            Split::Whole => 1,
            Split::Rows(count) | Split::Programs { count, .. } => count,
        }
    }
}

/// The state of the loop, as in "it is ...".
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Split::Whole => f.write_str("whole"),
            Split::Rows(count) => write!(f, "cut into {count} sub-tiles"),
            Split::Programs { count, axis } => write!(f, "made of {count} programs along {axis}"),
        }
    }
}
