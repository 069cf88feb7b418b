//! Operations on elements as C++.

use super::names::{self, missing};
use crate::form::{Call, Domain, Form, Operands, comparison, form};
use twill_codegen::Error;
use twill_codegen::ir::{Elementwise, Expression, ExpressionKind, Opaque};
use twill_triton::mlir::{FloatKind, Type};

/// An operation on elements; `of` are what the texts say, for their types.
pub(super) fn apply(
    operation: &Elementwise,
    texts: &[String],
    of: &[Expression],
    element: &Type,
) -> Result<String, Error> {
    let unknown = || missing(format!("the operation {operation}"));
    if let Elementwise::Opaque(opaque) = operation {
        return match by_name(opaque, texts, element)? {
            Some(text) => Ok(text),
            None => match Elementwise::of(&opaque.name, opaque.attribute("predicate")) {
                Some(known) => apply(&known, texts, of, element),
                None => Err(unknown()),
            },
        };
    }
    let to = || names::element(element);
    let operand = of.first().map_or(element, |o| &o.element);
    let bits = names::unsigned(operand);
    let plain = || texts.iter().map(|t| bare(t)).collect::<Vec<_>>().join(", ");
    let form = form(operation).ok_or_else(unknown)?;
    match (form, texts) {
        // Integers wrap, which those of C that have a sign may not. Single numbers, of programs and trips, do not get near.
        (Form::Infix(symbol @ ("+" | "-" | "*" | "<<")), [a, b])
            if matches!(element, Type::Integer(32 | 64)) && of.iter().any(|o| !o.shape.is_empty()) =>
        {
            let bits = names::unsigned(element);
            Ok(format!("{}({bits}({}) {symbol} {bits}({}))", to()?, bare(a), bare(b)))
        }
        // C computes with 32 bits at least.
        (Form::Infix(symbol), [a, b]) if matches!(element, Type::Integer(8 | 16)) => {
            Ok(format!("{}({a} {symbol} {b})", to()?))
        }
        (Form::Infix(symbol) | Form::Quotient { cuda: symbol, .. }, [a, b]) => Ok(format!("({a} {symbol} {b})")),
        (Form::Division, [a, b]) if is_of_a_row(&of[1]) && matches!(element, Type::Float(FloatKind::F32)) => {
            Ok(format!("divide_by_row({}, {})", bare(a), bare(b)))
        }
        (Form::Division, [a, b]) => Ok(format!("divide({}, {})", bare(a), bare(b))),
        (Form::Unsigned { cuda, .. }, [a, b]) => {
            Ok(format!("{}({bits}({}) {cuda} {bits}({}))", to()?, bare(a), bare(b)))
        }
        (Form::Call(function), _) => called(function, texts, operand, element).ok_or_else(unknown)?,
        (Form::Negation, [a]) => Ok(format!("(-{a})")),
        (Form::Comparison, [a, b]) => {
            let symbol = comparison(operation).ok_or_else(|| missing(format!("the comparison {operation}")))?;
            Ok(if operation.is_unsigned() {
                format!("({bits}({}) {symbol} {bits}({}))", bare(a), bare(b))
            } else {
                format!("({a} {symbol} {b})")
            })
        }
        (Form::Selection, [c, a, b]) => Ok(format!("({c} ? {a} : {b})")),
        // A truth value that has a sign is 0 or -1.
        (Form::Conversion, [a]) if *operand == Type::Integer(1) => Ok(format!("{}(-int({}))", to()?, bare(a))),
        (Form::Conversion, [a]) if *operation == Elementwise::TruncI && *element == Type::Integer(1) => {
            Ok(format!("(({a} & 1) != 0)"))
        }
        (Form::Conversion, [a]) => Ok(format!("{}({})", to()?, bare(a))),
        (Form::FromUnsigned, [a]) => Ok(format!("{}({bits}({}))", to()?, bare(a))),
        (Form::ToUnsigned, [a]) => Ok(format!("{}({}({}))", to()?, names::unsigned(element), bare(a))),
        (Form::Clamping, [x, low, high, ..]) => {
            Ok(format!("minimum(maximum({}, {}), {})", bare(x), bare(low), bare(high)))
        }
        // CUDA has the functions of its libdevice under their names without a prefix.
        (Form::Libdevice, _) => match operation.predicate().unwrap_or_default().strip_prefix("__nv_") {
            Some(name) => Ok(match name.strip_prefix("fast_") {
                Some(fast) => format!("__{fast}({})", plain()),
                None => format!("{name}({})", plain()),
            }),
            None => Err(missing(format!("the function {}", operation.predicate().unwrap_or_default()))),
        },
        _ => Err(unknown()),
    }
}

/// An operation that has no row among those on elements, by its name in MLIR; none where its name is not known here either.
fn by_name(operation: &Opaque, texts: &[String], element: &Type) -> Result<Option<String>, Error> {
    let kind = names::element(element)?;
    Ok(match (operation.name.as_str(), texts) {
        ("tt.ptr_to_int" | "tt.int_to_ptr", [x]) => Some(format!("({kind})({})", bare(x))),
        ("tt.bitcast" | "arith.bitcast", [x]) => Some(format!("bits_as<{kind}>({})", bare(x))),
        ("arith.remf", [a, b]) if *element == Type::Float(FloatKind::F64) => {
            Some(format!("fmod({}, {})", bare(a), bare(b)))
        }
        ("arith.remf", [a, b]) => Some(format!("{kind}(fmodf(float({}), float({})))", bare(a), bare(b))),
        _ => None,
    })
}

/// A call, if the function takes numbers of that type.
fn called(function: Call, texts: &[String], operand: &Type, element: &Type) -> Option<Result<String, Error>> {
    let name = function.cuda;
    if *operand == Type::Float(FloatKind::F64) && function.cuda_of == Domain::Single {
        let name = name.strip_suffix("_of").or_else(|| name.strip_suffix('f')).unwrap_or(name).replace("__f", "__d");
        let plain = texts.iter().map(|t| bare(t)).collect::<Vec<_>>().join(", ");
        return Some(Ok(format!("{name}({plain})")));
    }
    Some(match function.cuda_of.takes(operand)? {
        Operands::AsTheyAre => {
            let plain = texts.iter().map(|t| bare(t)).collect::<Vec<_>>().join(", ");
            // Integers of all widths are of one type here; and what CUDA makes of two may have another.
            match (element, name) {
                (Type::Integer(_), "maximum" | "minimum") => {
                    names::element(element).map(|kind| format!("{name}<{kind}>({plain})"))
                }
                (Type::Integer(_), _) => names::element(element).map(|kind| format!("{kind}({name}({plain}))")),
                _ => Ok(format!("{name}({plain})")),
            }
        }
        Operands::Widened => {
            let wide: Vec<String> = texts.iter().map(|t| format!("float({})", bare(t))).collect();
            names::element(element).map(|kind| format!("{kind}({name}({}))", wide.join(", ")))
        }
    })
}

/// Without parentheses around all of it.
pub(super) fn bare(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else { return text };
    let mut depth = 0_i32;
    for c in inner.chars() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth < 0 {
            return text;
        }
    }
    inner
}

/// Whether all elements of a row have the same.
fn is_of_a_row(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::Broadcast(of) => matches!(of.kind, ExpressionKind::ExpandDims(1, _)),
        _ => false,
    }
}
