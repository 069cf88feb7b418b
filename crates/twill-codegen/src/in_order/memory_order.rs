//! Where the threads of a program wait for each other because of global memory: one loads what another has stored, or stores what
//! another has yet to load.
//!
//! TTIR executes one operation after the other. A thread sees its own stores in that order, and those of others only behind a
//! barrier; which thread accesses an element is a matter of layouts.
//!
//! Not ordered: stores over each other, and atomic operations; what TMA stores and what is loaded of it; what inline PTX accesses.

use super::control_flow::MOST_BLOCKS;
use crate::builder::bases::{Base, bases, may_meet};
use std::collections::{BTreeSet, HashSet};
use twill_triton::mlir::{BlockId, Module, OperationId, ValueId};

/// The operations of a function before which threads wait for each other.
pub(super) fn barriers(module: &Module, function: OperationId) -> HashSet<OperationId> {
    let mut walk = Walk { module, function, blocks: 0, found: HashSet::new() };
    if let Some(body) = module.body(function) {
        walk.block(body, Accesses::default());
    }
    walk.found
}

/// The same of one operation, a loop or a branch, that a group executes by itself.
pub(super) fn barriers_within(module: &Module, function: OperationId, id: OperationId) -> HashSet<OperationId> {
    let mut walk = Walk { module, function, blocks: 0, found: HashSet::new() };
    walk.operation(id, Accesses::default());
    walk.found
}

/// An access to global memory.
#[derive(Clone, PartialEq, Eq)]
struct Access {
    address: ValueId,
    bases: BTreeSet<Base>,
    reads: bool,
    writes: bool,
    /// Memory orders atomic operations itself.
    is_atomic: bool,
    /// Each thread accesses what is its own: of a number, all threads load what one stores.
    is_tensor: bool,
    /// It is of another iteration, in which the address may be another one.
    is_of_other_iteration: bool,
}

impl Access {
    /// Whether this one, in the program behind the other, has to wait for the other of all threads.
    fn waits_for(&self, other: &Self) -> bool {
        let (after_write, before_write) = (self.reads && other.writes, self.writes && other.reads);
        // A thread stores where it has loaded from.
        let is_in_place = self.address == other.address && self.is_tensor && !other.is_of_other_iteration;
        let is_ordered = self.is_atomic && other.is_atomic || !after_write && is_in_place;
        (after_write || before_write) && !is_ordered && may_meet(&self.bases, &other.bases)
    }
}

/// Accesses behind which there was no barrier.
#[derive(Clone, Default)]
struct Accesses(Vec<Access>);

impl Accesses {
    fn are_waited_for(&self, by: &Access) -> bool {
        self.0.iter().any(|one| by.waits_for(one))
    }

    fn add(&mut self, others: impl IntoIterator<Item = Access>) {
        for one in others {
            if !self.0.contains(&one) {
                self.0.push(one);
            }
        }
    }
}

struct Walk<'m> {
    module: &'m Module,
    function: OperationId,
    blocks: usize,
    found: HashSet<OperationId>,
}

impl Walk<'_> {
    /// A block of the function's body, and those that it leads to.
    fn block(&mut self, block: BlockId, before: Accesses) {
        self.blocks += 1;
        if self.blocks > MOST_BLOCKS {
            return;
        }
        let after = self.operations(block, before);
        let last = self.module.terminator(block).map(|last| self.module.operation(last));
        for next in last.into_iter().flat_map(|last| &last.successors) {
            self.block(*next, after.clone());
        }
    }

    /// What is open behind a block's operations.
    fn operations(&mut self, block: BlockId, mut open: Accesses) -> Accesses {
        for id in &self.module.block(block).operations {
            open = self.operation(*id, open);
        }
        open
    }

    fn operation(&mut self, id: OperationId, mut open: Accesses) -> Accesses {
        let operation = self.module.operation(id);
        let regions: Vec<BlockId> =
            operation.regions.iter().filter_map(|r| self.module.region(*r).blocks.first().copied()).collect();
        match operation.name.as_str() {
            "gpu.barrier" => Accesses::default(),
            "scf.if" => {
                let ways: Vec<Accesses> = regions.iter().map(|block| self.operations(*block, open.clone())).collect();
                // Where there is one way, the other is none.
                let mut behind = if ways.len() > 1 { Accesses::default() } else { open };
                ways.into_iter().for_each(|way| behind.add(way.0));
                behind
            }
            "scf.for" | "scf.while" => {
                let within: Vec<Access> = self.module.walk(id).skip(1).filter_map(|id| self.access(id)).collect();
                // What runs ahead of the loop waits as well.
                if within.iter().any(|one| open.are_waited_for(one)) {
                    self.found.insert(id);
                    open = Accesses::default();
                }
                // An iteration may follow anything of the one before, and the loop's end anything of it.
                open.add(within.into_iter().map(|one| Access { is_of_other_iteration: true, ..one }));
                regions.iter().fold(open.clone(), |before, block| self.operations(*block, before));
                open
            }
            _ => {
                if let Some(access) = self.access(id) {
                    if open.are_waited_for(&access) {
                        self.found.insert(id);
                        open = Accesses::default();
                    }
                    open.add([access]);
                }
                open
            }
        }
    }

    fn access(&self, id: OperationId) -> Option<Access> {
        let operation = self.module.operation(id);
        let (reads, writes, is_atomic) = match operation.name.as_str() {
            "tt.load" | "tt.descriptor_load" | "tt.descriptor_gather" => (true, false, false),
            "tt.store" | "tt.descriptor_store" | "tt.descriptor_scatter" => (false, true, false),
            "tt.atomic_rmw" | "tt.atomic_cas" | "tt.descriptor_reduce" => (true, true, true),
            "tt.atomic_load" | "tt.atomic_poll" => (true, false, true),
            "tt.atomic_store" => (false, true, true),
            _ => return None,
        };
        let address = *operation.operands.first()?;
        let bases = bases(self.module, self.function, address);
        let is_tensor = self.module.type_of(address).is_tensor();
        Some(Access { address, bases, reads, writes, is_atomic, is_tensor, is_of_other_iteration: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twill_triton::kernel::find;

    /// The lines of a function's body before which there is a barrier; its arguments are `%p`, `%q`, `%n`, `%x`.
    fn lines(body: &str) -> Vec<u32> {
        let text = format!(
            "tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %c: i1, %x: f32) {{\n{body}\ntt.return\n}}"
        );
        let module = twill_triton::mlir::parse(&text, "f.ttir").unwrap();
        let found = barriers(&module, find(&module, None).unwrap());
        let mut lines: Vec<u32> = found.iter().map(|id| module.operation(*id).line - 1).collect();
        lines.sort_unstable();
        lines
    }

    const NONE: [u32; 0] = [];
    const LOAD: &str = "%a = tt.load %p : !tt.ptr<f32>";
    const STORE: &str = "tt.store %p, %x : !tt.ptr<f32>";
    const NEXT: &str = "%r = tt.addptr %p, %n : !tt.ptr<f32>, i32\ntt.store %r, %x : !tt.ptr<f32>";
    const TILE: &str =
        "%t = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>\n%v = tt.load %t : tensor<16x!tt.ptr<f32>>";
    const OTHER: &str = "%b = tt.load %q : !tt.ptr<f32>";
    const ATOMIC: &str = "%d = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %c : (!tt.ptr<f32>, f32, i1) -> f32";

    #[test]
    fn threads_wait_for_what_others_store() {
        let of = |all: &[&str]| lines(&all.join("\n"));
        assert_eq!(of(&[STORE, LOAD]), [2]);
        assert_eq!(of(&[STORE, OTHER]), NONE);
        assert_eq!(of(&[STORE, "gpu.barrier", LOAD]), NONE);
        // One barrier is enough for several loads.
        assert_eq!(of(&[STORE, LOAD, &LOAD.replace("%a", "%e")]), [2]);
        // All threads load a number, and one stores it.
        assert_eq!(of(&[LOAD, STORE]), [2]);
        assert_eq!(of(&[LOAD, NEXT]), [3]);
        // In place, each thread stores where it has loaded from.
        assert_eq!(of(&[TILE, "tt.store %t, %v : tensor<16x!tt.ptr<f32>>"]), NONE);
        // A store over another.
        assert_eq!(of(&[STORE, NEXT]), NONE);
        assert_eq!(of(&[STORE, ATOMIC]), [2]);
        assert_eq!(of(&[ATOMIC, &ATOMIC.replace("%d", "%e")]), NONE);
    }

    #[test]
    fn loops_and_branches_are_followed() {
        let within = |all: &[&str]| format!("scf.for %i = %n to %n step %n : i32 {{\n{}\n}}", all.join("\n"));
        let under = |all: &[&str]| format!("scf.if %c {{\n{}\n}}", all.join("\n"));
        // Around the loop, in place and elsewhere.
        assert_eq!(lines(&within(&[LOAD, STORE])), [2, 3]);
        // Of another iteration, the same name is another address.
        assert_eq!(lines(&within(&[NEXT, "%e = tt.load %r : !tt.ptr<f32>"])), [3, 4]);
        assert_eq!(lines(&within(&[OTHER, STORE])), NONE);
        // What runs ahead of a loop stands before it.
        assert_eq!(lines(&format!("{STORE}\n{}", within(&[OTHER, LOAD]))), [2]);
        assert_eq!(lines(&format!("{}\n{LOAD}", within(&[STORE]))), [4]);
        assert_eq!(lines(&format!("{}\n{LOAD}", under(&[STORE]))), [4]);
        assert_eq!(lines(&format!("{STORE}\n{}\n{LOAD}", under(&["gpu.barrier"]))), [5]);
        assert_eq!(lines(&under(&[STORE, &under(&[LOAD])])), [4]);
    }
}
