//! The `twill` command.
fn main() {}
