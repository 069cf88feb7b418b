//! `twill check`: replay a schedule from its file, or those of sibling loops, or check certificates from
//! their folder.

use crate::arguments::CheckArguments;
use crate::certificate;
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use twill_check::Verified;
use twill_graph::format::{DataflowScheduleFile, KernelScheduleFile, PipelineFile, ScheduleFile};
use twill_graph::{Problem, RejectionReason, Schedule, Status, grouped};

pub(crate) fn run(arguments: &CheckArguments) -> Result<Exit, Error> {
    if arguments.file.is_dir() {
        return folder(arguments);
    }
    let path = arguments.file.display().to_string();
    let text = files::read(&arguments.file)?;
    if DataflowScheduleFile::is_named_in(&text) {
        return dataflow(&path, &text);
    }
    if PipelineFile::is_named_in(&text) {
        return pipeline(&path, &text);
    }
    let told = if KernelScheduleFile::is_one(&text) { kernel(&text, &path)? } else { one(&text, &path)? };
    let not_checked = "not checked: bounds, objectives, optimality";
    files::write(None, &format!("{told}(replayed: issue cycles, groups, channels, rings; {not_checked})\n"))?;
    Ok(Exit::Done)
}

fn one(text: &str, path: &str) -> Result<String, Error> {
    let file = ScheduleFile::from_json(text, path)?;
    let problem = file.problem()?;
    let verified = replay(path, &file, &problem)?;
    Ok(replayed(path, &problem, &verified))
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
        grouped(verified.interval.0),
        grouped(verified.length.0),
        verified.stages(),
    )
}

fn kernel(text: &str, path: &str) -> Result<String, Error> {
    let file = KernelScheduleFile::from_json(text, path)?;
    let problem = file.problem()?;
    let (groups, schedules) = file.schedules(&problem)?;
    let verified = twill_check::verify_multi_loop(&problem, &groups, schedules)
        .map_err(|error| Error::RejectedLoops { path: path.to_owned(), error: Box::new(error) })?;
    let loops = problem.loops().iter().zip(&verified);
    let mut told: String = loops.map(|(problem, schedule)| replayed(path, problem, schedule)).collect();
    told += &format!(
        "{path}: `{}`: {} ties hold, {} groups are common, and their registers fit; the sum of weight times I is {} cycles\n",
        problem.name(),
        problem.ties().len(),
        groups.len(),
        problem.cycles(verified.iter().map(|s| s.interval)),
    );
    Ok(told)
}

fn dataflow(path: &str, text: &str) -> Result<Exit, Error> {
    let file = DataflowScheduleFile::from_json(text, path)?;
    let problem = file.problem()?;
    let found = twill_check::verify_dataflow(&problem, file.start_steps())
        .map_err(|error| Error::Rejected { path: path.to_owned(), error })?;
    let (kind, claimed) = (twill_driver::gaus::kind(problem.objective), file.summary.objective.value);
    if file.summary.objective.lower_bound > found.objective {
        let (bound, found) = (file.summary.objective.lower_bound, found.objective);
        return Err(Error::FalseBound { path: path.to_owned(), bound, found });
    }
    if claimed != Some(found.objective) {
        let claimed = claimed.map_or("nothing".into(), |value| value.to_string());
        return Err(Error::OtherObjective { path: path.to_owned(), claimed, found: found.objective });
    }
    let line = format!(
        "{path}: `{}`: dependences, latency bound and limits hold; {kind} = {}, latency {}\n\
         (replayed: start steps; not checked: bounds, optimality)\n",
        problem.graph.name(),
        found.objective,
        found.latency,
    );
    files::write(None, &line)?;
    Ok(Exit::Done)
}

fn pipeline(path: &str, text: &str) -> Result<Exit, Error> {
    let file = PipelineFile::from_json(text, path)?;
    let problem = file.problem()?;
    let verified = twill_check::verify_pipeline(&problem, file.pipeline(&problem)?)
        .map_err(|error| Error::Rejected { path: path.to_owned(), error })?;
    let line = format!(
        "{path}: `{}` on {}: dependences and units hold; I = {} cycles, L = {}, {} stages\n\
         (replayed: issue cycles; there are no warps; not checked: bounds, optimality)\n",
        problem.graph().name(),
        problem.resources().name,
        grouped(verified.interval.0),
        grouped(verified.length.0),
        verified.stages(),
    );
    files::write(None, &line)?;
    Ok(Exit::Done)
}

/// A folder with one certificate, or one for each loop.
fn folder(arguments: &CheckArguments) -> Result<Exit, Error> {
    let mut told = String::new();
    let read = certificate::read(&arguments.file)?;
    if let Some((path, text)) = certificate::kernel(&arguments.file)? {
        told += &kernel(&text, &path)?;
        let together = KernelScheduleFile::from_json(&text, &path)?.loops;
        let alike = |(one, apart): (&ScheduleFile, &certificate::Read)| one.to_json() == apart.schedule.to_json();
        if together.len() != read.len() || !together.iter().zip(&read).all(alike) {
            let why = "the loops of the kernel are not those of the folders next to it".into();
            return Err(Error::Disagree { path, why });
        }
    }
    for read in read {
        let (path, problem, claim) = (&read.path, &read.problem, &read.certificate);
        let disagree = |why: String| Err(Error::Disagree { path: path.clone(), why });
        let infeasible = read.schedule.status == Status::Infeasible;
        if infeasible != claim.infeasible {
            return disagree("one says that there is no schedule, and the other does not".into());
        }
        let evidence = twill_check::verify_certificate(problem, claim)
            .map_err(|error| Error::Certificate { path: path.clone(), error })?;
        if infeasible {
            // What was requested: up to some interval, or at all.
            let enough = match &read.schedule.infeasible {
                Some(RejectionReason::Exhausted { largest, all: false }) => evidence.below > *largest,
                _ => evidence.everything,
            };
            if !enough {
                return disagree("the schedule file says that there is none, and less is proved".into());
            }
            told += &format!("{path}: `{}` on {}: ", problem.graph().name(), problem.resources().name);
        } else {
            let verified = replay(path, &read.schedule, problem)?;
            if verified.interval != claim.below {
                let interval = verified.interval;
                return disagree(format!("the schedule has I = {interval}, and below {} is rejected", claim.below));
            }
            told += &replayed(path, problem, &verified);
        }
        told += &(certificate::told(claim, &evidence) + "\n");
    }
    files::write(None, &told)?;
    Ok(Exit::Done)
}
