//! The meaning of dependences for slots at one interval.
//!
//! Within a strongly connected component any two operations bound each other from both sides. Between components they
//! do not: a component may be moved by any multiple of `I` without changing its slots. So slots are decided component by
//! component, and only the resources tie components together. Operations without a limit are projected away: what remains
//! of them are longest paths between limited ones.

use super::net::{Net, length};
use super::query::Verdict;
use crate::limits::Meter;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use twill_graph::OpId;

/// Limited operations that keep fixed distances from each other.
pub(crate) struct Class {
    /// Operations with their time relative to the class.
    pub(crate) members: Vec<(usize, i64)>,
    /// Least and largest time of the class.
    pub(crate) least: i64,
    pub(crate) largest: i64,
}

/// The classes of all components, with times relative to their component's pivot.
pub(crate) struct Reduced {
    pub(crate) classes: Vec<Class>,
    /// `t_to − t_from ≥ distance` between classes, where nothing else implies it.
    pub(crate) bounds: Vec<(usize, usize, i64)>,
    /// Limited operations in no cycle that hold their resource for one cycle: any slot with room will do.
    pub(crate) free: Vec<usize>,
}

/// Most limited operations of a component: their paths then take a gigabyte.
const LARGEST: usize = 10_000;

/// Reduces the loop at an interval at which no cycle is too long; `potentials` are its longest paths.
pub(crate) fn reduce(net: &Net, interval: i64, potentials: &[i64], meter: &Meter) -> Result<Reduced, Verdict> {
    let mut reduced = Reduced { classes: Vec::new(), bounds: Vec::new(), free: Vec::new() };
    let resource = |v: usize| net.problem.resource_of(OpId::new(v));
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (component, members) in net.components.iter().enumerate() {
        let limited: Vec<usize> = members.iter().copied().filter(|&v| resource(v).limit.is_some()).collect();
        match limited.as_slice() {
            [] => {}
            [one] if resource(*one).blocking == 1 => reduced.free.push(*one),
            _ => groups.push((component, limited)),
        }
    }
    // The pivot's slot of the first component may be chosen: all others rotate with it.
    groups.sort_by_key(|(_, limited)| Reverse(limited.len()));
    if groups.first().is_some_and(|(_, limited)| limited.len() > LARGEST) {
        return Err(Verdict::TooLarge);
    }
    for (at, (component, limited)) in groups.into_iter().enumerate() {
        let paths = longest_paths(net, component, interval, potentials, &limited, meter)?;
        let room = if at == 0 { 0 } else { interval - 1 };
        add_component(&mut reduced, &limited, &paths, room, meter)?;
    }
    Ok(reduced)
}

/// Longest paths between the limited operations of a component (Dijkstra on what the potentials leave).
fn longest_paths(
    net: &Net,
    component: usize,
    interval: i64,
    potentials: &[i64],
    limited: &[usize],
    meter: &Meter,
) -> Result<Vec<Vec<i64>>, Verdict> {
    let mut short = vec![i64::MAX; potentials.len()];
    let from = |&source: &usize| {
        if meter.stopped().is_some() {
            return Err(Verdict::Stopped);
        }
        net.components[component].iter().for_each(|&v| short[v] = i64::MAX);
        let mut heap = BinaryHeap::from([(Reverse(0), source)]);
        short[source] = 0;
        while let Some((Reverse(at), v)) = heap.pop() {
            if at > short[v] {
                continue;
            }
            for d in net.leaving[v].iter().filter(|d| net.component[d.to.index()] == component) {
                let to = d.to.index();
                let reach = at + (potentials[to] - potentials[v] - length(d, interval));
                if reach < short[to] {
                    short[to] = reach;
                    heap.push((Reverse(reach), to));
                }
            }
        }
        Ok(limited.iter().map(|&v| potentials[v] - potentials[source] - short[v]).collect())
    };
    limited.iter().map(from).collect()
}

fn add_component(
    reduced: &mut Reduced,
    limited: &[usize],
    paths: &[Vec<i64>],
    room: i64,
    meter: &Meter,
) -> Result<(), Verdict> {
    // Paths that cancel out leave no choice: one class.
    let mut leaders: Vec<usize> = Vec::new();
    let mut classes: Vec<Vec<(usize, i64)>> = Vec::new();
    for v in 0..limited.len() {
        match leaders.iter().position(|&u| paths[u][v] + paths[v][u] == 0) {
            Some(class) => classes[class].push((limited[v], paths[leaders[class]][v])),
            None => {
                leaders.push(v);
                classes.push(vec![(limited[v], 0)]);
            }
        }
    }
    let width = |u: usize| leaders.iter().map(|&v| -(paths[u][v] + paths[v][u])).sum::<i64>();
    let Some(&pivot) = leaders.iter().min_by_key(|&&u| width(u)) else { return Ok(()) };
    let first = reduced.classes.len();
    for (members, &v) in classes.into_iter().zip(&leaders) {
        let (least, largest) = (paths[pivot][v], room - paths[v][pivot]);
        let (least, largest) = if v == pivot { (0, room) } else { (least, largest) };
        reduced.classes.push(Class { members, least, largest });
    }
    for (i, &u) in leaders.iter().enumerate() {
        if meter.stopped().is_some() {
            return Err(Verdict::Stopped);
        }
        for (j, &v) in leaders.iter().enumerate().filter(|&(j, _)| j != i) {
            let distance = paths[u][v];
            let idle = reduced.classes[first + j].least - reduced.classes[first + i].largest >= distance;
            let through = |&w: &usize| w != u && w != v && paths[u][w] + paths[w][v] == distance;
            if !idle && !leaders.iter().any(through) {
                reduced.bounds.push((first + i, first + j, distance));
            }
        }
    }
    Ok(())
}
