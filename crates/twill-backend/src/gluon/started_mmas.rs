//! MMAs that a group starts beside a pipeline, and waits for where something needs their results; operands that stay in shared memory
//! while a loop runs.

use super::group::Printer;
use twill_codegen::ir::{Expression, ExpressionKind, Group, Node, Op, VariableId};

/// How often a group reads each of its variables.
pub(super) fn reads(group: &Group) -> Vec<usize> {
    let mut reads = vec![0; group.variables.len()];
    let mut count = |e: &Expression| {
        e.walk(&mut |e| {
            if let ExpressionKind::Variable(id) = e.kind {
                reads[id.index()] += 1;
            }
        });
    };
    each_expression(&group.body, &mut count);
    reads
}

/// All that nodes compute.
fn each_expression(nodes: &[Node], f: &mut impl FnMut(&Expression)) {
    for node in nodes {
        node.expressions().into_iter().for_each(&mut *f);
        if let Node::Op(op, _) = node {
            op.expressions().into_iter().for_each(&mut *f);
        }
        node.blocks().into_iter().for_each(|block| each_expression(block, f));
    }
}

impl Printer<'_> {
    /// Whether an operation reads nothing of what MMAs beside a pipeline are making, but to add to it.
    pub(super) fn may_run_under_mmas(&self, op: &Op) -> bool {
        let reads = |e: &Expression| {
            let mut found = false;
            e.walk(&mut |e| {
                found |=
                    matches!(e.kind, ExpressionKind::Variable(id) if self.started.iter().any(|(one, _)| *one == id));
            });
            found
        };
        match op {
            _ if self.started.is_empty() => true,
            Op::Let { to, value } => !reads(value) && !self.started.iter().any(|(one, _)| one == to),
            Op::CpAsync { pointers, mask, .. } => !reads(pointers) && !mask.as_ref().is_some_and(reads),
            Op::CpAsyncCommit => true,
            Op::Opaque { operation, operands, results } if operation.name == "tt.dot" => {
                let sum = operands.get(2);
                let adds = sum.is_some_and(|sum| {
                    // Whoever else reads it must have waited for it.
                    matches!(sum.kind, ExpressionKind::Variable(id) if self.reads[id.index()] == 1
                        && self.names.layouts[id.index()]
                            == results.first().and_then(|to| self.names.layouts[to.index()].clone()))
                });
                let is_mma = results.first().is_some_and(|to| {
                    super::dot::by_wgmma(&self.names, operation, operands, *to).is_some_and(|mma| mma.may_run_on())
                });
                !operands.iter().take(2).any(reads) && is_mma && (adds || !sum.is_some_and(reads))
            }
            _ => false,
        }
    }

    /// Puts what a loop's MMAs read of before it into shared memory.
    pub(super) fn hold_operands(&mut self, depth: usize, body: &[Node]) -> Vec<(VariableId, bool)> {
        if !self.names.in_order {
            return Vec::new();
        }
        let operands = super::dot::held_operands(&self.names, body);
        for (id, is_left, text) in &operands {
            let mut name = format!("{}_{}", self.names.variable(*id), if *is_left { "as_left" } else { "as_right" });
            while !self.taken.insert(name.clone()) {
                name.push('_');
            }
            self.line(depth, &format!("{name} = {text}"), "");
            self.names.held.borrow_mut().insert((*id, *is_left), name);
        }
        if !operands.is_empty() {
            self.line(depth, "fence_async_shared()", "");
        }
        operands.into_iter().map(|(id, is_left, _)| (id, is_left)).collect()
    }

    pub(super) fn wait_for_mmas(&mut self, depth: usize) {
        if self.started.is_empty() {
            return;
        }
        let started = std::mem::take(&mut self.started);
        let mut results: Vec<String> = Vec::new();
        for (id, _) in &started {
            let name = self.names.variable(*id).to_owned();
            if !results.contains(&name) {
                results.push(name);
            }
        }
        let operands: Vec<String> = started.into_iter().flat_map(|(_, operands)| operands).collect();
        self.line(depth, &super::dot::wait(&results, &operands), "");
    }

    /// Writes an MMA beside a pipeline whose result is waited for later; false if it is none.
    pub(super) fn starts_mma(&mut self, depth: usize, op: &Op, comment: &str) -> bool {
        let Op::Opaque { operation, operands, results } = op else { return false };
        let ("tt.dot", [to], true) = (operation.name.as_str(), results.as_slice(), self.names.in_order) else {
            return false;
        };
        let mma = super::dot::by_wgmma(&self.names, operation, operands, *to).filter(|mma| mma.may_run_on());
        let Some(mma) = mma else { return false };
        // What it adds to is its own from here on.
        let sum = operands.get(2).and_then(|sum| match sum.kind {
            ExpressionKind::Variable(id) => Some(id),
            _ => None,
        });
        let mut operands = mma.operands;
        if let Some(at) = self.started.iter().position(|(one, _)| Some(*one) == sum) {
            operands.extend(self.started.remove(at).1);
        }
        self.started.push((*to, operands));
        for line in mma.lines {
            self.line(depth, &line, comment);
        }
        true
    }
}
