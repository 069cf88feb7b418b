//! `twill check`: replay a schedule from its file.

use crate::Exit;
use crate::arguments::CheckArguments;
use crate::error::Error;
use crate::files;
use twill_graph::format::ScheduleFile;

pub(crate) fn run(arguments: &CheckArguments) -> Result<Exit, Error> {
    let path = arguments.file.display().to_string();
    let file = ScheduleFile::from_json(&files::read(&arguments.file)?, &path)?;
    let problem = file.problem()?;
    let schedule = file.schedule(&problem)?;
    let verified =
        twill_check::verify(&problem, schedule).map_err(|error| Error::Rejected { path: path.clone(), error })?;
    let line = format!(
        "{path}: `{}` on {}: every constraint holds; I = {} cycles, L = {}, {} stages\n\
         (replayed: issue cycles, groups, channels, rings; not checked: bounds, objectives, optimality)\n",
        problem.graph().name(),
        problem.resources().name,
        verified.interval,
        verified.length,
        verified.stages(),
    );
    files::write(None, &line)?;
    Ok(Exit::Done)
}
