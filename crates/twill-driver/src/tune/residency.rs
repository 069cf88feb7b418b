//! Several CTAs on a multiprocessor: while one waits for its first tile, or stores its last, another computes.
//!
//! A CTA takes all registers of a multiprocessor unless its code says that fewer do. How many its groups use is known when it was
//! assembled. Where others have room beside it, in registers and in shared memory with rings of two slots or more, it is lowered
//! again with a part of both, one tile a CTA: the hardware assigns tiles as CTAs end. CTAs stay persistent where programs load
//! indices before anything else: the group that loads does that for its next tile in time.

use super::assembler::{Assembled, Assembler};
use super::candidate::{Attempt, Candidate};
use super::lower::lower;
use super::thresholds::THRESHOLDS;
use super::{CompileOptions, Language, rules};
use crate::{Request, Session, Source};
use twill_codegen::{GroupShares, entry_registers};

/// Shared memory that the hardware takes for each CTA (CUDA C++ programming guide, compute capability 9.0).
const RESERVED: u64 = 1024;
/// Whether so many CTAs that take this much shared memory each fit a multiprocessor. `machine`: what one CTA may take at most. All
/// in bytes.
pub(super) fn has_shared_memory(machine: u64, taken: u64, ctas: u32) -> bool {
    taken + RESERVED <= (machine + RESERVED) / u64::from(ctas)
}

/// Threads of a multiprocessor.
const THREADS: u32 = 2048;

/// What a candidate takes of a multiprocessor.
struct Footprint {
    /// Groups of four warps that compute.
    compute: u32,
    /// Registers a thread that these use, and the group that loads.
    used: (u32, u32),
    /// Bytes of shared memory that the compiler takes besides buffers.
    scratch: u64,
}

impl Footprint {
    /// Of a kernel whose machine code is known: groups that compute, and one that loads.
    fn of(candidate: &Candidate) -> Option<Footprint> {
        let (assembly, program) = (candidate.assembly.as_ref()?, &candidate.lowered.program);
        let used =
            |name: &str| assembly.groups.iter().find(|group| group.name == name).map(|group| group.used_registers);
        let loads = used("load").filter(|used| *used > 0)?;
        let computing = || program.groups.iter().filter(|group| group.name.starts_with("compute"));
        let most = computing().map(|group| used(&group.name)).try_fold(0, |most, used| Some(used?.max(most)))?;
        let is_plain = computing().count() + 1 == program.groups.len() && most > 0;
        is_plain.then(|| Footprint {
            compute: computing().map(|group| group.warps.div_ceil(4)).sum(),
            used: (most, loads),
            scratch: assembly.shared_memory.saturating_sub(program.shared_bytes()),
        })
    }

    /// Registers a thread of the group that loads, where this many CTAs have enough of them.
    fn loading(&self, ctas: u32) -> Option<u32> {
        let groups = self.compute + 1;
        let (computing, loading) = THRESHOLDS.needed;
        let needed = |used: u32, part: f64| ((f64::from(used) * part).ceil() as u32).next_multiple_of(8);
        let rest = (entry_registers(groups, ctas) * groups)
            .checked_sub(self.compute * needed(self.used.0, computing).max(24))?;
        let enough = needed(self.used.1, loading).max(40);
        (rest >= enough && 128 * groups * ctas <= THREADS).then(|| self.used.1.next_multiple_of(8).clamp(enough, rest))
    }
}

/// The candidate with as many CTAs on a multiprocessor as there is room for; itself where that is one.
pub(super) fn several(
    request: &Request,
    best: Candidate,
    source: &Source,
    assembler: &Assembler,
    session: &mut Session<'_>,
) -> Candidate {
    let (Some(footprint), Some(scheduled)) = (Footprint::of(&best), best.scheduled.clone()) else { return best };
    let options = &scheduled.options;
    let is_open = options.language() == Language::Gluon && !rules::in_tensor_memory(source);
    let most = options.ctas_per_sm.unwrap_or(THRESHOLDS.residents);
    if !is_open || best.is_short_of_registers() || best.unusable().is_some() {
        return best;
    }
    let machine = source.machine.resources().shared_memory.0;
    let persistent = best.lowered.program.tile_scheduler.persistent && rules::begins_with_indices(&source.kernel);
    let mut left = THRESHOLDS.shared;
    for ctas in (2..=most).rev() {
        // The last attempt is the one that has the most room.
        let Some(loading) = footprint.loading(ctas).filter(|_| left > 1 || ctas == 2) else { continue };
        let room = ((machine + RESERVED) / u64::from(ctas)).saturating_sub(RESERVED + footprint.scratch);
        let shares = GroupShares { ctas_per_sm: Some(ctas), loading_registers: Some(loading), ..options.shares };
        // What is deeper costs room that another CTA makes better use of.
        let smaller = [(3, 2), (2, 2), (2, 1)].into_iter().find_map(|(ring, handoff)| {
            let options = CompileOptions {
                shares,
                shared_bytes: Some(room.min(options.shared_bytes.unwrap_or(room))),
                persistent: options.persistent.or(Some(persistent)),
                ring_depth: options.ring_depth.or(Some(ring)),
                handoff_depth: options.handoff_depth.or(Some(handoff)),
                ..options.clone()
            };
            match lower(request, &options, source, &scheduled.problems, scheduled.found.clone()) {
                Ok(Attempt::Made(candidate)) => Some(*candidate),
                _ => None,
            }
        });
        let Some(mut candidate) = smaller else { continue };
        if session.is_over() {
            break;
        }
        left -= 1;
        let Ok(Assembled::Report(assembly)) = assembler.run(&candidate.files_like(&best), &request.input.name) else {
            continue;
        };
        let fits = has_shared_memory(machine, assembly.shared_memory, ctas);
        let is_as_good = assembly.findings.len() <= best.assembly.as_ref().map_or(0, |before| before.findings.len());
        candidate.assembly = Some(assembly);
        if fits && is_as_good && !candidate.is_short_of_registers() && candidate.unusable().is_none() {
            session.observer.note(&format!("{ctas} CTAs share a multiprocessor"));
            return candidate;
        }
        session.observer.note(&format!("{ctas} CTAs do not fit a multiprocessor"));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctas_share_the_registers_that_groups_use() {
        let one = Footprint { compute: 1, used: (122, 54), scratch: 0 };
        // 128 a thread at entry for two groups, then 80 and 64: those that load have 40 or more, and what is left.
        assert_eq!([2, 3, 4].map(|ctas| one.loading(ctas)), [Some(56), Some(56), None]);
        // A loader that uses all that it may have does with less.
        assert_eq!(Footprint { used: (150, 123), ..one }.loading(2), Some(124 / 8 * 8 + 8));
        // Two groups that compute and hold much leave no room.
        assert_eq!(Footprint { compute: 2, used: (168, 24), scratch: 0 }.loading(2), None);
        assert_eq!(Footprint { compute: 4, used: (24, 24), scratch: 0 }.loading(4), None, "threads");
    }
}
