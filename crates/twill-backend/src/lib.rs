//! From proved warp programs to the text of a kernel, and the folder that it is run from.

pub mod cuda;
mod cursors;
mod dead_code;
mod dead_products;
mod form;
pub mod gluon;
mod header;
mod layout;
mod listing;
pub mod package;

pub use header::Header;
pub use listing::Listing;
