//! What the rest of a group's code depends on: where values and slots of which iteration are, and what is under way.

use crate::builder::group::{InFlightMma, SlotTrack, Track};
use crate::builder::recurrences::Recurrence;
use crate::ir::BufferId;
use crate::ir::VariableId;
use crate::passes::loops::LoopBuilder;
use crate::passes::steps::program::Iteration;
use std::collections::HashMap;
use twill_graph::OpId;

/// What the rest of the code depends on.
#[derive(Clone)]
pub(crate) struct State {
    tracks: HashMap<OpId, Track>,
    slots: HashMap<BufferId, SlotTrack>,
    pub in_flight: Vec<InFlightMma>,
    stores: Vec<(OpId, Iteration)>,
    prepared: HashMap<(VariableId, u64), VariableId>,
    recurrences: Vec<Recurrence>,
}

impl LoopBuilder<'_, '_> {
    /// As it is here.
    pub(crate) fn state(&self) -> State {
        let group = &self.reader.group;
        State {
            tracks: group.tracks[self.index].clone(),
            slots: group.slots.clone(),
            in_flight: group.in_flight.clone(),
            stores: group.stores.clone(),
            prepared: self.prepared.clone(),
            recurrences: group.recurrences.clone(),
        }
    }

    /// As it was there.
    pub(crate) fn restore(&mut self, state: State) {
        let group = &mut self.reader.group;
        group.tracks[self.index] = state.tracks;
        group.slots = state.slots;
        group.in_flight = state.in_flight;
        group.stores = state.stores;
        group.recurrences = state.recurrences;
        self.prepared = state.prepared;
    }

    /// Sees all iterations from elsewhere.
    pub(crate) fn renumber(&mut self, new: impl Fn(Iteration) -> Iteration) {
        let group = &mut self.reader.group;
        for track in group.tracks[self.index].values_mut() {
            track.latest = track.latest.map(&new);
        }
        for slot in group.slots.values_mut() {
            slot.latest = slot.latest.map(&new);
        }
        for recurrence in group.recurrences.iter_mut().filter(|r| r.key.0 == self.index) {
            recurrence.latest = recurrence.latest.map(&new);
        }
        for flight in &mut group.in_flight {
            flight.iteration = new(flight.iteration);
        }
        for store in &mut group.stores {
            store.1 = new(store.1);
        }
    }
}
