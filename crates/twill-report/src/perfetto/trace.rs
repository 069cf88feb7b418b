//! A trace under construction: tracks in their order, events in any, bytes at the end.

use super::message::{
    ChildOrdering, CounterDescriptor, DebugAnnotation, EventType, INCREMENTAL_STATE_CLEARED, ProcessDescriptor, Trace,
    TracePacket, TrackDescriptor, TrackEvent,
};
use prost::Message;
use twill_graph::saturate;

/// All packets are of one sequence.
const SEQUENCE: u32 = 1;
/// The one process; 0 is taken by the idle process.
const PROCESS: i32 = 1;

/// A track of a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Track(u64);

/// An event of a [`Builder`], to add flows to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(usize);

/// The details of an event.
pub(crate) struct Label {
    /// Its name.
    pub name: String,
    /// Its category.
    pub category: &'static str,
    /// Arguments.
    pub annotations: Vec<DebugAnnotation>,
}

/// A trace of one process.
pub(crate) struct Builder {
    tracks: Vec<TrackDescriptor>,
    events: Vec<(u64, Order, TrackEvent)>,
    flows: u64,
}

/// The order of events in one nanosecond: a slice ends before another begins on its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    End,
    Counter,
    Begin,
}

/// An argument that is a number.
pub(crate) fn number(name: &str, value: i64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), int_value: Some(value), string_value: None }
}

/// An argument that is text.
pub(crate) fn text(name: &str, value: impl Into<String>) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), int_value: None, string_value: Some(value.into()) }
}

impl Builder {
    /// A trace of the process `name`.
    pub fn new(name: String, labels: Vec<String>) -> Builder {
        let process = ProcessDescriptor { pid: Some(PROCESS), process_name: Some(name), process_labels: labels };
        let track = TrackDescriptor { process: Some(process), ..descriptor(1, None, 0) };
        Builder { tracks: vec![track], events: Vec::new(), flows: 0 }
    }

    /// The track that all others stand under.
    pub fn process(&self) -> Track {
        Track(1)
    }

    /// A track under another one, below those that stand there already.
    pub fn track(&mut self, parent: Track, name: impl Into<String>, description: Option<String>) -> Track {
        let uuid = self.tracks.len() as u64 + 1;
        let before = self.tracks.iter().filter(|track| track.parent_uuid == Some(parent.0)).count();
        let rank = saturate::<i32>(before);
        let track = TrackDescriptor { name: Some(name.into()), description, ..descriptor(uuid, Some(parent.0), rank) };
        self.tracks.push(track);
        Track(uuid)
    }

    /// A track of numbers.
    pub fn counter(&mut self, parent: Track, name: &str, unit: &str, description: Option<String>) -> Track {
        let track = self.track(parent, name, description);
        if let Some(descriptor) = self.tracks.last_mut() {
            descriptor.counter = Some(CounterDescriptor { unit_name: Some(unit.to_owned()) });
            descriptor.child_ordering = None;
        }
        track
    }

    /// A stretch of time, from the cycle `start` to the cycle `end`. On one track, slices nest or are disjoint.
    pub fn slice(&mut self, track: Track, (start, end): (i64, i64), label: Label) -> Handle {
        let handle = self.push(start, Order::Begin, event(track, EventType::SliceBegin, Some(label)));
        self.push(end, Order::End, event(track, EventType::SliceEnd, None));
        handle
    }

    /// A point in time.
    pub fn instant(&mut self, track: Track, at: i64, label: Label) -> Handle {
        self.push(at, Order::Begin, event(track, EventType::Instant, Some(label)))
    }

    /// From this cycle on, the counter has this value.
    pub fn count(&mut self, track: Track, at: i64, value: u64) {
        let value = saturate::<i64>(value);
        self.push(
            at,
            Order::Counter,
            TrackEvent { counter_value: Some(value), ..event(track, EventType::Counter, None) },
        );
    }

    /// An arrow. `from` must be no later than `to`, and in one cycle be added first.
    pub fn flow(&mut self, from: Handle, to: Handle) {
        self.flows += 1;
        self.events[from.0].2.flow_ids.push(self.flows);
        self.events[to.0].2.terminating_flow_ids.push(self.flows);
    }

    /// The trace's bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.events.sort_by_key(|(at, order, _)| (*at, *order));
        let packet = || TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..TracePacket::default() };
        let tracks = self.tracks.into_iter().map(|track| TracePacket { track_descriptor: Some(track), ..packet() });
        let events = self.events.into_iter().map(|(at, _, event)| TracePacket {
            timestamp: Some(at),
            track_event: Some(event),
            ..packet()
        });
        let mut trace = Trace { packet: tracks.chain(events).collect() };
        if let Some(first) = trace.packet.first_mut() {
            first.sequence_flags = Some(INCREMENTAL_STATE_CLEARED);
        }
        trace.encode_to_vec()
    }

    fn push(&mut self, at: i64, order: Order, event: TrackEvent) -> Handle {
        self.events.push((saturate::<u64>(at), order, event));
        Handle(self.events.len() - 1)
    }
}

fn descriptor(uuid: u64, parent: Option<u64>, rank: i32) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: parent,
        child_ordering: Some(ChildOrdering::Explicit.into()),
        sibling_order_rank: Some(rank),
        ..TrackDescriptor::default()
    }
}

fn event(track: Track, kind: EventType, label: Option<Label>) -> TrackEvent {
    let event = TrackEvent { r#type: Some(kind.into()), track_uuid: Some(track.0), ..TrackEvent::default() };
    match label {
        None => event,
        Some(Label { name, category, annotations }) => TrackEvent {
            name: Some(name),
            categories: vec![category.to_owned()],
            debug_annotations: annotations,
            ..event
        },
    }
}
