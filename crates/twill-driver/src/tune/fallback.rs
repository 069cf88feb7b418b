//! What is changed if registers do not suffice: one change after another, as the table [`LADDER`] has them.

mod ladder;

use super::assemble::faster;
use super::assembler::{Assembled, Assembler};
use super::candidate::{Attempt, Candidate};
use super::generated::machine_code;
use super::lower::lower;
use super::scratch::Oversized;
use super::thresholds::THRESHOLDS;
use super::{CompileOptions, Language, rules, variants};
use crate::{Error, Limits, Request, Session, Source};
use ladder::{Again, LADDER, Rung};
use twill_backend::package::{Assembly, HAZARD};
use twill_codegen::GroupShares;
use twill_exact::{Budget, SearchOptions};
use twill_graph::Status;

/// The rule of `twill lint` that asks for a fence.
const UNFENCED: &str = "proxy-unfenced";

/// What attempts have come to.
struct Attempts<'a> {
    source: &'a Source,
    /// The best kernel by now.
    best: Candidate,
    /// What the next attempt is asked for.
    options: CompileOptions,
    limits: Limits,
    /// What code was tried with and is not to be tried again.
    tried: GroupShares,
    /// Registers that the schedule of the last attempt grants a thread.
    granted: u32,
    /// The user has not said how many groups there are.
    may_choose_groups: bool,
    /// A schedule with far fewer registers was asked for.
    has_tried_far_fewer: bool,
}

/// What was asked for before a change, and the same of [`Attempts`].
struct Before {
    options: CompileOptions,
    limits: Limits,
    granted: u32,
    has_tried_far_fewer: bool,
}

/// As [`Attempts::far_fewer_registers`], where that was not tried, for a kernel whose schedule grants so many.
fn far_fewer_registers(source: &Source, best: &Candidate, granted: u32) -> Option<u32> {
    if !best.is_far_short() {
        return None;
    }
    let file = source.machine.resources().registers;
    let step = file.granularity.max(1);
    let fewer = (best.spilled_by_computing() / THRESHOLDS.spilled_for_one).min(THRESHOLDS.most_fewer).max(step);
    let registers = granted.checked_sub(fewer)? / step * step;
    (registers >= file.minimum_per_thread.max(file.reserve_per_thread)).then_some(registers)
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

    /// Registers for a schedule whose machine code is far from holding its values: ptxas needs more than the model for what is not in
    /// loops, and for values whose lives it does not shorten.
    fn far_fewer_registers(&self) -> Option<u32> {
        if self.has_tried_far_fewer || self.limits.registers_per_thread.is_some() {
            return None;
        }
        far_fewer_registers(self.source, &self.best, self.granted)
    }

    /// What the compiler leaves of shared memory, where buffers take more than that.
    fn room(&self) -> Option<u64> {
        let room = Oversized::of(&self.best)?.room();
        self.options.shared_bytes.is_none_or(|before| before > room).then_some(room)
    }

    /// Whether groups that compute spill, most of it outside of loops, and hold results that are wider than a sub-tile.
    fn may_subtile_epilogue(&self) -> bool {
        let is_left = self.options.shares.epilogue_subtile.or(self.tried.epilogue_subtile).is_none();
        let is_open = self.options.language() == Language::Gluon && !rules::in_tensor_memory(self.source);
        let is_wide = || {
            let variables = self.best.lowered.program.groups.iter().flat_map(|group| &group.variables);
            variables.into_iter().any(|variable| match variable.form {
                twill_codegen::ir::Form::Accumulator { columns, .. } => columns > THRESHOLDS.epilogue_subtile,
                _ => false,
            })
        };
        let is_left = is_left && self.options.epilogue_subtile.is_none();
        let is_outside = |assembly: &Assembly| {
            let spills =
                assembly.groups.iter().map(|group| u64::from(group.local_loads + group.local_stores)).sum::<u64>();
            spills > 2 * assembly.spills_in_loops()
        };
        is_left && is_open && self.best.assembly.as_ref().is_some_and(is_outside) && is_wide()
    }

    /// Whether a read of the async proxy comes after a store that has no fence, which may be of another place.
    fn may_fence_stores(&self) -> bool {
        let is_left = !self.options.shares.fenced_stores && !self.tried.fenced_stores;
        let findings = self.best.assembly.iter().flat_map(|assembly| &assembly.findings);
        is_left && findings.into_iter().any(|found| found.kind == HAZARD && found.message.contains(UNFENCED))
    }

    /// More registers for the group that loads, where it spills and has not been given more in vain.
    fn wanted_by_loads(&self) -> Option<u32> {
        let spilled = self.best.spilled_by("load");
        let own = self.best.lowered.program.groups.iter().find(|group| group.name == "load")?.registers;
        let wanted = own + spilled.next_multiple_of(8).clamp(16, 128);
        let is_new = self.options.shares.loading_registers.is_none_or(|before| before <= own);
        // What the others cannot spare they are not asked for. The first group's code begins with what all execute.
        let computing = self.best.lowered.program.groups.iter().filter(|group| group.name != "load");
        let spares = computing.map(|group| self.best.reloaded_by(&group.name)).sum::<u32>() == 0;
        (spilled > 0 && is_new && spares && self.best.compute_groups() > 1).then_some(wanted)
    }

    /// Whether the group that loads spills, and may hold fewer addresses.
    fn may_compute_addresses_anew(&self) -> bool {
        let is_left = !self.options.shares.fresh_addresses && !self.tried.fresh_addresses;
        is_left && self.best.spilled_by("load") > 0
    }

    /// Whether waits for MMAs may help the assembler: it added some, has MMAs run one by one, or made what is wrong.
    fn may_wait_for_mmas(&self) -> bool {
        let Attempts { options, best, .. } = self;
        let has = |kind: &&str| best.assembly.as_ref().is_some_and(|assembly| assembly.count(kind) > 0);
        options.language() == Language::Gluon && ["added_wait", "serialised", "early_use", HAZARD].iter().any(has)
    }

    /// Whether groups that spill hold operands of all iterations in registers, as far as it was not tried without.
    fn may_store_operands(&self) -> bool {
        let Attempts { options, best, .. } = self;
        let is_asked_for = options.operands_in_registers == Some(true);
        let is_left = !options.shares.operands_in_memory && !self.tried.operands_in_memory;
        is_left && !is_asked_for && !rules::in_tensor_memory(self.source) && best.is_short_of_registers()
    }

    /// Whether groups that are short of registers multiply elements of 32 bits by wgmma.
    fn may_multiply_by_threads(&self) -> bool {
        let is_left = !self.options.shares.mma_sync_of_32_bits && !self.tried.mma_sync_of_32_bits;
        is_left && self.best.is_short_of_registers() && rules::has_tf32(&self.best.lowered.program)
    }

    /// Whether the only group that computes may have more warps: it spills, and its results are wide enough.
    fn may_have_more_warps(&self) -> bool {
        let Attempts { options, best, .. } = self;
        let mut computing = best.lowered.program.groups.iter().filter(|group| group.name.starts_with("compute"));
        let (Some(_), None) = (computing.next(), computing.next()) else { return false };
        let is_in_gluon = options.language() == Language::Gluon && !rules::in_tensor_memory(self.source);
        is_in_gluon
            && rules::is_wide(&best.lowered.program)
            && options.shares.compute_warps.is_none()
            && best.is_short_of_registers()
    }

    /// Whether several groups that compute, and spill, may become one with more warps.
    fn may_have_one_group(&self) -> bool {
        let Attempts { options, best, .. } = self;
        let is_open = self.may_choose_groups && options.shares.compute_warps.or(self.tried.compute_warps).is_none();
        let is_in_gluon = options.language() == Language::Gluon && !rules::in_tensor_memory(self.source);
        let groups = || best.lowered.program.groups.iter().filter(|group| group.name.starts_with("compute"));
        let spill = groups().any(|group| best.spilled_by(&group.name) > 0);
        is_open && is_in_gluon && spill && groups().count() > 1 && rules::is_wide(&best.lowered.program)
    }

    /// What a change is taken back to.
    fn before(&self) -> Before {
        let (options, limits) = (self.options.clone(), self.limits.clone());
        Before { options, limits, granted: self.granted, has_tried_far_fewer: self.has_tried_far_fewer }
    }

    /// Takes a change back of which no kernel came: no less than that is asked for again.
    fn give_up(&mut self, again: Again, before: Before) {
        if self.limits.registers_per_thread != before.limits.registers_per_thread {
            self.granted = 0;
        }
        if again == Again::First {
            self.best.spec.preferred = false;
        }
        self.take_back(before);
    }

    /// Takes a change back that did not help, and lets nothing be changed in the same way again but registers, step by step.
    fn take_back(&mut self, Before { options, limits, granted, has_tried_far_fewer }: Before) {
        let (mut registers, tried, room) =
            (self.limits.registers_per_thread, self.options.shares, self.options.shared_bytes);
        if has_tried_far_fewer != self.has_tried_far_fewer {
            (registers, self.granted) = (limits.registers_per_thread, granted);
        }
        if self.limits.compute_warps != limits.compute_warps {
            // What was granted to other groups says nothing of these.
            self.granted = self.best.spec.granted;
        }
        (self.options, self.limits) = (options, limits);
        self.limits.registers_per_thread = registers;
        let is_persistent = self.best.lowered.program.tile_scheduler.persistent;
        self.options.persistent = self.options.persistent.or(Some(is_persistent));
        self.limits.warp_assignment = self.limits.warp_assignment.or(Some(rules::assignments(self.source)[0]));
        self.limits.compute_groups = self.limits.compute_groups.or(Some(self.best.compute_groups()));
        let shares = &mut self.options.shares;
        shares.compute_warps = shares.compute_warps.or(tried.compute_warps.and(Some(4)));
        shares.loading_registers = tried.loading_registers;
        self.tried.operands_in_memory |= tried.operands_in_memory;
        self.tried.completed_carried |= tried.completed_carried;
        self.tried.completed_iterations |= tried.completed_iterations;
        self.tried.fresh_addresses |= tried.fresh_addresses;
        self.tried.compute_warps = self.tried.compute_warps.or(tried.compute_warps);
        self.tried.mma_sync_of_32_bits |= tried.mma_sync_of_32_bits;
        self.tried.fenced_stores |= tried.fenced_stores;
        self.tried.epilogue_subtile = self.tried.epilogue_subtile.or(tried.epilogue_subtile);
        if Oversized::of(&self.best).is_some() {
            self.options.shared_bytes = room;
        }
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
    // Another schedule of the same interval may need fewer registers, and costs no interval.
    let mut alternative = None;
    let is_free = request.limits.registers_per_thread.is_none();
    let is_far_short = is_free && far_fewer_registers(source, &best, best.spec.granted).is_some();
    if best.is_short_of_registers() && !is_far_short && best.lowered.program.loops.len() == 1 && options.attempts > 1 {
        alternative = faster(request, options, &mut best, source, assembler, session)?;
        if session.is_stopped() {
            return Ok(Some(best));
        }
        if alternative.as_ref().is_some_and(|other| !other.is_short_of_registers()) {
            return Ok(alternative);
        }
    }
    let mut made = 1;
    if best.is_short_of_registers() && !is_far_short && !best.others.is_empty() {
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
    let may_change_code = options.attempts > 1;
    let mut source_before = best.lowered.source.clone();
    let (options, limits, granted) = (options.clone(), request.limits.clone(), best.spec.granted);
    let (tried, may_choose_groups) = (GroupShares::default(), limits.compute_groups.is_none());
    let has_tried_far_fewer = false;
    let mut attempts =
        Attempts { source, best, options, limits, tried, granted, may_choose_groups, has_tried_far_fewer };
    // Those that take no search are few, and not counted.
    let (mut number, mut searched) = (made, made);
    while !session.is_over() && number < most.max(THRESHOLDS.assembled) {
        // Where smaller buffers do not help, the kernel is scheduled again in any case, with less shared memory.
        let is_too_large = Oversized::of(&attempts.best).is_some();
        let is_short = attempts.best.is_short_of_registers();
        let may = |rung: &&Rung| match rung.again {
            Again::Code => may_change_code,
            Again::Schedule | Again::First => is_short && !is_too_large && searched < most,
        };
        let Some(rung) = LADDER.iter().filter(may).find(|rung| (rung.condition)(&attempts)) else { break };
        let before = attempts.before();
        (rung.change)(&mut attempts);
        let again = Request { limits: attempts.limits.clone(), ..request.clone() };
        let code =
            attempts.best.scheduled.clone().filter(|_| rung.again == Again::Code).map(|scheduled| {
                lower(&again, &attempts.options, source, &scheduled.problems, scheduled.found.clone())
            });
        if let Some(Ok(Attempt::Made(same))) = &code
            && same.lowered.source == attempts.best.lowered.source
        {
            continue;
        }
        number += 1;
        let what = attempts.best.assembly.as_ref().map(machine_code).unwrap_or_default();
        session.observer.note(&format!("{what}; attempt {number}: {}", (rung.note)(&attempts)));
        let made = code.unwrap_or_else(|| {
            searched += 1;
            variants::plain(&again, &attempts.options, source, &mut session)
        });
        let made = match made {
            Ok(Attempt::Made(candidate)) => Ok(*candidate),
            Ok(Attempt::Nothing(Status::Infeasible)) => Err("there is no schedule".to_owned()),
            Ok(Attempt::Nothing(_)) => Err("no schedule was found in time".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let candidate = match made {
            Ok(candidate) => candidate,
            Err(why) => {
                session.observer.note(&format!("attempt {number}: {why}"));
                attempts.give_up(rung.again, before);
                continue;
            }
        };
        attempts.granted = candidate.spec.granted;
        if candidate.lowered.source == source_before {
            session.observer.note(&format!("attempt {number}: the same kernel"));
            continue;
        }
        source_before.clone_from(&candidate.lowered.source);
        let candidate = match with_machine_code(candidate, &again, &mut attempts, assembler) {
            _ if session.is_stopped() => break,
            Ok(candidate) => candidate,
            Err(why) => {
                session.observer.note(&format!("attempt {number}: {why}"));
                attempts.give_up(rung.again, before);
                continue;
            }
        };
        let (own, kept) = (candidate.cost(), attempts.best.cost());
        let is_better = if rung.again == Again::First { own.roughly() < kept.roughly() } else { own < kept };
        if is_better {
            session.observer.note(&format!("attempt {number} is better"));
            attempts.best = candidate;
        } else {
            session.observer.note(&format!("attempt {number} is no better"));
            if rung.again == Again::First {
                break;
            }
            attempts.take_back(before);
        }
    }
    // Where no change helps, the faster of those that are short of registers.
    let best = attempts.best;
    Ok(Some(alternative.filter(|_| best.is_compared).unwrap_or(best)))
}

/// A kernel with its machine code; where the compiler leaves too little shared memory for its buffers, with smaller ones.
///
/// # Errors
/// Why it is not assembled.
fn with_machine_code(
    mut candidate: Candidate,
    request: &Request,
    attempts: &mut Attempts<'_>,
    assembler: &Assembler,
) -> Result<Candidate, String> {
    let assembled = |candidate: &Candidate, attempts: &Attempts<'_>| match assembler
        .run(&candidate.files_like(&attempts.best), &request.input.name)
    {
        Ok(Assembled::Report(assembly)) => Ok(Some(assembly)),
        Ok(Assembled::Impossible(why)) => Err(why),
        Err(error) => Err(error.to_string()),
    };
    candidate.assembly = assembled(&candidate, attempts)?;
    let (Some(oversized), Some(scheduled)) = (Oversized::of(&candidate), candidate.scheduled.clone()) else {
        return Ok(candidate);
    };
    let options = CompileOptions { shared_bytes: Some(oversized.room()), ..attempts.options.clone() };
    match lower(request, &options, attempts.source, &scheduled.problems, scheduled.found.clone()) {
        Ok(Attempt::Made(mut smaller)) if smaller.lowered.source != candidate.lowered.source => {
            smaller.assembly = assembled(&smaller, attempts)?;
            attempts.options = options;
            Ok(*smaller)
        }
        _ => Ok(candidate),
    }
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
    while made < most && best.is_short_of_registers() && !session.is_over() {
        let Some(mut other) = others.next() else { break };
        made += 1;
        let what = best.assembly.as_ref().map(machine_code).unwrap_or_default();
        session.observer.note(&format!("{what}; attempt {made}: the schedule that is next by simulation"));
        match assembler.run(&other.files_like(&best), input) {
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
