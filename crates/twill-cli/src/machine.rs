//! `twill machine`.

use crate::Exit;
use crate::arguments::{DiffFormat, MachineArguments, MachineCommand};
use crate::error::Error;
use crate::{files, machine_difference, python};
use twill_machine::Machine;

pub(crate) fn run(arguments: &MachineArguments) -> Result<Exit, Error> {
    let text = match &arguments.command {
        MachineCommand::List => list()?,
        MachineCommand::Show { name } => Machine::load(name)?.to_string(),
        MachineCommand::Check { file } => {
            let path = file.display().to_string();
            let machine = twill_machine::check(&files::read(file)?, &path).map_err(Error::MachineFile)?;
            format!("{path}: `{}` is complete: {} numbers with their sources\n", machine.name(), machine.rows().count())
        }
        MachineCommand::Diff { old, new, format } => {
            let (old, new) = (Machine::load(old)?, Machine::load(new)?);
            match format {
                DiffFormat::Text => machine_difference::text(&old, &new),
                DiffFormat::Json => machine_difference::json(&old, &new),
            }
        }
        MachineCommand::Calibrate(words) => return python::run(python::Module::Calibrate, &words.words),
    };
    files::write(None, &text)?;
    Ok(Exit::Done)
}

fn list() -> Result<String, Error> {
    let mut text = String::new();
    for name in twill_machine::builtin_names() {
        let machine = Machine::builtin(name)?;
        text += &format!("{name:5} {:8} {}\n", machine.architecture(), machine.description());
    }
    Ok(text)
}
