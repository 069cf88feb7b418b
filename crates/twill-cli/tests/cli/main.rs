//! Tests of the command, a module for each file. They are one program, because each program links all of Twill.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod ablations;
mod annotations;
mod bad_input;
mod certificates;
mod check_perf;
mod cluster;
mod common;
mod compile;
mod compile_blackwell;
mod compile_blackwell_cuda;
mod compile_pointers;
mod coverage;
mod explain;
mod fit;
mod formats;
mod gaus;
mod gaus_exact;
mod known_answers;
mod known_answers_blackwell;
mod known_answers_published;
mod lint;
mod machine;
mod manual;
mod retile_loop;
mod wave_sync;

mod pictures;
mod python_source;
mod report;
mod report_open;
mod sibling_kernels;
mod siblings;
mod smtlib;
mod text;
mod tiles;
mod top;
mod trace;
