//! Channels between groups.

use crate::support::{accepted, blackwell, problem, rejected, schedule};
use serde_json::json;
use twill_check::Constraint::Channels;
use twill_graph::{Bytes, Channel, ChannelStorage, GroupId, OpId, Problem, Schedule};

/// A load (ring), a dot into tensor memory, a tile in registers and one in shared memory, each
/// read elsewhere.
fn all_kinds() -> (Problem, Schedule) {
    let problem = problem(
        blackwell(),
        json!([
            {"name": "load", "units": [{"unit": "tma", "cycles": 2}], "execution": "asynchronous", "issue_width": 1,
             "result": {"shared_memory": 64}, "variable_latency": true, "streaming": true, "transfer_latency": 17},
            {"name": "dot", "units": [{"unit": "tensor", "cycles": 4}], "execution": "asynchronous", "issue_width": 1,
             "result": {"tensor_memory": 100}},
            {"name": "exp", "units": [{"unit": "xu", "cycles": 3}], "result": {"registers": 128}, "handoff": 2},
            {"name": "cast", "units": [{"unit": "alu", "cycles": 3}], "result": {"shared_memory": 256}},
            {"name": "sum", "units": [{"unit": "fma", "cycles": 4}]}
        ]),
        json!([
            {"from": "load", "to": "dot"}, {"from": "dot", "to": "exp", "hold": 3}, {"from": "exp", "to": "cast"},
            {"from": "cast", "to": "dot", "distance": 1}, {"from": "exp", "to": "sum"}
        ]),
    );
    // load: ⌈(17 + 4) / 8⌉ = 3; dot: [0, 4 + 3); exp: [4, 13 + 4) to two groups; cast [10, 16 + 4).
    let schedule = schedule(&problem, 16, &[(0, 0), (0, 1), (4, 2), (10, 3), (13, 4)]);
    let depths: Vec<u32> = schedule.channels.iter().map(|c| c.depth).collect();
    assert_eq!(depths, [2, 1, 1, 1, 1]);
    (problem, schedule)
}

fn broken(change: impl FnOnce(&mut Schedule), message: &str) {
    let (problem, mut schedule) = all_kinds();
    change(&mut schedule);
    rejected(&problem, schedule, Channels, &[message]);
}

#[test]
fn every_pair_of_value_and_group_has_one() {
    let (problem, mut schedule) = all_kinds();
    accepted(&problem, schedule.clone());
    schedule.channels.reverse();
    accepted(&problem, schedule);
    broken(
        |s| s.channels.retain(|c| c.to != GroupId::new(3)),
        "`exp` passes from group 2 to group 3 without a channel",
    );
    broken(
        |s| s.channels.retain(|c| c.value != OpId::new(0)),
        "`load` passes from group 0 to group 1 without a channel",
    );
}

#[test]
fn nothing_else_has_one() {
    let twice = "the channel of `exp` from group 2 to group 4 is listed twice or nothing passes through it";
    broken(|s| s.channels.push(s.channels[3].clone()), twice);
    let extra = |value, from, to| {
        let (from, to) = (GroupId::new(from), GroupId::new(to));
        Channel { value: OpId::new(value), from, to, storage: ChannelStorage::Shared(Bytes(1)), depth: 1 }
    };
    let unread = "the channel of `sum` from group 4 to group 2 is listed twice or nothing passes through it";
    broken(|s| s.channels.push(extra(4, 4, 2)), unread);
    let unknown = "the channel of `#7` from group 4 to group 2 is listed twice or nothing passes through it";
    broken(|s| s.channels.push(extra(7, 4, 2)), unknown);
    let itself = "the channel of `exp` from group 2 to group 2 is listed twice or nothing passes through it";
    broken(|s| s.channels.push(extra(2, 2, 2)), itself);
}

#[test]
fn it_comes_from_the_group_of_its_value() {
    let (problem, mut schedule) = all_kinds();
    schedule.channels[1].from = GroupId::new(3);
    let messages = [
        "the channel of `dot` from group 3 to group 2 is listed twice or nothing passes through it",
        "`dot` passes from group 1 to group 2 without a channel",
    ];
    rejected(&problem, schedule, Channels, &messages);
}

#[test]
fn it_keeps_the_value_where_the_value_is() {
    broken(
        |s| s.channels[2].storage = ChannelStorage::Handoff(Bytes(511)),
        "the channel of `exp` to group 3 is listed with 511 bytes for handoff; it takes 512 bytes for handoff",
    );
    broken(
        |s| s.channels[1].storage = ChannelStorage::Shared(Bytes(100)),
        "the channel of `dot` to group 2 is listed with 100 bytes of shared memory; it takes 100 columns of tensor memory",
    );
    broken(
        |s| s.channels[4].storage = ChannelStorage::Handoff(Bytes(256)),
        "the channel of `cast` to group 1 is listed with 256 bytes for handoff; it takes 256 bytes of shared memory",
    );
}

#[test]
fn it_is_exactly_as_deep_as_copies_are_alive() {
    for (channel, value, to, right) in [(0, "load", 1, 2), (1, "dot", 2, 1), (2, "exp", 3, 1), (4, "cast", 1, 1)] {
        for wrong in [right - 1, right + 1] {
            let message = format!(
                "the channel of `{value}` to group {to} has depth {wrong}; at most {right} copies are alive at once"
            );
            broken(|s| s.channels[channel].depth = wrong, &message);
        }
    }
}

#[test]
fn lives_longer_than_the_interval_take_more_copies() {
    let (problem, _) = all_kinds();
    // exp's buffer is taken from 4 until sum ends 4 cycles after its issue.
    let late = |sum| schedule(&problem, 16, &[(0, 0), (0, 1), (4, 2), (10, 3), (sum, 4)]);
    for (sum, depth) in [(13, 1), (16, 1), (17, 2), (32, 2), (33, 3), (16 * 90 + 1, 91)] {
        let mut schedule = late(sum);
        accepted(&problem, schedule.clone());
        assert_eq!((schedule.channels[2].depth, schedule.channels[3].depth), (depth, depth));
        // Both groups share the copies.
        schedule.channels[2].depth += 1;
        let message = format!(
            "the channel of `exp` to group 3 has depth {}; at most {depth} copies are alive at once",
            depth + 1
        );
        rejected(&problem, schedule, Channels, &[&message]);
    }
}
