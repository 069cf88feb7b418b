//! A kernel that could be written: its specification, what was lowered, what the assembler said.

use super::schedules::KernelSchedules;
use super::thresholds::THRESHOLDS;
use super::written::{Files, lines, signature, written};
use super::{CompileOptions, Language, TraceOptions};
use crate::{Error, LoopProblem, Loops};
use std::sync::Arc;
use twill_backend::Header;
use twill_backend::package::{self, Assembly, Signature, Simulated};
use twill_codegen::Checked;
use twill_graph::Status;
use twill_graph::saturate;
use twill_machine::Machine;

/// A kernel that could be written.
pub(super) struct Candidate {
    /// The schedule, and what it is written for.
    pub(super) spec: CandidateSpec,
    /// What became of it.
    pub(super) lowered: LoweredKernel,
    /// What it was lowered from; none of a kernel in order.
    pub(super) scheduled: Option<Arc<Scheduled>>,
    /// What the assembler made of it, if it was requested.
    pub(super) assembly: Option<Assembly>,
    /// Whether a simulation of warp programs is all that it was preferred to others for.
    pub(super) by_simulation: bool,
    /// Whether other schedules of its interval were looked at.
    pub(super) is_compared: bool,
    /// Of several loops, kernels of other schedules of the same intervals, among themselves the fewest cycles by simulation first.
    pub(super) others: Vec<Candidate>,
}

/// Loops and their schedules, from which code is generated, also in another way.
pub(super) struct Scheduled {
    /// What it was lowered with.
    pub(super) options: CompileOptions,
    pub(super) problems: Loops<LoopProblem>,
    pub(super) found: KernelSchedules,
}

/// The schedule of a candidate, and what it is written for.
#[derive(Clone)]
pub(super) struct CandidateSpec {
    /// What it is for.
    pub(super) machine: Machine,
    /// What it is written in.
    pub(super) language: Language,
    /// What its head says, and by loop what is known of its schedule.
    pub(super) header: Header,
    /// By loop, the names of its operations.
    pub(super) operations: Vec<Vec<String>>,
    /// The file of its schedule.
    pub(super) schedule: String,
    /// Most registers that the schedule grants a thread.
    pub(super) granted: u32,
    /// Whether it was searched for again and preferred to what was found first.
    pub(super) preferred: bool,
}

/// What a candidate's schedule became.
pub(super) struct LoweredKernel {
    /// The warp programs, their barriers proved.
    pub(super) program: Checked,
    /// By simulation; none where programs like these are not simulated.
    pub(super) simulated: Option<Simulated>,
    /// The kernel in its language.
    pub(super) source: String,
    /// What its language needs besides.
    pub(super) companions: Files,
    signature: Signature,
    test: String,
}

/// What came of an attempt.
pub(super) enum Attempt {
    Made(Box<Candidate>),
    /// There is no schedule to generate code for.
    Nothing(Status),
}

impl LoweredKernel {
    /// Warp programs as source in the language that is asked for.
    pub(super) fn new(
        spec: &CandidateSpec,
        program: Checked,
        simulated: Option<Simulated>,
    ) -> Result<LoweredKernel, twill_codegen::Error> {
        let CandidateSpec { language, header, operations, .. } = spec;
        let (listing, companions) = written(*language, &program, header)?;
        let signature = signature(*language, &program, header)?;
        let signature = signature.with_lines(lines(&listing, operations)).with_simulated(simulated.clone());
        let test = package::test(&program);
        Ok(LoweredKernel { program, simulated, source: listing.text, companions, signature, test })
    }
}

impl Candidate {
    /// A kernel that nobody has assembled or compared.
    pub(super) fn new(spec: CandidateSpec, lowered: LoweredKernel) -> Candidate {
        Candidate {
            spec,
            lowered,
            scheduled: None,
            assembly: None,
            by_simulation: false,
            is_compared: false,
            others: Vec::new(),
        }
    }

    /// The same kernel, recording the time of the last iterations of a tile.
    pub(super) fn traced(self, trace: TraceOptions, input: &str) -> Result<Candidate, Error> {
        let emitted = |error| Error::Emit { input: input.to_owned(), error: Box::new(error) };
        let Candidate { spec, lowered, .. } = self;
        let program = lowered.program.traced(trace.iterations, trace.detail.into());
        let lowered = LoweredKernel::new(&spec, program, lowered.simulated).map_err(emitted)?;
        Ok(Candidate::new(spec, lowered))
    }

    /// What is assembled: where a kernel that differs little has its barriers, they are looked for first, which saves a
    /// compilation if they are there.
    pub(super) fn files_like(&self, other: &Candidate) -> Files {
        let barriers_at = other.assembly.as_ref().map_or(-1, |assembly| assembly.barriers_at);
        let mut files = self.files();
        for (name, text) in &mut files {
            if *name == "kernel.json" {
                *text = self.lowered.signature.clone().with_barriers_at(barriers_at).to_json();
            }
        }
        files
    }

    /// All files of its folder.
    pub(super) fn files(&self) -> Files {
        let lowered = &self.lowered;
        let signature = match &self.assembly {
            Some(assembly) => lowered.signature.clone().with_assembly(assembly.clone(), self.sass_estimate()),
            None => lowered.signature.clone(),
        };
        let mut files = vec![
            (self.spec.language.file(), lowered.source.clone()),
            ("kernel.json", signature.to_json()),
            ("schedule.json", self.spec.schedule.clone()),
            ("launch.py", package::LAUNCHER.to_owned()),
            ("machine_code.py", package::MACHINE_CODE.to_owned()),
            ("test_kernel.py", lowered.test.clone()),
        ];
        files.extend(lowered.companions.iter().cloned());
        files
    }

    /// Values that a group keeps in memory for want of registers, at least.
    pub(super) fn spilled_by(&self, group: &str) -> u32 {
        self.assembly.as_ref().map_or(0, |assembly| assembly.spilled_by(group))
    }

    /// The most values that a group that computes keeps there.
    pub(super) fn spilled_by_computing(&self) -> u32 {
        let groups = self.lowered.program.groups.iter().filter(|group| group.name.starts_with("compute"));
        groups.map(|group| self.spilled_by(&group.name)).max().unwrap_or(0)
    }

    /// Whether these are so many that another order of the same overlap does not help.
    pub(super) fn is_far_short(&self) -> bool {
        self.spilled_by_computing() >= THRESHOLDS.far_short
    }

    /// Instructions of a group that read what was spilled.
    pub(super) fn reloaded_by(&self, group: &str) -> u32 {
        let groups = self.assembly.iter().flat_map(|assembly| &assembly.groups);
        groups.filter(|own| own.name == group).map(|own| own.local_loads).sum()
    }

    /// Why its machine code must not run.
    pub(super) fn unusable(&self) -> Option<String> {
        self.assembly.as_ref().and_then(Assembly::unusable)
    }

    /// Whether registers do not suffice for it.
    pub(super) fn is_short_of_registers(&self) -> bool {
        self.assembly.as_ref().is_some_and(Assembly::is_short_of_registers)
    }

    /// Warp groups of it that compute.
    pub(super) fn compute_groups(&self) -> u32 {
        // Groups that copy have four warps as well.
        let groups = self.lowered.program.groups.iter().filter(|group| group.name != "load" && group.warps >= 4);
        saturate(groups.count())
    }
}
