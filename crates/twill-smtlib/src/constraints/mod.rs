//! The constraints of docs/model.md, one a file: its statement and its assertions.

mod assignment;
mod bandwidth;
mod concurrency;
mod dependence;
mod exclusive;
mod handoff;
mod issue;
mod registers;
mod resource;
mod shared_memory;
mod symmetry;
mod tensor_memory;

use crate::model::Model;

/// All of them.
pub(crate) fn write(m: &mut Model) {
    issue::write(m);
    if !issue::possible(m) {
        // Nothing else can be said where an operation has no cycle at all.
        return;
    }
    assignment::write(m);
    symmetry::write(m);
    dependence::write(m);
    resource::write(m);
    bandwidth::write(m);
    handoff::write(m);
    concurrency::write(m);
    exclusive::write(m);
    registers::write(m);
    shared_memory::write(m);
    tensor_memory::write(m);
}
