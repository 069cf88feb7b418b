//! The work of asynchronous units in flight.

use super::storage::At;
use crate::memory::{Combination, Tensor};
use crate::value::Tile;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use twill_triton::mlir::Type;

/// The result of an MMA in registers.
#[derive(Debug)]
pub(super) struct Result {
    /// The MMA's number among those of its group, from 1.
    pub number: u64,
    /// Empty until it is done.
    pub tile: RefCell<Option<Rc<Tile>>>,
}

/// The value that a group holds under a name.
#[derive(Clone, Debug)]
pub(super) enum Held {
    /// A value.
    Tile(Rc<Tile>),
    /// The result of an MMA that the group has not waited for.
    InFlight(Rc<Result>),
    /// A descriptor that the group has made.
    Tensor(Rc<Tensor>),
}

/// An `mbarrier`: array and slot.
pub(super) type Signal = (usize, usize);

/// An operand of an MMA.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Slot(At),
    Tile(Rc<Tile>),
}

/// The accumulator of an MMA.
#[derive(Clone, Debug)]
pub(super) enum Sum {
    Zero,
    Held(Held),
    /// The contents of the destination.
    Destination,
}

/// Where the result of an MMA goes.
#[derive(Clone, Debug)]
pub(super) enum Target {
    Registers(Rc<Result>),
    Memory(At),
}

/// An MMA under way.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub left: Source,
    pub right: Source,
    pub sum: Sum,
    pub to: Target,
    pub element: Type,
}

/// The tensor core's work for a group, in order.
#[derive(Clone, Debug)]
pub(super) struct Mma {
    /// None where only barriers are signalled.
    pub product: Option<Product>,
    pub signals: Vec<Signal>,
}

/// A copy from global to shared memory under way.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub from: Copied,
    pub to: At,
    pub element: Type,
    pub tells: Completion,
}

/// How a group learns that a copy has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// A barrier is signalled.
    Barrier(Signal),
    /// It is of the group of copies with this number, from 0.
    Committed(u64),
}

/// The source of the copy.
#[derive(Clone, Debug)]
pub(super) enum Copied {
    Block { tensor: Tensor, tile_origin: Vec<i64>, block: Vec<usize> },
    Pointers { pointers: Rc<Tile>, mask: Option<Rc<Tile>> },
}

/// A copy from shared to global memory under way.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub from: At,
    pub tensor: Tensor,
    pub tile_origin: Vec<i64>,
    pub how: Combination,
}

/// The work of a group in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    /// They end in any order.
    pub loads: Vec<Load>,
    /// Groups of copies that were committed.
    pub committed: u64,
    /// They end in order.
    pub mmas: VecDeque<Mma>,
    /// They end in order.
    pub stores: VecDeque<Store>,
}
