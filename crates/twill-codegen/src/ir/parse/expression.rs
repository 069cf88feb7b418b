//! Expressions.

use super::{Read, Reader};
use crate::ir::*;

impl Reader<'_> {
    pub(super) fn opaque(&mut self) -> Read<Opaque> {
        let mut opaque = Opaque { name: self.string()?, attributes: Vec::new(), combine: None };
        self.attributes(|reader, name| {
            opaque.attributes.push((name.to_owned(), reader.string()?));
            Ok(())
        })?;
        if self.accept_word("combine") {
            opaque.combine = Some(self.combine_region()?);
        }
        Ok(opaque)
    }

    fn combine_region(&mut self) -> Read<CombineRegion> {
        let mut region = CombineRegion::default();
        self.expect("(")?;
        while !self.accept(")") {
            if !region.arguments.is_empty() {
                self.expect(",")?;
            }
            let name = self.word()?.to_owned();
            self.expect(":")?;
            region.arguments.push((name, self.element()?));
        }
        self.expect("{")?;
        while !self.accept("}") {
            let name = self.word()?.to_owned();
            self.expect("=")?;
            region.body.push((name, self.expression()?));
        }
        region.results = self.operands()?;
        Ok(region)
    }

    pub(super) fn operands(&mut self) -> Read<Vec<Expression>> {
        self.expect("(")?;
        let mut all = Vec::new();
        while !self.accept(")") {
            if !all.is_empty() {
                self.expect(",")?;
            }
            all.push(self.expression()?);
        }
        Ok(all)
    }

    pub(super) fn operand_in_parentheses(&mut self) -> Read<Box<Expression>> {
        self.expect("(")?;
        let operand = self.expression()?;
        self.expect(")")?;
        Ok(Box::new(operand))
    }

    pub(super) fn expression(&mut self) -> Read<Expression> {
        self.blank();
        let kind = if self.rest().starts_with('%') {
            let id = self.read_variable()?;
            if !self.accept(":") {
                let variable = &self.variables[id.index()];
                let (shape, element) = (variable.shape.clone(), variable.element.clone());
                return Ok(Expression { kind: ExpressionKind::Variable(id), shape, element });
            }
            ExpressionKind::Variable(id)
        } else {
            let kind = self.expression_kind()?;
            self.expect(":")?;
            kind
        };
        Ok(Expression { kind, shape: self.list(Self::number)?, element: self.element()? })
    }

    pub(super) fn expression_kind(&mut self) -> Read<ExpressionKind> {
        use ExpressionKind as K;
        let word = self.word()?;
        let simple = matches!(
            word,
            "program_id"
                | "num_programs"
                | "iteration"
                | "integer"
                | "float"
                | "range"
                | "load"
                | "local_load"
                | "tmem_load"
        );
        if !simple {
            return self.compound(word);
        }
        self.expect("(")?;
        let kind = match word {
            "program_id" => {
                let axis = self.number()?;
                K::ProgramId { axis, instance: if self.accept(",") { Some(self.number()?) } else { None } }
            }
            "num_programs" => K::ProgramCount(self.number()?),
            "iteration" => K::Iteration(self.iteration()?),
            "integer" => K::Integer(self.number()?),
            "float" => K::Float(self.number()?),
            "range" => {
                let start = self.number()?;
                self.expect(",")?;
                K::Range(start, self.number()?)
            }
            "load" => {
                let pointers = Box::new(self.expression()?);
                let mask = self.optional("mask")?.map(Box::new);
                K::Load { pointers, mask, other: self.optional("other")?.map(Box::new) }
            }
            "local_load" => K::FromShared(self.slot()?),
            _ => K::FromTensor(self.slot()?),
        };
        self.expect(")")?;
        Ok(kind)
    }

    pub(super) fn compound(&mut self, word: &str) -> Read<ExpressionKind> {
        use ExpressionKind as K;
        Ok(match word {
            "parameter" => K::Parameter(self.word()?.to_owned()),
            "unknown_zero" => K::UnknownZero,
            "broadcast" => K::Broadcast(self.operand_in_parentheses()?),
            "partial_sums" => K::PartialSums(self.operand_in_parentheses()?),
            "columns" => K::Columns(self.number()?, self.operand_in_parentheses()?),
            "expand_dims" => K::ExpandDims(self.number()?, self.operand_in_parentheses()?),
            "transpose" => K::Transpose(self.list(Self::number)?, self.operand_in_parentheses()?),
            "reduce" => {
                let axis = self.number()?;
                let name = self.word()?;
                let combine = Elementwise::of(name, None).ok_or_else(|| self.unknown("combination", name))?;
                K::Reduce { axis, combine, operand: self.operand_in_parentheses()? }
            }
            "opaque" => {
                let operation = Elementwise::Opaque(Box::new(self.opaque()?));
                K::Apply { operation, operands: self.operands()? }
            }
            name => {
                let predicate = if self.accept("<") { Some(self.word()?) } else { None };
                if predicate.is_some() {
                    self.expect(">")?;
                }
                let operation = Elementwise::of(name, predicate).ok_or_else(|| self.unknown("expression", name))?;
                K::Apply { operation, operands: self.operands()? }
            }
        })
    }
}
