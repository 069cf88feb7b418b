//! `twill machine`.

use crate::arguments::{DiffFormat, MachineArguments, MachineCommand};
use crate::error::Error;
use crate::exit::Exit;
use crate::{files, machine_difference, python};
use twill_machine::{Machine, Row};
use twill_report::{Align, Table, folded};

pub(crate) fn run(arguments: &MachineArguments) -> Result<Exit, Error> {
    let columns = arguments.width.columns();
    let text = match &arguments.command {
        MachineCommand::List => list(columns)?,
        MachineCommand::Show { name } => show(&Machine::load(name)?, columns),
        MachineCommand::Check { file } => {
            let path = file.display().to_string();
            let machine = twill_machine::check(&files::read(file)?, &path).map_err(Error::MachineFile)?;
            format!("{path}: `{}` is complete: {} numbers with their sources\n", machine.name(), machine.rows().count())
        }
        MachineCommand::Diff { old, new, format } => {
            let (old, new) = (Machine::load(old)?, Machine::load(new)?);
            match format {
                DiffFormat::Text => machine_difference::text(&old, &new, columns),
                DiffFormat::Json => machine_difference::json(&old, &new),
            }
        }
        MachineCommand::Calibrate(words) => return python::run(python::Module::Calibrate, &words.words),
    };
    files::write(None, &text)?;
    Ok(Exit::Done)
}

fn list(columns: usize) -> Result<String, Error> {
    let mut table = Table::new().column("machine", Align::Left, 0).column("architecture", Align::Left, 0);
    table = table.column("what it is", Align::Left, 0);
    for name in twill_machine::builtin_names() {
        let machine = Machine::builtin(name)?;
        table.row(vec![name.to_owned(), machine.architecture().to_owned(), machine.description().to_owned()]);
    }
    Ok(table.text(columns))
}

/// What executes what, then every number, and below it where it comes from.
fn show(machine: &Machine, columns: usize) -> String {
    let key = machine.rows().map(|row| row.key.len()).max().unwrap_or(0);
    let value = machine.rows().map(|row| row.number().len()).max().unwrap_or(0);
    let line = |row: &Row| {
        let (number, provenance) = (row.number(), row.provenance);
        format!("{:key$}  {number:>value$} {}\n    {provenance}: {}\n", row.key, row.unit, row.source)
    };
    folded(&(machine.summary() + "\n" + &machine.rows().map(line).collect::<String>()), columns)
}
