//! Warp groups with their registers, shared memory with rings and channels, tensor memory.

use crate::ink::{Ink, Page};
use crate::liveness::{MemorySpace, peak};
use crate::table::{Align, Table};
use crate::words;
use twill_graph::{ChannelStorage, GroupRole, Problem, Schedule, WarpGroup};

const WARP_THREADS: u64 = 32;

/// Writes the sections on warp groups and memories.
pub(crate) fn write(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    groups(page, problem, schedule);
    channels(page, problem, schedule);
    memories(page, problem, schedule);
}

fn groups(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    page.heading("Warp groups and registers a thread");
    let file = &problem.resources().registers;
    let mut table = Table::new()
        .column("group", Align::Right, 0)
        .column("role", Align::Left, 0)
        .column("warps", Align::Right, 2)
        .column("operations", Align::Right, 5)
        .column("tiles", Align::Right, 1)
        .column("reserve", Align::Right, 3)
        .column("granted", Align::Right, 0)
        .column("limit", Align::Right, 4);
    for group in &schedule.groups {
        let words = peak(problem, schedule, MemorySpace::Registers(group.id));
        let threads = WARP_THREADS * u64::from(group.warps.max(1));
        let operations = schedule.placements.iter().filter(|p| p.group == group.id).count();
        table.row(vec![
            group.id.index().to_string(),
            group.role.to_string(),
            group.warps.to_string(),
            operations.to_string(),
            words::grouped(words.div_ceil(threads)),
            if group.role == GroupRole::Compute { file.reserve_per_thread.to_string() } else { String::new() },
            group.registers_per_thread.to_string(),
            file.maximum_per_thread.to_string(),
        ]);
    }
    table.write(page);
    let compute = |g: &&WarpGroup| g.role == GroupRole::Compute;
    let cost = |g: &WarpGroup| WARP_THREADS * u64::from(g.warps) * u64::from(g.registers_per_thread);
    let fixed = file.words.saturating_sub(problem.resources().compute_register_budget());
    let used = schedule.groups.iter().filter(compute).map(cost).fold(fixed, u64::saturating_add);
    page.paragraph(2, &format!("Register file: {}.", usage(used, file.words, "words")), Ink::Plain);
}

fn channels(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    let graph = problem.graph();
    if !schedule.rings.is_empty() {
        page.heading("Rings of streaming loads");
        let mut table = Table::new()
            .column("buffer", Align::Left, 0)
            .column("bytes", Align::Right, 0)
            .column("slots", Align::Right, 0)
            .column("total", Align::Right, 1);
        for ring in &schedule.rings {
            table.row(vec![
                graph.operation(ring.load).name.clone(),
                words::grouped(ring.bytes.0),
                ring.depth.to_string(),
                words::grouped((ring.bytes * u64::from(ring.depth)).0),
            ]);
        }
        table.write(page);
    }
    if !schedule.channels.is_empty() {
        page.heading("Channels between groups");
        let mut table = Table::new()
            .column("value", Align::Left, 0)
            .column("from", Align::Right, 1)
            .column("to", Align::Right, 0)
            .column("through", Align::Left, 2)
            .column("size", Align::Right, 3)
            .column("copies", Align::Right, 1);
        for channel in &schedule.channels {
            let (through, size) = match channel.storage {
                ChannelStorage::Handoff(bytes) => ("handoff in shared memory", words::count(bytes.0, "byte")),
                ChannelStorage::Shared(bytes) => ("shared memory", words::count(bytes.0, "byte")),
                ChannelStorage::Tensor(columns) => ("tensor memory", words::count(columns.0, "column")),
            };
            table.row(vec![
                graph.operation(channel.value).name.clone(),
                channel.from.index().to_string(),
                channel.to.index().to_string(),
                through.into(),
                size,
                channel.depth.to_string(),
            ]);
        }
        table.write(page);
    }
}

fn memories(page: &mut Page, problem: &Problem, schedule: &Schedule) {
    let reserved = problem.graph().reserved();
    let resources = problem.resources();
    let ring_bytes = schedule.rings.iter().fold(0_u64, |sum, r| sum.saturating_add((r.bytes * u64::from(r.depth)).0));
    let shared = peak(problem, schedule, MemorySpace::Shared);
    let tensor = peak(problem, schedule, MemorySpace::Tensor);
    page.heading("Memories");
    let parts = |reserved: u64, rings: Option<u64>, live: u64| {
        let rings = rings.map_or_else(String::new, |r| format!("rings {} + ", words::grouped(r)));
        format!("= reserved {} + {rings}live values {}", words::grouped(reserved), words::grouped(live))
    };
    let used = reserved.shared.0.saturating_add(ring_bytes).saturating_add(shared);
    let text = format!(
        "Shared memory: {} {}.",
        usage(used, resources.shared_memory.0, "bytes"),
        parts(reserved.shared.0, Some(ring_bytes), shared)
    );
    page.paragraph(2, &text, Ink::Plain);
    if resources.tensor_memory.0 > 0 || tensor > 0 {
        let text = format!(
            "Tensor memory: {} {}.",
            usage(reserved.tensor.0.saturating_add(tensor), resources.tensor_memory.0, "columns"),
            parts(reserved.tensor.0, None, tensor)
        );
        page.paragraph(2, &text, Ink::Plain);
    }
}

fn usage(used: u64, limit: u64, what: &str) -> String {
    let share = match limit {
        0 => String::new(),
        _ => format!(" ({})", words::percent(used.into(), limit.into())),
    };
    format!("{} of {} {what}{share}", words::grouped(used), words::grouped(limit))
}
