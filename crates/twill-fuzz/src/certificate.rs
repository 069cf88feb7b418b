//! Target: certificates of the exact engine, whole and changed.
//!
//! A changed certificate may still be a proof, of the same claim or of another. So what the checker takes it to prove is
//! compared with [`brute`](crate::brute) force: no schedule below the interval that it says is rejected, none at all where
//! it says so. A checker that accepts a changed certificate of something true does its duty.

use crate::brute::Optimum;
use crate::change::changed;
use crate::optimum::Question;
use crate::sample;
use crate::tape::Tape;
use twill_check::{Evidence, verify_certificate};
use twill_exact::{Budget, certify};
use twill_graph::format::CertificateFile;
use twill_graph::proof::{Certificate, Proof};
use twill_graph::{Bytes, Columns, Cycles, Dependence, Operation, Outcome, Problem, Storage, Words};

/// The outcome of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Changed {
    /// There is none: no problem, or too much to try.
    Nothing,
    /// It is no certificate any more, by the readers.
    Unreadable,
    /// The checker rejects it.
    Rejected,
    /// The checker accepts it; what it proves is true.
    True,
}

const WORDS: [&str; 24] = [
    "atom bound 0 1 1\n",
    "atom later 0 1 0 1 1\n",
    "atom all 1 2\n",
    "atom ring 0 2\n",
    "atom registers 1 48\n",
    "atom alive 2 0 3 0 0 1 3 1 0\n",
    "clause difference\n",
    "clause definition 1\n",
    "clause overfull-rings\n",
    "clause register-file\n",
    "clause some-group 0\n",
    "clause one-group 0\n",
    "clause exclusive 0 1 0\n",
    "clause concurrency 0 1 0\n",
    "clause handoff 0\n",
    "clause sub-tile-order 0 1\n",
    "clause used-order 1\n",
    "clause group-order 1 1\n",
    "0\n",
    "d ",
    "1 0\n",
    "-1 0\n",
    "1 2 0\n",
    " ",
];

/// Checks the certificate of a problem, then a changed one.
///
/// # Panics
/// When a whole one is rejected, or what is proved is not true.
pub fn check(bytes: &[u8]) -> Changed {
    let Some((question, whole, other)) = derived(bytes) else { return Changed::Nothing };
    let report = question.by_engine();
    let evidence = verify_certificate(&question.problem, &whole);
    let claim = |e: &Evidence| (e.below == whole.below, e.everything || !question.all || !whole.infeasible);
    assert_eq!(evidence.as_ref().map(claim), Ok((true, true)), "{whole:#?}\n{:#?}", question.problem);
    if let Outcome::Optimal { schedule } = &report.outcome {
        assert_eq!(whole.below, schedule.interval, "{:#?}", question.problem);
    }
    let (question, certificate) = match other {
        Other::Easier(None) => return Changed::Nothing,
        Other::Easier(Some(easier)) => (Question::new(easier), whole),
        Other::Altered(None) => return Changed::Unreadable,
        Other::Altered(Some(certificate)) => (question, certificate),
    };
    match verify_certificate(&question.problem, &certificate) {
        Err(_) => Changed::Rejected,
        Ok(evidence) => judge(&question, &evidence),
    }
}

/// The checker also sees this, besides a whole certificate.
pub(crate) enum Other {
    /// The same certificate, of an easier problem.
    Easier(Option<Problem>),
    /// Another certificate, of the same problem; `None` where it cannot be read.
    Altered(Option<Certificate>),
}

/// The question that the bytes encode: a problem, its certificate, and changes of either.
pub(crate) fn derived(bytes: &[u8]) -> Option<(Question, Certificate, Other)> {
    let mut tape = Tape::new(bytes);
    let question = Question::new(sample::problem(&mut tape)?);
    let certificate = certify(&question.problem, &question.by_engine(), &Budget::default()).ok()?;
    let other = if tape.one_in(2) {
        Other::Easier(easier(&mut tape, &question.problem))
    } else {
        Other::Altered(altered(&mut tape, &question.problem, certificate.clone()))
    };
    Some((question, certificate, other))
}

fn judge(question: &Question, evidence: &Evidence) -> Changed {
    match question.by_force() {
        Optimum::TooMuch => return Changed::Nothing,
        Optimum::None => {}
        Optimum::Found { interval, .. } => {
            assert!(!evidence.everything, "there is a schedule at {interval}: {:#?}", question.problem);
            assert!(evidence.below.0 <= interval, "{evidence:?}, and {interval} is possible: {:#?}", question.problem);
        }
    }
    Changed::True
}

/// The problem with a little more of something, or that asks for a little less: a checker that is lenient by one takes
/// the proof for one of the easier problem.
pub(crate) fn easier(tape: &mut Tape, problem: &Problem) -> Option<Problem> {
    let mut machine = problem.resources().clone();
    let mut graph = problem.graph().clone();
    let (operations, dependences) = (graph.operations().len(), graph.dependences().len());
    match tape.below(3) {
        0 => match tape.below(6) {
            0 => machine.units.iter_mut().for_each(|unit| unit.capacity += 1),
            1 => machine.shared_memory = Bytes(machine.shared_memory.0 + 1),
            2 => machine.tensor_memory = Columns(machine.tensor_memory.0 + 1),
            3 => machine.compute_groups.maximum += 1,
            4 => machine.registers.words += 256,
            _ => machine.registers.maximum_per_thread += 1,
        },
        1 => {
            let (which, what) = (tape.index(operations), tape.below(7));
            let mut at = 0;
            let change = |op: &mut Operation| {
                if at == which {
                    less(op, what);
                }
                at += 1;
            };
            graph = graph.map(change, |_| {}).ok()?;
        }
        _ => {
            let (which, what) = (tape.index(dependences), tape.below(4));
            let mut at = 0;
            let change = |d: &mut Dependence| {
                if at == which {
                    match what {
                        0 => d.delay = (d.delay - Cycles(1)).max(Cycles(0)),
                        1 => d.hold = (d.hold - Cycles(1)).max(Cycles(0)),
                        2 => d.blocking = false,
                        _ => (d.carries_value, d.tied) = (false, false),
                    }
                }
                at += 1;
            };
            graph = graph.map(|_| {}, change).ok()?;
        }
    }
    Problem::new(graph, machine, *problem.options()).ok()
}

/// An operation that takes less of something.
fn less(op: &mut Operation, what: u64) {
    let shorter = |cycles: Cycles| (cycles - Cycles(1)).max(Cycles(0));
    match what {
        0 => op.occupancy = shorter(op.occupancy),
        1 => op.latency = shorter(op.latency),
        2 => op.handoff = shorter(op.handoff),
        3 => op.transfer_latency = shorter(op.transfer_latency),
        4 => {
            op.storage = match op.storage {
                Storage::None => Storage::None,
                Storage::Registers(words) => Storage::Registers(Words(words.0.saturating_sub(1))),
                Storage::Shared(bytes) => Storage::Shared(Bytes(bytes.0.saturating_sub(1))),
                Storage::Tensor(columns) => Storage::Tensor(Columns(columns.0.saturating_sub(1))),
            }
        }
        5 => drop(op.reservations.pop()),
        _ => {
            let Some(last) = op.reservations.last_mut().filter(|r| r.cycles > Cycles(1)) else { return };
            last.cycles = shorter(last.cycles);
            let end = op.reservations.iter().map(|r| r.start + r.cycles).max();
            op.occupancy = end.unwrap_or(op.occupancy);
        }
    }
}

/// The certificate with a claim, a bound or a line of a proof changed; `None` where it cannot be read.
fn altered(tape: &mut Tape, problem: &Problem, mut certificate: Certificate) -> Option<Certificate> {
    let proofs = certificate.proofs.len();
    let step = Cycles(1 + tape.between(0, 1));
    match if proofs == 0 { 4 + tape.below(5) } else { tape.below(9) } {
        4 => certificate.below += step,
        5 => {
            certificate.bound += step;
            certificate.below = certificate.below.max(certificate.bound);
        }
        6 => certificate.infeasible = true,
        7 => {
            let count = problem.graph().operations().len();
            certificate.conflicts.push((certificate.below, twill_graph::OpId::new(tape.index(count))));
            certificate.below += Cycles(1);
        }
        8 => {
            let text = CertificateFile::new(problem, &certificate).to_json();
            let text = changed(tape, &text, &["\"kind\": \"trivial\"", "\"kind\": \"group_work\"", "true", "0", "9"]);
            let file = CertificateFile::from_json(&text, "fuzz.json").ok()?;
            let proofs = std::mem::take(&mut certificate.proofs);
            certificate = Certificate { proofs, ..file.certificate(problem).ok()? };
        }
        which => {
            let proof = &mut certificate.proofs[tape.index(proofs)];
            let (mut cnf, mut drat, mut meanings) = (proof.cnf(), proof.drat(), proof.meanings());
            match which {
                0 => meanings = changed_line(tape, &meanings),
                1 => cnf = changed_line(tape, &cnf),
                2 => drat = changed_line(tape, &drat),
                // One more step of the argument, and its reason.
                _ => {
                    let (clause, reason) =
                        (tape.pick(&["0\n", "1 0\n", "-1 0\n", "1 -2 0\n"])?, tape.pick(&WORDS[6..18])?);
                    cnf = cnf.replacen(
                        &format!("p cnf {} {}\n", proof.atoms.len(), proof.clauses.len()),
                        &format!("p cnf {} {}\n", proof.atoms.len(), proof.clauses.len() + 1),
                        1,
                    );
                    cnf += clause;
                    meanings += reason;
                }
            }
            *proof = Proof::read("fuzz", &cnf, &drat, &meanings).ok()?;
            // The interval is not part of what proves it: the same clauses may be said of another.
            if tape.one_in(12) {
                proof.interval += 1;
                certificate.below += Cycles(1);
            }
        }
    }
    Some(certificate)
}

/// One line changed a little, so that most of what comes out can be read.
fn changed_line(tape: &mut Tape, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = tape.index(lines.len());
    let Some(line) = lines.get(at).cloned() else { return text.to_owned() };
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let word = tape.index(words.len());
    match tape.below(8) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, line),
        2 => {
            let to = tape.index(lines.len());
            lines.swap(at, to);
        }
        3 => {
            words.remove(word);
            lines[at] = words.join(" ");
        }
        4 => lines[at] = changed(tape, &line, &WORDS),
        5 => {
            words[word] = words[word].strip_prefix('-').map_or_else(|| format!("-{}", words[word]), str::to_owned);
            lines[at] = words.join(" ");
        }
        _ => {
            if let Ok(number) = words[word].parse::<i64>() {
                words[word] = (number + tape.between(-2, 2)).to_string();
            }
            lines[at] = words.join(" ");
        }
    }
    lines.join("\n") + "\n"
}
