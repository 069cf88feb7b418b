//! What the playground asks of Twill (`docs/playground.md`): text in, text out, in the worker of a web page.
//!
//! A [`Question`] is an input, a machine with changes, and options by keywords; the answer is the data of the page that
//! `twill report` draws, or an error in words. Both are JSON. The same stages answer here as in the command.

mod ask;
mod binding;
mod machines;
mod question;

pub use ask::{answer, examples};
pub use machines::machines;
pub use question::{MachineChanges, Question};
