//! From proved warp programs to the text of a kernel, and the folder that it is run from.

pub mod cuda;
mod cursors;
mod form;
pub mod gluon;
mod layout;
mod listing;
