//! Boolean terms as text, with constants folded, and pseudo-Boolean sums over them.

use std::rc::Rc;

/// A Boolean term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    Known(bool),
    Text(Rc<str>),
}

impl Term {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Term {
        Term::Text(text.into())
    }

    pub(crate) fn is(&self, value: bool) -> bool {
        *self == Term::Known(value)
    }
}

pub(crate) fn not(term: &Term) -> Term {
    match term {
        Term::Known(value) => Term::Known(!value),
        Term::Text(text) => match text.strip_prefix("(not ").and_then(|t| t.strip_suffix(')')) {
            Some(inner) => Term::text(inner),
            None => Term::text(format!("(not {text})")),
        },
    }
}

pub(crate) fn and(terms: impl IntoIterator<Item = Term>) -> Term {
    join("and", true, terms)
}

pub(crate) fn or(terms: impl IntoIterator<Item = Term>) -> Term {
    join("or", false, terms)
}

/// All of `premises` give `conclusion`, as a clause.
pub(crate) fn implies(premises: &[&Term], conclusion: Term) -> Term {
    or(premises.iter().map(|p| not(p)).chain([conclusion]))
}

fn join(operator: &str, neutral: bool, terms: impl IntoIterator<Item = Term>) -> Term {
    let mut kept: Vec<Rc<str>> = Vec::new();
    for term in terms {
        match term {
            Term::Known(value) if value == neutral => {}
            Term::Known(value) => return Term::Known(value),
            Term::Text(text) => kept.push(text),
        }
    }
    match kept.as_slice() {
        [] => Term::Known(neutral),
        [one] => Term::Text(Rc::clone(one)),
        _ => Term::text(format!("({operator} {})", kept.join(" "))),
    }
}

/// `Σ weight · term ≤ bound`, as terms that all hold. Both sides are divided by the weights' common
/// factor; where no two terms fit together, they exclude each other in pairs.
pub(crate) fn at_most(terms: &[(u64, Term)], bound: i128) -> Vec<Term> {
    let known: i128 = terms.iter().filter(|t| t.1.is(true)).map(|t| i128::from(t.0)).sum();
    let bound = bound - known;
    let free: Vec<(u64, &Rc<str>)> = terms
        .iter()
        .filter_map(|(weight, term)| match term {
            Term::Text(text) if *weight > 0 => Some((*weight, text)),
            _ => None,
        })
        .collect();
    let total: i128 = free.iter().map(|t| i128::from(t.0)).sum();
    let Ok(room) = u64::try_from(bound) else { return vec![Term::Known(bound >= 0)] };
    if total <= bound {
        return Vec::new();
    }
    let exclude = |text: &Rc<str>| not(&Term::Text(Rc::clone(text)));
    let mut all: Vec<Term> = free.iter().filter(|t| t.0 > room).map(|t| exclude(t.1)).collect();
    let mut free: Vec<(u64, &Rc<str>)> = free.into_iter().filter(|t| t.0 <= room).collect();
    let mut weights: Vec<u64> = free.iter().map(|t| t.0).collect();
    weights.sort_unstable();
    if weights.len() > 1 && weights[0].saturating_add(weights[1]) > room {
        for (i, (_, a)) in free.iter().enumerate() {
            all.extend(free[..i].iter().map(|(_, b)| or([exclude(b), exclude(a)])));
        }
        return all;
    }
    let factor = weights.iter().fold(0, |a, b| gcd(a, *b)).max(1);
    let room = room / factor;
    free.iter_mut().for_each(|t| t.0 /= factor);
    if free.iter().map(|t| i128::from(t.0)).sum::<i128>() > i128::from(room) {
        let summands: Vec<String> = free.iter().map(|(weight, text)| format!("(ite {text} {weight} 0)")).collect();
        all.push(Term::text(format!("(<= (+ {}) {room})", summands.join(" "))));
    }
    all
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
