//! Operations on elements as Gluon source.

use super::names::{dtype, literal};
use crate::form::{Form, comparison, form};
use twill_codegen::ir::{Elementwise, Opaque};
use twill_triton::mlir::Type;

/// An operation on elements. A name that nobody defines stops the compiler: nothing wrong is computed.
pub(super) fn apply(operation: &Elementwise, operands: &[String], element: &Type) -> String {
    let call = |name: &str, more: &str| format!("{name}({}{more})", operands.join(", "));
    let unknown = || call("unknown", "");
    let two = |symbol: &str| match operands {
        [a, b] => format!("{} {symbol} {}", nested(a), nested(b)),
        _ => unknown(),
    };
    let first = || operands.first().map_or("0", String::as_str);
    // A number of Python's has no type to change.
    let typed = || if is_number(first()) { format!("gl.to_tensor({})", first()) } else { nested(first()) };
    // The TTIR's integers have no sign; those of Gluon's that are generated do, but for these operations.
    let without_sign = |symbol: &str| {
        let unsigned = |x: &String| match is_number(x) {
            true => format!("unsigned(gl.to_tensor({x}))"),
            false => format!("unsigned({x})"),
        };
        operands.iter().map(unsigned).collect::<Vec<_>>().join(&format!(" {symbol} "))
    };
    let signed = |text: String| format!("{}.to({}, bitcast=True)", nested(&text), dtype(element));
    if let Elementwise::Opaque(opaque) = operation {
        return from_mlir(opaque, operands, element);
    }
    let Some(form) = form(operation) else { return unknown() };
    match form {
        Form::Infix(symbol) => two(symbol),
        Form::Division => two("/"),
        // Two numbers of Python's are divided by Python, which rounds down; the kernel rounds to 0.
        Form::Quotient { gluon, .. } => match operands {
            [a, b] if is_number(a) && is_number(b) => format!("gl.to_tensor({a}) {gluon} {b}"),
            _ => two(gluon),
        },
        Form::Unsigned { gluon, .. } => signed(without_sign(gluon)),
        Form::Negation => format!("-{}", nested(first())),
        Form::Comparison => match comparison(operation) {
            None => unknown(),
            Some(symbol) if operation.is_unsigned() => without_sign(symbol),
            Some(symbol) => two(symbol),
        },
        Form::Selection => call("gl.where", ""),
        Form::Call(function) => call(function.gluon, function.gluon_takes),
        Form::Conversion => format!("{}.to({})", typed(), dtype(element)),
        Form::FromUnsigned => format!("unsigned({}).to({})", typed(), dtype(element)),
        Form::ToUnsigned => signed(format!("{}.to({})", typed(), dtype(element).replace("int", "uint"))),
        Form::Clamping => match operands {
            [x, low, high, ..] => format!("gl.minimum(gl.maximum({x}, {low}), {high})"),
            _ => unknown(),
        },
        Form::Libdevice => {
            let symbol = operation.predicate().unwrap_or_default();
            format!("call_libdevice(\"{symbol}\", {}, {})", dtype(element), operands.join(", "))
        }
    }
}

/// An operation by the name that Triton's builder has for it.
fn from_mlir(opaque: &Opaque, operands: &[String], element: &Type) -> String {
    let attribute = |name: &str| opaque.attribute(name).unwrap_or_default();
    let all = operands.join(", ");
    let first = || operands.first().map_or("0", String::as_str);
    let name = match opaque.name.as_str() {
        "tt.bitcast" | "arith.bitcast" => return format!("bitcast({all}, {})", dtype(element)),
        "tt.int_to_ptr" | "tt.ptr_to_int" => return format!("{}.to({})", nested(first()), dtype(element)),
        "tt.fp_to_fp" => {
            let rounding = match attribute("rounding") {
                "rtz" | "0" => "rtz",
                _ => "rtne",
            };
            return format!("{}.to({}, fp_downcast_rounding=\"{rounding}\")", nested(first()), dtype(element));
        }
        // The others are known by their form.
        "tt.clampf" => return format!("clamp_nan({all})"),
        "tt.extern_elementwise" => {
            return format!("call_libdevice({}, {}, {all})", literal(attribute("symbol")), dtype(element));
        }
        "arith.cmpi" => format!("icmp{}", attribute("predicate").to_uppercase()),
        "arith.cmpf" => format!("fcmp{}", attribute("predicate").to_uppercase()),
        "arith.divui" => "udiv".into(),
        "arith.remui" => "urem".into(),
        "arith.shrui" => "lshr".into(),
        "arith.remf" => "frem".into(),
        "tt.mulhiui" => "umulhi".into(),
        other => other.rsplit('.').next().unwrap_or_default().to_owned(),
    };
    format!("elementwise({}, {}, {all})", literal(&name), dtype(element))
}

/// Whether Python computes a text itself: it has numbers and operators, but no names.
pub(super) fn is_number(text: &str) -> bool {
    if matches!(
        text.trim_start_matches('-'),
        "True" | "False" | "float(\"inf\")" | "float(\"nan\")" | "float(\"-inf\")"
    ) {
        return true;
    }
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').filter(|word| !word.is_empty());
    !text.is_empty() && words.all(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// With parentheses where it is more than a name, a number or a call.
fn nested(text: &str) -> String {
    let mut depth = 0_i32;
    let is_open = text.chars().any(|c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && c == ' '
    });
    if is_open || text.starts_with('-') { format!("({text})") } else { text.to_owned() }
}
