//! `twill schema`: JSON Schemas of the text formats.

use crate::arguments::{SchemaArguments, SchemaFormat};
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use twill_graph::format;

pub(crate) fn run(arguments: &SchemaArguments) -> Result<Exit, Error> {
    let schema = match arguments.format {
        SchemaFormat::Graph => format::graph_schema(),
        SchemaFormat::Dataflow => format::dataflow_schema(),
        SchemaFormat::Schedule => format::schedule_schema(),
        SchemaFormat::KernelSchedule => format::kernel_schedule_schema(),
        SchemaFormat::Explanation => format::explanation_schema(),
        SchemaFormat::Pipeline => format::pipeline_schema(),
        SchemaFormat::Trace => format::trace_schema(),
        SchemaFormat::Fit => twill_driver::fit_schema(),
        SchemaFormat::Performance => twill_driver::performance::baseline_schema(),
    };
    files::write(None, &format!("{schema:#}\n"))?;
    Ok(Exit::Done)
}
