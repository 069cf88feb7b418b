//! Breadth-first search through all states of one case, for the shortest way to a fault.

use super::fault::Fault;
use super::machine::{Machine, State, Step};
use super::program::Action;
use indexmap::IndexSet;

/// What a search found.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The shortest way to a fault.
    Found(Vec<Step>, Fault),
    /// There is none; so many states were seen.
    None(usize),
    /// There were more states than allowed.
    TooMany,
}

/// Looks at all interleavings.
///
/// A process that stands at a satisfied [`Action::WaitMultiplies`] or [`Action::WaitStores`] goes on before anything else:
/// nothing but its own place is touched, nobody can undo it, and no fault is defined by somebody standing there, so that
/// every fault stays reachable.
pub(super) fn search(machine: &Machine<'_>, limit: usize) -> Outcome {
    let start = machine.start();
    let mut parents: Vec<(usize, Step)> = vec![(0, Step::Do(0))];
    let mut seen: IndexSet<State> = IndexSet::from([start]);
    let way = |parents: &[(usize, Step)], mut at: usize| {
        let mut steps = Vec::new();
        while at > 0 {
            steps.push(parents[at].1);
            at = parents[at].0;
        }
        steps.reverse();
        steps
    };
    let mut at = 0;
    while let Some(state) = seen.get_index(at).cloned() {
        if at == 0
            && let Err(fault) = machine.look(&state)
        {
            return Outcome::Found(Vec::new(), fault);
        }
        let mut steps = machine.steps(&state);
        if steps.is_empty()
            && let Err(fault) = machine.stuck(&state)
        {
            return Outcome::Found(way(&parents, at), fault);
        }
        if let Some(&alone) = steps.iter().find(|&&step| harmless(machine, &state, step)) {
            steps = vec![alone];
        }
        for step in steps {
            let mut next = state.clone();
            if let Err(fault) = machine.take(&mut next, step) {
                let mut steps = way(&parents, at);
                steps.push(step);
                return Outcome::Found(steps, fault);
            }
            if seen.insert(next) {
                parents.push((at, step));
                if seen.len() > limit {
                    return Outcome::TooMany;
                }
            }
        }
        at += 1;
    }
    Outcome::None(seen.len())
}

fn harmless(machine: &Machine<'_>, state: &State, step: Step) -> bool {
    let Step::Do(p) = step else { return false };
    matches!(machine.next(state, p), Some(Action::WaitMultiplies(_) | Action::WaitStores(_)))
}
