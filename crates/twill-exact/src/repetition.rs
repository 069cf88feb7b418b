//! Loop graphs that are one body several times over, as unrolling by hand or by another compiler leaves
//! them.
//!
//! Such a graph has a root of the step from one iteration to the next: a map `σ` of operations with
//! carries `c` that sends operation `v` of iteration `i` to `σ(v)` of iteration `i + c(v)`, leaves costs
//! and dependences as they are (`δ` becomes `δ + c(v) − c(u)`), and done `U` times comes back to `v`, one
//! iteration later. Its orbits are the operations of the body. Names and positions say nothing; the map
//! is found along dependences from one pair of operations, and a wrong one fails its check, so that
//! nothing is lost but the short way.

use std::collections::{BTreeMap, BTreeSet};
use twill_graph::{Cycles, Dependence, LoopGraph, OpId, Operation, Placement, Schedule};

/// A body and where its copies are.
pub(crate) struct Repetition {
    body: LoopGraph,
    copies: i64,
    /// For every operation of the whole its operation in the body, and the iteration of the body that its
    /// iteration 0 is.
    place: Vec<(usize, i64)>,
}

/// The effect of `σ` on one operation: its image, and iterations carried.
type Image = (usize, i64);

/// The smallest body that the graph is found to repeat.
pub(crate) fn find(graph: &LoopGraph) -> Option<Repetition> {
    let edges = Edges::new(graph);
    let count = graph.operations().len();
    let images = (1..count).map(|v| (v, 0)).chain((1..count).map(|v| (v, 1)));
    let steps = images.filter(|(v, _)| edges.colours[0] == edges.colours[*v]).filter_map(|first| edges.map(first));
    steps.filter_map(|map| Repetition::new(graph, &map)).max_by_key(|r| r.copies)
}

/// Dependences of one operation by what they look like.
struct Edges<'g> {
    graph: &'g LoopGraph,
    colours: Vec<usize>,
    /// The dependences of each operation, incoming and outgoing.
    of: Vec<Vec<&'g Dependence>>,
}

/// The properties of a dependence that `σ` keeps, besides its distance.
fn look(d: &Dependence) -> (i64, i64, [bool; 3]) {
    (d.delay.0, d.hold.0, [d.blocking, d.carries_value, d.tied])
}

impl<'g> Edges<'g> {
    fn new(graph: &'g LoopGraph) -> Edges<'g> {
        let mut of = vec![Vec::new(); graph.operations().len()];
        for d in graph.dependences().iter().filter(|d| d.from != d.to) {
            of[d.from.index()].push(d);
            of[d.to.index()].push(d);
        }
        let mut edges = Edges { graph, colours: first_colours(graph), of };
        edges.refine();
        edges
    }

    /// Tells operations apart by their neighbours' colours until nothing changes (Weisfeiler & Leman).
    fn refine(&mut self) {
        loop {
            let sight = |v: usize| {
                let mut seen: Vec<_> =
                    self.of[v].iter().map(|d| (d.from.index() == v, look(d), self.colours[other(d, v)])).collect();
                seen.sort_unstable();
                (self.colours[v], seen)
            };
            let sights: Vec<_> = (0..self.colours.len()).map(sight).collect();
            let kinds: BTreeSet<_> = sights.iter().collect();
            let before = self.colours.iter().collect::<BTreeSet<_>>().len();
            let number: BTreeMap<_, usize> = kinds.iter().enumerate().map(|(n, kind)| (*kind, n)).collect();
            let after = number.len();
            self.colours = sights.iter().map(|s| number.get(s).copied().unwrap_or(0)).collect();
            if after == before {
                return;
            }
        }
    }

    /// The map that follows from what it does to operation 0, if it is one.
    fn map(&self, first: Image) -> Option<Vec<Image>> {
        let count = self.colours.len();
        let mut map: Vec<Option<Image>> = vec![None; count];
        let mut taken = vec![false; count];
        let mut root = Some((0, first));
        while let Some((v, image)) = root {
            map[v] = Some(image);
            taken[image.0] = true;
            let mut open = vec![v];
            while let Some(u) = open.pop() {
                let (image, carry) = map[u]?;
                for d in &self.of[u] {
                    let v = other(d, u);
                    if map[v].is_none() {
                        let (to, way) = self.image(u, image, d, &taken)?;
                        map[v] = Some((to, if d.from.index() == u { carry + way } else { carry - way }));
                        taken[to] = true;
                        open.push(v);
                    }
                }
            }
            // Another component: on to the next like it, from the last one back to the first.
            root = (0..count).find(|&v| map[v].is_none()).and_then(|v| {
                let like = |to: &usize| !taken[*to] && self.colours[*to] == self.colours[v];
                let onwards = (v + 1..count).find(like).map(|to| (to, 0));
                Some((v, onwards.or_else(|| (0..=v).find(like).map(|to| (to, 1)))?))
            });
        }
        let map: Vec<Image> = map.into_iter().collect::<Option<_>>()?;
        self.keeps_dependences(&map).then_some(map)
    }

    /// Where the other end of a dependence of `u` goes when `u` goes to `image`, and by how much the distance
    /// grows; the operation at the same way from `image` in the list where there are several.
    fn image(&self, u: usize, image: usize, d: &Dependence, taken: &[bool]) -> Option<(usize, i64)> {
        let v = other(d, u);
        let alike = self.of[image].iter().filter(|e| {
            let to = other(e, image);
            let turned = (e.from.index() == image) == (d.from.index() == u);
            turned && look(e) == look(d) && self.colours[to] == self.colours[v] && !taken[to]
        });
        let nearest = alike.min_by_key(|e| (other(e, image) + u).abs_diff(image + v))?;
        Some((other(nearest, image), i64::from(nearest.distance) - i64::from(d.distance)))
    }

    fn keeps_dependences(&self, map: &[Image]) -> bool {
        let all = |image: &dyn Fn(usize) -> Image| -> BTreeSet<_> {
            let one = |d: &Dependence| {
                let ((from, left), (to, came)) = (image(d.from.index()), image(d.to.index()));
                (from, to, i64::from(d.distance) + came - left, look(d))
            };
            self.graph.dependences().iter().map(one).collect()
        };
        all(&|v| (v, 0)) == all(&|v| map[v])
    }
}

fn other(d: &Dependence, v: usize) -> usize {
    if d.from.index() == v { d.to.index() } else { d.from.index() }
}

/// Operations of equal cost have equal colours.
fn first_colours(graph: &LoopGraph) -> Vec<usize> {
    let like = |op: &Operation| Operation { name: String::new(), kind: String::new(), source: None, ..op.clone() };
    let costs: Vec<Operation> = graph.operations().iter().map(like).collect();
    costs.iter().map(|cost| costs.iter().position(|c| c == cost).unwrap_or(0)).collect()
}

impl Repetition {
    /// The body whose copies a map runs through; `None` where its orbits are not all whole iterations.
    fn new(graph: &LoopGraph, map: &[Image]) -> Option<Repetition> {
        let mut place: Vec<Option<(usize, i64)>> = vec![None; map.len()];
        let mut firsts: Vec<usize> = Vec::new();
        let mut copies = 0;
        for v in 0..map.len() {
            if place[v].is_some() {
                continue;
            }
            let (mut at, mut carried, mut orbit) = (v, 0, Vec::new());
            while place[at].is_none() {
                place[at] = Some((firsts.len(), 0));
                orbit.push((at, carried));
                carried += map[at].1;
                at = map[at].0;
            }
            let length = i64::try_from(orbit.len()).ok()?;
            if at != v || carried != 1 || (copies != 0 && copies != length) {
                return None;
            }
            copies = length;
            for (k, (op, carried)) in orbit.into_iter().enumerate() {
                place[op] = Some((firsts.len(), i64::try_from(k).ok()? - copies * carried));
            }
            firsts.push(v);
        }
        let place: Vec<(usize, i64)> = place.into_iter().collect::<Option<_>>()?;
        (copies > 1).then_some(())?;
        Repetition { body: graph.clone(), copies, place }.with_body(graph, &firsts)
    }

    /// Numbers the iterations of the body so that no dependence leads back in them, and makes the body.
    fn with_body(mut self, graph: &LoopGraph, firsts: &[usize]) -> Option<Repetition> {
        let distance = |place: &[(usize, i64)], d: &Dependence| {
            place[d.to.index()].1 - place[d.from.index()].1 + i64::from(d.distance) * self.copies
        };
        for round in 0.. {
            let short = graph.dependences().iter().map(|d| (d, distance(&self.place, d))).find(|(_, way)| *way < 0);
            let Some((d, way)) = short else { break };
            if round > graph.operations().len() * graph.operations().len() {
                return None;
            }
            let late = self.place[d.to.index()].0;
            self.place.iter_mut().filter(|p| p.0 == late).for_each(|p| p.1 -= way);
        }
        let mut dependences: BTreeMap<_, Dependence> = BTreeMap::new();
        for d in graph.dependences() {
            let (from, to) = (self.place[d.from.index()].0, self.place[d.to.index()].0);
            let distance = u32::try_from(distance(&self.place, d)).ok()?;
            let one = Dependence { from: OpId::new(from), to: OpId::new(to), distance, ..d.clone() };
            dependences.insert((from, to, distance), one);
        }
        let operations = firsts.iter().map(|&v| graph.operations()[v].clone()).collect();
        let dependences = dependences.into_values().collect();
        self.body = LoopGraph::new(graph.name(), operations, dependences, graph.reserved()).ok()?;
        Some(self)
    }

    /// One iteration of the loop that is repeated.
    pub(crate) fn body(&self) -> &LoopGraph {
        &self.body
    }

    /// The schedule of the whole that repeats one of the body.
    pub(crate) fn unrolled(&self, schedule: &Schedule) -> (Cycles, Vec<Placement>) {
        let interval = schedule.interval.0;
        let placed = |&(op, iteration): &(usize, i64)| {
            let p = schedule.placements[op];
            Placement { cycle: Cycles(p.cycle.0 + iteration * interval), ..p }
        };
        (Cycles(interval * self.copies), self.place.iter().map(placed).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twill_graph::{Storage, builtin};

    fn shuffled(graph: &LoopGraph) -> LoopGraph {
        let count = graph.operations().len();
        let step =
            (7..).find(|&s: &usize| (2..=count).all(|k| !s.is_multiple_of(k) || !count.is_multiple_of(k))).unwrap_or(1);
        let to = |v: usize| (v * step + 3) % count;
        let mut operations: Vec<Option<Operation>> = vec![None; count];
        for (v, op) in graph.operations().iter().enumerate() {
            operations[to(v)] = Some(Operation { name: format!("o{}", to(v)), ..op.clone() });
        }
        let moved = |d: &Dependence| Dependence {
            from: OpId::new(to(d.from.index())),
            to: OpId::new(to(d.to.index())),
            ..d.clone()
        };
        let dependences = graph.dependences().iter().map(moved).collect();
        LoopGraph::new("shuffled", operations.into_iter().flatten().collect(), dependences, graph.reserved()).unwrap()
    }

    #[test]
    fn an_unrolled_loop_is_its_body_several_times() {
        for name in ["attention-forward-hopper", "attention-backward-hopper", "attention-forward-blackwell", "gemm"] {
            let body = builtin::find(name).unwrap().graph;
            for copies in [2, 4] {
                let found = find(&body.unrolled(copies).unwrap()).unwrap();
                assert_eq!(found.copies, i64::from(copies), "{name}");
                assert_eq!(found.body.operations().len(), body.operations().len(), "{name}");
                assert_eq!(found.body.dependences().len(), body.dependences().len(), "{name}");
            }
        }
    }

    #[test]
    fn neither_names_nor_positions_matter() {
        let body = builtin::find("attention-forward-hopper").unwrap().graph;
        let found = find(&shuffled(&body.unrolled(4).unwrap())).unwrap();
        assert_eq!((found.copies, found.body.dependences().len()), (4, body.dependences().len()));
    }

    #[test]
    fn one_odd_operation_is_no_repetition() {
        let twice = builtin::find("attention-forward-hopper").unwrap().graph.unrolled(2).unwrap();
        let mut first = true;
        let odd = twice.map(
            |op| {
                if std::mem::take(&mut first) {
                    op.storage = Storage::Shared(twill_graph::Bytes(7));
                }
            },
            |_| (),
        );
        assert!(find(&odd.unwrap()).is_none());
    }
}
