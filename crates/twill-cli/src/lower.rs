//! `twill lower`: what a kernel's loop becomes before it is scheduled.

use crate::arguments::{LowerArguments, LowerFormat};
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use twill_driver::Lowered;
use twill_graph::WarpAssignment;
use twill_graph::format::{GraphFile, MachineReference};

pub(crate) fn run(arguments: &LowerArguments) -> Result<Exit, Error> {
    let loops = twill_driver::lowered(&arguments.source.read()?, &arguments.source.lowering.lowering()?)?.loops;
    let text = match arguments.format {
        LowerFormat::Tiles => {
            let columns = arguments.width.columns();
            twill_report::folded(&narrow(&tiles(&arguments.source.input, &loops)?, columns), columns)
        }
        LowerFormat::Graph => graphs(&loops),
    };
    files::write(None, &text)?;
    Ok(Exit::Done)
}

fn tiles(input: &str, loops: &[Lowered]) -> Result<String, Error> {
    let one = |l: &Lowered| l.tiles.as_ref().map(ToString::to_string);
    let shown: Option<Vec<String>> = loops.iter().map(one).collect();
    let shown = shown.ok_or_else(|| Error::NoTiles { input: input.to_owned() })?;
    Ok(shown.iter().map(|text| text.trim_end().to_owned() + "\n").collect::<Vec<_>>().join("\n"))
}

/// Without the blanks before types, where they would take these beyond the page.
fn narrow(text: &str, columns: usize) -> String {
    let line = |line: &str| match line.rsplit_once(" : ") {
        Some((operation, tile)) if line.chars().count() > columns => format!("{} : {tile}\n", operation.trim_end()),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The graphs with their machine in full, so that each file stands for itself.
fn graphs(loops: &[Lowered]) -> String {
    let one = |l: &Lowered| {
        let mut file = GraphFile::from_graph(&l.graph);
        file.warp_assignment = Some(l.warp_assignment).filter(|assignment| *assignment != WarpAssignment::Free);
        file.machine = Some(MachineReference::Resources(Box::new(l.resources.clone())));
        file
    };
    let mut files: Vec<GraphFile> = loops.iter().map(one).collect();
    let json = match files.len() {
        1 => files.remove(0).to_json(),
        // Plain data always serialises.
        _ => serde_json::to_string_pretty(&files).unwrap_or_default(),
    };
    json + "\n"
}
