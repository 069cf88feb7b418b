//! Loops, branches and early returns: the structure of the TTIR as it stands.
//!
//! What a loop or a branch carries becomes variables. An early return (`cf.cond_br` in the function's body) becomes a branch whose
//! other way has all that follows.

use super::Builder;
use crate::error::Error;
use crate::ir::{Expression, ExpressionKind, Node, Note, Op, VariableId};
use twill_triton::mlir::{BlockId, OperationId, ValueId};

/// Blocks that are written before a function is taken to be no structured one: a block that several lead to is written for each.
pub(super) const MOST_BLOCKS: usize = 64;

impl Builder<'_> {
    /// A block of the function's body, and those that it leads to.
    pub(super) fn blocks(&mut self, block: BlockId, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let module = self.module;
        self.blocks += 1;
        let Some((last, before)) = module.block(block).operations.split_last() else { return Ok(()) };
        if self.blocks > MOST_BLOCKS {
            return Err(self.unsupported(*last, "branches that are no structured ones", "use if and for instead"));
        }
        for id in before {
            self.operation(*id, nodes)?;
        }
        let operation = module.operation(*last);
        let to = |this: &mut Self, which: usize, first: usize, nodes: &mut Vec<Node>| -> Result<(), Error> {
            let Some(target) = operation.successors.get(which).copied() else { return Ok(()) };
            let arguments = module.block(target).arguments.clone();
            let given: Vec<ValueId> = operation.operands.iter().skip(first).take(arguments.len()).copied().collect();
            let variables: Vec<VariableId> = arguments.iter().map(|v| this.variable_of(*v)).collect();
            this.assign(&variables, &given, nodes)?;
            this.name(&arguments, &variables);
            this.blocks(target, nodes)
        };
        match (operation.name.as_str(), operation.operands.as_slice()) {
            ("cf.br", _) => to(self, 0, 0, nodes),
            ("cf.cond_br", [condition, ..]) => {
                let condition = self.value(*condition)?;
                let first = operation.successors.first().map_or(0, |b| module.block(*b).arguments.len());
                let (mut then, mut otherwise) = (Vec::new(), Vec::new());
                to(self, 0, 1, &mut then)?;
                to(self, 1, 1 + first, &mut otherwise)?;
                nodes.push(Node::If { condition, then, otherwise });
                Ok(())
            }
            ("tt.return", _) => Ok(()),
            _ => self.operation(*last, nodes),
        }
    }

    /// An `scf.for`, `scf.if` or `scf.while`; false if it is none.
    pub(super) fn structured(&mut self, id: OperationId, nodes: &mut Vec<Node>) -> Result<bool, Error> {
        match self.module.operation(id).name.as_str() {
            "scf.for" => self.for_loop(id, nodes)?,
            "scf.if" => self.branch(id, nodes)?,
            "scf.while" => self.while_loop(id, nodes)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn for_loop(&mut self, id: OperationId, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let Some(parts) = self.module.for_loop(id) else { return Err(self.unsupported(id, "this loop", "use range")) };
        if self.multistage(&parts, nodes)? {
            return Ok(());
        }
        let (carried, yielded) = (parts.carried.to_vec(), parts.yielded.to_vec());
        let [lower, upper, step] = [parts.lower, parts.upper, parts.step].map(|v| self.value(v));
        let (lower, upper, step) = (lower?, upper?, step?);
        let variables = self.carry(&carried, parts.initial, nodes)?;
        let variable = self.variable_of(parts.induction);
        let counter = self.read(variable);
        self.values.insert(parts.induction, counter);
        let mut body = Vec::new();
        self.region_body(parts.body, &mut body)?;
        self.assign(&variables, &yielded, &mut body)?;
        nodes.push(Node::For { variable, lower, upper, step, body });
        self.name(parts.results, &variables);
        Ok(())
    }

    fn while_loop(&mut self, id: OperationId, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let module = self.module;
        let operation = module.operation(id);
        let regions: Vec<BlockId> =
            operation.regions.iter().filter_map(|r| module.region(*r).blocks.first().copied()).collect();
        let [head, tail] = regions.as_slice() else { return Err(self.unsupported(id, "this loop", "use while")) };
        let variables = self.carry(&module.block(*head).arguments.clone(), &operation.operands, nodes)?;
        let mut before = Vec::new();
        self.region_body(*head, &mut before)?;
        let terminator = module.terminator(*head).map(|t| module.operation(t));
        let Some((condition, passed)) = terminator.and_then(|t| t.operands.split_first()) else {
            return Err(self.unsupported(id, "this loop", "use while"));
        };
        let arguments = module.block(*tail).arguments.clone();
        let handed: Vec<VariableId> = arguments.iter().map(|v| self.variable_of(*v)).collect();
        self.assign(&handed, passed, &mut before)?;
        let mut condition = self.value(*condition)?;
        if !matches!(condition.kind, ExpressionKind::Variable(_)) {
            let to = self.variable("condition", Vec::new(), condition.element.clone());
            before.push(Node::Op(Op::Let { to, value: condition }, Note::default()));
            condition = self.read(to);
        }
        self.name(&arguments, &handed);
        let mut body = Vec::new();
        self.region_body(*tail, &mut body)?;
        let yielded = module.terminator(*tail).map(|t| module.operation(t).operands.clone()).unwrap_or_default();
        self.assign(&variables, &yielded, &mut body)?;
        nodes.push(Node::While { before, condition, body });
        self.name(&operation.results, &handed);
        Ok(())
    }

    fn branch(&mut self, id: OperationId, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let module = self.module;
        let operation = module.operation(id);
        let Some(condition) = operation.operands.first() else { return Ok(()) };
        let condition = self.value(*condition)?;
        let results: Vec<VariableId> = operation.results.iter().map(|v| self.variable_of(*v)).collect();
        let mut ways = Vec::new();
        for region in &operation.regions {
            let mut way = Vec::new();
            if let Some(block) = module.region(*region).blocks.first() {
                self.region_body(*block, &mut way)?;
                let yielded =
                    module.terminator(*block).map(|t| module.operation(t).operands.clone()).unwrap_or_default();
                self.assign(&results, &yielded, &mut way)?;
            }
            ways.push(way);
        }
        let mut ways = ways.into_iter();
        let (then, otherwise) = (ways.next().unwrap_or_default(), ways.next().unwrap_or_default());
        nodes.push(Node::If { condition, then, otherwise });
        self.name(&operation.results, &results);
        Ok(())
    }

    /// The operations of a region's block but for its terminator.
    fn region_body(&mut self, block: BlockId, nodes: &mut Vec<Node>) -> Result<(), Error> {
        let operations = &self.module.block(block).operations;
        for id in operations.split_last().map_or(&[][..], |(_, before)| before) {
            self.operation(*id, nodes)?;
        }
        Ok(())
    }

    /// Variables of what a loop carries, with their first values.
    pub(super) fn carry(
        &mut self,
        carried: &[ValueId],
        first: &[ValueId],
        nodes: &mut Vec<Node>,
    ) -> Result<Vec<VariableId>, Error> {
        let variables: Vec<VariableId> = carried.iter().map(|v| self.variable_of(*v)).collect();
        self.assign(&variables, first, nodes)?;
        self.name(carried, &variables);
        Ok(variables)
    }

    pub(super) fn name(&mut self, values: &[ValueId], variables: &[VariableId]) {
        for (value, variable) in values.iter().zip(variables) {
            let read = self.read(*variable);
            self.values.insert(*value, read);
        }
    }

    /// All at once: what one variable gets may be what another has held.
    pub(super) fn assign(&mut self, to: &[VariableId], from: &[ValueId], nodes: &mut Vec<Node>) -> Result<(), Error> {
        let mut given: Vec<Expression> = from.iter().map(|v| self.value(*v)).collect::<Result<_, _>>()?;
        let held = |e: &Expression| match e.kind {
            ExpressionKind::Variable(id) => to.iter().position(|v| *v == id),
            _ => None,
        };
        for (k, expression) in given.iter_mut().enumerate() {
            if held(expression).is_some_and(|other| other < k) {
                let stem = format!("{}_before", self.variables[to[k].index()].name);
                let before = self.variable(&stem, expression.shape.clone(), expression.element.clone());
                nodes.push(Node::Op(Op::Let { to: before, value: expression.clone() }, Note::default()));
                *expression = self.read(before);
            }
        }
        for (to, value) in to.iter().zip(given) {
            if value.kind != ExpressionKind::Variable(*to) {
                nodes.push(Node::Op(Op::Let { to: *to, value }, Note::default()));
            }
        }
        Ok(())
    }
}
