//! The dependences of a loop as a graph: strongly connected components, longest paths, positive cycles.

use twill_graph::{ModuloDependence, ModuloProblem};

/// Dependences by where they start, and the components that they form.
pub(crate) struct Net<'p> {
    pub(crate) problem: &'p ModuloProblem,
    /// Dependences that leave each operation.
    pub(crate) leaving: Vec<Vec<&'p ModuloDependence>>,
    /// Component of each operation.
    pub(crate) component: Vec<usize>,
    /// Operations of each component; a component comes after those it depends on.
    pub(crate) components: Vec<Vec<usize>>,
    /// Dependences in an order in which few rounds of relaxation suffice.
    ordered: Vec<&'p ModuloDependence>,
}

/// Length of a dependence when iterations start `interval` apart: `d − δI`.
pub(crate) fn length(d: &ModuloDependence, interval: i64) -> i64 {
    d.delay.0 - i64::from(d.distance) * interval
}

impl<'p> Net<'p> {
    pub(crate) fn new(problem: &'p ModuloProblem) -> Net<'p> {
        let count = problem.operations().len();
        let mut leaving = vec![Vec::new(); count];
        for d in problem.dependences() {
            leaving[d.from.index()].push(d);
        }
        let mut components = strong_components(count, |v, k| leaving[v].get(k).map(|d| d.to.index()));
        components.reverse();
        let mut component = vec![0; count];
        for (index, members) in components.iter_mut().enumerate() {
            members.sort_unstable();
            members.iter().for_each(|&v| component[v] = index);
        }
        // Within an iteration most dependences run forward in this order; across iterations few do.
        let within = |v: usize, k: usize| leaving[v].iter().filter(|d| d.distance == 0).nth(k).map(|d| d.to.index());
        let mut rank = vec![0; count];
        let forward = strong_components(count, within);
        forward.iter().rev().flatten().enumerate().for_each(|(at, &v)| rank[v] = at);
        let mut ordered: Vec<&ModuloDependence> = problem.dependences().iter().collect();
        ordered.sort_by_key(|d| rank[d.from.index()]);
        Net { problem, leaving, component, components, ordered }
    }

    /// Longest paths that end in each operation, or a cycle with `Σ (d − δI) > 0` (Bellman–Ford; a cycle shows in the tree
    /// of predecessors long before the last round).
    pub(crate) fn potentials(&self, interval: i64) -> Result<Vec<i64>, Vec<&'p ModuloDependence>> {
        let count = self.leaving.len();
        let mut longest = vec![0_i64; count];
        let mut by: Vec<Option<&ModuloDependence>> = vec![None; count];
        loop {
            let mut changed = false;
            for &d in &self.ordered {
                let reach = longest[d.from.index()] + length(d, interval);
                if reach > longest[d.to.index()] {
                    longest[d.to.index()] = reach;
                    by[d.to.index()] = Some(d);
                    changed = true;
                }
            }
            if !changed {
                return Ok(longest);
            }
            if let Some(cycle) = predecessor_cycle(&by) {
                return Err(cycle);
            }
        }
    }

    /// Raises `times` of one component's operations to the least that its own dependences allow.
    pub(crate) fn settle(&self, component: usize, interval: i64, times: &mut [i64]) {
        let members = &self.components[component];
        let mut waiting: Vec<usize> = members.clone();
        let mut next = Vec::new();
        let mut queued = vec![false; times.len()];
        while !waiting.is_empty() {
            for &v in &waiting {
                queued[v] = false;
                for d in self.leaving[v].iter().filter(|d| self.component[d.to.index()] == component) {
                    let to = d.to.index();
                    let reach = times[v] + length(d, interval);
                    if reach > times[to] {
                        times[to] = reach;
                        if !queued[to] {
                            queued[to] = true;
                            next.push(to);
                        }
                    }
                }
            }
            waiting.clear();
            std::mem::swap(&mut waiting, &mut next);
        }
    }
}

/// A cycle in the graph that leads from each node to its predecessor, in the order of time.
fn predecessor_cycle<'p>(by: &[Option<&'p ModuloDependence>]) -> Option<Vec<&'p ModuloDependence>> {
    let mut visit = vec![0_u32; by.len()];
    for (start, mark) in (0..by.len()).zip(1..) {
        let mut at = start;
        while visit[at] == 0 {
            visit[at] = mark;
            let Some(d) = by[at] else { break };
            at = d.from.index();
        }
        if visit[at] != mark || by[at].is_none() {
            continue;
        }
        let (mut cycle, mut walk) = (Vec::new(), at);
        while let Some(d) = by[walk] {
            cycle.push(d);
            walk = d.from.index();
            if walk == at {
                break;
            }
        }
        cycle.reverse();
        return Some(cycle);
    }
    None
}

/// Strongly connected components, each before those that lead to it (Tarjan, without recursion). `edge(v, k)` is where
/// the k-th edge of `v` leads.
fn strong_components(count: usize, edge: impl Fn(usize, usize) -> Option<usize>) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let (mut order, mut low, mut open) = (vec![NEW; count], vec![0; count], vec![false; count]);
    let (mut stack, mut components, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..count {
        if order[root] != NEW {
            continue;
        }
        let mut walk = vec![(root, 0)];
        while let Some(top) = walk.last_mut() {
            let (v, k) = *top;
            top.1 += 1;
            if k == 0 {
                (order[v], low[v], open[v]) = (next, next, true);
                next += 1;
                stack.push(v);
            }
            match edge(v, k) {
                Some(w) if order[w] == NEW => walk.push((w, 0)),
                Some(w) if open[w] => low[v] = low[v].min(order[w]),
                Some(_) => {}
                None => {
                    walk.pop();
                    if let Some(&(parent, _)) = walk.last() {
                        low[parent] = low[parent].min(low[v]);
                    }
                    if low[v] == order[v] {
                        let from = stack.iter().rposition(|&w| w == v).unwrap_or(0);
                        let members = stack.split_off(from);
                        members.iter().for_each(|&w| open[w] = false);
                        components.push(members);
                    }
                }
            }
        }
    }
    components
}
