//! Loops over tiles and their parts in one, as two loops.
//!
//! Persistent kernels go through the parts of one tile after another in a single loop, so that compilers prefetch across tiles
//! (Triton's tutorial 09 before 3.3, Inductor's persistent templates):
//!
//! ```text
//! for _ in range(tiles * parts):
//!     part = 0 if part == parts - 1 else part + 1
//!     if part == 0: …            # the next tile
//!     sum = dot(…, sum)
//!     if part == parts - 1: …    # its end; sum = 0
//! ```
//!
//! In Twill the loop over parts is pipelined, and loads of the next tile overlap the end of the tile before.

mod counter;

use crate::mlir::{Attribute, Copies, Definition, Module, NewOperation, OperationId, Type, ValueId};
use crate::operations::is_pure;
use counter::{Counter, Number, equals, operands, successor, tiles};

/// The module with such loops of a function as loops in loops.
pub(crate) fn nested(mut module: Module, function: OperationId) -> Module {
    let loops: Vec<OperationId> = module.for_loops(function).map(|parts| parts.operation).collect();
    for id in loops.into_iter().rev() {
        if let Some(flat) = Flattened::of(&module, id) {
            flat.nest(&mut module);
            module.number_uses();
        }
    }
    module
}

/// What a carried value is.
#[derive(Clone, Copy, Debug)]
enum Carried {
    Counter,
    /// The same in all iterations.
    Same,
    /// Changed for each tile, at its beginning or its end: this is it in the next iteration.
    ByTile(ValueId),
    /// Changed for each part: its value where a tile begins, and that after an iteration.
    ByPart(ValueId, ValueId),
}

/// What becomes of an operation of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    /// The branch that begins a tile.
    Begin,
    /// The branch that ends one.
    End,
    /// Computed once for a tile.
    Tile,
    Part,
}

/// A loop over tiles and their parts.
#[derive(Debug)]
struct Flattened {
    id: OperationId,
    counter: Counter,
    tiles: Number,
    carried: Vec<Carried>,
    places: Vec<(OperationId, Place)>,
    /// Selected where a tile begins: values that are carried by the loop over parts.
    selected: Vec<(ValueId, ValueId)>,
}

impl Flattened {
    fn of(module: &Module, id: OperationId) -> Option<Flattened> {
        let parts = module.for_loop(id)?;
        let is_plain =
            module.integer_constant(parts.lower) == Some(0) && module.integer_constant(parts.step) == Some(1);
        let is_read = |value: &ValueId| !module.uses(*value).is_empty();
        if !is_plain || is_read(&parts.induction) || parts.results.iter().any(is_read) {
            return None;
        }
        let counter = (0..parts.carried.len()).find_map(|index| Counter::of(module, id, index))?;
        if let Number::Value(count) = counter.parts
            && module.type_of(count) != module.type_of(counter.part)
        {
            return None;
        }
        let tiles = tiles(module, parts.upper, counter.parts)?;
        let reader = Reader { module, id, counter: &counter };
        let (selected, carried) = reader.carried()?;
        let places = reader.places(&carried, &selected)?;
        Some(Flattened { id, counter, tiles, carried, places, selected })
    }
}

/// What carried values are, and selections at a tile's beginning with the carried value that is selected otherwise.
type AllCarried = (Vec<(ValueId, ValueId)>, Vec<Carried>);

/// What reads a loop's body.
struct Reader<'a> {
    module: &'a Module,
    id: OperationId,
    counter: &'a Counter,
}

impl Reader<'_> {
    /// Whether a condition holds in the first iteration of a tile alone.
    fn is_first(&self, condition: ValueId) -> bool {
        self.is_at(condition, |value| self.module.integer_constant(value) == Some(0))
    }

    /// The same in the last one.
    fn is_last(&self, condition: ValueId) -> bool {
        self.is_at(condition, |value| successor(self.module, value) == Some(self.counter.parts))
    }

    fn is_at(&self, condition: ValueId, number: impl Fn(ValueId) -> bool) -> bool {
        let part = self.counter.part;
        equals(self.module, condition).is_some_and(|[a, b]| a == part && number(b) || b == part && number(a))
    }

    /// Whether a value is from before the loop.
    fn is_from_before(&self, value: ValueId) -> bool {
        let module = self.module;
        let block = match module.definition(value) {
            Definition::Result { operation, .. } => module.operation(operation).block,
            Definition::Argument { block, .. } => Some(block),
        };
        let Some(mut around) = block.map(|block| module.region(module.block(block).region).operation) else {
            return false;
        };
        loop {
            if around == self.id {
                return false;
            }
            match module.parent(around) {
                Some(parent) => around = parent,
                None => return true,
            }
        }
    }

    /// What the branch of a result yields, and what it yields where it is not taken; the branch is at a tile's beginning or its end.
    fn branch(&self, value: ValueId) -> Option<(OperationId, [ValueId; 2])> {
        let id = self.module.defining_operation(value)?;
        let operation = self.module.operation(id);
        let index = operation.results.iter().position(|result| *result == value)?;
        let yields = |region: usize| {
            let block = self.module.region(*operation.regions.get(region)?).blocks.first()?;
            let last = self.module.operation(self.module.terminator(*block)?);
            last.operands.get(index).copied()
        };
        let condition = *operation.operands.first().filter(|_| operation.name == "scf.if")?;
        let is_known = self.is_first(condition) || self.is_last(condition);
        Some((id, [yields(0)?, yields(1)?])).filter(|_| is_known)
    }

    fn carried(&self) -> Option<AllCarried> {
        let module = self.module;
        let parts = module.for_loop(self.id)?;
        let mut selected = Vec::new();
        let mut carried = Vec::new();
        for (index, (before, after)) in parts.carried.iter().zip(parts.yielded).enumerate() {
            carried.push(if index == self.counter.index {
                Carried::Counter
            } else if before == after {
                Carried::Same
            } else if let Some((id, [taken, passed])) = self.branch(*after) {
                let at_first = self.is_first(*module.operation(id).operands.first()?);
                if passed == *before {
                    // Of a tile's first iteration it is another value than of the others.
                    let is_of_branch = |user: OperationId| module.ancestors(user).any(|around| around == id);
                    if at_first && !module.uses(*before).iter().all(|one| is_of_branch(one.operation)) {
                        return None;
                    }
                    Carried::ByTile(*after)
                } else if !at_first && self.is_same(taken, parts.initial[index]) {
                    Carried::ByPart(parts.initial[index], passed)
                } else {
                    return None;
                }
            } else if let Some(&[condition, reset, next]) = operands(module, *after, "arith.select")
                && self.is_last(condition)
                && self.is_same(reset, parts.initial[index])
                && module.uses(*after).iter().all(|one| one.operation == parts.terminator)
            {
                Carried::ByPart(parts.initial[index], next)
            } else if let [one] = module.uses(*before)
                && let [condition, reset, _] = *module.operation(one.operation).operands
                && module.operation(one.operation).name == "arith.select"
                && (one.index, self.is_first(condition), self.is_from_before(reset)) == (2, true, true)
            {
                selected.push((*module.operation(one.operation).results.first()?, *before));
                Carried::ByPart(reset, *after)
            } else {
                return None;
            });
        }
        Some((selected, carried))
    }

    /// Whether a value of before the loop, or a constant, is the same as another.
    fn is_same(&self, value: ValueId, other: ValueId) -> bool {
        let module = self.module;
        let constants = [value, other].map(|value| module.constant(value));
        value == other && self.is_from_before(value)
            || constants[0].is_some() && constants[0] == constants[1] && module.type_of(value) == module.type_of(other)
    }

    /// Where all operations go; `None` where one would have to be in two places, or before what it comes after.
    fn places(&self, carried: &[Carried], selected: &[(ValueId, ValueId)]) -> Option<Vec<(OperationId, Place)>> {
        let module = self.module;
        let parts = module.for_loop(self.id)?;
        let arguments = |wanted: fn(&Carried) -> bool| {
            parts.carried.iter().zip(carried).filter(move |(_, one)| wanted(one)).map(|(value, _)| *value)
        };
        let mut of_tile: Vec<ValueId> = arguments(|one| matches!(one, Carried::Same | Carried::ByTile(_))).collect();
        let mut of_part: Vec<ValueId> = arguments(|one| matches!(one, Carried::ByPart(..))).collect();
        of_part.push(self.counter.part);
        let sums: Vec<ValueId> = carried
            .iter()
            .filter_map(|one| match one {
                Carried::ByPart(_, next) => Some(*next),
                _ => None,
            })
            .collect();
        let mut places: Vec<(OperationId, Place)> = Vec::new();
        for id in module.block(parts.body).operations.iter().filter(|id| **id != parts.terminator) {
            let operation = module.operation(*id);
            let is_reset = operation.results.first().is_some_and(|result| {
                let is_selected = selected.iter().any(|(one, _)| one == result);
                let is_yielded = parts.yielded.iter().zip(carried).any(|(y, one)| {
                    y == result
                        && matches!(one, Carried::ByPart(_, next) if next != y)
                        && operation.name == "arith.select"
                });
                is_selected || is_yielded
            });
            let condition = operation.operands.first().filter(|_| operation.name == "scf.if");
            let is_of_tile = condition.is_some_and(|one| self.is_first(*one) || self.is_last(*one));
            let known = |allowed: &dyn Fn(ValueId) -> bool| {
                self.read(*id, is_of_tile).into_iter().all(|value| self.is_from_before(value) || allowed(value))
            };
            let place = if self.counter.operations.contains(id) || is_reset {
                Place::Nowhere
            } else if condition.is_some_and(|one| self.is_first(*one)) {
                // It comes before all that an iteration does.
                let comes_late = places.iter().any(|(_, place)| matches!(place, Place::Part | Place::End));
                let is_known = known(&|value| of_tile.contains(&value) || value == self.counter.part);
                // What it yields where it is not taken is what it yielded last.
                let is_kept = operation.results.iter().all(|result| {
                    let mut all = parts.yielded.iter().zip(carried);
                    all.any(|(yielded, one)| yielded == result && matches!(one, Carried::ByTile(_)))
                });
                let is_after_effects = comes_late && !self.has_no_effects(&places);
                if !is_known || !is_kept || is_after_effects || !self.passes(*id) {
                    return None;
                }
                of_tile.extend(&operation.results);
                Place::Begin
            } else if condition.is_some_and(|one| self.is_last(*one)) {
                let of_end = |value| of_tile.contains(&value) || sums.contains(&value) || value == self.counter.part;
                if !known(&of_end) || !self.passes(*id) {
                    return None;
                }
                Place::End
            } else if is_pure(operation) && known(&|value| of_tile.contains(&value)) {
                of_tile.extend(&operation.results);
                Place::Tile
            } else {
                let is_ended = places.iter().any(|(_, place)| *place == Place::End);
                if !known(&|value| of_tile.contains(&value) || of_part.contains(&value))
                    || is_ended && !is_pure(operation)
                {
                    return None;
                }
                of_part.extend(&operation.results);
                Place::Part
            };
            if place == Place::Nowhere {
                of_part
                    .extend(operation.results.iter().filter(|result| selected.iter().any(|(one, _)| one == *result)));
            }
            places.push((*id, place));
        }
        let next_is_known =
            sums.iter().all(|next| self.is_from_before(*next) || of_part.contains(next) || of_tile.contains(next));
        let has = |wanted: Place| places.iter().any(|(_, place)| *place == wanted);
        let has_both = has(Place::Part) && (has(Place::Begin) || has(Place::End));
        (next_is_known && has_both).then_some(places)
    }

    /// Whether what comes before only computes, and no tile has ended.
    fn has_no_effects(&self, places: &[(OperationId, Place)]) -> bool {
        places.iter().all(|(id, place)| match place {
            Place::Part => is_pure(self.module.operation(*id)),
            place => *place != Place::End,
        })
    }

    /// Whether a branch does nothing where it is not taken.
    fn passes(&self, id: OperationId) -> bool {
        let otherwise = self.module.operation(id).regions.get(1).map(|region| &self.module.region(*region).blocks);
        otherwise.is_none_or(|blocks| blocks.iter().all(|block| self.module.block(*block).operations.len() <= 1))
    }

    /// Values that an operation, and what is nested in it, reads from outside of it; of a branch at a tile's beginning or end what
    /// is read where it is taken, without its condition.
    fn read(&self, id: OperationId, is_taken: bool) -> Vec<ValueId> {
        let module = self.module;
        let taken = module.operation(id).regions.first().filter(|_| is_taken);
        let inner: Vec<OperationId> = match taken {
            Some(region) => {
                let blocks = module.region(*region).blocks.iter();
                let operations = blocks.flat_map(|block| &module.block(*block).operations);
                operations.flat_map(|one| module.walk(*one)).collect()
            }
            None => module.walk(id).collect(),
        };
        let all = inner.iter().flat_map(|one| &module.operation(*one).operands).copied();
        all.filter(|value| !self.is_within(*value, id)).collect()
    }

    /// Whether a value is defined in an operation.
    fn is_within(&self, value: ValueId, id: OperationId) -> bool {
        let module = self.module;
        match module.definition(value) {
            Definition::Result { operation, .. } => module.ancestors(operation).any(|around| around == id),
            Definition::Argument { block, .. } => {
                let owner = module.region(module.block(block).region).operation;
                owner == id || module.ancestors(owner).any(|around| around == id)
            }
        }
    }
}

impl Flattened {
    /// Makes it a loop over tiles, and in that one over parts.
    fn nest(&self, module: &mut Module) {
        let Some(parts) = module.for_loop(self.id) else { return };
        let (initial, carried, upper) = (parts.initial.to_vec(), parts.carried.to_vec(), parts.upper);
        let (id, part) = (self.id, self.counter.part);
        let [of_parts, of_tiles] = [part, upper].map(|value| module.type_of(value).clone());
        let zero = constant(module, id, &of_parts, 0);
        let one = constant(module, id, &of_parts, 1);
        let count = match self.counter.parts {
            Number::Constant(count) => constant(module, id, &of_parts, count),
            Number::Value(count) => count,
        };
        let last = match self.counter.parts {
            Number::Constant(count) => constant(module, id, &of_parts, count - 1),
            Number::Value(_) => computed(module, id, "arith.subi", &[count, one], None, &of_parts),
        };
        let none = constant(module, id, &of_tiles, 0);
        let step = constant(module, id, &of_tiles, 1);
        let tiles = match self.tiles {
            Number::Constant(tiles) => constant(module, id, &of_tiles, tiles),
            Number::Value(tiles) => tiles,
        };
        // Without parts, there are no iterations, however many tiles there are.
        let tiles = match self.counter.parts {
            Number::Constant(_) => tiles,
            Number::Value(_) => {
                let some = computed(module, id, "arith.cmpi", &[count, zero], Some("sgt"), &Type::Integer(1));
                computed(module, id, "arith.select", &[some, tiles, none], None, &of_tiles)
            }
        };
        let all = || self.carried.iter().copied().zip(initial.iter().copied().zip(carried.iter().copied()));
        let by_tile: Vec<(ValueId, ValueId)> =
            all().filter(|(one, _)| matches!(one, Carried::ByTile(_))).map(|(_, values)| values).collect();
        let outer = module.insert_loop(id, [none, tiles, step], &by_tile, id);
        let mut copies = Copies::from([(part, zero)]);
        copies.extend(all().filter(|(one, _)| matches!(one, Carried::Same)).map(|(_, (initial, own))| (own, initial)));
        copies.extend(by_tile.iter().map(|(_, own)| *own).zip(outer.carried.iter().copied()));
        for (operation, place) in &self.places {
            match place {
                Place::Begin => in_line(module, *operation, outer.terminator, &mut copies),
                Place::Tile => module.clone_before(*operation, outer.terminator, &mut copies, ""),
                Place::End | Place::Nowhere | Place::Part => {}
            }
        }
        let at = |copies: &Copies, value: ValueId| copies.get(&value).copied().unwrap_or(value);
        let by_part: Vec<(ValueId, ValueId, ValueId)> = all()
            .filter_map(|(one, (_, own))| match one {
                Carried::ByPart(first, next) => Some((at(&copies, first), own, next)),
                _ => None,
            })
            .collect();
        let begun: Vec<(ValueId, ValueId)> = by_part.iter().map(|(first, own, _)| (*first, *own)).collect();
        let inner = module.insert_loop(outer.terminator, [zero, count, one], &begun, id);
        copies.insert(part, inner.induction);
        copies.extend(by_part.iter().map(|(_, own, _)| *own).zip(inner.carried.iter().copied()));
        let selected: Vec<_> = self.selected.iter().map(|(result, own)| (*result, at(&copies, *own))).collect();
        copies.extend(selected);
        for (operation, _) in self.places.iter().filter(|(_, place)| *place == Place::Part) {
            module.clone_before(*operation, inner.terminator, &mut copies, "");
        }
        let next = by_part.iter().map(|(_, _, next)| at(&copies, *next)).collect();
        module.replace_operands(inner.terminator, next);
        copies.extend(by_part.iter().map(|(_, _, next)| *next).zip(inner.results.iter().copied()));
        copies.insert(part, last);
        for (operation, _) in self.places.iter().filter(|(_, place)| *place == Place::End) {
            in_line(module, *operation, outer.terminator, &mut copies);
        }
        let next = self.carried.iter().filter_map(|one| match one {
            Carried::ByTile(next) => Some(at(&copies, *next)),
            _ => None,
        });
        module.replace_operands(outer.terminator, next.collect());
        module.remove(id);
    }
}

fn constant(module: &mut Module, before: OperationId, kind: &Type, value: i128) -> ValueId {
    let attributes = vec![("value", Attribute::Integer { value, kind: kind.clone() })];
    let (operands, result) = (Vec::new(), (kind.clone(), "count"));
    module.insert_before(before, NewOperation { name: "arith.constant", operands, attributes, result, like: before })
}

fn computed(
    module: &mut Module,
    before: OperationId,
    name: &str,
    operands: &[ValueId],
    predicate: Option<&str>,
    kind: &Type,
) -> ValueId {
    let attributes = predicate.map(|word| ("predicate", Attribute::Enumeration(word.into()))).into_iter().collect();
    let (operands, result) = (operands.to_vec(), (kind.clone(), "count"));
    module.insert_before(before, NewOperation { name, operands, attributes, result, like: before })
}

/// Puts copies of what a branch does where it is taken before an operation.
fn in_line(module: &mut Module, id: OperationId, before: OperationId, copies: &mut Copies) {
    let operation = module.operation(id);
    let results = operation.results.clone();
    let Some(block) = operation.regions.first().and_then(|region| module.region(*region).blocks.first()) else {
        return;
    };
    let operations = module.block(*block).operations.clone();
    let Some((last, operations)) = operations.split_last() else { return };
    for one in operations {
        module.clone_before(*one, before, copies, "");
    }
    for (result, value) in results.into_iter().zip(module.operation(*last).operands.clone()) {
        copies.insert(result, copies.get(&value).copied().unwrap_or(value));
    }
}
