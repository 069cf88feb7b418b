//! The bytes that an iteration moves through shared memory take no longer than the interval. Nothing is unknown in it.

use crate::model::Model;
use crate::term::Term;

pub(super) fn write(m: &mut Model) {
    let problem = m.problem;
    let Some(rate) = problem.resources().shared_bytes_per_cycle else { return };
    let bytes: u128 = problem.graph().operations().iter().map(|op| u128::from(op.traffic.shared.0)).sum();
    let room = u128::from(rate.0) * u128::from(m.interval.unsigned_abs());
    m.script.comment(&format!(
        "\nbandwidth: an iteration moves {bytes} bytes through shared memory, of which an interval has time for {room}."
    ));
    m.script.assert("bandwidth: shared memory", [Term::Known(bytes <= room)]);
}
