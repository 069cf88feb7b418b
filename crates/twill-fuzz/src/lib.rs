//! Generators and checks for fuzzing, in the manner of regalloc2: what is worth trying stands here, one module a target;
//! the programs of `fuzz/` only hand it the bytes of libFuzzer.
//!
//! A target takes bytes, makes an input of them, asks Twill, and compares the answer with something that shares no code
//! with what is tested. A disagreement is a failed assertion. The same bytes are the same input on every machine.
//!
//! | target | question | what must hold |
//! |---|---|---|
//! | [`ttir`] | texts of kernels, changed and unchanged | an answer or an error; read, written in the generic form and read again, they are the same |
//! | [`graph_file`] | graph, schedule and certificate files | the same; what is written is read as what it was |
//! | [`machine_file`] | machine files | the same |
//! | [`benchmark_file`] | the formats of scheduling benchmarks | the same |
//! | [`optimum`] | the exact engine, on small problems | interval and all objectives are those that [`brute`] finds by trying everything |
//! | [`certificate`] | its certificates, whole and changed | whole ones hold; what a changed one is taken to prove is true by brute force |
//! | [`clause`] | single clauses of certificates, changed by a little | those that the checker accepts are true of a schedule |
//! | [`replay`] | the checker, on the engine's schedules, whole and changed | it rejects what breaks the model, read word by word, and nothing else |
//! | [`gaus`] | the scheduler for large graphs, on small ones | its schedules are legal by the checker and no better than its own bounds |
//! | [`warp_programs`] | the generators, on random kernels | the protocol checker proves the programs, and in every interleaving they compute what the TTIR says |
//!
//! The word-by-word implementation of `docs/model.md` is `twill-reference`, which the checker's own
//! tests use too.
//!
//! ```
//! // What libFuzzer would do with bytes of its own choice.
//! for seed in 0..3 {
//!     twill_fuzz::target("machine_file").unwrap().run(&twill_fuzz::input(seed, 200));
//! }
//! ```

pub mod benchmark_file;
pub mod brute;
pub mod cases;
pub mod certificate;
mod change;
pub mod clause;
pub mod gaus;
pub mod graph_file;
pub mod machine_file;
pub mod optimum;
pub mod replay;
mod sample;
mod tape;
pub mod ttir;
pub mod warp_programs;

use twill_graph::SplitMix64;

/// A check that eats bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, that of its module and of its program in `fuzz/`.
    pub name: &'static str,
    /// A description for people.
    pub tries: &'static str,
    /// How many bytes make a full input.
    pub bytes: usize,
    check: fn(&[u8]),
}

impl Target {
    /// Makes an input of `bytes` and checks it.
    ///
    /// # Panics
    /// When something does not hold.
    pub fn run(&self, bytes: &[u8]) {
        (self.check)(bytes);
    }
}

/// All targets.
pub const TARGETS: [Target; 10] = [
    Target { name: "ttir", tries: "reading TTIR, custom and generic", bytes: 120, check: ttir::check },
    Target {
        name: "graph_file",
        tries: "reading graphs, schedules, certificates",
        bytes: 160,
        check: graph_file::check,
    },
    Target { name: "machine_file", tries: "reading machine files", bytes: 120, check: machine_file::check },
    Target { name: "benchmark_file", tries: "reading benchmarks' formats", bytes: 120, check: benchmark_file::check },
    Target {
        name: "optimum",
        tries: "exact engine = brute force",
        bytes: 240,
        check: |bytes| {
            optimum::check(bytes);
        },
    },
    Target {
        name: "certificate",
        tries: "certificates, whole and changed",
        bytes: 320,
        check: |bytes| {
            certificate::check(bytes);
        },
    },
    Target {
        name: "clause",
        tries: "single clauses of certificates",
        bytes: 480,
        check: |bytes| {
            clause::check(bytes);
        },
    },
    Target {
        name: "replay",
        tries: "the checker on changed schedules",
        bytes: 320,
        check: |bytes| {
            replay::check(bytes);
        },
    },
    Target { name: "gaus", tries: "legal schedules of GauS", bytes: 200, check: gaus::check },
    Target {
        name: "warp_programs",
        tries: "generated warp programs on numbers",
        bytes: 512,
        check: warp_programs::check,
    },
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// N random bytes, the same for the same seed.
pub fn input(seed: u64, length: usize) -> Vec<u8> {
    let mut chance = SplitMix64::new(seed);
    (0..length).map(|_| chance.next_number() as u8).collect()
}
