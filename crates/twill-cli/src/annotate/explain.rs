//! What `twill explain` says: the interval at the loop, and what bounds it at the operations.

use super::{Annotation, Level, Place, Rule, place_of};
use std::collections::BTreeMap;
use twill_driver::{Explained, Places};
use twill_graph::{LowerBoundKind, Problem, Status};
use twill_report::explanation_sentences;

const OPTIMAL: Rule = Rule { id: "optimal", meaning: "The interval of the loop, which is proved.", level: Level::Note };
const NOT_PROVED: Rule = Rule {
    id: "not-proved",
    meaning: "A schedule of the loop, or none; a smaller interval is not excluded.",
    level: Level::Warning,
};
const INFEASIBLE: Rule = Rule { id: "infeasible", meaning: "No schedule of the loop exists.", level: Level::Error };
const BOUND: Rule = Rule { id: "bound", meaning: "Operations that bound the interval.", level: Level::Note };
const CONFLICT: Rule =
    Rule { id: "conflict", meaning: "Constraints that exclude the next smaller interval.", level: Level::Note };
const SHORTER: Rule =
    Rule { id: "shorter", meaning: "Changes of kernel or machine that make the interval shorter.", level: Level::Note };

/// All that there are.
pub(crate) const RULES: [Rule; 7] = [OPTIMAL, NOT_PROVED, INFEASIBLE, BOUND, CONFLICT, SHORTER, super::fit::NOT_READ];

/// Lines at which the bound is told, at most: CI shows some annotations of a step, and leaves out the rest.
const MOST_LINES: usize = 4;

/// Annotations of the loops of an input.
pub(crate) fn explained(input: &str, all: &[Explained], places: Option<&Places>) -> Vec<Annotation> {
    let one = |(index, one): (usize, &Explained)| {
        let place = place_of(places.and_then(|all| all.loops.get(index)), input);
        let name = one.of.problem.graph().name();
        let function = places.map_or(name, |all| &all.name);
        of_loop(one, place).into_iter().map(|one| one.of(function)).collect::<Vec<_>>()
    };
    all.iter().enumerate().flat_map(one).collect()
}

fn of_loop(one: &Explained, place: Place) -> Vec<Annotation> {
    let (problem, explanation) = (&one.of.problem, &one.explanation);
    let sentences = explanation_sentences(problem, explanation);
    let name = problem.graph().name();
    let rule = match one.status {
        Status::Optimal => OPTIMAL,
        Status::Feasible | Status::Unknown => NOT_PROVED,
        Status::Infeasible => INFEASIBLE,
    };
    let why = sentences.infeasible.unwrap_or_else(|| sentences.bound.clone());
    let lines = lines(problem, &explanation.lower_bound.kind);
    let mut main = Annotation::new(rule, place.clone(), format!("{name}: {}\n{why}", sentences.status));
    main.related = lines.iter().map(|(place, names)| (place.clone(), names.join(", "))).collect();
    let mut all = vec![main];
    for (at, names) in lines.iter().take(MOST_LINES) {
        all.push(Annotation::new(BOUND, at.clone(), format!("{} of {name}: {}", names.join(", "), sentences.bound)));
    }
    let told = |rule, text: String| Annotation::new(rule, place.clone(), format!("{name}: {text}"));
    all.extend(sentences.conflict.map(|text| told(CONFLICT, text)));
    if !sentences.shorter.is_empty() {
        all.push(told(SHORTER, sentences.shorter.join("\n")));
    }
    all
}

/// Where the operations of a bound stand: one place each line, in the order of the text.
fn lines(problem: &Problem, kind: &LowerBoundKind) -> Vec<(Place, Vec<String>)> {
    let names: &[String] = match kind {
        LowerBoundKind::Resource { operations, .. }
        | LowerBoundKind::SharedBandwidth { operations, .. }
        | LowerBoundKind::Recurrence { operations, .. } => operations,
        LowerBoundKind::Operation { operation, .. } => std::slice::from_ref(operation),
        LowerBoundKind::GroupWork { .. } | LowerBoundKind::Trivial | LowerBoundKind::Search { .. } => &[],
    };
    let mut by_line: BTreeMap<Place, Vec<String>> = BTreeMap::new();
    for operation in problem.graph().operations().iter().filter(|operation| names.contains(&operation.name)) {
        if let Some(source) = &operation.source {
            let place = Place { column: None, ..Place::of(source) };
            by_line.entry(place).or_default().push(operation.name.clone());
        }
    }
    by_line.into_iter().collect()
}
