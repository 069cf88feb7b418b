//! From wishes to schedules that keep every rule.

mod eject;
mod settle;
mod table;

pub use eject::Preference;
pub(crate) use eject::{Ejection, eject};
pub use settle::Side;
pub(crate) use settle::settle;
pub(crate) use table::Table;
