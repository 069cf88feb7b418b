//! `twill graphs`: the built-in loop graphs.

use crate::arguments::GraphsArguments;
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use twill_graph::builtin;
use twill_report::{Align, Table};

pub(crate) fn run(arguments: &GraphsArguments) -> Result<Exit, Error> {
    let text = match &arguments.name {
        Some(name) => builtin::text(name)
            .ok_or_else(|| Error::UnknownGraph { name: name.clone(), known: twill_driver::files::known() })?
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
