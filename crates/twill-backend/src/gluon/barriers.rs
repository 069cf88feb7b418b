//! How mbarriers are initialised.
//!
//! Each of Gluon's own initialisations is followed by a `bar.sync`. Where it is known where the barriers are, one thread
//! initialises them in a row by inline PTX, all but the first: from Gluon's, `assemble.py` reads where they begin. On Blackwell, where
//! nobody has measured that, and a kernel spills by it, Gluon does.

use super::tensor_memory;
use std::fmt::Write as _;
use twill_codegen::ir::{Arrival, Barriers, WarpProgram};

/// The constant of the kernel's text that says how many lanes of a warp arrive.
const LANES: &str = "ARRIVING_LANES";

/// Arrivals that complete a phase by Gluon's own functions: one of each group.
fn arrivals(barriers: &Barriers) -> u32 {
    let arrivals = barriers.arrivals.iter().map(|arrival| match arrival {
        Arrival::Unit | Arrival::Threads { .. } => 1,
        Arrival::EachThread { warps } => 32 * warps,
    });
    arrivals.sum::<u32>().max(1)
}

/// Those by inline PTX, as an expression in Python: of each warp so many lanes as `lanes` says.
fn inline_arrivals(barriers: &Barriers, lanes: &str) -> String {
    let (mut fixed, mut warps) = (0, 0);
    for arrival in &barriers.arrivals {
        match arrival {
            Arrival::Unit => fixed += 1,
            Arrival::EachThread { warps } => fixed += 32 * warps,
            Arrival::Threads { warps: more } => warps += more,
        }
    }
    match (fixed, warps) {
        (_, 0) => fixed.max(1).to_string(),
        (0, _) => format!("{warps} * {lanes}"),
        _ => format!("{fixed} + {warps} * {lanes}"),
    }
}

/// The function that says how all barriers but the first are initialised by inline PTX.
pub(super) fn function(kernel: &WarpProgram) -> String {
    let counts: Vec<String> =
        kernel.barriers.iter().map(|one| format!("[{}] * {}", inline_arrivals(one, "lanes"), one.slots)).collect();
    format!(
        r#"@gluon.constexpr_function
def _init_ptx():
    lanes = ARRIVING_LANES.value
    arrivals = {}
    rest = "".join(f"@p mbarrier.init.shared::cta.b64 [$1+{{8 * k}}], {{n}}; " for k, n in enumerate(arrivals) if k)
    return "{{ .reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.u32 p, t, 0; " + rest + "mov.u32 $0, 0; }}"
"#,
        counts.join(" + ")
    )
}

/// The statements of the kernel's entry that initialise all barriers; `k` is a variable that no parameter is named like.
pub(super) fn statements(kernel: &WarpProgram, k: &str) -> String {
    let mut out = String::new();
    let total = first(kernel, kernel.barriers.len()).max(1);
    let _ = writeln!(out, "    bars = gl.allocate_shared_memory(gl.int64, [{total}, 1], mbarrier.MBarrierLayout())");
    if kernel.barriers.is_empty() {
        return out;
    }
    let by_gluon = tensor_memory::is_used(kernel);
    let indent = if by_gluon { "" } else { "    " };
    if !by_gluon {
        out.push_str("    if BARRIERS_AT < 0:\n");
    }
    for barriers in &kernel.barriers {
        let name = barriers.name.to_uppercase();
        let (whole, inline) = (arrivals(barriers).to_string(), inline_arrivals(barriers, LANES));
        let count = match by_gluon && whole != inline {
            true => format!("{whole} if BARRIERS_AT < 0 else {inline}"),
            false => whole,
        };
        let _ = writeln!(out, "{indent}    for {k} in gl.static_range({}):", barriers.slots);
        let _ = writeln!(out, "{indent}        mbarrier.init(bars.index({name} + {k}), count={count})");
    }
    if by_gluon {
        return out;
    }
    let first = kernel.barriers.first().map_or("1".to_owned(), |one| inline_arrivals(one, LANES));
    let _ = writeln!(out, "    else:\n        mbarrier.init(bars.index(0), count={first})");
    out.push_str(
        "        gl.inline_asm_elementwise(\n            _init_ptx(), \"=r,r\", [barrier_base(BARRIERS_AT)], \
         dtype=gl.int32, is_pure=False, pack=1\n        )\n",
    );
    out
}

/// A statement after all groups that uses the barriers. Triton does not see that inline PTX uses their memory: where no copy
/// signals a barrier, it would give that memory to what threads exchange.
pub(super) fn end(kernel: &WarpProgram) -> &'static str {
    if kernel.barriers.is_empty() || tensor_memory::is_used(kernel) {
        return "";
    }
    "    if BARRIERS_AT >= 0:\n        mbarrier.invalidate(bars.index(0))\n"
}

/// Where the barriers of an index begin among all; for the index after the last, how many there are.
pub(super) fn first(kernel: &WarpProgram, index: usize) -> u32 {
    kernel.barriers[..index].iter().map(|b| b.slots).sum()
}
