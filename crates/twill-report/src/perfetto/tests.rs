//! Traces, read back with the messages that they are written with; tests/perfetto asks Perfetto's own trace processor.

use super::message::{EventType, Trace, TrackDescriptor, TrackEvent};
use super::{dataflow_perfetto, perfetto, trace_iterations};
use crate::fixtures::{blackwell_forward, hopper, hopper_forward, parse, toy_attention};
use prost::Message;
use serde_json::json;
use std::collections::BTreeMap;
use twill_graph::{
    Cycles, Dataflow, DataflowOperation, DataflowResource, GroupId, OpId, Placement, Problem, ResourceUse, Schedule,
    StartSteps, UnitId,
};

/// A finished slice.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    start: u64,
    end: u64,
    event: TrackEvent,
}

struct Read {
    tracks: BTreeMap<u64, TrackDescriptor>,
    slices: Vec<Slice>,
    events: Vec<(u64, TrackEvent)>,
}

/// Reads a trace, and pairs the begin and end of slices as Perfetto does: an end ends what began last on its track.
fn read(bytes: &[u8]) -> Read {
    let trace = Trace::decode(bytes).unwrap();
    let mut read = Read { tracks: BTreeMap::new(), slices: Vec::new(), events: Vec::new() };
    let mut open: BTreeMap<u64, Vec<(u64, TrackEvent)>> = BTreeMap::new();
    let mut last = 0;
    for packet in trace.packet {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(track) = packet.track_descriptor {
            assert!(track.parent_uuid.is_none_or(|parent| read.tracks.contains_key(&parent)), "parents come first");
            assert!(read.tracks.insert(track.uuid.unwrap(), track).is_none());
            continue;
        }
        let (at, event) = (packet.timestamp.unwrap(), packet.track_event.unwrap());
        assert!(last <= at);
        last = at;
        let track = event.track_uuid.unwrap();
        assert!(read.tracks.contains_key(&track));
        match EventType::try_from(event.r#type.unwrap()).unwrap() {
            EventType::SliceBegin => open.entry(track).or_default().push((at, event.clone())),
            EventType::SliceEnd => {
                let (start, event) = open.get_mut(&track).and_then(Vec::pop).unwrap();
                assert!(start < at);
                read.slices.push(Slice { start, end: at, event });
            }
            _ => {}
        }
        read.events.push((at, event));
    }
    assert!(open.values().all(Vec::is_empty));
    read
}

impl Read {
    fn of(&self, category: &str) -> Vec<&Slice> {
        self.slices.iter().filter(|slice| slice.event.categories == [category]).collect()
    }

    fn track(&self, event: &TrackEvent) -> &TrackDescriptor {
        &self.tracks[&event.track_uuid.unwrap()]
    }

    fn name(&self, event: &TrackEvent) -> &str {
        self.track(event).name.as_deref().unwrap()
    }
}

fn argument(event: &TrackEvent, name: &str) -> Option<i64> {
    event.debug_annotations.iter().find(|a| a.name.as_deref() == Some(name)).and_then(|a| a.int_value)
}

fn words<'a>(event: &'a TrackEvent, name: &str) -> Option<&'a str> {
    let found = event.debug_annotations.iter().find(|a| a.name.as_deref() == Some(name));
    found.and_then(|a| a.string_value.as_deref())
}

fn shown(problem: &Problem, schedule: &Schedule, iterations: u32) -> Read {
    read(&perfetto(&[(problem, schedule)], iterations))
}

#[test]
fn every_operation_of_every_iteration_stands_at_its_cycle_on_its_group() {
    for (problem, schedule) in [hopper_forward(), blackwell_forward(), toy_attention()] {
        let trace = shown(&problem, &schedule, 4);
        let mut expected = Vec::new();
        for op in problem.graph().op_ids() {
            let operation = problem.graph().operation(op);
            let cycles = if operation.is_synchronous() { operation.span() } else { operation.completion() };
            for k in 0..4 {
                let start = schedule.placement(op).cycle.0 + i64::from(k) * schedule.interval.0;
                let group = schedule.placement(op).group.index() as i64;
                expected.push((operation.name.clone(), i64::from(k), start, start + cycles.0.max(1), group));
            }
        }
        let mut found: Vec<_> = trace
            .of("operation")
            .into_iter()
            .map(|Slice { start, end, event }| {
                let group = argument(event, "group").unwrap();
                let track = trace.track(event);
                let parent = track.parent_uuid.map(|uuid| trace.tracks[&uuid].name.clone().unwrap()).unwrap();
                let prefix = format!("group {group}: ");
                assert!(track.name.as_ref().unwrap().starts_with(&prefix) || parent.starts_with(&prefix));
                assert_eq!(
                    argument(event, "cycle"),
                    Some(*start as i64 - argument(event, "iteration").unwrap() * schedule.interval.0)
                );
                (event.name.clone().unwrap(), argument(event, "iteration").unwrap(), *start as i64, *end as i64, group)
            })
            .collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn units_are_held_as_reserved_and_slices_of_a_track_do_not_meet() {
    let (problem, schedule) = hopper_forward();
    let trace = shown(&problem, &schedule, 3);
    let mut held: BTreeMap<&str, u64> = BTreeMap::new();
    for slice in trace.of("unit") {
        *held.entry(trace.name(&slice.event)).or_default() += slice.end - slice.start;
    }
    for unit in &problem.resources().units {
        let reservations = problem.graph().operations().iter().flat_map(|op| &op.reservations);
        let busy: i64 = reservations.filter(|r| r.unit == unit.name).map(|r| 3 * r.cycles.0).sum();
        assert_eq!(held.get(unit.name.as_str()).copied().unwrap_or(0), busy.unsigned_abs(), "{}", unit.name);
    }
    let mut free: BTreeMap<u64, u64> = BTreeMap::new();
    let mut slices: Vec<&Slice> = trace.of("unit").into_iter().chain(trace.of("operation")).collect();
    slices.sort_by_key(|slice| slice.start);
    for slice in slices {
        let track = slice.event.track_uuid.unwrap();
        assert!(free.insert(track, slice.end).unwrap_or(0) <= slice.start);
    }
}

#[test]
fn work_that_a_group_does_at_once_stands_on_tracks_of_its_own() {
    let (problem, mut schedule) = hopper_forward();
    let graph = problem.graph();
    let of_group = |op: &OpId| graph.operation(*op).is_synchronous() && schedule.placement(*op).group.index() == 1;
    let (first, second) = (graph.op_ids().find(of_group).unwrap(), graph.op_ids().filter(of_group).nth(1).unwrap());
    // The second begins in the first's last cycle.
    schedule.placements[second.index()].cycle =
        schedule.placement(first).cycle + graph.operation(first).span() - Cycles(1);
    let trace = shown(&problem, &schedule, 1);
    for op in [first, second] {
        let operation = graph.operation(op);
        let slices = trace.of("operation");
        let slice = slices.iter().find(|slice| slice.event.name.as_ref() == Some(&operation.name)).unwrap();
        assert_eq!(i64::try_from(slice.end - slice.start).unwrap(), operation.span().0, "{}", operation.name);
    }
}

#[test]
fn values_and_barriers_flow_from_producers_to_consumers() {
    let (problem, schedule) = hopper_forward();
    let trace = shown(&problem, &schedule, 4);
    let mut from: BTreeMap<u64, &TrackEvent> = BTreeMap::new();
    let mut found: Vec<(String, i64, String, i64, bool)> = Vec::new();
    for (_, event) in &trace.events {
        for flow in &event.terminating_flow_ids {
            let producer = from[flow];
            let barrier = event.categories == ["barrier"];
            let to = words(event, "operation").unwrap().to_owned();
            let name = |e: &TrackEvent| e.name.clone().unwrap();
            let iteration = |e: &TrackEvent| argument(e, "iteration").unwrap();
            if barrier {
                assert_eq!(words(event, "for"), Some(name(producer).as_str()));
                assert_eq!(argument(event, "for_iteration"), Some(iteration(producer)));
            }
            found.push((name(producer), iteration(producer), to, iteration(event), barrier));
        }
        from.extend(event.flow_ids.iter().map(|flow| (*flow, event)));
    }
    let mut expected = Vec::new();
    let group = |op| schedule.placement(op).group;
    for d in problem.graph().dependences() {
        let name = |op| problem.graph().operation(op).name.clone();
        for to in i64::from(d.distance)..4 {
            let ends = |barrier| (name(d.from), to - i64::from(d.distance), name(d.to), to, barrier);
            expected.extend(d.carries_value.then(|| ends(false)));
            expected.extend((d.blocking || d.carries_value && group(d.from) != group(d.to)).then(|| ends(true)));
        }
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert!(found.iter().any(|flow| flow.4) && found.iter().any(|flow| flow.1 < flow.3));
}

#[test]
fn waits_name_slot_and_phase_of_their_channel() {
    let (problem, schedule) = hopper_forward();
    let trace = shown(&problem, &schedule, 6);
    let channel = schedule.channels.iter().find(|channel| channel.depth > 1).unwrap();
    let name = &problem.graph().operation(channel.value).name;
    let mut seen = 0;
    for (_, event) in trace.events.iter().filter(|(_, event)| event.categories == ["barrier"]) {
        if words(event, "for") == Some(name) {
            let k = argument(event, "for_iteration").unwrap();
            let depth = i64::from(channel.depth);
            assert_eq!(argument(event, "slot"), Some(k % depth));
            assert_eq!(argument(event, "phase"), Some(k / depth % 2));
            seen += 1;
        }
    }
    assert!(seen >= 6);
}

#[test]
fn prologue_steady_state_and_epilogue_make_up_the_loop() {
    let (problem, schedule) = hopper_forward();
    let iterations = trace_iterations(&schedule);
    let trace = shown(&problem, &schedule, iterations);
    let interval = schedule.interval.0.unsigned_abs();
    let parts: Vec<(String, u64, u64)> =
        trace.of("loop").iter().map(|s| (s.event.name.clone().unwrap(), s.start, s.end)).collect();
    let end = parts.iter().map(|part| part.2).max().unwrap();
    let (first, last) = (u64::from(schedule.stages() - 1) * interval, u64::from(iterations) * interval);
    let part = |name: &str, from, to| (name.to_owned(), from, to);
    let name = problem.graph().name();
    let expected = [
        part("prologue", 0, first),
        part("steady state", first, last),
        part("epilogue", last, end),
        part(name, 0, end),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn loops_follow_each_other_on_the_same_tracks() {
    let (problem, schedule) = hopper_forward();
    let once = shown(&problem, &schedule, 2);
    let twice = read(&perfetto(&[(&problem, &schedule), (&problem, &schedule)], 2));
    assert_eq!(twice.tracks.len(), once.tracks.len());
    assert_eq!(twice.slices.len(), 2 * once.slices.len());
    let end = once.slices.iter().map(|slice| slice.end).max().unwrap();
    let second = |slice: &&Slice| slice.start >= end;
    assert_eq!(twice.slices.iter().filter(second).count(), once.slices.len());
}

#[test]
fn the_same_bytes_each_time_and_none_of_nothing() {
    let (problem, schedule) = blackwell_forward();
    assert_eq!(perfetto(&[(&problem, &schedule)], 5), perfetto(&[(&problem, &schedule)], 5));
    assert!(read(&perfetto(&[], 3)).events.is_empty());
    assert_eq!(perfetto(&[(&problem, &schedule)], 0), perfetto(&[(&problem, &schedule)], 1));
}

#[test]
fn names_of_any_kind_are_kept() {
    let name = "a\"b\\<c>&'é日本 {0} %s";
    let graph =
        json!({"format": "twill-graph", "version": 1, "name": name, "operations": [{"name": name, "cycles": 3}]});
    let problem = parse(&graph, hopper());
    let placements = vec![Placement { cycle: Cycles(0), group: GroupId::new(1) }];
    let (interval, length) = (Cycles(3), Cycles(3));
    let group = crate::fixtures::hopper_forward().1.groups[1];
    let schedule = Schedule { interval, length, placements, groups: vec![group], channels: vec![], rings: vec![] };
    let trace = shown(&problem, &schedule, 2);
    assert_eq!(trace.of("operation").iter().filter(|slice| slice.event.name.as_deref() == Some(name)).count(), 2);
}

#[test]
fn dataflow_schedules_show_what_uses_each_resource() {
    let used = |offset, steps, amount| ResourceUse { resource: UnitId::new(0), offset, steps, amount };
    let operation =
        |name: &str, uses: Vec<ResourceUse>| DataflowOperation { name: name.into(), latency: 2, uses, storage: 1 };
    let operations =
        vec![operation("x", vec![used(0, 3, 2)]), operation("y", vec![used(1, 2, 1)]), operation("free", vec![])];
    let resource = DataflowResource { name: "alu".into(), limit: Some(4) };
    let graph = Dataflow::new("g", operations, vec![], vec![resource]).unwrap();
    let schedule = StartSteps { interval: Some(4), steps: vec![0, 1, 5] };
    let trace = read(&dataflow_perfetto(&graph, &schedule, 2));
    let mut slices: Vec<(&str, u64, u64)> =
        trace.slices.iter().map(|s| (s.event.name.as_deref().unwrap(), s.start, s.end)).collect();
    slices.sort_unstable();
    assert_eq!(slices, [("free", 5, 7), ("free", 9, 11), ("x", 0, 3), ("x", 4, 7), ("y", 2, 4), ("y", 6, 8)]);
    let counts: Vec<(u64, i64)> =
        trace.events.iter().filter_map(|(at, event)| event.counter_value.map(|value| (*at, value))).collect();
    assert_eq!(counts, [(0, 2), (2, 3), (3, 1), (4, 2), (6, 3), (7, 1), (8, 0)]);
}
