//! A warp group: its variables, cursors, and the structure of its code.

use super::program::stem;
use super::{NameKind, Read, Reader};
use crate::ir::*;
use twill_graph::{GroupId, LoopOperation, OpId};

impl Reader<'_> {
    pub(super) fn group(&mut self) -> Read<Group> {
        let name = self.word()?.to_owned();
        let mut group = Group {
            id: GroupId::new(0),
            name,
            warps: 4,
            registers: 0,
            variables: Vec::new(),
            cursors: Vec::new(),
            trips: Vec::new(),
            begin: Vec::new(),
            body: Vec::new(),
            end: Vec::new(),
        };
        self.names.retain(|(kind, _), _| !matches!(kind, NameKind::Variable | NameKind::Cursor));
        self.variables.clear();
        self.attributes(|reader, name| {
            match name {
                "id" => group.id = GroupId::new(reader.number()?),
                "warps" => group.warps = reader.number()?,
                "registers" => group.registers = reader.number()?,
                other => return Err(reader.unknown("attribute of a group", other)),
            }
            Ok(())
        })?;
        self.expect("{")?;
        while !self.accept("}") {
            match self.word()? {
                "variable" => self.variable()?,
                "cursor" => {
                    let name = self.word()?;
                    self.define(NameKind::Cursor, name, group.cursors.len());
                    let slots = self.number()?;
                    group.cursors.push(Cursor { name: stem(name), slots, phase: self.accept_word("phase") });
                }
                "trips" => {
                    let index: usize = self.number()?;
                    self.expect("=")?;
                    if group.trips.len() <= index {
                        group.trips.resize(index + 1, None);
                    }
                    group.trips[index] = Some(self.read_variable()?);
                }
                "begin" => group.begin = self.block()?,
                "body" => group.body = self.block()?,
                "end" => group.end = self.block()?,
                other => return Err(self.unknown("part of a group", other)),
            }
        }
        group.variables.append(&mut self.variables);
        Ok(group)
    }

    pub(super) fn variable(&mut self) -> Read<()> {
        self.expect("%")?;
        let name = self.word()?;
        self.define(NameKind::Variable, name, self.variables.len());
        let shape = self.list(Self::number)?;
        self.expect(":")?;
        let element = self.element()?;
        let columns = |reader: &mut Self| {
            reader.expect("(")?;
            let columns = reader.number()?;
            reader.expect(")")?;
            Ok(columns)
        };
        let form = if self.accept_word("accumulator") {
            let columns = columns(self)?;
            Form::Accumulator { columns, bits: if self.accept_word("of") { self.number()? } else { 16 } }
        } else if self.accept_word("left_operand") {
            Form::LeftOperand { columns: columns(self)? }
        } else if self.accept_word("neighbours") {
            Form::Neighbours { elements: columns(self)? }
        } else if self.accept_word("pointers") {
            Form::Pointers { dimension: columns(self)? as usize }
        } else {
            Form::Any
        };
        self.variables.push(Variable { name: stem(name), shape, element, form });
        Ok(())
    }

    pub(super) fn block(&mut self) -> Read<Vec<Node>> {
        self.expect("{")?;
        let mut nodes = Vec::new();
        while !self.accept("}") {
            nodes.push(self.node()?);
        }
        Ok(nodes)
    }

    pub(super) fn node(&mut self) -> Read<Node> {
        Ok(match self.word_ahead() {
            "pipelined_loop" => {
                self.word()?;
                let index = self.number()?;
                self.expect_word("from")?;
                Node::PipelinedLoop { index, first: self.number()?, body: self.block()? }
            }
            "trip_switch" => {
                self.word()?;
                let index = self.number()?;
                self.expect_word("at_least")?;
                let (at_least, then) = (self.number()?, self.block()?);
                let fewer = if self.accept_word("fewer") {
                    FewTrips::Any(self.block()?)
                } else {
                    let mut each = Vec::new();
                    while self.accept_word("exactly") {
                        each.push((self.number()?, self.block()?));
                    }
                    FewTrips::Each(each)
                };
                Node::TripSwitch { index, at_least, then, fewer }
            }
            "for" => {
                self.word()?;
                let variable = self.read_variable()?;
                self.expect("=")?;
                let lower = self.expression()?;
                self.expect_word("to")?;
                let upper = self.expression()?;
                self.expect_word("step")?;
                Node::For { variable, lower, upper, step: self.expression()?, body: self.block()? }
            }
            "while" => {
                self.word()?;
                let before = self.block()?;
                self.expect_word("condition")?;
                Node::While { before, condition: self.expression()?, body: self.block()? }
            }
            "if" => {
                self.word()?;
                let (condition, then) = (self.expression()?, self.block()?);
                let otherwise = if self.accept_word("else") { self.block()? } else { Vec::new() };
                Node::If { condition, then, otherwise }
            }
            "return" => {
                self.word()?;
                Node::Return
            }
            _ => Node::Op(self.op()?, self.note()?),
        })
    }

    pub(super) fn note(&mut self) -> Read<Note> {
        let mut note = Note::default();
        let (mut cycle, mut stage, mut index, mut operation) = (None, None, None, None);
        self.attributes(|reader, name| {
            match name {
                "cycle" => cycle = Some(reader.number()?),
                "stage" => stage = Some(reader.number()?),
                "line" => note.line = Some(reader.number()?),
                "loop" => index = Some(reader.number()?),
                "operation" => operation = Some(OpId::new(reader.number()?)),
                "text" => note.text = reader.string()?,
                other => return Err(reader.unknown("attribute of an operation", other)),
            }
            Ok(())
        })?;
        note.scheduled = cycle.zip(stage);
        note.operation = index.zip(operation).map(|(index, op)| LoopOperation { index, op });
        Ok(note)
    }
}
