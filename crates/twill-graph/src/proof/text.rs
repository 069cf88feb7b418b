//! Proofs as text: the clauses as DIMACS CNF, the derivation as DRAT, and with them a file that says what
//! each atom means and why each clause holds, a line each, in words and whole numbers.

use super::{Atom, Item, Literal, Point, Pool, Proof, ProofStep, Reason, RegisterLimit};
use crate::{DependenceId, GroupId, OpId, UnitId};
use std::fmt::Write;
use thiserror::Error;

/// Why the text of a proof cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProofTextError {
    /// A line that means nothing.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file.
        file: String,
        /// 1-based.
        line: usize,
        /// The fault.
        what: String,
    },
    /// The files do not belong together.
    #[error("{file}: {what}")]
    Count {
        /// The file.
        file: String,
        /// The difference.
        what: String,
    },
}

/// First line of the file of meanings.
const HEADER: &str = "twill-proof 1";

/// A word and whole numbers: how atoms and reasons are written.
type Words = (&'static str, Vec<i64>);

fn op(v: OpId) -> i64 {
    v.index() as i64
}

fn group(w: GroupId) -> i64 {
    w.index() as i64
}

fn point(p: Point) -> i64 {
    match p {
        Point::Origin => 0,
        Point::Slot(v) => 2 * op(v) + 1,
        Point::Stage(v) => 2 * op(v) + 2,
    }
}

fn item(i: Item) -> [i64; 3] {
    match i {
        Item::Value(v) => [0, op(v), 0],
        Item::Operand(d) => [1, d.index() as i64, 0],
        Item::Buffer(v) => [2, op(v), 0],
        Item::Reservation(v, r) => [3, op(v), r as i64],
    }
}

fn pool(p: Pool) -> [i64; 2] {
    match p {
        Pool::Unit(u) => [0, u.index() as i64],
        Pool::Registers => [1, 0],
        Pool::Shared => [2, 0],
        Pool::Tensor => [3, 0],
    }
}

fn atom_words(atom: &Atom) -> Words {
    match atom {
        Atom::Bound { from, to, least } => ("bound", vec![point(*from), point(*to), *least]),
        Atom::OnGroup { op: v, group: w } => ("group", vec![op(*v), group(*w)]),
        Atom::Used { group: w } => ("used", vec![group(*w)]),
        Atom::Same { a, b } => ("same", vec![op(*a), op(*b)]),
        Atom::Later { stages: (a, b), slots: (c, d), least } => ("later", vec![op(*a), op(*b), op(*c), op(*d), *least]),
        Atom::Waits { op: v } => ("waits", vec![op(*v)]),
        Atom::Alive { pool: p, item: i, copies, event } => {
            ("alive", [&pool(*p)[..], &item(*i), &[*copies], &item(*event)].concat())
        }
        Atom::Ring { load, slots } => ("ring", vec![op(*load), *slots]),
        Atom::Registers { group: w, least } => ("registers", vec![group(*w), i64::from(*least)]),
        Atom::All(literals) => ("all", literals.iter().map(|&l| i64::from(l)).collect()),
    }
}

fn reason_words(reason: Reason) -> Words {
    let place = |(v, r): (OpId, usize)| [op(v), r as i64];
    match reason {
        Reason::Definition { atom } => ("definition", vec![i64::from(atom)]),
        Reason::Difference => ("difference", vec![]),
        Reason::Dependence { from, to, stages } => ("dependence", vec![op(from), op(to), stages]),
        Reason::Resource { first, second, wrap } => ("resource", [&place(first)[..], &place(second), &[wrap]].concat()),
        Reason::Exclusive { first, second, wrap } => ("exclusive", vec![op(first), op(second), wrap]),
        Reason::Concurrency { waiting, other, wrap } => ("concurrency", vec![op(waiting), op(other), wrap]),
        Reason::Handoff { dependence } => ("handoff", vec![dependence.index() as i64]),
        Reason::SomeGroup { op: v } => ("some-group", vec![op(v)]),
        Reason::OneGroup { op: v } => ("one-group", vec![op(v)]),
        Reason::GroupOrder { op: v, group: w } => ("group-order", vec![op(v), group(w)]),
        Reason::UsedOrder { group: w } => ("used-order", vec![group(w)]),
        Reason::SubTileOrder { first, second } => ("sub-tile-order", vec![op(first), op(second)]),
        Reason::RegisterOrder { group: w, higher, lower } => {
            ("register-order", vec![group(w), i64::from(higher), i64::from(lower)])
        }
        Reason::Overfull { pool: p, event } => ("overfull", [&pool(p)[..], &item(event)].concat()),
        Reason::OverfullRegisters { event, limit } => {
            let limit = match limit {
                RegisterLimit::Fixed(w) => [0, group(w), 0],
                RegisterLimit::Thread => [1, 0, 0],
                RegisterLimit::Below(w, registers) => [2, group(w), i64::from(registers)],
            };
            ("overfull-registers", [&item(event)[..], &limit].concat())
        }
        Reason::OverfullRings => ("overfull-rings", vec![]),
        Reason::RegisterFile => ("register-file", vec![]),
    }
}

fn index(n: i64) -> Option<usize> {
    u32::try_from(n).ok().map(|n| n as usize)
}

fn read_op(n: i64) -> Option<OpId> {
    index(n).map(OpId::new)
}

fn read_group(n: i64) -> Option<GroupId> {
    index(n).map(GroupId::new)
}

fn read_point(n: i64) -> Option<Point> {
    let v = || read_op((n - 1) / 2);
    match n {
        0 => Some(Point::Origin),
        1.. if n % 2 == 1 => Some(Point::Slot(v()?)),
        1.. => Some(Point::Stage(v()?)),
        _ => None,
    }
}

fn read_item(words: [i64; 3]) -> Option<Item> {
    match words {
        [0, v, 0] => Some(Item::Value(read_op(v)?)),
        [1, d, 0] => Some(Item::Operand(DependenceId::new(index(d)?))),
        [2, v, 0] => Some(Item::Buffer(read_op(v)?)),
        [3, v, r] => Some(Item::Reservation(read_op(v)?, index(r)?)),
        _ => None,
    }
}

fn read_pool(words: [i64; 2]) -> Option<Pool> {
    match words {
        [0, u] => Some(Pool::Unit(UnitId::new(index(u)?))),
        [1, 0] => Some(Pool::Registers),
        [2, 0] => Some(Pool::Shared),
        [3, 0] => Some(Pool::Tensor),
        _ => None,
    }
}

fn read_atom(word: &str, numbers: &[i64]) -> Option<Atom> {
    Some(match (word, numbers) {
        ("bound", &[f, t, least]) => Atom::Bound { from: read_point(f)?, to: read_point(t)?, least },
        ("group", &[v, w]) => Atom::OnGroup { op: read_op(v)?, group: read_group(w)? },
        ("used", &[w]) => Atom::Used { group: read_group(w)? },
        ("same", &[a, b]) => Atom::Same { a: read_op(a)?, b: read_op(b)? },
        ("later", &[a, b, c, d, least]) => {
            Atom::Later { stages: (read_op(a)?, read_op(b)?), slots: (read_op(c)?, read_op(d)?), least }
        }
        ("waits", &[v]) => Atom::Waits { op: read_op(v)? },
        ("alive", &[p, u, a, b, c, copies, d, e, f]) => {
            Atom::Alive { pool: read_pool([p, u])?, item: read_item([a, b, c])?, copies, event: read_item([d, e, f])? }
        }
        ("ring", &[v, slots]) => Atom::Ring { load: read_op(v)?, slots },
        ("registers", &[w, r]) => Atom::Registers { group: read_group(w)?, least: u32::try_from(r).ok()? },
        ("all", literals) => {
            Atom::All(literals.iter().map(|&l| i32::try_from(l).ok()).collect::<Option<Vec<Literal>>>()?)
        }
        _ => return None,
    })
}

fn read_reason(word: &str, numbers: &[i64]) -> Option<Reason> {
    let place = |v, r| Some((read_op(v)?, index(r)?));
    Some(match (word, numbers) {
        ("definition", &[atom]) => Reason::Definition { atom: i32::try_from(atom).ok()? },
        ("difference", []) => Reason::Difference,
        ("dependence", &[u, v, stages]) => Reason::Dependence { from: read_op(u)?, to: read_op(v)?, stages },
        ("resource", &[u, r, v, s, wrap]) => Reason::Resource { first: place(u, r)?, second: place(v, s)?, wrap },
        ("exclusive", &[u, v, wrap]) => Reason::Exclusive { first: read_op(u)?, second: read_op(v)?, wrap },
        ("concurrency", &[v, o, wrap]) => Reason::Concurrency { waiting: read_op(v)?, other: read_op(o)?, wrap },
        ("handoff", &[d]) => Reason::Handoff { dependence: DependenceId::new(index(d)?) },
        ("some-group", &[v]) => Reason::SomeGroup { op: read_op(v)? },
        ("one-group", &[v]) => Reason::OneGroup { op: read_op(v)? },
        ("group-order", &[v, w]) => Reason::GroupOrder { op: read_op(v)?, group: read_group(w)? },
        ("used-order", &[w]) => Reason::UsedOrder { group: read_group(w)? },
        ("sub-tile-order", &[a, b]) => Reason::SubTileOrder { first: read_op(a)?, second: read_op(b)? },
        ("register-order", &[w, h, l]) => Reason::RegisterOrder {
            group: read_group(w)?,
            higher: u32::try_from(h).ok()?,
            lower: u32::try_from(l).ok()?,
        },
        ("overfull", &[p, u, a, b, c]) => Reason::Overfull { pool: read_pool([p, u])?, event: read_item([a, b, c])? },
        ("overfull-registers", &[a, b, c, kind, w, r]) => {
            let limit = match kind {
                0 if r == 0 => RegisterLimit::Fixed(read_group(w)?),
                1 if (w, r) == (0, 0) => RegisterLimit::Thread,
                2 => RegisterLimit::Below(read_group(w)?, u32::try_from(r).ok()?),
                _ => return None,
            };
            Reason::OverfullRegisters { event: read_item([a, b, c])?, limit }
        }
        ("overfull-rings", []) => Reason::OverfullRings,
        ("register-file", []) => Reason::RegisterFile,
        _ => return None,
    })
}

fn line_of(out: &mut String, first: &str, (word, numbers): Words) {
    let _ = write!(out, "{first} {word}");
    for n in numbers {
        let _ = write!(out, " {n}");
    }
    out.push('\n');
}

fn clause_line(out: &mut String, clause: &[Literal]) {
    for l in clause {
        let _ = write!(out, "{l} ");
    }
    out.push_str("0\n");
}

impl Proof {
    /// The clauses, in the DIMACS format of SAT solvers.
    pub fn cnf(&self) -> String {
        let mut out = format!(
            "c No schedule at an initiation interval of {} cycles: these clauses hold for every schedule, and\n\
             c contradict each other. What they mean and why they hold stands in the .why file next to this one.\n\
             p cnf {} {}\n",
            self.interval,
            self.atoms.len(),
            self.clauses.len()
        );
        for (clause, _) in self.clauses.iter() {
            clause_line(&mut out, clause);
        }
        out
    }

    /// The derivation, in the DRAT format.
    pub fn drat(&self) -> String {
        let mut out = String::new();
        for (clause, step) in self.steps.iter() {
            if *step == ProofStep::Delete {
                out.push_str("d ");
            }
            clause_line(&mut out, clause);
        }
        out
    }

    /// The meaning of each atom, and the reason for each clause.
    pub fn meanings(&self) -> String {
        let mut out = format!("{HEADER}\ninterval {}\n", self.interval);
        for atom in &self.atoms {
            line_of(&mut out, "atom", atom_words(atom));
        }
        for (_, reason) in self.clauses.iter() {
            line_of(&mut out, "clause", reason_words(*reason));
        }
        out
    }

    /// Reads the three texts back. `name` stands for the files in errors.
    ///
    /// # Errors
    /// Names the file and line.
    pub fn read(name: &str, cnf: &str, drat: &str, meanings: &str) -> Result<Proof, ProofTextError> {
        let mut proof = Proof::default();
        let reasons = read_meanings(&format!("{name}.why"), meanings, &mut proof)?;
        read_cnf(&format!("{name}.cnf"), cnf, reasons, &mut proof)?;
        read_drat(&format!("{name}.drat"), drat, &mut proof)?;
        Ok(proof)
    }
}

fn wrong(file: &str, line: usize, what: impl Into<String>) -> ProofTextError {
    ProofTextError::Line { file: file.into(), line: line + 1, what: what.into() }
}

fn read_meanings(file: &str, text: &str, proof: &mut Proof) -> Result<Vec<Reason>, ProofTextError> {
    let mut reasons = Vec::new();
    let mut interval = None;
    for (at, line) in text.lines().enumerate() {
        if at == 0 {
            if line != HEADER {
                return Err(wrong(file, at, format!("expected `{HEADER}`")));
            }
            continue;
        }
        let mut words = line.split(' ');
        let (first, mut word) = (words.next().unwrap_or_default(), "");
        if first != "interval" {
            word = words.next().unwrap_or_default();
        }
        let numbers: Option<Vec<i64>> = words.map(|w| w.parse().ok()).collect();
        let numbers = numbers.ok_or_else(|| wrong(file, at, "expected whole numbers"))?;
        match (first, numbers.as_slice()) {
            ("interval", &[n]) if at == 1 => interval = Some(n),
            ("atom", numbers) => match read_atom(word, numbers) {
                Some(atom) => proof.atoms.push(atom),
                None => return Err(wrong(file, at, "this is no atom")),
            },
            ("clause", numbers) => match read_reason(word, numbers) {
                Some(reason) => reasons.push(reason),
                None => return Err(wrong(file, at, "this is no reason for a clause")),
            },
            _ => return Err(wrong(file, at, "expected `interval`, `atom` or `clause`")),
        }
    }
    proof.interval = interval.ok_or_else(|| wrong(file, 1, "expected `interval` and a number"))?;
    Ok(reasons)
}

/// The literals of a line that ends in 0.
fn literals(file: &str, at: usize, line: &str) -> Result<Vec<Literal>, ProofTextError> {
    let numbers: Option<Vec<Literal>> = line.split_ascii_whitespace().map(|w| w.parse().ok()).collect();
    match numbers.as_deref() {
        Some([clause @ .., 0]) if !clause.contains(&0) && !clause.contains(&Literal::MIN) => Ok(clause.to_vec()),
        _ => Err(wrong(file, at, "expected literals and a final 0")),
    }
}

fn read_cnf(file: &str, text: &str, reasons: Vec<Reason>, proof: &mut Proof) -> Result<(), ProofTextError> {
    let mut reasons = reasons.into_iter();
    let mut header = None;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('c') {
            continue;
        }
        if let Some(counts) = line.strip_prefix("p cnf ") {
            header = Some(counts.to_owned());
            continue;
        }
        let clause = literals(file, at, line)?;
        let reason = reasons.next().ok_or_else(|| wrong(file, at, "no reason is given for this clause"))?;
        proof.clauses.push(clause, reason);
    }
    let expected = format!("{} {}", proof.atoms.len(), proof.clauses.len());
    if reasons.next().is_some() || header.as_deref() != Some(expected.as_str()) {
        let what = format!("it must start with `p cnf {expected}` and have a clause for every reason");
        return Err(ProofTextError::Count { file: file.into(), what });
    }
    Ok(())
}

fn read_drat(file: &str, text: &str, proof: &mut Proof) -> Result<(), ProofTextError> {
    for (at, line) in text.lines().enumerate() {
        let (clause, step) = match line.strip_prefix("d ") {
            Some(rest) => (rest, ProofStep::Delete),
            None => (line, ProofStep::Learn),
        };
        proof.steps.push(literals(file, at, clause)?, step);
    }
    Ok(())
}
