//! The tracks of loops that run one after the other on the same warp groups and functional units.

use super::message::DebugAnnotation;
use super::trace::{Builder, Handle, Label, Track, number, text};
use crate::liveness::MemorySpace;
use crate::run::{Event, Run, first_fit, steps};
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::{ChannelStorage, Dependence, GroupId, OpId, UnitId, WarpGroup};

const WARP_THREADS: u64 = 32;

/// The tracks of a warp group.
struct GroupTracks {
    /// Synchronous operations.
    work: Track,
    /// Where it starts asynchronous operations.
    issues: Track,
    /// Where it waits for a barrier.
    waits: Track,
    /// Asynchronous operations that it started, as many tracks as run at once.
    flight: Vec<Track>,
    /// More of its work, where the model lets a group execute several operations at once.
    overlapping: Vec<Track>,
    /// Live registers a thread.
    registers: Track,
}

/// Loops and the trace that they are written to.
pub(crate) struct Loops<'a> {
    runs: &'a [Run<'a>],
    trace: Builder,
    pipeline: Track,
    groups: BTreeMap<usize, GroupTracks>,
    /// Tracks of a unit's instances, by the unit's name.
    units: BTreeMap<String, Vec<Track>>,
    shared: Track,
    tensor: Option<Track>,
}

impl<'a> Loops<'a> {
    /// Lays out the tracks.
    pub fn new(runs: &'a [Run<'a>]) -> Loops<'a> {
        let mut trace = Builder::new(title(runs), vec!["1 ns = 1 clock cycle".to_owned()]);
        // One track below the process: Perfetto keeps the order of tracks below a track, not of those below a process.
        let process = trace.process();
        let pipeline = trace.track(process, "pipeline (1 ns = 1 cycle)", None);
        let work = trace.track(pipeline, "warp groups", None);
        let units = trace.track(pipeline, "functional units", None);
        let memories = trace.track(pipeline, "memories and registers", None);
        let groups: BTreeMap<usize, WarpGroup> =
            runs.iter().flat_map(|run| &run.schedule.groups).map(|group| (group.id.index(), *group)).collect();
        let mut laid = BTreeMap::new();
        for (id, group) in groups {
            laid.insert(id, lay_group(&mut trace, runs, work, memories, &group));
        }
        let mut named: BTreeMap<String, Vec<Track>> = BTreeMap::new();
        for (name, instances) in instances(runs) {
            let track = |k| if instances == 1 { name.clone() } else { format!("{name} {k}") };
            named.insert(name.clone(), (0..instances).map(|k| trace.track(units, track(k), None)).collect());
        }
        let capacity =
            |amount: u64, what: &str| Some(format!("of {amount} {what}; rings and what the kernel keeps are in it"));
        let resources = runs.first().map(|run| run.problem.resources());
        let bytes = resources.and_then(|r| capacity(r.shared_memory.0, "bytes"));
        let shared = trace.counter(memories, "shared memory", "bytes", bytes);
        let tensor = resources
            .filter(|r| r.tensor_memory.0 > 0)
            .map(|r| trace.counter(memories, "tensor memory", "columns", capacity(r.tensor_memory.0, "columns")));
        Loops { runs, trace, pipeline, groups: laid, units: named, shared, tensor }
    }

    /// Writes all loops, each beginning where the one before ends.
    pub fn trace(mut self) -> Vec<u8> {
        let mut at = 0;
        for (index, run) in self.runs.iter().enumerate() {
            let end = run.end();
            self.phases(run, at);
            self.operations(run, at);
            self.held(run, at);
            self.counters(run, at, index + 1 == self.runs.len());
            at += end;
        }
        self.trace.finish()
    }

    /// The loop with its prologue, steady state and epilogue.
    fn phases(&mut self, run: &Run<'_>, at: i64) {
        let schedule = run.schedule;
        let annotations = vec![
            text("loop", run.problem.graph().name()),
            text("machine", run.problem.resources().name.clone()),
            number("initiation_interval", schedule.interval.0),
            number("length", schedule.length.0),
            number("stages", schedule.stages().into()),
            number("iterations", run.iterations.into()),
            text("time", "1 ns of the trace is 1 clock cycle"),
        ];
        let label = |name: &str, annotations| Label { name: name.to_owned(), category: "loop", annotations };
        let name = run.problem.graph().name();
        self.trace.slice(self.pipeline, (at, at + run.end()), label(name, annotations));
        let Some((begin, end)) = run.steady() else { return };
        for (name, from, to) in [("prologue", 0, begin), ("steady state", begin, end), ("epilogue", end, run.end())] {
            if from < to {
                self.trace.slice(self.pipeline, (at + from, at + to), label(name, Vec::new()));
            }
        }
    }

    /// Operations on their groups, with the flows of values and barriers.
    fn operations(&mut self, run: &Run<'_>, at: i64) {
        let lanes = lanes(run);
        let mut events: BTreeMap<(usize, u32), Handle> = BTreeMap::new();
        let mut before: BTreeMap<(usize, u32), Vec<&Dependence>> = BTreeMap::new();
        for (dependence, _, to) in run.dependences() {
            before.entry((dependence.to.index(), to)).or_default().push(dependence);
        }
        for event in run.events() {
            let key = (event.op.index(), event.iteration);
            let Some(tracks) = self.groups.get(&run.group(event.op).index()) else { continue };
            let (work, issues, waits) = (tracks.work, tracks.issues, tracks.waits);
            let lane = lanes.get(&key).copied().unwrap_or(0);
            let is_synchronous = run.problem.graph().operation(event.op).is_synchronous();
            let track = match (is_synchronous, lane.checked_sub(1)) {
                (true, None) => Some(work),
                (true, Some(other)) => tracks.overlapping.get(other).copied(),
                (false, _) => tracks.flight.get(lane).copied(),
            };
            for dependence in before.get(&key).into_iter().flatten().filter(|d| run.waits(d)) {
                let from = event.iteration - dependence.distance;
                let wait = self.trace.instant(waits, at + event.start, wait(run, dependence, from));
                if let Some(from) = events.get(&(dependence.from.index(), from)) {
                    self.trace.flow(*from, wait);
                }
            }
            if !is_synchronous {
                self.trace.instant(issues, at + event.start, operation(run, &event, "issue"));
            }
            let time = (at + event.start, at + event.end);
            let handle = self.trace.slice(track.unwrap_or(work), time, operation(run, &event, "operation"));
            for dependence in before.get(&key).into_iter().flatten().filter(|d| d.carries_value) {
                let from = event.iteration - dependence.distance;
                if let Some(from) = events.get(&(dependence.from.index(), from)) {
                    self.trace.flow(*from, handle);
                }
            }
            events.insert(key, handle);
        }
    }

    /// The holders of each unit.
    fn held(&mut self, run: &Run<'_>, at: i64) {
        for (index, unit) in run.problem.resources().units.iter().enumerate() {
            let Some(tracks) = self.units.get(&unit.name) else { continue };
            for (holdings, track) in run.holdings(UnitId::new(index)).iter().zip(tracks) {
                for Event { op, iteration, start, end } in holdings {
                    let label = operation(run, &run.event(*op, *iteration), "unit");
                    self.trace.slice(*track, (at + start, at + end), label);
                }
            }
        }
    }

    fn counters(&mut self, run: &Run<'_>, at: i64, last: bool) {
        let mut counters = vec![(self.shared, MemorySpace::Shared, 1)];
        counters.extend(self.tensor.map(|track| (track, MemorySpace::Tensor, 1)));
        for (id, tracks) in &self.groups {
            let warps = run.schedule.groups.iter().find(|group| group.id.index() == *id).map_or(1, |group| group.warps);
            let threads = WARP_THREADS * u64::from(warps.max(1));
            counters.push((tracks.registers, MemorySpace::Registers(GroupId::new(*id)), threads));
        }
        for (track, space, share) in counters {
            let steps = steps(run, space, run.end());
            for (cycle, amount) in &steps {
                self.trace.count(track, at + cycle, amount.div_ceil(share));
            }
            if let Some((_, amount)) = steps.last().filter(|_| last) {
                self.trace.count(track, at + run.end(), amount.div_ceil(share));
            }
        }
    }
}

/// The name of the process.
fn title(runs: &[Run<'_>]) -> String {
    let names: Vec<&str> = runs.iter().map(|run| run.problem.graph().name()).collect();
    let machine = runs.first().map_or("no machine", |run| run.problem.resources().name.as_str());
    format!("{} on {machine}", if names.is_empty() { "no loop".to_owned() } else { names.join(", ") })
}

/// The tracks of a group: its work with what belongs to it below, and its registers among the memories.
fn lay_group(trace: &mut Builder, runs: &[Run<'_>], parent: Track, memories: Track, group: &WarpGroup) -> GroupTracks {
    let warps = if group.warps == 1 { "1 warp".to_owned() } else { format!("{} warps", group.warps) };
    let name = format!("group {}", group.id.index());
    let description = format!("{}; {warps}; {} registers a thread", group.role, group.registers_per_thread);
    let work = trace.track(parent, format!("{name}: {}, {warps}", group.role), Some(description));
    let issues = trace.track(work, "issues", Some("asynchronous operations that it starts".to_owned()));
    let waits = trace.track(work, "waits", Some("barriers that an operation needs, as it starts".to_owned()));
    let most = |synchronous| runs.iter().map(|run| at_once(run, group.id, synchronous).len()).max().unwrap_or(0);
    let overlapping = || Some("operations that it executes at the same time as others".to_owned());
    let overlapping = (1..most(true)).map(|_| trace.track(work, "overlapping", overlapping())).collect();
    let running = || Some("asynchronous operations until their result is there".to_owned());
    let flight = (0..most(false)).map(|_| trace.track(work, "in flight", running())).collect();
    let reserve = runs.first().map_or(0, |run| run.problem.resources().registers.reserve_per_thread);
    let description = format!(
        "tiles only; {} registers a thread are given to the group, of which a compute group keeps {reserve} for \
         addresses and temporaries",
        group.registers_per_thread
    );
    let registers = trace.counter(memories, &format!("{name}: registers"), "registers", Some(description));
    GroupTracks { work, issues, waits, flight, overlapping, registers }
}

/// Synchronous or asynchronous operations of a group, on as many lanes as run at once.
fn at_once(run: &Run<'_>, group: GroupId, synchronous: bool) -> Vec<Vec<Event>> {
    let graph = run.problem.graph();
    let is_one = |e: &Event| run.group(e.op) == group && graph.operation(e.op).is_synchronous() == synchronous;
    first_fit(run.events().filter(is_one).collect(), |event| (event.start, event.end))
}

/// The lane of each operation among those of its group that are synchronous like it, or asynchronous, by operation and iteration.
fn lanes(run: &Run<'_>) -> BTreeMap<(usize, u32), usize> {
    let each = run.schedule.groups.iter().flat_map(|group| [true, false].map(|synchronous| (group.id, synchronous)));
    let lanes = each.flat_map(|(group, synchronous)| at_once(run, group, synchronous).into_iter().enumerate());
    lanes.flat_map(|(lane, events)| events.into_iter().map(move |e| ((e.op.index(), e.iteration), lane))).collect()
}

/// Units that any loop holds, in the machine's order, with how many of each are held at once.
fn instances(runs: &[Run<'_>]) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut seen = BTreeSet::new();
    for name in runs.iter().flat_map(|run| &run.problem.resources().units).map(|unit| &unit.name) {
        let held = |run: &Run<'_>| run.problem.resources().unit(name).map_or(0, |unit| run.holdings(unit).len());
        let most = if seen.insert(name) { runs.iter().map(held).max().unwrap_or(0) } else { 0 };
        if most > 0 {
            found.push((name.clone(), most));
        }
    }
    found
}

/// An operation of an iteration.
fn operation(run: &Run<'_>, event: &Event, category: &'static str) -> Label {
    let op = run.problem.graph().operation(event.op);
    let mut annotations = place(run, event.op, event.iteration);
    annotations.push(text("kind", op.kind.clone()));
    annotations.push(number("group", run.group(event.op).index() as i64));
    if let Some(source) = &op.source {
        annotations.push(text("source", format!("{}:{}", source.file, source.line)));
    }
    Label { name: op.name.clone(), category, annotations }
}

/// Where an operation stands.
fn place(run: &Run<'_>, op: OpId, iteration: u32) -> Vec<DebugAnnotation> {
    vec![
        text("loop", run.problem.graph().name()),
        text("operation", run.problem.graph().operation(op).name.clone()),
        number("iteration", iteration.into()),
        number("stage", run.schedule.stage(op)),
        number("cycle", run.schedule.placement(op).cycle.0),
    ]
}

/// A wait of the operation that a dependence leads to, for what iteration `from` made.
fn wait(run: &Run<'_>, dependence: &Dependence, from: u32) -> Label {
    let graph = run.problem.graph();
    let producer = &graph.operation(dependence.from).name;
    let mut annotations = place(run, dependence.to, from + dependence.distance);
    annotations.push(text("for", producer.clone()));
    annotations.push(number("for_iteration", from.into()));
    annotations.push(number("for_group", run.group(dependence.from).index() as i64));
    let (home, reader) = (run.group(dependence.from), run.group(dependence.to));
    let passes = |value: OpId, to: GroupId| value == dependence.from && to == reader && home != reader;
    if let Some(channel) = run.schedule.channels.iter().find(|channel| passes(channel.value, channel.to)) {
        let depth = channel.depth.max(1);
        annotations.push(text(
            "through",
            match channel.storage {
                ChannelStorage::Handoff(_) => "handoff",
                ChannelStorage::Shared(_) => "shared_memory",
                ChannelStorage::Tensor(_) => "tensor_memory",
            },
        ));
        annotations.push(number("slot", (from % depth).into()));
        annotations.push(number("phase", (from / depth % 2).into()));
    }
    Label { name: format!("wait for {producer}"), category: "barrier", annotations }
}
