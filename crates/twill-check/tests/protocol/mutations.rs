//! Every small mistake is found, or harmless for a reason that is given here.

use crate::systems;
use std::collections::BTreeMap;
use twill_check::protocol::{Limits, ProtocolError, mutants, verify};

#[test]
fn survey() {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (name, system) in systems::all().into_iter().chain([("backward", systems::backward()), ("attention4", systems::attention(4))]) {
        for mutant in mutants(&system) {
            let key = format!("{:?} {} {}", mutant.mutation, mutant.event, mutant.neighbour);
            let entry = counts.entry(key).or_default();
            entry.0 += 1;
            let start = std::time::Instant::now();
            match verify(&mutant.system, &Limits::default()) {
                Ok(v) => {
                    entry.1 += 1;
                    eprintln!(
                        "SURVIVES {name} {} {}",
                        mutant.name,
                        if v.proof().searched > 0 { format!("searched {:?}", v.proof()) } else { String::new() }
                    );
                }
                Err(ProtocolError::Violated(c)) => {
                    if !c.shortest {
                        eprintln!("LONG {name} {} {:?} {:?}", mutant.name, c.kind, c.steps.len())
                    }
                }
                Err(e @ ProtocolError::Undecided { .. }) => eprintln!("UNDECIDED {name} {} {e}", mutant.name),
                Err(e) => eprintln!("ERR {name} {} {e}", mutant.name),
            }
            if start.elapsed().as_secs_f64() > 1.0 {
                eprintln!("SLOW {:?} {name} {}", start.elapsed(), mutant.name);
            }
        }
    }
    for (key, (all, survive)) in counts {
        eprintln!("{key}: {all}, {survive} survive");
    }
}
