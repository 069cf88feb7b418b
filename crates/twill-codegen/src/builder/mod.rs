//! What passes share while a warp program is built.

pub(crate) mod apply;
pub(crate) mod bases;
pub(crate) mod carried;
pub(crate) mod declarations;
pub(crate) mod descriptors;
pub(crate) mod early_returns;
pub(crate) mod enclosing;
pub(crate) mod group;
pub(crate) mod invariant_tiles;
pub(crate) mod kernel;
pub(crate) mod opaque;
pub(crate) mod partials;
pub(crate) mod planned;
pub(crate) mod reader;
pub(crate) mod recurrences;
pub(crate) mod source;
mod tile_origin;
pub(crate) mod transcribed;
pub(crate) mod views;
mod written;
