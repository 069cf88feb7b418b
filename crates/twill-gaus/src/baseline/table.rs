//! A reservation table: what is in use, by resource and step, or slot of the interval.

use twill_graph::{Dataflow, DataflowOperation, ResourceUse};

pub(super) struct Table {
    /// By resource; as long as is needed so far, or as the interval.
    usage: Vec<Vec<u64>>,
    interval: Option<u64>,
}

impl Table {
    pub fn new(graph: &Dataflow, interval: Option<u64>) -> Table {
        let rows = interval.unwrap_or(0) as usize;
        Table { usage: vec![vec![0; rows]; graph.resources().len()], interval }
    }

    /// Rows that a use covers, and how often each.
    pub fn rows(&self, used: &ResourceUse, start: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        let first = start + u64::from(used.offset);
        let steps = u64::from(used.steps);
        let (covered, rounds, rest) = match self.interval {
            None => (steps, 0, steps),
            Some(ii) => (steps.min(ii), steps / ii, steps % ii),
        };
        let ii = self.interval.unwrap_or(u64::MAX);
        (0..covered).map(move |k| (((first + k) % ii) as usize, rounds + u64::from(k < rest)))
    }

    /// In use in a row.
    pub fn at(&self, resource: usize, row: usize) -> u64 {
        self.usage[resource].get(row).copied().unwrap_or(0)
    }

    /// Returns whether nothing exceeds `caps` when `op` starts at `start`. Its own uses are looked at one by one: those
    /// that overlap each other are found by trying ([`exceeded`](Self::exceeded)).
    pub fn fits(&self, op: &DataflowOperation, start: u64, caps: &[Option<u64>]) -> bool {
        let clear = op.uses.iter().all(|used| {
            let Some(cap) = caps[used.resource.index()] else { return true };
            self.rows(used, start).all(|(row, times)| self.at(used.resource.index(), row) + times * used.amount <= cap)
        });
        clear && (op.uses.len() < 2 || !self.meets_itself(op, start, caps))
    }

    /// The same where several uses are of one resource.
    fn meets_itself(&self, op: &DataflowOperation, start: u64, caps: &[Option<u64>]) -> bool {
        op.uses.iter().any(|used| {
            let Some(cap) = caps[used.resource.index()] else { return false };
            self.rows(used, start).any(|(row, _)| {
                let same = op.uses.iter().filter(|other| other.resource == used.resource);
                let own = same.flat_map(|other| {
                    self.rows(other, start).filter(move |&(r, _)| r == row).map(move |(_, times)| times * other.amount)
                });
                self.at(used.resource.index(), row) + own.sum::<u64>() > cap
            })
        })
    }

    pub fn add(&mut self, op: &DataflowOperation, start: u64) {
        for used in &op.uses {
            for (row, times) in self.rows(used, start) {
                let usage = &mut self.usage[used.resource.index()];
                if row >= usage.len() {
                    usage.resize(row + 1, 0);
                }
                usage[row] += times * used.amount;
            }
        }
    }

    pub fn remove(&mut self, op: &DataflowOperation, start: u64) {
        for used in &op.uses {
            for (row, times) in self.rows(used, start) {
                self.usage[used.resource.index()][row] -= times * used.amount;
            }
        }
    }

    /// The most in use of a resource among the rows that `op` covers.
    pub fn most(&self, op: &DataflowOperation, start: u64, resource: usize) -> u64 {
        let uses = op.uses.iter().filter(|used| used.resource.index() == resource);
        uses.flat_map(|used| self.rows(used, start)).map(|(row, _)| self.at(resource, row)).max().unwrap_or(0)
    }

    /// The first resource and row above its cap among those that `op` covers.
    pub fn exceeded(&self, op: &DataflowOperation, start: u64, caps: &[Option<u64>]) -> Option<(usize, usize)> {
        op.uses.iter().find_map(|used| {
            let resource = used.resource.index();
            let cap = caps[resource]?;
            self.rows(used, start)
                .map(|(row, _)| row)
                .find(|&row| self.at(resource, row) > cap)
                .map(|row| (resource, row))
        })
    }
}
