//! An explanation as text: what bounds the interval, what excludes smaller ones, what would change it.

mod amounts;
mod what_if;

use crate::ink::{Ink, Line, Page};
use crate::words;
use std::collections::{BTreeMap, BTreeSet};
use twill_graph::{
    Cycles, ExplainedRejection, Explanation, Family, IterationTraffic, LowerBound, LowerBoundKind, Member, Problem,
    RejectionReason, Source, Status,
};

/// Most violations of one family that are shown.
const MOST_BREACHES: usize = 2;

/// Writes an explanation.
pub(crate) fn write(page: &mut Page, problem: &Problem, explanation: &Explanation) {
    let lines = Lines::of(problem);
    let title =
        Line::of(problem.graph().name(), Ink::Bold).and(&format!(" on {}", problem.resources().name), Ink::Plain);
    page.line(&title);
    status(page, problem, explanation);
    let bound = &explanation.lower_bound;
    page.paragraph(0, &format!("Bound: {}.", words::bounded(&lines.named(bound))), Ink::Plain);
    if let Some(file) = &lines.file {
        page.paragraph(0, &format!("Numbers after operations are lines of {file}."), Ink::Dim);
    }
    if let Some((last, smaller)) = explanation.rejections.split_last() {
        page.heading(&format!("Why not {}", interval(last)));
        for Sentence { indent, text, ink } in rejection(last, &lines) {
            page.paragraph(indent, &text, ink);
        }
        others(page, smaller);
    }
    what_if::write(page, explanation, &lines);
    traffic(page, problem);
}

/// The bytes and FLOP of an iteration, which cost energy under every schedule.
fn traffic(page: &mut Page, problem: &Problem) {
    let traffic = problem.graph().traffic();
    if traffic == IterationTraffic::default() {
        return;
    }
    let IterationTraffic { shared, mma_operands, global, flop } = traffic;
    page.heading("Traffic of an iteration");
    let text = format!(
        "Shared memory {} bytes, of which operands of MMAs {}; from and to the L2 cache {} bytes; {} FLOP.",
        words::grouped(shared.0),
        words::grouped(mma_operands.0),
        words::grouped(global.0),
        words::grouped(flop)
    );
    page.paragraph(2, &text, Ink::Plain);
}

/// An explanation in sentences, for annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplanationSentences {
    /// What is known of the interval.
    pub status: String,
    /// Why there is no schedule, where that is proved.
    pub infeasible: Option<String>,
    /// The bound, with its operations.
    pub bound: String,
    /// Which constraints exclude the next smaller interval, where that took a search.
    pub conflict: Option<String>,
    /// Changes that make the interval shorter, and the interval then.
    pub shorter: Vec<String>,
}

/// An explanation in sentences, for annotations.
pub fn explanation_sentences(problem: &Problem, explanation: &Explanation) -> ExplanationSentences {
    let lines = Lines::of(problem);
    let conflict = explanation.rejections.last().map(|last| {
        let excluded = format!("{} is excluded by {}", interval(last), members(last));
        let sentences = rejection(last, &lines).into_iter().filter(|s| s.indent <= 2);
        std::iter::once(excluded + ".").chain(sentences.map(|s| s.text)).collect::<Vec<_>>().join(" ")
    });
    let changes = what_if::sentences(explanation, &lines);
    let shorter = explanation.what_ifs.iter().zip(changes).filter(|(one, _)| one.percent.is_some_and(|p| p < 0.0));
    ExplanationSentences {
        status: known(problem, explanation).0,
        infeasible: explanation.infeasible.as_ref().map(words::rejection),
        bound: words::bounded(&lines.named(&explanation.lower_bound)),
        conflict,
        shorter: shorter.map(|(_, (change, answer))| format!("{change}: {answer}")).collect(),
    }
}

fn status(page: &mut Page, problem: &Problem, explanation: &Explanation) {
    let (text, ink) = known(problem, explanation);
    page.paragraph(0, &text, ink);
}

fn known(problem: &Problem, explanation: &Explanation) -> (String, Ink) {
    let lower = words::grouped(explanation.lower_bound.interval.0);
    match (explanation.status, explanation.interval) {
        (Status::Optimal, Some(i)) => {
            (format!("I = {} ({})", words::count(i.0, "cycle"), words::optimal(problem)), Ink::Good)
        }
        (_, Some(i)) => (format!("I = {} (at least {lower} is proved)", words::count(i.0, "cycle")), Ink::Hue(1)),
        (Status::Infeasible, None) => match &explanation.infeasible {
            Some(RejectionReason::Exhausted { largest, all: false }) => {
                (format!("No schedule exists with I <= {} (infeasible: proved)", words::grouped(largest.0)), Ink::Bad)
            }
            _ => (words::nothing_exists(problem), Ink::Bad),
        },
        (_, None) => ("No schedule was found (unknown)".to_owned(), Ink::Bad),
    }
}

/// The exclusions of intervals, in words and in their order: each range with who takes part, and the largest interval
/// in full.
pub(crate) fn rejected(problem: &Problem, explanation: &Explanation) -> Vec<(String, String)> {
    let Some((last, smaller)) = explanation.rejections.split_last() else { return Vec::new() };
    let text: Vec<String> = rejection(last, &Lines::of(problem)).into_iter().map(|s| s.text).collect();
    let mut all = ranges(smaller);
    all.push((interval(last), text.join("\n")));
    all
}

/// Changes and what they would bring, in words.
pub(crate) fn what_ifs(problem: &Problem, explanation: &Explanation) -> Vec<(String, String)> {
    what_if::sentences(explanation, &Lines::of(problem))
}

fn interval(explained: &ExplainedRejection) -> String {
    format!("I = {}", words::grouped(explained.rejection.interval.0))
}

/// A paragraph.
struct Sentence {
    indent: usize,
    text: String,
    ink: Ink,
}

/// The largest excluded interval, in full.
fn rejection(explained: &ExplainedRejection, lines: &Lines) -> Vec<Sentence> {
    let mut told = Vec::new();
    let mut tell = |indent, text, ink| told.push(Sentence { indent, text, ink });
    if let Some(bound) = &explained.bound {
        tell(2, format!("{}.", words::bounded(&lines.named(bound))), Ink::Plain);
    }
    let stages = match explained.rejection.stages {
        None => "any number of stages".to_owned(),
        Some(n) => format!("up to {}", words::count(n, "stage")),
    };
    let members = &explained.conflict.members;
    let together = match (members.len(), explained.conflict.minimal) {
        (1, _) => "no schedule keeps this constraint".to_owned(),
        (2, true) => "no schedule keeps both of these constraints, and each is needed for that".to_owned(),
        (n, true) => format!("no schedule keeps all {n} of these constraints, and each is needed for that"),
        (_, false) => "no schedule keeps all of these constraints; perhaps not each is needed for that".to_owned(),
    };
    let smaller = if explained.smaller_too { " or at any smaller interval" } else { "" };
    tell(2, format!("Here{smaller}, with {stages}, {together} (proved):"), Ink::Plain);
    for member in members {
        tell_member(&mut tell, member, lines);
    }
    told
}

fn tell_member(tell: &mut impl FnMut(usize, String, Ink), member: &Member, lines: &Lines) {
    let name = match &member.unit {
        Some(unit) => format!("{} {unit}", member.family),
        None => member.family.to_string(),
    };
    let mut text = format!("{name}: {}", meaning(member.family));
    for demand in &member.demands {
        text += &format!("; {}", amounts::demand(demand));
    }
    if member.suffices == Some(false) {
        text += ". Without it alone there is still no schedule";
    }
    tell(2, text + ".", Ink::Plain);
    if member.breaches.is_empty() {
        return;
    }
    let lead = match member.suffices {
        Some(true) => "Without it",
        _ => "Without it and what is not listed",
    };
    let shown = if member.family == Family::Dependence { 1 } else { MOST_BREACHES };
    let more = member.breaches.len().saturating_sub(shown);
    for (i, breach) in member.breaches.iter().take(shown).enumerate() {
        let lead = if i == 0 { format!("{lead}: ") } else { String::new() };
        let more = if more > 0 && i + 1 == shown { format!("; and {more} more") } else { String::new() };
        tell(6, format!("{lead}{}{more}.", lines.replace(&breach.violation)), Ink::Dim);
    }
}

/// A family of constraints, in short.
fn meaning(family: Family) -> &'static str {
    match family {
        Family::Dependence => "results are there when they are read",
        Family::Resource => "it is held by no more operations at once than it has instances",
        Family::Bandwidth => "shared memory moves no more bytes in an interval than it can",
        Family::Assignment => "operations run on groups that may run them",
        Family::Handoff => "passing a register value to another group takes time",
        Family::Concurrency => "a wait stalls its warp group",
        Family::Exclusive => "a group executes one synchronous operation at a time",
        Family::Registers => "live values fit the registers",
        Family::SharedMemory => "rings, values and handoff buffers fit shared memory",
        Family::TensorMemory => "live values fit tensor memory",
    }
}

/// The smaller intervals that were asked about: who takes part.
fn others(page: &mut Page, smaller: &[ExplainedRejection]) {
    if smaller.is_empty() {
        return;
    }
    page.heading("Smaller intervals that were asked about");
    for (intervals, members) in ranges(smaller) {
        page.paragraph(2, &format!("{intervals}: {members}."), Ink::Plain);
    }
}

/// Neighbouring intervals with the same members.
fn ranges(smaller: &[ExplainedRejection]) -> Vec<(String, String)> {
    let mut ranges: BTreeMap<usize, (Cycles, Cycles, usize)> = BTreeMap::new();
    let mut sets: Vec<String> = Vec::new();
    for one in smaller {
        let set = members(one);
        if sets.last() != Some(&set) {
            sets.push(set);
        }
        let interval = one.rejection.interval;
        let range = ranges.entry(sets.len() - 1).or_insert((interval, interval, 0));
        range.1 = interval;
        range.2 += 1;
    }
    let told = |(set, (first, last, count)): (usize, (Cycles, Cycles, usize))| {
        let (first, last) = (words::grouped(first.0), words::grouped(last.0));
        let interval = if count == 1 { format!("I = {first}") } else { format!("{count} of I = {first} to {last}") };
        (interval, sets[set].clone())
    };
    ranges.into_iter().map(told).collect()
}

fn members(explained: &ExplainedRejection) -> String {
    let name = |m: &Member| m.unit.as_ref().map_or_else(|| m.family.to_string(), |u| format!("{} {u}", m.family));
    let names: Vec<String> = explained.conflict.members.iter().map(name).collect();
    let minimal = if explained.conflict.minimal { "" } else { " (not proved minimal)" };
    names.join(", ") + minimal
}

/// Where operations stand in the kernel.
struct Lines {
    /// The file that all lines are of, if there is one.
    file: Option<String>,
    of: BTreeMap<String, String>,
}

impl Lines {
    fn of(problem: &Problem) -> Lines {
        let sources = || problem.graph().operations().iter().filter_map(|op| Some((op, op.source.as_ref()?)));
        let files: BTreeSet<&str> = sources().map(|(_, s)| s.file.as_str()).collect();
        let file = files.first().filter(|_| files.len() == 1).map(|f| base(f));
        let place = |s: &Source| match &file {
            Some(_) => s.line.to_string(),
            None => format!("{}:{}", base(&s.file), s.line),
        };
        let of = sources().map(|(op, s)| (op.name.clone(), place(s))).collect();
        Lines { file, of }
    }

    /// An operation's name with its line.
    fn name(&self, operation: &str) -> String {
        self.of.get(operation).map_or_else(|| operation.to_owned(), |line| format!("{operation} ({line})"))
    }

    /// A bound whose operations are named with their lines.
    fn named(&self, bound: &LowerBound) -> LowerBound {
        let mut bound = bound.clone();
        match &mut bound.kind {
            LowerBoundKind::Resource { operations, .. }
            | LowerBoundKind::SharedBandwidth { operations, .. }
            | LowerBoundKind::Recurrence { operations, .. } => {
                operations.iter_mut().for_each(|op| *op = self.name(op));
            }
            LowerBoundKind::Operation { operation, .. } => *operation = self.name(operation),
            LowerBoundKind::GroupWork { .. } | LowerBoundKind::Trivial | LowerBoundKind::Search { .. } => {}
        }
        bound
    }

    /// A text in which operations stand between backquotes, with their lines instead.
    fn replace(&self, text: &str) -> String {
        let part = |(i, part): (usize, &str)| if i % 2 == 1 { self.name(part) } else { part.to_owned() };
        text.split('`').enumerate().map(part).collect()
    }
}

fn base(file: &str) -> String {
    file.rsplit(['/', '\\']).next().unwrap_or(file).to_owned()
}
