//! What is changed if registers do not suffice: one change after another, as the table [`LADDER`] has them.

use super::assembler::{Assembled, Assembler};
use super::candidate::{Attempt, Candidate};
use super::generated::machine_code;
use super::thresholds::THRESHOLDS;
use super::{CompileOptions, rules, variants};
use crate::{Error, Limits, Request, Session, Source};
use twill_exact::{Budget, SearchOptions};
use twill_graph::WarpAssignment;

/// A change that may help.
struct Rung {
    /// Whether it is left to try.
    condition: fn(&Attempts<'_>) -> bool,
    /// Makes it; what does not help is taken back.
    change: fn(&mut Attempts<'_>),
    /// Says what was changed.
    note: fn(&Attempts<'_>) -> String,
    /// Whether it goes back to the schedule that was found first: what was preferred to it is not given up for a few bytes, and
    /// nothing else is tried.
    goes_back: bool,
}

/// The changes, of which the first whose condition holds is made.
const LADDER: [Rung; 5] = [
    Rung {
        condition: |attempts| attempts.best.spec.preferred,
        change: |_| (),
        note: |_| "the schedule that was found first".into(),
        goes_back: true,
    },
    // Each of fewer groups has more of the register file than it has more values.
    Rung {
        condition: |attempts| attempts.limits.compute_groups.is_none() && attempts.best.compute_groups() > 2,
        change: |attempts| attempts.limits.compute_groups = Some(attempts.best.compute_groups() - 1),
        note: |attempts| format!("{} compute groups", attempts.limits.compute_groups.unwrap_or_default()),
        goes_back: false,
    },
    Rung {
        condition: |attempts| {
            let Attempts { options, best, .. } = attempts;
            options.persistent.is_none() && best.lowered.program.tile_scheduler.persistent && !options.wave_sync
        },
        change: |attempts| attempts.options.persistent = Some(false),
        note: |_| "one tile a CTA".into(),
        goes_back: false,
    },
    Rung {
        condition: |attempts| attempts.limits.warp_assignment.is_none(),
        change: |attempts| attempts.limits.warp_assignment = Some(rules::assignments(attempts.source)[1]),
        note: |attempts| {
            match attempts.limits.warp_assignment {
                Some(WarpAssignment::BySubTile) => "each group works on sub-tiles of its own",
                _ => "any group may work on any sub-tile",
            }
            .into()
        },
        goes_back: false,
    },
    Rung {
        condition: |attempts| attempts.fewer_registers().is_some(),
        change: |attempts| attempts.limits.registers_per_thread = attempts.fewer_registers(),
        note: |attempts| {
            let registers = attempts.limits.registers_per_thread.unwrap_or_default();
            format!("at most {registers} registers a thread in the schedule")
        },
        goes_back: false,
    },
];

/// What attempts have come to.
struct Attempts<'a> {
    source: &'a Source,
    /// The best kernel by now.
    best: Candidate,
    /// What the next attempt is asked for.
    options: CompileOptions,
    limits: Limits,
    /// Registers that the schedule of the last attempt grants a thread.
    granted: u32,
}

impl Attempts<'_> {
    /// Fewer registers than the last schedule grants a thread, or than it might; none where a thread must have more.
    fn fewer_registers(&self) -> Option<u32> {
        let file = self.source.machine.resources().registers;
        let step = file.granularity.max(1);
        let most = self.limits.registers_per_thread.unwrap_or(file.maximum_per_thread);
        let fewer = self.granted.min(most.checked_sub(step)?) / step * step;
        (fewer >= file.minimum_per_thread.max(file.reserve_per_thread)).then_some(fewer)
    }

    /// Takes a change back that did not help, and lets nothing be changed in the same way again but registers.
    fn take_back(&mut self, (options, limits): (CompileOptions, Limits)) {
        let registers = self.limits.registers_per_thread;
        (self.options, self.limits) = (options, limits);
        self.limits.registers_per_thread = registers;
        self.options.persistent = self.options.persistent.or(Some(true));
        self.limits.warp_assignment = self.limits.warp_assignment.or(Some(rules::assignments(self.source)[0]));
        self.limits.compute_groups = self.limits.compute_groups.or(Some(self.best.compute_groups()));
    }
}

/// The best of as many attempts as there may be: if registers do not suffice, the schedule is made again with a change of
/// [`LADDER`]. None where it was stopped before there was anything.
pub(super) fn assembled(
    request: &Request,
    options: &CompileOptions,
    first: Candidate,
    source: &Source,
    assembler: &Assembler,
    session: &mut Session<'_>,
) -> Result<Option<Candidate>, Error> {
    let mut best = first;
    match assembler.run(&best.files(), &request.input.name) {
        _ if session.is_stopped() => return Ok(None),
        Ok(Assembled::Report(assembly)) => best.assembly = Some(assembly),
        Ok(Assembled::Impossible(why)) => {
            session.observer.note(&format!(
                "note: the kernel is not assembled: {why}; name an interpreter that has it with --python"
            ));
            return Ok(Some(best));
        }
        Err(error) => return Err(error),
    }
    let mut made = 1;
    if best.is_short_of_registers() && !best.others.is_empty() {
        (best, made) = next_with_registers(best, options.attempts, assembler, &request.input.name, session);
    }
    let work = session.search.budget.work.map_or(THRESHOLDS.later_work, |work| work.min(THRESHOLDS.later_work));
    let budget = Budget { work: Some(work), ..session.search.budget.clone() };
    let later = SearchOptions { budget, ..session.search.clone() };
    let mut session = session.with(later);
    // The schedule that was found first is no other option, and always there to go back to.
    let most = options.attempts.max(if best.spec.preferred && made == 1 { 2 } else { 1 });
    // It was among those of several loops.
    best.spec.preferred &= made == 1;
    let mut source_before = best.lowered.source.clone();
    let (options, limits, granted) = (options.clone(), request.limits.clone(), best.spec.granted);
    let mut attempts = Attempts { source, best, options, limits, granted };
    for number in made + 1..=most {
        if !attempts.best.is_short_of_registers() || session.is_stopped() {
            break;
        }
        let Some(rung) = LADDER.iter().find(|rung| (rung.condition)(&attempts)) else { break };
        let before = (attempts.options.clone(), attempts.limits.clone());
        (rung.change)(&mut attempts);
        let what = attempts.best.assembly.as_ref().map(machine_code).unwrap_or_default();
        session.observer.note(&format!("{what}; attempt {number}: {}", (rung.note)(&attempts)));
        let again = Request { limits: attempts.limits.clone(), ..request.clone() };
        let mut candidate = match variants::plain(&again, &attempts.options, source, &mut session) {
            Ok(Attempt::Made(candidate)) => *candidate,
            Ok(Attempt::Nothing(_)) => {
                session.observer.note(&format!("attempt {number}: there is no schedule, or none was found in time"));
                break;
            }
            Err(error) => {
                session.observer.note(&format!("attempt {number}: {error}"));
                break;
            }
        };
        attempts.granted = candidate.spec.granted;
        if candidate.lowered.source == source_before {
            session.observer.note(&format!("attempt {number}: the same kernel"));
            continue;
        }
        source_before.clone_from(&candidate.lowered.source);
        match assembler.run(&candidate.files(), &request.input.name) {
            _ if session.is_stopped() => break,
            Ok(Assembled::Report(assembly)) => candidate.assembly = Some(assembly),
            Ok(Assembled::Impossible(why)) => {
                session.observer.note(&format!("attempt {number}: {why}"));
                break;
            }
            Err(error) => {
                session.observer.note(&format!("attempt {number}: {error}"));
                break;
            }
        }
        let (own, kept) = (candidate.cost(), attempts.best.cost());
        let is_better = if rung.goes_back { own.roughly() < kept.roughly() } else { own < kept };
        if is_better {
            session.observer.note(&format!("attempt {number} is better"));
            attempts.best = candidate;
        } else {
            session.observer.note(&format!("attempt {number} is no better"));
            if rung.goes_back {
                break;
            }
            attempts.take_back(before);
        }
    }
    Ok(Some(attempts.best))
}

/// Of a kernel with several loops for which registers do not suffice, and those of other schedules: the first with enough, or the
/// best of as many as may be made in all; and how many were made.
fn next_with_registers(
    mut best: Candidate,
    most: u32,
    assembler: &Assembler,
    input: &str,
    session: &mut Session<'_>,
) -> (Candidate, u32) {
    let mut others = std::mem::take(&mut best.others).into_iter();
    let mut made = 1;
    while made < most && best.is_short_of_registers() && !session.is_stopped() {
        let Some(mut other) = others.next() else { break };
        made += 1;
        let what = best.assembly.as_ref().map(machine_code).unwrap_or_default();
        session.observer.note(&format!("{what}; attempt {made}: the schedule that is next by simulation"));
        match assembler.run(&other.files(), input) {
            _ if session.is_stopped() => break,
            Ok(Assembled::Report(assembly)) => other.assembly = Some(assembly),
            Ok(Assembled::Impossible(why)) => {
                session.observer.note(&format!("attempt {made}: {why}"));
                break;
            }
            Err(error) => {
                session.observer.note(&format!("attempt {made}: {error}"));
                break;
            }
        }
        if other.cost() < best.cost() {
            session.observer.note(&format!("attempt {made} is better"));
            best = other;
        } else {
            session.observer.note(&format!("attempt {made} is no better"));
        }
    }
    best.others = others.collect();
    (best, made)
}
