//! The scheduling problem as text for any SMT solver: the paper's time-indexed formulation (Twill,
//! arXiv 2512.18134) of `docs/model.md`, at one initiation interval and a number of stages, in
//! SMT-LIB 2.6, logic QF_LIA.
//!
//! It states the problem anew, from the formulas alone, and shares nothing with `twill-exact`; so an
//! answer of that solver can be checked by another.
//!
//! ```
//! use twill_graph::{Cycles, ModelOptions, Problem, builtin, format::MachineReference};
//! use twill_smtlib::{Question, formulation};
//!
//! let toy = builtin::find("toy-attention").unwrap();
//! let Some(MachineReference::Resources(machine)) = toy.machine else { unreachable!() };
//! let problem = Problem::new(toy.graph, *machine, ModelOptions::default()).unwrap();
//! let text = formulation(&problem, &Question::new(Cycles(2), 2)).unwrap();
//! assert!(text.contains("(check-sat)")); // `z3 -in` answers sat
//! ```

mod constraints;
mod header;
mod life;
mod model;
mod names;
mod question;
mod script;
mod size;
mod term;

pub use question::{ExpectedStatus, FormulationError, Question};

use model::Model;
use twill_graph::Problem;

/// The question as an SMT-LIB 2 script.
///
/// # Errors
/// When the interval or the number of stages is not positive, or the text would be too large.
pub fn formulation(problem: &Problem, question: &Question) -> Result<String, FormulationError> {
    question.check()?;
    size::check(problem, question)?;
    let mut model = Model::new(problem, question);
    header::write(&mut model.script, problem, question);
    constraints::write(&mut model);
    header::end(&mut model.script);
    Ok(model.script.into_text())
}

#[cfg(test)]
mod tests;
