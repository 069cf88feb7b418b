//! From slots to times: stages, and operations without a limit, as early as dependences allow.

use super::net::{Net, length};
use super::query::Slots;
use std::collections::{HashMap, HashSet};
use twill_graph::{Cycles, IssueTimes};

/// The earliest times with these slots. Operations that are free take the first slot with room.
pub(crate) fn place(net: &Net, interval: i64, slots: &Slots) -> IssueTimes {
    let problem = net.problem;
    let mut relative: Vec<Option<i64>> = vec![None; problem.operations().len()];
    let mut taken: HashMap<(usize, i64), u32> = HashMap::new();
    for &(v, time) in &slots.times {
        relative[v] = Some(time);
        let resource = problem.operations()[v].resource.index();
        for k in 0..i64::from(problem.resources()[resource].blocking) {
            *taken.entry((resource, (time + k).rem_euclid(interval))).or_default() += 1;
        }
    }
    let free: HashSet<usize> = slots.free.iter().copied().collect();
    let mut times = vec![0; problem.operations().len()];
    for (component, members) in net.components.iter().enumerate() {
        net.settle(component, interval, &mut times);
        // The whole component moves by intervals until all its dependences hold.
        let fixed = || members.iter().filter_map(|&v| Some((v, relative[v]?)));
        let needed = fixed().map(|(v, at)| Cycles(times[v] - at).div_ceil(Cycles(interval))).max();
        if let Some(stages) = needed {
            fixed().for_each(|(v, at)| times[v] = at + stages * interval);
            net.settle(component, interval, &mut times);
        }
        for &v in members.iter().filter(|v| free.contains(v)) {
            let resource = problem.operations()[v].resource.index();
            let limit = problem.resources()[resource].limit.unwrap_or(u32::MAX);
            let room = |time: &i64| taken.get(&(resource, time.rem_euclid(interval))).is_none_or(|&n| n < limit);
            // The interval is not below the resource bound, so there is room somewhere.
            times[v] = (times[v]..times[v] + interval).find(room).unwrap_or(times[v]);
            *taken.entry((resource, times[v].rem_euclid(interval))).or_default() += 1;
            // Its successors may have no limit and be in the same component.
            net.settle(component, interval, &mut times);
        }
        for d in members.iter().flat_map(|&v| &net.leaving[v]).filter(|d| net.component[d.to.index()] != component) {
            let to = d.to.index();
            times[to] = times[to].max(times[d.from.index()] + length(d, interval));
        }
    }
    let earliest = times.iter().copied().min().unwrap_or(0);
    IssueTimes { interval: Cycles(interval), times: times.into_iter().map(|t| Cycles(t - earliest)).collect() }
}
