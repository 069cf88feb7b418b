//! Schedules that hold are accepted; broken in one way, they are rejected for that and nothing else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod assignment;
mod bandwidth;
mod brute_force;
mod channels;
mod concurrency;
mod dependence;
mod exclusive;
mod handoff;
mod multi_loop;
mod options;
mod pipeline;
mod reference;
mod registers;
mod resource;
mod rings;
mod scale;
mod shared_memory;
mod structure;
mod support;
mod tensor_memory;
