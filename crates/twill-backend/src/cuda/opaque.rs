//! Operations that no pass has a rule for, by primitives that exchange elements through scratch memory.

use super::expression::{Expressions, flat_index, operand as shared_operand};
use super::fragment::Fragment;
use super::names::{self, missing};
use super::operation::bare;
use super::scratch::extents_along;
use crate::layout::Layout;
use std::fmt::Write as _;
use twill_codegen::Error;
use twill_codegen::ir::{CombineRegion, Expression, ExpressionKind, Group, Op, Opaque, VariableId, visit};
use twill_triton::mlir::{FloatKind, Type};

/// Warps of a group whose MMAs have a layout here.
const WARPS: u32 = 4;

/// Whether a `tt.dot` is done by `mma.sync`: of 16 bits, into sums of 32; else by multiplications and additions.
fn is_by_tensor_core(operands: &[Expression], warps: u32) -> bool {
    let [a, b, sum, ..] = operands else { return false };
    let is_half = matches!(a.element, Type::Float(FloatKind::F16 | FloatKind::BF16));
    let ([rows, depth], [_, columns]) = (a.shape.as_slice(), b.shape.as_slice()) else { return false };
    is_half
        && a.element == b.element
        && sum.element == Type::Float(FloatKind::F32)
        && warps == WARPS
        && (rows % 64 == 0 || matches!(rows, 16 | 32))
        && columns % 8 == 0
        && depth % 16 == 0
}

/// The layouts that results of MMAs have.
pub(super) fn layouts(group: &Group) -> Vec<Option<Layout>> {
    let mut layouts = vec![None; group.variables.len()];
    for nodes in [&group.begin, &group.body, &group.end] {
        visit(nodes, &mut |op| {
            if let Op::Opaque { operation, operands, results } = op
                && let ("tt.dot", [_, b, ..], [to]) = (operation.name.as_str(), operands.as_slice(), results.as_slice())
                && is_by_tensor_core(operands, group.warps)
            {
                layouts[to.index()] = b.shape.last().map(|columns| Layout::accumulator(*columns));
            }
        });
    }
    layouts
}

/// The statement of an operation.
///
/// # Errors
/// For operations that are not written.
pub(super) fn statement(
    print: &Expressions<'_>,
    operation: &Opaque,
    operands: &[Expression],
    results: &[VariableId],
) -> Result<String, Error> {
    let unknown = || missing(format!("the operation {}", operation.name));
    let attribute = |name: &str| operation.attribute(name).unwrap_or_default();
    let axis = || attribute("axis").parse::<usize>().unwrap_or(0);
    match (operation.name.as_str(), operands, results) {
        ("tt.dot", [a, b, sum, ..], [to]) => product(print, [a, b, sum], *to),
        ("tt.reduce" | "tt.scan", [_, ..], [_, ..]) => {
            let Some(region) = &operation.combine else { return Err(unknown()) };
            let reverse = (operation.name == "tt.scan").then(|| attribute("reverse") == "true");
            along(print, Along { axis: axis(), region, reverse }, operands, results)
        }
        ("tt.reshape", [x], [to]) => {
            let to = Target::of(print, *to);
            let place = flat_index(&to.fragment.axes(to.shape.len()), &to.shape);
            let whole = held(print, x)?;
            Ok(to.assigned(&print.moved(&whole, &x.shape, &to.fragment, &place)))
        }
        ("gpu.barrier" | "ttg.barrier" | "ttg.local_barrier", ..) => Ok(format!("{}.sync();", print.scratch(8))),
        ("tt.unsplat", [x], [to]) => {
            let to = Target::of(print, *to);
            let whole = held(print, x)?;
            Ok(to.assigned(&print.moved(&whole, &x.shape, &to.fragment, "0")))
        }
        ("tt.join" | "tt.cat", [a, b], [to]) => {
            let to = Target::of(print, *to);
            let at = flat_index(&to.fragment.axes(to.shape.len()), &to.shape);
            let count: u64 = a.shape.iter().product();
            let (place, is_first) = if operation.name == "tt.join" {
                (format!("({at}) / 2"), format!("({at}) % 2 == 0"))
            } else {
                (format!("({at}) % {count}"), format!("{at} < {count}"))
            };
            let [a, b] = [a, b].map(|x| {
                held(print, x).map(|whole| print.first("side", &print.moved(&whole, &x.shape, &to.fragment, &place)))
            });
            let (a, b) = (a?, b?);
            let each = to.each(&format!("{is_first} ? {a}[e] : {b}[e]"));
            Ok(to.assigned(&each))
        }
        ("tt.split", [x], [_, _]) => {
            let whole = held(print, x)?;
            let mut code = Vec::new();
            for (k, to) in results.iter().enumerate() {
                let to = Target::of(print, *to);
                let at = flat_index(&to.fragment.axes(to.shape.len()), &to.shape);
                code.push(to.assigned(&print.moved(&whole, &x.shape, &to.fragment, &format!("2 * ({at}) + {k}"))));
            }
            Ok(code.join("\n"))
        }
        ("tt.gather", [source, index, ..], [to]) => {
            let to = Target::of(print, *to);
            let axes = to.fragment.axes(to.shape.len());
            let index = print.tile(index, &to.fragment)?;
            let index = print.first("index", &index);
            let (_, extent, inner) = extents_along(&source.shape, axis());
            let at = flat_index(&axes, &to.shape);
            let (_, own, _) = extents_along(&to.shape, axis());
            let place =
                format!("({at}) / {} * {} + int({index}[e]) * {inner} + ({at}) % {inner}", own * inner, extent * inner);
            let whole = held(print, source)?;
            Ok(to.assigned(&print.moved(&whole, &source.shape, &to.fragment, &place)))
        }
        ("tt.elementwise_inline_asm", _, [_, ..]) => inline_assembly(print, operation, operands, results),
        // What is read anew each time must not be read ahead.
        ("tt.load", ..) if attribute("isVolatile") == "true" => Err(missing("a volatile load".into())),
        ("tt.load", [pointers, rest @ ..], [to]) => {
            let boxed = |e: &Expression| Some(Box::new(e.clone()));
            let kind = ExpressionKind::Load {
                pointers: Box::new(pointers.clone()),
                mask: rest.first().and_then(boxed),
                other: rest.get(1).and_then(boxed),
            };
            let to = Target::of(print, *to);
            let value = Expression { kind, shape: to.shape.clone(), element: to.element.clone() };
            let text = if to.is_number { print.scalar(&value)? } else { print.tile(&value, &to.fragment)? };
            Ok(format!("{} = {};", to.name, bare(&text)))
        }
        _ => Err(unknown()),
    }
}

/// A variable that an operation makes.
struct Target {
    name: String,
    shape: Vec<u64>,
    element: Type,
    fragment: Fragment,
    is_number: bool,
}

impl Target {
    fn of(print: &Expressions<'_>, id: VariableId) -> Target {
        let variable = &print.group.variables[id.index()];
        let number = Fragment::Linear { shape: Vec::new(), warps: print.group.warps };
        let tile = || print.fragment_of(id).unwrap_or_else(|| Fragment::of_shape(&variable.shape, print.group.warps));
        let is_number = variable.shape.is_empty();
        Target {
            name: print.variable(id),
            shape: variable.shape.clone(),
            element: variable.element.clone(),
            fragment: if is_number { number } else { tile() },
            is_number,
        }
    }

    /// The variable becomes what a text says, which is a tile, of one element for a number.
    fn assigned(&self, text: &str) -> String {
        format!("{} = {text}{};", self.name, if self.is_number { ".held[0]" } else { "" })
    }

    /// A tile made element by element.
    fn each(&self, value: &str) -> String {
        let element = names::element(&self.element).unwrap_or_default();
        format!("each<{element}, {}>([&](auto e) {{ return {value}; }})", self.fragment.name())
    }
}

/// A tile with a name, held as it is.
fn held(print: &Expressions<'_>, value: &Expression) -> Result<String, Error> {
    print.held(value, &print.fragment(value))
}

fn product(print: &Expressions<'_>, [a, b, sum]: [&Expression; 3], to: VariableId) -> Result<String, Error> {
    let to = Target::of(print, to);
    let [.., rows, depth] = *a.shape.as_slice() else { return Err(missing("an MMA of vectors".into())) };
    let [.., columns] = *b.shape.as_slice() else { return Err(missing("an MMA of vectors".into())) };
    let operands = [a.clone(), b.clone(), sum.clone()];
    if is_by_tensor_core(&operands, print.group.warps)
        && let Fragment::Accumulator { .. } = to.fragment
    {
        let left = Fragment::Accumulator { rows, columns: depth };
        let left = print.held(a, &left)?;
        let mut code = format!("{} = {};\n", to.name, bare(&print.tile(sum, &to.fragment)?));
        if let ExpressionKind::FromShared(slot) = &b.kind {
            let tile = shared_operand(print, slot)?;
            let address = if slot.transposed { "from.tile.address(n, k)" } else { "from.address(k, n)" };
            let _ = write!(
                code,
                "mma_with_shared({}, {left}, [from = {tile}](int k, int n) {{ return {address}; }});",
                to.name
            );
        } else {
            let right = held(print, b)?;
            let scratch = print.scratch(16 * columns * 2);
            let _ = write!(code, "mma_with_held({scratch}, {}, {left}, {right});", to.name);
        }
        return Ok(code);
    }
    let batch: u64 = a.shape[..a.shape.len() - 2].iter().product();
    let bytes = |e: &Expression| u64::from(e.element.scalar_bits().unwrap_or(32).max(8)) / 8;
    let scratch = print.scratch(2 * batch * (rows * bytes(a) + columns * bytes(b)));
    let (left, right) = (held(print, a)?, held(print, b)?);
    let sum = print.held(sum, &to.fragment)?;
    let at = flat_index(&to.fragment.axes(to.shape.len()), &to.shape);
    Ok(format!(
        "{} = multiply_add<{batch}, {rows}, {columns}, {depth}>({scratch}, {sum}, {left}, {right}, [&](auto e) {{ return {at}; }});",
        to.name
    ))
}

/// A reduction or a scan.
struct Along<'a> {
    axis: usize,
    region: &'a CombineRegion,
    /// Of a scan, whether it begins at the end.
    reverse: Option<bool>,
}

fn along(
    print: &Expressions<'_>,
    Along { axis, region, reverse }: Along<'_>,
    operands: &[Expression],
    results: &[VariableId],
) -> Result<String, Error> {
    let first = &operands[0];
    let fragment = operands.iter().find_map(|e| crate::layout::infer(e, &print.layouts)).map_or_else(
        || Fragment::of_shape(&first.shape, print.group.warps),
        |layout| Fragment::of(&layout, &first.shape, print.group.warps),
    );
    let targets: Vec<Target> = results.iter().map(|to| Target::of(print, *to)).collect();
    let (count, extent, inner) = extents_along(&first.shape, axis);
    // Several elements go as one value.
    let kinds: Result<Vec<String>, Error> = operands.iter().map(|e| names::element(&e.element)).collect();
    let kinds = kinds?;
    let fields: Vec<String> = kinds.iter().enumerate().map(|(k, kind)| format!("{kind} of{k};")).collect();
    let bytes: u64 = 8 * kinds.len() as u64;
    let stem = format!("elements_{}_", print.made.get() + 1);
    print.made.set(print.made.get() + 1);
    print.before.borrow_mut().push(format!("struct alignas({}) {stem} {{ {} }};", 4, fields.join(" ")));
    let parts: Result<Vec<String>, Error> = operands.iter().map(|e| print.held(e, &fragment)).collect();
    let parts: Vec<String> = parts?.iter().map(|part| format!("{part}[e]")).collect();
    let whole = format!("each<{stem}, {}>([&](auto e) {{ return {stem}{{{}}}; }})", fragment.name(), parts.join(", "));
    let whole = print.first("whole", &whole);
    let combine = print.first("combine", &combine_function(print, region, &stem, operands.len())?);
    let scratch = print.scratch(bytes * extent);
    let mut code = Vec::new();
    for (k, to) in targets.iter().enumerate() {
        let at = flat_index(&to.fragment.axes(to.shape.len()), &to.shape);
        let (call, flag) = match reverse {
            None => ("reduce", String::new()),
            Some(reverse) => ("scan", format!("{reverse}, ")),
        };
        let text = format!(
            "{call}<{count}, {extent}, {inner}, {flag}{}>({scratch}, {whole}, {combine}, [&](auto e) {{ return {at}; }})",
            to.fragment.name()
        );
        let made = print.first("made", &text);
        let each = if to.is_number {
            format!("{} = {made}.held[0].of{k};", to.name)
        } else {
            format!("{} = {};", to.name, to.each(&format!("{made}[e].of{k}")))
        };
        code.push(each);
    }
    Ok(code.join("\n"))
}

/// What a region does to two values of several elements.
fn combine_function(
    print: &Expressions<'_>,
    region: &CombineRegion,
    kind: &str,
    count: usize,
) -> Result<String, Error> {
    let mut text = format!("[=]({kind} left_, {kind} right_) {{ ");
    for (k, (name, element)) in region.arguments.iter().enumerate() {
        let side = if k < count { "left_" } else { "right_" };
        let _ =
            write!(text, "const {} {} = {side}.of{}; ", names::element(element)?, names::name(name), k % count.max(1));
    }
    for (name, value) in &region.body {
        let _ = write!(
            text,
            "const {} {} = {}; ",
            names::element(&value.element)?,
            names::name(name),
            print.scalar(value)?
        );
    }
    let results: Result<Vec<String>, Error> = region.results.iter().map(|value| print.scalar(value)).collect();
    let _ = write!(text, "return {kind}{{{}}}; }}", results?.join(", "));
    Ok(text)
}

/// Inline PTX of one element at a time.
fn inline_assembly(
    print: &Expressions<'_>,
    operation: &Opaque,
    operands: &[Expression],
    results: &[VariableId],
) -> Result<String, Error> {
    let attribute = |name: &str| operation.attribute(name).unwrap_or_default();
    let [to] = results else { return Err(missing("inline assembly with several results".into())) };
    if attribute("packed_element") != "1" {
        return Err(missing("inline assembly of several elements at a time".into()));
    }
    let to = Target::of(print, *to);
    let constraints: Vec<&str> = attribute("constraints").split(',').map(str::trim).collect();
    if constraints.len() != operands.len() + 1 {
        return Err(missing("inline assembly with these constraints".into()));
    }
    // Registers are numbers of their width.
    let register = |constraint: &str| match constraint.trim_start_matches('=') {
        "r" => Some("u32"),
        "l" => Some("u64"),
        "h" => Some("u16"),
        "f" => Some("float"),
        "d" => Some("double"),
        _ => None,
    };
    let unknown = || missing("inline assembly with these constraints".into());
    let axes = to.fragment.axes(to.shape.len());
    let (mut inputs, mut registers) = (Vec::new(), Vec::new());
    for (k, (operand, constraint)) in operands.iter().zip(&constraints[1..]).enumerate() {
        let value = if to.is_number { print.scalar(operand)? } else { print.element(operand, &to.fragment, &axes)? };
        let (kind, element) = (register(constraint).ok_or_else(unknown)?, names::element(&operand.element)?);
        registers.push(format!(
            "const {element} value{k} = {}; const {kind} in{k} = bits_as<{kind}>(value{k});",
            bare(&value)
        ));
        inputs.push(format!("\"{constraint}\"(in{k})"));
    }
    let kind = register(constraints[0]).ok_or_else(unknown)?;
    let element = names::element(&to.element)?;
    let assembly = attribute("asm_string").replace('%', "%%").replace('$', "%");
    let assembly = assembly.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let body = format!(
        "{} {kind} out; asm{}(\"{assembly}\" : \"{}\"(out) : {}); return bits_as<{element}>(out);",
        registers.join(" "),
        if attribute("pure") == "true" { "" } else { " volatile" },
        constraints[0],
        inputs.join(", ")
    );
    Ok(if to.is_number {
        format!("{} = [&]() {{ {body} }}();", to.name)
    } else {
        format!("{} = each<{element}, {}>([&](auto e) {{ {body} }});", to.name, to.fragment.name())
    })
}
