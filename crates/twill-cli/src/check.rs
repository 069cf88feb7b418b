//! `twill check`: replay a schedule from its file, or check a certificate from its folder.

use crate::Exit;
use crate::arguments::CheckArguments;
use crate::certificate;
use crate::error::Error;
use crate::files;
use twill_check::Verified;
use twill_graph::format::ScheduleFile;
use twill_graph::{Problem, Schedule, Status};

pub(crate) fn run(arguments: &CheckArguments) -> Result<Exit, Error> {
    if arguments.file.is_dir() {
        return folder(arguments);
    }
    let path = arguments.file.display().to_string();
    let file = ScheduleFile::from_json(&files::read(&arguments.file)?, &path)?;
    let problem = file.problem()?;
    let verified = replay(&path, &file, &problem)?;
    let mut line = replayed(&path, &problem, &verified);
    line += "(replayed: issue cycles, groups, channels, rings; not checked: bounds, objectives, optimality)\n";
    files::write(None, &line)?;
    Ok(Exit::Done)
}

fn replay(path: &str, file: &ScheduleFile, problem: &Problem) -> Result<Verified<Schedule>, Error> {
    let schedule = file.schedule(problem)?;
    twill_check::verify(problem, schedule).map_err(|error| Error::Rejected { path: path.to_owned(), error })
}

fn replayed(path: &str, problem: &Problem, verified: &Verified<Schedule>) -> String {
    format!(
        "{path}: `{}` on {}: every constraint holds; I = {} cycles, L = {}, {} stages\n",
        problem.graph().name(),
        problem.resources().name,
        verified.interval,
        verified.length,
        verified.stages(),
    )
}

/// A folder with one certificate, or one for each loop.
fn folder(arguments: &CheckArguments) -> Result<Exit, Error> {
    for read in certificate::read(&arguments.file)? {
        let (path, problem, claim) = (&read.path, &read.problem, &read.certificate);
        let disagree = |why: String| Err(Error::Disagree { path: path.clone(), why });
        let infeasible = read.schedule.status == Status::Infeasible;
        if infeasible != claim.infeasible {
            return disagree("one says that there is no schedule, and the other does not".into());
        }
        let mut text = String::new();
        if infeasible {
            text += &format!("{path}: `{}` on {}: infeasible\n", problem.graph().name(), problem.resources().name);
        } else {
            let verified = replay(path, &read.schedule, problem)?;
            if verified.interval != claim.below {
                let interval = verified.interval;
                return disagree(format!("the schedule has I = {interval}, and below {} is rejected", claim.below));
            }
            text += &replayed(path, problem, &verified);
        }
        let evidence = twill_check::verify_certificate(problem, claim)
            .map_err(|error| Error::Certificate { path: path.clone(), error })?;
        text += &certificate::told(claim, &evidence);
        files::write(None, &(text + "\n"))?;
    }
    Ok(Exit::Done)
}
