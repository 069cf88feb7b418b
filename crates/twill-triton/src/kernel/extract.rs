//! From the body of a loop to its tile operations.

use std::collections::BTreeMap;

use crate::error::{Error, OperationLocation};
use crate::mlir::{Definition, FloatKind, ForLoop, Module, Operation, OperationId, ValueId};
use crate::tile::{
    self, Element, Operand, Origin, Role, Split, TileId, TileLoop, TileOpKind, TileOperation, Transfer, elementwise,
};

use super::grid::Differences;
use super::resolve::{Resolved, Resolver, View};
use super::varies::Facts;
use super::{dimensions, matrix, names, views};
use crate::operations::{self, Memory, memory};

/// The tile operations of a loop; `None` if it has none.
pub(super) fn tile_loop(
    module: &Module,
    function: OperationId,
    parts: ForLoop<'_>,
    needed: &[bool],
    differences: &Differences,
    kernel: &str,
) -> Result<Option<TileLoop>, Error> {
    let facts = Facts::new(module, &parts);
    let mut resolver = Resolver::new(module, parts, facts, differences);
    let mut chosen = Vec::new();
    for id in &module.block(parts.body).operations {
        if is_tile_operation(module, &resolver.facts, needed, *id)? {
            chosen.push(*id);
        }
    }
    if chosen.is_empty() {
        return Ok(None);
    }
    let mut results = Vec::with_capacity(chosen.len());
    for (index, id) in chosen.iter().enumerate() {
        let is_load = matches!(memory(&module.operation(*id).name), Some(Memory::Load { .. }));
        let result = module.read_result(*id).filter(|value| is_load || needed[value.index()]);
        let result = result.map(|value| resolver.add_computed(value, TileId::new(index), *id));
        results.push(result.transpose()?);
    }
    let mut operations: Vec<TileOperation> = Vec::with_capacity(chosen.len());
    let (mut matrix_tiles, mut whole_tiles) = (BTreeMap::new(), BTreeMap::new());
    for (id, result) in chosen.iter().zip(results) {
        let (mut kind, operands) = read(&mut resolver, *id)?;
        if let TileOpKind::Load(Transfer::Pointer) = kind
            && let Some(tile) = matrix::tile(module, function, &parts, *id)
        {
            kind = TileOpKind::Load(Transfer::Tma);
            matrix_tiles.insert(*id, tile);
        } else if let TileOpKind::Load(Transfer::Pointer) = kind
            && let Some(tile) = matrix::whole(module, function, &parts, *id)
        {
            whole_tiles.insert(*id, tile);
        }
        let place = OperationLocation::of(module, *id);
        let mut operation = TileOperation {
            variable: String::new(),
            kind,
            operands,
            result,
            sub_tile: None,
            place,
            statements: vec![*id],
        };
        operation.variable = variable(&resolver, &operations, &operation, *id);
        operations.push(operation);
    }
    let mut tile_loop = TileLoop {
        name: kernel.to_owned(),
        place: OperationLocation::of(module, parts.operation),
        operation: parts.operation,
        operations,
        tiles: resolver.tiles,
        rows: None,
        ambiguous: None,
        trips: differences.of_trips(module, &parts),
        split: Split::Whole,
        matrix_tiles,
        whole_tiles,
    };
    dimensions::find_rows(&mut tile_loop);
    Ok(Some(tile_loop))
}

/// Returns whether an operation at the top level of the body works on tiles.
fn is_tile_operation(module: &Module, facts: &Facts, needed: &[bool], id: OperationId) -> Result<bool, Error> {
    let operation = module.operation(id);
    let name = operation.name.as_str();
    let is_needed = operation.results.iter().any(|value| needed[value.index()]);
    let varies = operation.results.iter().any(|value| facts.varies(*value));
    let tiles = operation.operands.iter().chain(&operation.results).any(|v| operations::is_tile(module.type_of(*v)));
    let unsupported = || Error::UnsupportedOperation { place: OperationLocation::of(module, id) };
    match memory(name) {
        // Whoever reads a number loads it.
        Some(Memory::Load { .. }) if !tiles && !operation.results.iter().any(|v| module.type_of(*v).is_tensor()) => {
            return Ok(false);
        }
        Some(Memory::Load { .. }) => {
            let is_read = operation.results.iter().any(|value| !module.uses(*value).is_empty());
            return Ok(is_needed || tiles && is_read);
        }
        Some(Memory::Store { .. } | Memory::Atomic { .. }) => return Ok(true),
        None => {}
    }
    match name {
        "scf.yield" => Ok(false),
        "tt.call" | "func.call" => Err(Error::Call { place: OperationLocation::of(module, id) }),
        _ if operations::is_synchronization(name) => Err(unsupported()),
        "scf.if" if !touches_tiles(module, id) => Ok(false),
        "scf.if" | "scf.while" | "scf.index_switch" | "scf.execute_region" => {
            Err(Error::ControlFlow { place: OperationLocation::of(module, id) })
        }
        // Code generation proves that it orders nothing.
        "gpu.barrier" => Ok(false),
        "tt.extern_elementwise" if !operation.attributes.flag("pure") => Err(unsupported()),
        "tt.dot" | "tt.reduce" => Ok(is_needed && varies),
        _ if views::viewed(operation).is_some() || views::is_constant(name) => Ok(false),
        _ if operations::is_addressing(name) || operations::is_hint(name) => Ok(false),
        _ if operations::is_conversion(name) || elementwise(name).is_some() => {
            Ok(is_needed && varies && !is_index_arithmetic(module, facts, operation))
        }
        _ => {
            let is_arithmetic = name.starts_with("arith.") || name.starts_with("math.") || !tiles;
            let is_ignored = is_arithmetic && !operation.results.is_empty() && operation.regions.is_empty();
            let matters = is_needed && (tiles || operation.results.iter().any(|value| facts.is_from_tiles(*value)));
            match (matters, operations::is_pure(operation)) {
                (matters, true) => Ok(matters && varies),
                (false, false) if is_ignored => Ok(false),
                _ => Err(unsupported()),
            }
        }
    }
}

/// Scalars and single rows or columns that depend on no tile, such as indices and what masks add to a row of scores: every group
/// computes them where it uses them. Of numbers that are no integers, not those that an iteration has from the one before.
fn is_index_arithmetic(module: &Module, facts: &Facts, operation: &Operation) -> bool {
    operation.results.iter().all(|value| {
        let kind = module.type_of(*value);
        let is_vector = kind.known_shape().unwrap_or_default().iter().filter(|extent| **extent > 1).count() <= 1;
        let is_integer = Element::of(kind).is_some_and(Element::is_integer);
        !facts.is_from_tiles(*value)
            && (!kind.is_tensor() || is_vector && (is_integer || !is_carried_on(module, operation)))
    })
}

/// Returns whether what an operation reads is made of something that a loop carries.
fn is_carried_on(module: &Module, operation: &Operation) -> bool {
    let mut seen = vec![false; module.value_count()];
    let mut next: Vec<ValueId> = operation.operands.clone();
    while let Some(value) = next.pop() {
        if std::mem::replace(&mut seen[value.index()], true) {
            continue;
        }
        match module.definition(value) {
            Definition::Result { operation: made, .. } if module.operation(made).block == operation.block => {
                next.extend(module.walk(made).flat_map(|id| &module.operation(id).operands));
            }
            Definition::Argument { block, index } if Some(block) == operation.block && index > 0 => return true,
            _ => {}
        }
    }
    false
}

fn touches_tiles(module: &Module, id: OperationId) -> bool {
    module.walk(id).any(|inner| {
        let operation = module.operation(inner);
        let mut values = operation.operands.iter().chain(&operation.results);
        memory(&operation.name).is_some() || values.any(|value| operations::is_tile(module.type_of(*value)))
    })
}

/// The effect of a tile operation, and its operands.
fn read(resolver: &mut Resolver<'_>, id: OperationId) -> Result<(TileOpKind, Vec<Operand>), Error> {
    let module = resolver.module;
    let operation = module.operation(id);
    let name = operation.name.as_str();
    let operands = operation.operands.as_slice();
    if let Some(memory) = memory(name) {
        let (kind, data) = match memory {
            Memory::Load { transfer, other } => (TileOpKind::Load(transfer), other),
            Memory::Store { transfer, data } => (TileOpKind::Store(transfer), Some(data)),
            Memory::Atomic { transfer, data } => (TileOpKind::AtomicReduce(transfer), Some(data)),
        };
        let is_data = |place: usize| Some(place) == data;
        let mut read = match data.and_then(|place| operands.get(place)) {
            Some(value) => inputs(resolver, id, &[*value])?,
            None => Vec::new(),
        };
        let addresses: Vec<ValueId> =
            operands.iter().enumerate().filter(|(place, _)| !is_data(*place)).map(|(_, value)| *value).collect();
        read.extend(
            resolver.tiles_of(&addresses).into_iter().map(|(tile, distance)| address(resolver, tile, distance)),
        );
        return Ok((kind, read));
    }
    let kind = match name {
        "tt.dot" => return dot(resolver, id),
        "tt.reduce" => {
            let axis = operation.attributes.axis();
            TileOpKind::Reduce { axis, combine: operations::combine(module, id) }
        }
        _ => match elementwise(name) {
            Some((name, recipe)) => TileOpKind::Elementwise { name, recipe },
            None if operations::is_conversion(name) => TileOpKind::Convert,
            None => TileOpKind::Opaque { axis: operations::axis_of(module, id) },
        },
    };
    Ok((kind, inputs(resolver, id, operands)?))
}

fn operand(role: Role, view: View) -> Operand {
    let View { tile, distance, shape, element, dimensions } = view;
    Operand { role, tiles: vec![tile], distance, shape, element, dimensions, row_dimension: None }
}

fn address(resolver: &Resolver<'_>, tile: tile::ValueId, distance: u32) -> Operand {
    let tile::Tile { shape, element, .. } = resolver.tiles[tile.index()].clone();
    let dimensions = (0..shape.len()).map(Some).collect();
    operand(Role::Address, View { tile, distance, shape, element, dimensions })
}

fn inputs(resolver: &mut Resolver<'_>, id: OperationId, values: &[ValueId]) -> Result<Vec<Operand>, Error> {
    let mut read = Vec::new();
    for value in values {
        match resolver.resolve(*value, id)? {
            Resolved::Tile(view) => read.push(operand(Role::Input, view)),
            Resolved::Scalar => {
                // A scalar may still wait for a tile, for instance through a branch.
                let tiles = resolver.tiles_of(&[*value]);
                read.extend(tiles.into_iter().map(|(tile, distance)| {
                    let tile::Tile { shape, element, .. } = resolver.tiles[tile.index()].clone();
                    let dimensions = vec![None; shape.len()];
                    operand(Role::Input, View { tile, distance, shape, element, dimensions })
                }));
            }
            Resolved::Constant => {}
        }
    }
    Ok(read)
}

fn dot(resolver: &mut Resolver<'_>, id: OperationId) -> Result<(TileOpKind, Vec<Operand>), Error> {
    let module = resolver.module;
    let operation = module.operation(id);
    let [left, right, accumulator, ..] = operation.operands.as_slice() else {
        return Err(Error::UnsupportedOperation { place: OperationLocation::of(module, id) });
    };
    let mut read = Vec::new();
    for (role, value) in [(Role::Left, *left), (Role::Right, *right)] {
        let view = match resolver.resolve(value, id)? {
            Resolved::Tile(view) => view,
            Resolved::Scalar | Resolved::Constant => resolver.constant_tile(value, id)?,
        };
        read.push(operand(role, view));
    }
    if let Resolved::Tile(view) = resolver.resolve(*accumulator, id)? {
        read.push(operand(Role::Accumulator, view));
    }
    let (left, right) = (read[0].element, read[1].element);
    let precision = operation.attributes.text("inputPrecision").unwrap_or("ieee");
    Ok((TileOpKind::Dot { element: multiplied(left, right, precision) }, read))
}

/// The type of the tensor core's operands, if it multiplies these.
fn multiplied(left: Element, right: Element, precision: &str) -> Option<twill_machine::Element> {
    use twill_machine::Element as Multiplied;
    Some(match (left, right) {
        (Element::Float(FloatKind::F16), Element::Float(FloatKind::F16)) => Multiplied::F16,
        (Element::Float(FloatKind::BF16), Element::Float(FloatKind::BF16)) => Multiplied::Bf16,
        (Element::Float(a), Element::Float(b)) if a.bits() == 8 && b.bits() == 8 => Multiplied::F8,
        (Element::Integer(8), Element::Integer(8)) => Multiplied::I8,
        (Element::Float(FloatKind::F32), Element::Float(FloatKind::F32)) if precision == "tf32" => Multiplied::Tf32,
        _ => return None,
    })
}

/// The usual name of the result of an operation: by its own name, or by the name of what it is computed from.
fn variable(resolver: &Resolver<'_>, before: &[TileOperation], operation: &TileOperation, id: OperationId) -> String {
    if let Some(name) = names::of_operation(resolver.module, id) {
        return name;
    }
    let first = operation.operands.iter().find(|o| o.role != Role::Address).and_then(|o| o.tiles.first());
    match first.map(|tile| &resolver.tiles[tile.index()].origin) {
        Some(Origin::Operation(producer)) => before.get(producer.index()).map(|op| op.variable.clone()),
        Some(Origin::Invariant { name, .. }) => Some(name.clone()),
        None => None,
    }
    .unwrap_or_else(|| operation.label().to_owned())
}
