//! The tile scheduler in C++.

use twill_codegen::ir::{Syntax, TileOrder, WarpProgram};

/// How formulas are written.
pub(super) const SYNTAX: Syntax = Syntax { division: "/", minimum: "minimum", maximum: "maximum", and: "&&", or: "||" };

/// From a tile's number to the program that it is.
pub(super) fn order(kernel: &WarpProgram) -> String {
    let columns = kernel.tile_scheduler.columns().print(SYNTAX);
    let order = kernel.tile_scheduler.program_of();
    let named = order.named.iter().map(|(name, formula)| format!("  const int {name} = {};\n", formula.print(SYNTAX)));
    let program = order.program.each_ref().map(|formula| formula.print(SYNTAX)).join(", ");
    format!(
        "
/// Tiles of the grid: each is the work of one CTA.
TWILL int tile_count(int programs_x, int programs_y, int programs_z) {{
  return {};
}}

/// The program that a tile is: {}.
struct program_ids {{
  int x, y, z;
}};
TWILL program_ids program_of(int tile, int programs_x, int programs_y, int programs_z) {{
  const int columns = {columns};
{}  return {{{program}}};
}}
{}",
        kernel.tile_scheduler.tile_count().print(SYNTAX),
        order.note,
        named.collect::<String>(),
        if is_stepped(kernel) { step_to_next(&columns) } else { String::new() }
    )
}

/// Whether CTAs go from program to program without dividing: the digits of a tile's number are those of its program.
fn is_stepped(kernel: &WarpProgram) -> bool {
    kernel.tile_scheduler.persistent && kernel.tile_scheduler.order == TileOrder::Linear
}

/// From a program to the one of a tile N further.
fn step_to_next(columns: &str) -> String {
    format!(
        "
/// As many tiles further as `step` is one: a sum of digits, so that nothing is divided between tiles.
TWILL void move_on(program_ids &program, program_ids step, int programs_x, int programs_y) {{
  const int columns = {columns};
  program.x += step.x;
  program.y += step.y;
  program.z += step.z;
  if (program.x >= columns) {{
    program.x -= columns;
    program.y++;
  }}
  if (program.y >= programs_y) {{
    program.y -= programs_y;
    program.z++;
  }}
}}
"
    )
}

/// The head of the loop over tiles, and which program of the grid each is, as far as the code asks: lines with their depth
/// and what is remarked.
pub(super) fn head(kernel: &WarpProgram, code: &str) -> Vec<(usize, String, &'static str)> {
    let used: Vec<_> =
        ["x", "y", "z"].into_iter().enumerate().filter(|(_, name)| code.contains(&format!("program_{name}"))).collect();
    let program_of = |tile: &str| format!("program_of({tile}, programs_x, programs_y, programs_z);");
    let is_stepped = is_stepped(kernel) && !used.is_empty();
    let mut lines = Vec::new();
    if is_stepped {
        lines.push((1, format!("program_ids program = {}", program_of("blockIdx.x")), ""));
        lines.push((1, format!("const program_ids step = {}", program_of("gridDim.x")), ""));
    }
    if kernel.tile_scheduler.persistent {
        let next = if is_stepped { ", move_on(program, step, programs_x, programs_y)" } else { "" };
        let count = "tile_count(programs_x, programs_y, programs_z)";
        lines.push(if kernel.tile_scheduler.serpentine().is_some() {
            let first = "int tile_at_ = blockIdx.x, step_to_ = 2 * int(gridDim.x - blockIdx.x) - 1";
            let next = "tile_at_ += step_to_, step_to_ = 2 * int(gridDim.x) - step_to_";
            (1, format!("for ({first}; tile_at_ < {count}; {next}) {{"), "waves of tiles in serpentine order")
        } else {
            (1, format!("for (int tile_at_ = blockIdx.x; tile_at_ < {count}; tile_at_ += gridDim.x{next}) {{"), "")
        });
    } else {
        lines.push((1, "{".to_owned(), ""));
        lines.push((2, "const int tile_at_ = blockIdx.x;".to_owned(), ""));
    }
    if !used.is_empty() && !is_stepped {
        lines.push((2, format!("const program_ids program = {}", program_of("tile_at_")), ""));
    }
    for (axis, name) in used {
        let count = kernel.tile_scheduler.cta_coarsening[axis];
        if count == 1 {
            lines.push((2, format!("const int program_{name} = program.{name};"), ""));
            continue;
        }
        for k in 0..count {
            let program = format!("minimum(program.{name} * {count} + {k}, programs_{name} - 1)");
            let note = if k == 0 { "a program beyond the grid repeats its last one" } else { "" };
            lines.push((2, format!("const int program_{name}_{k} = {program};"), note));
        }
    }
    lines
}
