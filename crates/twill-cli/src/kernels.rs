//! `twill kernels` and `twill schema`: what comes with Twill, as text.

use crate::Exit;
use crate::arguments::{KernelsArguments, SchemaArguments, SchemaFormat};
use crate::error::Error;
use crate::{files, input};
use twill_graph::{builtin, format};
use twill_report::{Align, Table};

pub(crate) fn run(arguments: &KernelsArguments) -> Result<Exit, Error> {
    let text = match &arguments.name {
        Some(name) => builtin::text(name)
            .ok_or_else(|| Error::UnknownKernel { name: name.clone(), known: input::known() })?
            .to_owned(),
        None => {
            let mut table = Table::new().column("graph", Align::Left, 0).column("what it is", Align::Left, 0);
            for graph in builtin::names().filter_map(builtin::find) {
                table.row(vec![graph.name.to_owned(), graph.description.to_owned()]);
            }
            table.text(arguments.width.columns())
        }
    };
    files::write(None, &text)?;
    Ok(Exit::Done)
}

pub(crate) fn schema(arguments: &SchemaArguments) -> Result<Exit, Error> {
    let schema = match arguments.format {
        SchemaFormat::Graph => format::graph_schema(),
        SchemaFormat::Dataflow => format::dataflow_schema(),
        SchemaFormat::Schedule => format::schedule_schema(),
        SchemaFormat::KernelSchedule => format::kernel_schedule_schema(),
        SchemaFormat::Explanation => format::explanation_schema(),
        SchemaFormat::Pipeline => format::pipeline_schema(),
        SchemaFormat::Trace => format::trace_schema(),
        SchemaFormat::Fit => twill_driver::fit_schema(),
    };
    files::write(None, &format!("{schema:#}\n"))?;
    Ok(Exit::Done)
}
