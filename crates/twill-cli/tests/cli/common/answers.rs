//! Schedules as the command answers them.

use crate::common::{stderr, stdout, twill};
use twill_graph::format::ScheduleFile;
use twill_graph::{GroupRole, Status};

/// The exit code and the schedule of `twill schedule` with these arguments.
pub fn schedule(arguments: &[&str]) -> (i32, ScheduleFile) {
    let output = twill(&[&["schedule", "--format", "json"], arguments].concat());
    let code = output.status.code().unwrap();
    assert!(code != 1, "{}", stderr(&output));
    (code, ScheduleFile::from_json(&stdout(&output), "stdout").unwrap())
}

/// A schedule that is proved to be optimal on every level.
pub fn optimal(arguments: &[&str]) -> ScheduleFile {
    let (code, file) = schedule(arguments);
    assert_eq!((code, file.status), (0, Status::Optimal), "{arguments:?}");
    assert!(file.objectives.iter().all(|o| o.proved), "{:?}", file.objectives);
    file
}

/// Initiation interval, length, stages.
pub fn shape(file: &ScheduleFile) -> (i64, i64, u32) {
    (file.initiation_interval.unwrap().0, file.length.unwrap().0, file.stages.unwrap())
}

/// Compute groups in use.
pub fn compute_groups(file: &ScheduleFile) -> usize {
    file.groups.iter().filter(|g| g.role == GroupRole::Compute).count()
}
