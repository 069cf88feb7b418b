//! From a Triton kernel, as MLIR text, to what the rest of Twill schedules.
//!
//! The first station is [`mlir`]: the text of a kernel in Triton's intermediate representation (TTIR) becomes a
//! module of operations and values that remember their place in the Python source.

pub mod mlir;
