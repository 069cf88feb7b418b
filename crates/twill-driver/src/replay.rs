//! Every schedule that an explanation rests on is replayed: it must break something that was left
//! out, and nothing else.

use crate::Error;
use twill_check::{Constraint, Violation};
use twill_graph::{Breach, Explanation, Family, Member, Problem};

/// Most violations that are kept of each schedule.
const MOST: usize = 16;

/// Replays the schedules of an explanation and notes how they break what was left out.
pub(crate) fn replay(input: &str, problem: &Problem, explanation: &mut Explanation) -> Result<(), Error> {
    for rejection in &mut explanation.rejections {
        for member in &mut rejection.conflict.members {
            let interval = rejection.rejection.interval;
            let defect = |why: String| Error::Explanation {
                input: input.to_owned(),
                why: format!("  at I = {interval}, without {}: {why}", member.family),
            };
            member.breaches = breaches(problem, member).map_err(defect)?;
        }
    }
    Ok(())
}

fn breaches(problem: &Problem, member: &Member) -> Result<Vec<Breach>, String> {
    let Some(witness) = &member.witness else { return Ok(Vec::new()) };
    let rejected = match twill_check::verify(problem, witness.schedule.clone()) {
        Err(rejected) => rejected,
        Ok(_) => return Err("the schedule keeps every constraint, at an interval that was excluded".into()),
    };
    let mut breaches = Vec::new();
    for violation in &rejected.violations {
        let family = family(violation.constraint());
        // What is not a row of docs/model.md's table follows from issue cycles and groups.
        let lifted = matches!(violation, Violation::Resource { unit, .. } if witness.lifted.contains(unit));
        if !lifted && family.is_none_or(|f| witness.keeps.has(f)) {
            return Err(violation.to_string());
        }
        let of_unit = match (violation, &member.unit) {
            (Violation::Resource { unit, .. }, Some(left_out)) => unit == left_out,
            _ => true,
        };
        if family == Some(member.family) && of_unit && breaches.len() < MOST {
            let operations = violation.operations().into_iter().map(str::to_owned).collect();
            breaches.push(Breach { violation: violation.to_string(), operations });
        }
    }
    // Those that name operations say most.
    breaches.sort_by_key(|b| b.operations.is_empty());
    Ok(breaches)
}

fn family(constraint: Constraint) -> Option<Family> {
    match constraint {
        Constraint::Dependence => Some(Family::Dependence),
        Constraint::Resource => Some(Family::Resource),
        Constraint::Bandwidth => Some(Family::Bandwidth),
        Constraint::Assignment => Some(Family::Assignment),
        Constraint::Handoff => Some(Family::Handoff),
        Constraint::Concurrency => Some(Family::Concurrency),
        Constraint::Exclusive => Some(Family::Exclusive),
        Constraint::Registers => Some(Family::Registers),
        Constraint::SharedMemory => Some(Family::SharedMemory),
        Constraint::TensorMemory => Some(Family::TensorMemory),
        Constraint::Structure | Constraint::Channels | Constraint::Rings => None,
    }
}
