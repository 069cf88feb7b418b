//! Expressions.

use super::{Text, attributes, list, quoted};
use crate::ir::*;

impl Text<'_> {
    pub(super) fn expressions(&self, all: &[Expression]) -> String {
        all.iter().map(|e| self.expression(e)).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn mask(&self, mask: Option<&Expression>) -> String {
        mask.map_or_else(String::new, |mask| format!(" mask {}", self.expression(mask)))
    }

    pub(super) fn expression(&self, of: &Expression) -> String {
        use ExpressionKind as K;
        let text = match &of.kind {
            K::Variable(id) => self.variable(*id),
            K::Parameter(name) => format!("parameter {name}"),
            K::ProgramId { axis, instance: None } => format!("program_id({axis})"),
            K::ProgramId { axis, instance: Some(which) } => format!("program_id({axis}, {which})"),
            K::ProgramCount(axis) => format!("num_programs({axis})"),
            K::Iteration(number) => format!("iteration({})", Self::number(*number)),
            K::Integer(n) => format!("integer({n})"),
            K::UnknownZero => "unknown_zero".into(),
            K::Float(x) => format!("float({x:?})"),
            K::Range(start, end) => format!("range({start}, {end})"),
            K::Apply { operation, operands } => {
                format!("{}({})", self.operation(operation), self.expressions(operands))
            }
            K::Broadcast(x) => format!("broadcast({})", self.expression(x)),
            K::ExpandDims(axis, x) => format!("expand_dims {axis} ({})", self.expression(x)),
            K::Transpose(order, x) => format!("transpose {} ({})", list(order), self.expression(x)),
            K::Reduce { axis, combine, operand } => {
                format!("reduce {axis} {} ({})", combine.name(), self.expression(operand))
            }
            K::Columns(start, x) => format!("columns {start} ({})", self.expression(x)),
            K::PartialSums(x) => format!("partial_sums({})", self.expression(x)),
            K::Load { pointers, mask, other } => {
                let other =
                    other.as_ref().map_or_else(String::new, |other| format!(" other {}", self.expression(other)));
                format!("load({}{}{other})", self.expression(pointers), self.mask(mask.as_deref()))
            }
            K::FromShared(slot) => format!("local_load({})", self.slot(slot)),
            K::FromTensor(slot) => format!("tmem_load({})", self.slot(slot)),
        };
        let is_declared = match of.kind {
            K::Variable(id) => {
                let own = self.group.as_ref().and_then(|(group, ..)| group.variables.get(id.index()));
                own.is_some_and(|v| v.shape == of.shape && v.element == of.element)
            }
            _ => false,
        };
        if is_declared { text } else { format!("{text} : {} {}", list(&of.shape), of.element) }
    }

    pub(super) fn operation(&self, operation: &Elementwise) -> String {
        match operation {
            Elementwise::Opaque(opaque) => self.opaque(opaque),
            known => known.to_string(),
        }
    }

    pub(super) fn opaque(&self, opaque: &Opaque) -> String {
        let all = opaque.attributes.iter().map(|(name, value)| format!("{name} = {}", quoted(value))).collect();
        let combine = opaque.combine.as_ref().map_or_else(String::new, |region| self.combine_region(region));
        format!("opaque {}{} {combine}", quoted(&opaque.name), attributes(all))
    }

    fn combine_region(&self, region: &CombineRegion) -> String {
        let arguments: Vec<String> = region.arguments.iter().map(|(name, kind)| format!("{name} : {kind}")).collect();
        let body = region.body.iter().map(|(name, value)| format!("{name} = {} ", self.expression(value)));
        let results = self.expressions(&region.results);
        format!("combine ({}) {{ {}}} ({results}) ", arguments.join(", "), body.collect::<String>())
    }
}
