//! Records of the time in a traced kernel: one thread of each group of the first CTA stores the clock at every timestamp of the last
//! iterations of its first tile.

use super::expression::Expressions;
use super::names;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::Group;
use twill_codegen::ir::{Stamp, Timestamp, Trace};

/// The CTA that records.
const CTA: u32 = 0;

/// What a traced kernel has before its groups.
pub(super) fn definitions(trace: &Trace) -> String {
    let (timestamps, iterations) = (trace.timestamps.len(), trace.iterations);
    format!("\n{}using recorder_ = recorder_of_<{timestamps}, {iterations}>;\n", include_str!("trace.cuh"))
}

/// What a group has where its work on a tile begins.
pub(super) fn begin(trace: &Trace, group: &Group, is_one_thread: bool) -> String {
    let buffer = names::name(&trace.parameter);
    let first = if is_one_thread { String::new() } else { format!(" && thread_of<{}>() == 0", group.warps) };
    format!("const recorder_ record_ = {{u64({buffer}), blockIdx.x == {CTA} && tile_at_ == {CTA}{first}}};")
}

/// The code of timestamps next to each other.
pub(super) fn timestamps(
    trace: &Trace,
    group: &Group,
    print: &Expressions<'_>,
    stamps: &[Stamp],
) -> Result<String, Error> {
    let mut code = String::new();
    let mut left = stamps;
    while let Some(first) = left.first() {
        // One reading of the clock for what is of one iteration.
        let count = left.iter().take_while(|s| s.at == first.at).count();
        let number = |s: &Stamp| {
            let known = trace.timestamps.iter().position(|m| *m == Timestamp::of(s, group.id));
            known.map(|k| k.to_string()).ok_or_else(|| names::missing(format!("a timestamp at `{}`", s.operation)))
        };
        let (now, after) = left.split_at(count);
        let numbers: Vec<String> = now.iter().map(number).collect::<Result<_, Error>>()?;
        let iteration = print.iteration(first.at.index, first.at.iteration);
        let _ = writeln!(code, "record_.at<{}>({});", numbers.join(", "), super::operation::bare(&iteration));
        left = after;
    }
    Ok(code)
}
