//! Operations that no pass has a rule for, by their counterparts in Gluon.

use super::dot::multiplication;
use super::expression::Names;
use super::in_order::coalesced;
use super::layout::Layout;
use super::load::load;
use super::names::{dtype, literal};
use super::operation::{apply, is_number};
use std::fmt::Write as _;
use twill_codegen::ir::{CombineRegion, Expression, ExpressionKind, Opaque, VariableId};
use twill_triton::mlir::Type;

/// Whether an operation is written.
pub(super) fn is_known(operation: &Opaque) -> bool {
    matches!(
        operation.name.as_str(),
        "tt.load"
            | "tt.store"
            | "tt.dot"
            | "tt.reduce"
            | "tt.scan"
            | "tt.reshape"
            | "tt.join"
            | "tt.split"
            | "tt.cat"
            | "tt.gather"
            | "tt.histogram"
            | "tt.unsplat"
            | "tt.atomic_rmw"
            | "tt.atomic_cas"
            | "tt.atomic_load"
            | "tt.atomic_poll"
            | "tt.atomic_store"
            | "tt.elementwise_inline_asm"
            | "tt.descriptor_load"
            | "tt.descriptor_store"
            | "tt.descriptor_reduce"
            | "tt.make_tensor_descriptor"
            | "tt.print"
            | "tt.assert"
            | "gpu.barrier"
            | "ttg.barrier"
            | "ttg.local_barrier"
            | "ub.poison"
    )
}

/// A function of scalars that combines two elements.
pub(super) fn combine_function(name: &str, region: &CombineRegion) -> String {
    let arguments: Vec<&str> = region.arguments.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = format!("@gluon.jit\ndef {name}({}):\n", arguments.join(", "));
    for (name, value) in &region.body {
        let _ = writeln!(text, "    {name} = {}", of_scalars(value));
    }
    let results: Vec<String> = region.results.iter().map(of_scalars).collect();
    let _ = writeln!(text, "    return {}", results.join(", "));
    text
}

fn of_scalars(value: &Expression) -> String {
    match &value.kind {
        ExpressionKind::Parameter(name) => name.clone(),
        ExpressionKind::Apply { operation, operands } => {
            let operands: Vec<String> = operands.iter().map(of_scalars).collect();
            apply(operation, &operands, &value.element)
        }
        ExpressionKind::Integer(n) => {
            format!("scalar({}, {})", super::expression::integer(*n, &value.element), dtype(&value.element))
        }
        ExpressionKind::Float(x) => format!("scalar({}, {})", super::expression::float(*x), dtype(&value.element)),
        _ => "undefined_scalar".into(),
    }
}

/// The statement of an operation.
pub(super) fn statement(
    names: &Names<'_>,
    operation: &Opaque,
    operands: &[Expression],
    results: &[VariableId],
    combine: &str,
) -> String {
    let of = |e: &Expression| own(names, e);
    let all: Vec<String> = operands.iter().map(of).collect();
    let result = |k: usize| results.get(k).map(|v| &names.group.variables[v.index()]);
    let to: Vec<&str> = results.iter().map(|v| names.variable(*v)).collect();
    // A text may leave out what an operation makes.
    let has_effect = matches!(
        operation.name.as_str(),
        "tt.store" | "tt.atomic_store" | "tt.descriptor_store" | "tt.descriptor_reduce" | "tt.print" | "tt.assert"
    );
    if to.is_empty() && !has_effect && !operation.name.ends_with("barrier") {
        return unknown(operation);
    }
    let shape = |k: usize| list(result(k).map_or(&[][..], |v| &v.shape));
    let attribute = |name: &str| operation.attribute(name).unwrap_or_default();
    let list_of = |range: std::ops::Range<usize>| all.get(range).unwrap_or_default().join(", ");
    let layout_of = |k: usize| results.get(k).and_then(|v| names.layouts[v.index()].clone());
    // The result in the layout of its variable.
    let converted = |k: usize, text: String| match layout_of(k) {
        Some(Layout::Like(own)) if own == to[k] => format!("{} = {text}", to[k]),
        Some(layout) => format!("{} = gl.convert_layout({text}, {})", to[k], names.layout(&layout)),
        None => format!("{} = {text}", to[k]),
    };
    let in_result = |e: &Expression| match layout_of(0) {
        Some(layout) if !e.shape.is_empty() => names.tile(e, &layout),
        _ => of(e),
    };
    // What is given to Triton's builder has a type.
    let typed = |e: &Expression| match in_result(e) {
        text if e.shape.is_empty() && is_number(&text) => format!("scalar({text}, {})", dtype(&e.element)),
        text => text,
    };
    let number = |name: &str| attribute(name).parse::<i64>().unwrap_or(0);
    let flag = |name: &str| if attribute(name) == "true" { "True" } else { "False" };
    match operation.name.as_str() {
        "tt.load" => {
            let [pointers, masked @ ..] = operands else { return unknown(operation) };
            let mask = masked.first().map(in_result);
            let other = masked.get(1).map(|other| (in_result(other), other));
            let other = other.as_ref().map(|(text, other)| (text.as_str(), *other));
            let volatile = if attribute("isVolatile") == "true" { ", volatile=True" } else { "" };
            let more = format!("{}{volatile}", caching(operation));
            let element = result(0).map_or(&Type::Integer(32), |loaded| &loaded.element);
            format!("{} = {}", to[0], load(element, &in_result(pointers), mask.as_deref(), other, &more))
        }
        "tt.store" => {
            let [pointers, value, mask @ ..] = operands else { return unknown(operation) };
            let layout =
                [pointers, value].into_iter().find_map(|operand| super::layout::infer(operand, &names.layouts));
            let put = |e: &Expression| match &layout {
                Some(layout) if !e.shape.is_empty() => names.tile(e, layout),
                _ => of(e),
            };
            let mask = mask.first().map_or(String::new(), |m| format!(", mask={}", put(m)));
            format!("gl.store({}, {}{mask}{})", put(pointers), put(value), caching(operation))
        }
        "tt.dot" => multiplication(names, operation, operands, results),
        "tt.reduce" | "tt.scan" => {
            let reverse = if attribute("reverse") == "true" { ", reverse=True" } else { "" };
            let axis = number("axis");
            // All operands in the layout of the first; scans know no layout of an MMA.
            let layout = match (operation.name.as_str(), operands.first()) {
                ("tt.scan", Some(e)) => {
                    let bits = u64::from(e.element.scalar_bits().unwrap_or(32));
                    Some(coalesced(&e.shape, e.shape.len().saturating_sub(1), bits, names.group.warps))
                }
                _ => operands.iter().find_map(|e| super::layout::infer(e, &names.layouts)),
            };
            let put = |e: &Expression| layout.as_ref().map_or_else(|| of(e), |l| names.tile(e, l));
            let inputs: Vec<String> = operands.iter().map(put).collect();
            let input = if let [one] = inputs.as_slice() { one.clone() } else { format!("({})", inputs.join(", ")) };
            let name = if operation.name == "tt.reduce" { "gl.reduce" } else { "gl.associative_scan" };
            let mut text = format!("{} = {name}({input}, {axis}, {combine}{reverse})", to.join(", "));
            for (k, name) in to.iter().enumerate().filter(|(k, _)| layout_of(*k).is_some()) {
                let _ = write!(text, "\n{}", converted(k, (*name).to_owned()));
            }
            text
        }
        "tt.reshape" => converted(0, format!("gl.reshape({}, {})", list_of(0..1), shape(0))),
        "tt.unsplat" => format!("{} = unsplat({})", to[0], list_of(0..1)),
        "tt.join" => {
            // Both in the layout of the first.
            let layout = operands.iter().find_map(|e| super::layout::infer(e, &names.layouts));
            let put = |e: &Expression| layout.as_ref().map_or_else(|| of(e), |l| names.tile(e, l));
            let inputs: Vec<String> = operands.iter().map(put).collect();
            converted(0, format!("gl.join({})", inputs.join(", ")))
        }
        "tt.cat" => {
            let [a, b] = operands else { return unknown(operation) };
            let layout = coalesced(&a.shape, a.shape.len().saturating_sub(1), 32, names.group.warps);
            let (a, b) = (names.tile(a, &layout), names.tile(b, &layout));
            converted(0, format!("gl.reshape(gl.permute(gl.join({a}, {b}), (1, 0)), {})", shape(0)))
        }
        "tt.split" => {
            let Some(x) = operands.first() else { return unknown(operation) };
            let layout = pairs(&x.shape, names.group.warps);
            let mut text = format!("{} = gl.split({})", to.join(", "), names.tile(x, &layout));
            let is_own = |k: usize| layout_of(k).is_none_or(|layout| layout == Layout::Like(to[k].to_owned()));
            for (k, name) in to.iter().enumerate().filter(|(k, _)| !is_own(*k)) {
                let _ = write!(text, "\n{}", converted(k, (*name).to_owned()));
            }
            text
        }
        "tt.gather" => {
            let [source, index, ..] = operands else { return unknown(operation) };
            converted(0, format!("gl.gather({}, {}, {})", of(source), in_result(index), number("axis")))
        }
        "tt.histogram" => {
            let bins = result(0).and_then(|v| v.shape.first().copied()).unwrap_or(1);
            let mask = operands.get(1).map_or(String::new(), |m| format!(", mask={}", of(m)));
            let layout = layout_of(0).map_or(String::new(), |l| format!(", layout={}", names.layout(&l)));
            format!("{} = gl.histogram({}, {bins}{mask}{layout})", to[0], list_of(0..1))
        }
        "tt.atomic_rmw" => {
            let [pointers, value, mask @ ..] = operands else { return unknown(operation) };
            let kind = match attribute("atomic_rmw_op") {
                "exch" => "xchg",
                other => other,
            };
            let mask = mask.first().map_or("scalar(True, gl.int1)".into(), typed);
            let (sem, scope) = (ordering(attribute("sem")), scope(attribute("scope")));
            format!(
                "{} = atomic({}, {}, {}, {mask}, {sem}, {scope})",
                to[0],
                literal(kind),
                in_result(pointers),
                typed(value)
            )
        }
        "tt.atomic_cas" => {
            let [pointers, expected, value] = operands else { return unknown(operation) };
            let (sem, scope) = (ordering(attribute("sem")), scope(attribute("scope")));
            let all = [pointers, expected, value].map(typed).join(", ");
            format!("{} = compare_and_swap({all}, {sem}, {scope})", to[0])
        }
        // Gluon has them since 3.9, as TTIR has.
        "tt.atomic_load" | "tt.atomic_store" | "tt.atomic_poll" => {
            let call = operation.name.trim_start_matches("tt.");
            let layout = layout_of(0).or_else(|| super::layout::infer(operands.first()?, &names.layouts));
            let put = |e: &Expression| match &layout {
                Some(layout) if !e.shape.is_empty() => names.tile(e, layout),
                _ => typed(e),
            };
            let (sem, scope) = (ordering(attribute("sem")), scope(attribute("scope")));
            let (all, timeout) = match operands {
                [place, expected, timeout] if call == "atomic_poll" => {
                    (vec![put(place), put(expected)], format!(", timeout_ns={}", of(timeout)))
                }
                _ => (operands.iter().map(put).collect(), String::new()),
            };
            let assigned = to.first().map_or(String::new(), |name| format!("{name} = "));
            format!("{assigned}gl.{call}({}, sem={sem}, scope={scope}{timeout})", all.join(", "))
        }
        "tt.elementwise_inline_asm" => {
            let types: Vec<String> = (0..to.len()).filter_map(result).map(|v| dtype(&v.element)).collect();
            let types = if let [one] = types.as_slice() { one.clone() } else { format!("({})", types.join(", ")) };
            let inputs: Vec<String> = operands.iter().map(in_result).collect();
            format!(
                "{} = gl.inline_asm_elementwise({}, {}, [{}], dtype={types}, is_pure={}, pack={})",
                to.join(", "),
                literal(attribute("asm_string")),
                literal(attribute("constraints")),
                inputs.join(", "),
                flag("pure"),
                number("packed_element")
            )
        }
        "tt.descriptor_load" => {
            let Some(Type::TensorDescriptor(block)) = operands.first().map(|e| &e.element) else {
                return unknown(operation);
            };
            let whole = block.known_shape().unwrap_or_default();
            // Dimensions of extent 1 may be left out of the result.
            let bits = u64::from(block.element().scalar_bits().unwrap_or(32));
            let is_whole = result(0).is_some_and(|v| v.shape == whole);
            let layout = layout_of(0).filter(|_| is_whole);
            let layout =
                layout.unwrap_or_else(|| coalesced(&whole, whole.len().saturating_sub(1), bits, names.group.warps));
            let bytes = result(0)
                .map_or(0, |v| v.shape.iter().product::<u64>() * u64::from(v.element.scalar_bits().unwrap_or(8)) / 8);
            let text =
                format!("tma_load({}, [{}], {bytes}, {})", list_of(0..1), list_of(1..all.len()), names.layout(&layout));
            if is_whole {
                format!("{} = {text}", to[0])
            } else {
                converted(0, format!("gl.reshape({text}, {})", shape(0)))
            }
        }
        "tt.descriptor_store" => {
            format!("tma_store({}, [{}], {})", list_of(0..1), list_of(2..all.len()), list_of(1..2))
        }
        "tt.descriptor_reduce" => format!(
            "tma_reduce_tile({}, {}, [{}], {})",
            literal(attribute("kind")),
            list_of(0..1),
            list_of(2..all.len()),
            list_of(1..2)
        ),
        "tt.make_tensor_descriptor" => {
            let Some(base) = operands.first() else { return unknown(operation) };
            let rank = (operands.len() - 1) / 2;
            let kind = result(0).map(|v| v.element.clone());
            let Some(Type::TensorDescriptor(block)) = kind else { return unknown(operation) };
            let extents = list(&block.known_shape().unwrap_or_default());
            let mut strides: Vec<String> = operands[1 + rank..].iter().map(of).collect();
            if let Some(last) = strides.last_mut() {
                "1".clone_into(last);
            }
            let padding = if attribute("padding") == "nan" || attribute("padding") == "2" {
                ", padding_option=\"nan\""
            } else {
                ""
            };
            format!(
                "{} = tma.make_tensor_descriptor({}, shape=[{}], strides=[{}], block_shape={extents}, layout=gl.NVMMASharedLayout.get_default_for({extents}, {}){padding})",
                to[0],
                of(base),
                list_of(1..1 + rank),
                strides.join(", "),
                dtype(block.element())
            )
        }
        "tt.print" => format!(
            "print_values({}, {}{})",
            literal(attribute("prefix")),
            flag("hex"),
            all.iter().map(|x| format!(", {x}")).collect::<String>()
        ),
        "tt.assert" => format!("assert_all({}, {})", list_of(0..1), literal(attribute("message"))),
        "gpu.barrier" | "ttg.barrier" | "ttg.local_barrier" => "thread_barrier()".into(),
        // Any value will do.
        "ub.poison" => match (result(0), layout_of(0)) {
            (Some(v), Some(layout)) => {
                format!("{} = gl.full({}, 0, {}, {})", to[0], shape(0), dtype(&v.element), names.layout(&layout))
            }
            (Some(v), None) => format!("{} = scalar(0, {})", to[0], dtype(&v.element)),
            _ => unknown(operation),
        },
        _ => unknown(operation),
    }
}

/// An operand in its own layout.
pub(super) fn own(names: &Names<'_>, e: &Expression) -> String {
    if e.shape.is_empty() {
        return names.scalar(e);
    }
    let layout = super::layout::infer(e, &names.layouts)
        .unwrap_or_else(|| coalesced(&e.shape, e.shape.len() - 1, 32, names.group.warps));
    names.tile(e, &layout)
}

/// A layout in which each thread has both elements of the last dimension.
fn pairs(shape: &[u64], warps: u32) -> Layout {
    Layout::Coalesced { shape: shape.to_vec(), dimension: shape.len().saturating_sub(1), vector: 2, warps }
}

fn caching(operation: &Opaque) -> String {
    let mut text = String::new();
    match operation.attribute("cache") {
        None | Some("none") => {}
        Some(modifier) => {
            let modifier = format!(".{}", modifier.trim_start_matches('.'));
            let _ = write!(text, ", cache_modifier={}", literal(&modifier));
        }
    }
    match operation.attribute("evict") {
        None | Some("evict_normal") => {}
        Some(policy) => {
            let _ = write!(text, ", eviction_policy={}", literal(policy));
        }
    }
    text
}

fn ordering(text: &str) -> &'static str {
    match text {
        "acquire" | "2" => "\"acquire\"",
        "release" | "3" => "\"release\"",
        "relaxed" | "1" => "\"relaxed\"",
        _ => "\"acq_rel\"",
    }
}

fn scope(text: &str) -> &'static str {
    match text {
        "cta" | "2" => "\"cta\"",
        "sys" | "3" => "\"sys\"",
        _ => "\"gpu\"",
    }
}

pub(super) fn unknown(operation: &Opaque) -> String {
    // A name that nobody defines stops the compiler: nothing wrong is computed.
    format!("unknown({})", literal(&operation.name))
}

pub(super) fn list(values: &[u64]) -> String {
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    format!("[{}]", values.join(", "))
}
