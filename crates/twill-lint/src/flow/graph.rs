//! Basic blocks, each once for every chain of calls that leads to it.
//!
//! A subroutine that two places call would otherwise seem to lead from one to the other.

use super::branch::{Flow, flow_of};
use crate::sass::Listing;
use std::collections::{BTreeSet, HashMap};

/// Calls within calls that are followed.
const DEPTH: usize = 6;
/// Blocks, with their copies, at most.
const MOST_NODES: usize = 400_000;

/// A block in a chain of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its first instruction.
    pub start: usize,
    /// The place after its last.
    pub end: usize,
    /// Where control goes.
    pub successors: Vec<usize>,
}

/// The flow of control through all functions of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Blocks.
    pub nodes: Vec<Node>,
    /// Blocks where a kernel starts, or where code starts that nothing known leads to.
    pub entries: Vec<usize>,
    /// Branches and calls whose target the text does not say.
    pub unknown: Vec<usize>,
}

/// A call that has not returned.
struct Call {
    parent: usize,
    /// Where it returns to.
    back: usize,
    depth: usize,
}

struct Builder<'a> {
    listing: &'a Listing,
    flows: Vec<Flow>,
    leaders: BTreeSet<usize>,
    graph: Graph,
    index: HashMap<(usize, usize), usize>,
    /// Chains of calls; the first is that of no call.
    calls: Vec<Option<Call>>,
    chains: HashMap<(usize, usize), usize>,
    todo: Vec<(usize, usize)>,
}

impl Graph {
    /// The flow of control of a listing.
    pub fn of(listing: &Listing) -> Graph {
        let flows: Vec<Flow> = (0..listing.code.len()).map(|at| flow_of(listing, at)).collect();
        let mut leaders: BTreeSet<usize> = listing.functions.iter().map(|function| function.start).collect();
        for (at, flow) in flows.iter().enumerate() {
            leaders.extend(flow.targets.iter().copied().chain(flow.call));
            if !flow.is_plain() {
                leaders.insert(at + 1);
            }
        }
        let called: BTreeSet<usize> = flows.iter().filter_map(|flow| flow.call).collect();
        let unknown = (0..flows.len()).filter(|at| flows[*at].is_unknown).collect();
        let mut builder = Builder {
            listing,
            flows,
            leaders,
            graph: Graph { unknown, ..Graph::default() },
            index: HashMap::new(),
            calls: vec![None],
            chains: HashMap::new(),
            todo: Vec::new(),
        };
        for function in &listing.functions {
            if function.is_kernel || !called.contains(&function.start) {
                builder.enter(function.start);
            }
        }
        // What only a jump table leads to whose targets are not in the text.
        let leaders: Vec<usize> = builder.leaders.iter().copied().filter(|at| *at < listing.code.len()).collect();
        let mut reached: BTreeSet<usize> = builder.graph.nodes.iter().map(|node| node.start).collect();
        for leader in leaders {
            if !reached.contains(&leader) && !called.contains(&leader) {
                let before = builder.graph.nodes.len();
                builder.enter(leader);
                reached.extend(builder.graph.nodes[before..].iter().map(|node| node.start));
            }
        }
        builder.graph
    }
}

impl Builder<'_> {
    fn enter(&mut self, at: usize) {
        let entry = self.node(at, 0);
        self.graph.entries.push(entry);
        while let Some((node, chain)) = self.todo.pop() {
            let last = self.graph.nodes[node].end - 1;
            let flow = std::mem::take(&mut self.flows[last]);
            let successors = self.successors(&flow, last, chain);
            self.flows[last] = flow;
            self.graph.nodes[node].successors = successors;
        }
    }

    /// The block that begins here, in a chain of calls.
    fn node(&mut self, start: usize, chain: usize) -> usize {
        if let Some(node) = self.index.get(&(start, chain)) {
            return *node;
        }
        let function_end = self.listing.function_of(start).map_or(self.listing.code.len(), |function| function.end);
        let end = self.leaders.range(start + 1..).next().copied().unwrap_or(function_end).min(function_end);
        let node = self.graph.nodes.len();
        self.graph.nodes.push(Node { start, end, successors: Vec::new() });
        self.index.insert((start, chain), node);
        if node < MOST_NODES {
            self.todo.push((node, chain));
        }
        node
    }

    fn successors(&mut self, flow: &Flow, last: usize, chain: usize) -> Vec<usize> {
        let mut to = Vec::new();
        let follows = self.listing.function_of(last).is_some_and(|function| last + 1 < function.end);
        let depth = self.calls[chain].as_ref().map_or(0, |call| call.depth);
        match flow.call {
            Some(target) if depth < DEPTH && follows => {
                let inner = self.chain(chain, last, depth + 1);
                to.push(self.node(target, inner));
                if self.listing.code[last].guard.is_some() {
                    to.push(self.node(last + 1, chain));
                }
                return to;
            }
            _ => {}
        }
        for target in &flow.targets {
            to.push(self.node(*target, chain));
        }
        if flow.falls && follows {
            to.push(self.node(last + 1, chain));
        }
        if flow.returns
            && let Some(Call { parent, back, .. }) = self.calls[chain]
        {
            to.push(self.node(back, parent));
        }
        to.dedup();
        to
    }

    fn chain(&mut self, parent: usize, at: usize, depth: usize) -> usize {
        if let Some(chain) = self.chains.get(&(parent, at)) {
            return *chain;
        }
        self.calls.push(Some(Call { parent, back: at + 1, depth }));
        self.chains.insert((parent, at), self.calls.len() - 1);
        self.calls.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(code: &str) -> Graph {
        let mut text = ".headerflags @\"EF_CUDA_SM90\"\n.section .text.k,\"ax\"\n".to_owned();
        for (at, line) in code.lines().enumerate() {
            text += &if line.ends_with(':') { format!("{line}\n") } else { format!("/*{:04x}*/ {line} ;\n", 16 * at) };
        }
        Graph::of(&Listing::read(&text).unwrap())
    }

    #[test]
    fn a_subroutine_returns_to_the_call_that_entered_it() {
        let graph = graph("CALL.REL.NOINC `(sub)\nNOP\nCALL.REL.NOINC `(sub)\nEXIT\nsub:\nNOP\nRET.REL.NODEC R4 `(k)");
        let at = |start: usize| graph.nodes.iter().filter(|node| node.start == start).collect::<Vec<_>>();
        assert_eq!(at(4).len(), 2, "the subroutine is there once for each call");
        let back: Vec<usize> = at(4).iter().map(|node| graph.nodes[node.successors[0]].start).collect();
        assert_eq!(back, [1, 3]);
        assert_eq!(graph.entries.len(), 1);
    }

    #[test]
    fn what_a_jump_table_without_targets_leads_to_is_entered_as_well() {
        let graph = graph("BRX R4 -0x160\nNOP\nEXIT");
        assert_eq!(graph.unknown, [0]);
        assert_eq!(graph.entries.len(), 2);
    }

    #[test]
    fn guards_fall_through_and_exits_do_not() {
        let graph = graph("@P0 BRA `(l)\nEXIT\nl:\nEXIT");
        let starts = |node: &Node| node.successors.iter().map(|to| graph.nodes[*to].start).collect::<Vec<_>>();
        assert_eq!(starts(&graph.nodes[0]), [2, 1]);
        assert!(graph.nodes[1..].iter().all(|node| node.successors.is_empty()));
    }
}
