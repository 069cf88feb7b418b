//! Writes a module in MLIR's generic form.

use std::fmt::Write;
use twill_triton::mlir::{Attribute, Attributes, BlockId, FloatKind, Module, OperationId, RegionId, Type, ValueId};

/// The text; `None` where something is kept as text that may mean something only where it stood (an alias, an attribute
/// of an unknown kind).
pub(super) fn written(module: &Module) -> Option<String> {
    let mut writer = Writer { module, text: String::new() };
    writer.operation(module.top())?;
    Some(writer.text)
}

struct Writer<'m> {
    module: &'m Module,
    text: String,
}

impl Writer<'_> {
    fn operation(&mut self, id: OperationId) -> Option<()> {
        let operation = self.module.operation(id);
        if !operation.results.is_empty() {
            let results: Vec<String> = operation.results.iter().map(|v| value(*v)).collect();
            write!(self.text, "{} = ", results.join(", ")).ok()?;
        }
        let operands: Vec<String> = operation.operands.iter().map(|v| value(*v)).collect();
        write!(self.text, "{}({})", quoted(&operation.name), operands.join(", ")).ok()?;
        if !operation.successors.is_empty() {
            let successors: Vec<String> = operation.successors.iter().map(|b| block(*b)).collect();
            write!(self.text, "[{}]", successors.join(", ")).ok()?;
        }
        if !operation.regions.is_empty() {
            self.text.push_str(" (");
            for (index, region) in operation.regions.iter().enumerate() {
                self.text.push_str(if index == 0 { "{\n" } else { ", {\n" });
                self.region(*region)?;
                self.text.push('}');
            }
            self.text.push(')');
        }
        if !operation.attributes.is_empty() {
            write!(self.text, " {}", dictionary(&operation.attributes)?).ok()?;
        }
        let operands = self.types(&operation.operands)?;
        let results = self.types(&operation.results)?;
        writeln!(self.text, " : ({operands}) -> ({results})").ok()
    }

    fn types(&self, values: &[ValueId]) -> Option<String> {
        let types: Option<Vec<String>> = values.iter().map(|v| self.type_of(*v)).collect();
        Some(types?.join(", "))
    }

    fn type_of(&self, id: ValueId) -> Option<String> {
        kind(self.module.type_of(id))
    }

    fn region(&mut self, id: RegionId) -> Option<()> {
        for (index, at) in self.module.region(id).blocks.iter().enumerate() {
            let arguments = &self.module.block(*at).arguments;
            // The entry needs no name, and must have none where nothing may branch to it.
            if index > 0 || !arguments.is_empty() {
                let typed = |v: &ValueId| Some(format!("{}: {}", value(*v), self.type_of(*v)?));
                let arguments: Option<Vec<String>> = arguments.iter().map(typed).collect();
                writeln!(self.text, "{}({}):", block(*at), arguments?.join(", ")).ok()?;
            }
            for operation in &self.module.block(*at).operations {
                self.operation(*operation)?;
            }
        }
        Some(())
    }
}

fn value(id: ValueId) -> String {
    format!("%v{}", id.index())
}

fn block(id: BlockId) -> String {
    format!("^b{}", id.index())
}

/// A type that says everything by itself.
fn kind(kind: &Type) -> Option<String> {
    let text = kind.to_string();
    (!text.contains('#')).then_some(text)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'"' && byte != b'\\' => quoted.push(byte.into()),
            byte => quoted.push_str(&format!("\\{byte:02X}")),
        }
    }
    quoted.push('"');
    quoted
}

fn dictionary(attributes: &Attributes) -> Option<String> {
    let entry = |(name, attribute): (&str, &Attribute)| match attribute {
        Attribute::Unit => Some(quoted(name)),
        attribute => Some(format!("{} = {}", quoted(name), constant(attribute)?)),
    };
    let entries: Option<Vec<String>> = attributes.iter().map(entry).collect();
    Some(format!("{{{}}}", entries?.join(", ")))
}

/// MLIR wants a point in what is no integer, and the bits of infinities, which depend on the type.
fn float(value: f64, of: &Type) -> Option<String> {
    if value.is_finite() {
        let text = format!("{value:e}");
        return Some(if text.contains('.') { text } else { text.replacen('e', ".0e", 1) });
    }
    let bits = match of {
        Type::Float(FloatKind::F16) => "7C00",
        Type::Float(FloatKind::BF16) => "7F80",
        Type::Float(FloatKind::F32) => "7F800000",
        Type::Float(FloatKind::F64) => "7FF0000000000000",
        _ => return None,
    };
    match (value.is_nan(), value > 0.0) {
        (true, _) => None,
        (_, true) => Some(format!("0x{bits}")),
        (_, false) => Some(format!("0xF{}", &bits[1..])),
    }
}

fn constant(attribute: &Attribute) -> Option<String> {
    Some(match attribute {
        Attribute::Unit => "unit".into(),
        Attribute::Bool(value) => value.to_string(),
        Attribute::Integer { value, kind: of } => format!("{value} : {}", kind(of)?),
        Attribute::Float { value, kind: of } => format!("{} : {}", float(value.0, of)?, kind(of)?),
        Attribute::Splat { value, kind: of } => {
            let element = constant(value)?;
            format!("dense<{}> : {}", element.split(" : ").next()?, kind(of)?)
        }
        Attribute::String(text) => quoted(text),
        Attribute::Symbol(name) => format!("@{}", quoted(name)),
        Attribute::Type(of) => kind(of)?,
        Attribute::Integers(values) if values.is_empty() => "array<i64>".into(),
        Attribute::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(constant).collect();
            format!("[{}]", items?.join(", "))
        }
        Attribute::Dictionary(attributes) => dictionary(attributes)?,
        Attribute::Integers(values) => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            format!("array<i64: {}>", values.join(", "))
        }
        Attribute::Typed { text, kind: of } if !text.contains('#') => format!("{text} : {}", kind(of)?),
        // Read as the name of a case, whichever enumeration it is of.
        Attribute::Enumeration(name) => format!("#arith.fastmath<{name}>"),
        Attribute::Other(text) if !text.contains('#') => text.clone(),
        Attribute::Typed { .. } | Attribute::Other(_) => return None,
    })
}
