//! Which elements of a tile are neighbours, equal, or multiples of a power of two: Triton's axis information (`AxisInfo.h`).
//!
//! It says how many elements a thread may move at once. Facts are powers of two; those of a value that control flow joins are what
//! all ways have in common.

use crate::mlir::{Attribute, BlockId, ForLoop, Module, Operation, OperationId, Type, ValueId};
use std::collections::HashSet;

/// The largest power of two that is told.
const MOST: u64 = 1 << 30;
/// Bytes that a thread moves at most at once.
const ACCESS_BYTES: u64 = 16;

/// What is known of a tile along one of its dimensions; a scalar is a tile of one dimension of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AxisInfo {
    /// Elements of aligned blocks in which each is the one before and 1, or for pointers the next address.
    pub contiguity: u64,
    /// Divides the first element of each such block; of pointers, in bytes.
    pub divisibility: u64,
    /// Elements of aligned blocks that are equal.
    pub constancy: u64,
}

impl AxisInfo {
    const UNKNOWN: AxisInfo = AxisInfo { contiguity: 1, divisibility: 1, constancy: 1 };

    /// What divides the first elements of shorter blocks.
    fn divisibility_of(self, contiguity: u64, unit: u64) -> u64 {
        if contiguity == self.contiguity { self.divisibility } else { gcd(self.divisibility, contiguity * unit) }
    }
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    axes: Vec<AxisInfo>,
    /// The number that all elements are.
    constant: Option<i128>,
    /// From an element to the next: 1, or for pointers the bytes of what they point to.
    unit: u64,
}

/// How a thread moves elements of a tile of pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The dimension along which it moves neighbours.
    pub dimension: usize,
    /// How many at once, at most 16 bytes.
    pub elements: u64,
}

/// The axis information of a function.
pub struct AxisInfos<'m> {
    module: &'m Module,
    known: Vec<Option<Facts>>,
}

impl<'m> AxisInfos<'m> {
    /// Finds it for all values of a function.
    pub fn new(module: &'m Module, function: OperationId) -> AxisInfos<'m> {
        let mut infos = AxisInfos { module, known: vec![None; module.value_count()] };
        infos.begin(function);
        infos.begin_others(function);
        // What a loop carries is first taken to go on as it began; what turns out otherwise is taken back.
        infos.settle(function);
        for id in module.walk(function) {
            for value in &module.operation(id).results {
                if infos.known[value.index()].is_none() {
                    infos.known[value.index()] = Some(infos.unknown(*value));
                }
            }
        }
        infos.settle(function);
        infos
    }

    /// What is known of a value along each dimension.
    pub fn of(&self, value: ValueId) -> Vec<AxisInfo> {
        self.facts(value).axes
    }

    /// The dimensions of a tile, the one with the longest blocks of neighbours first, of several the last.
    pub fn order(&self, value: ValueId) -> Vec<usize> {
        let axes = self.facts(value).axes;
        let mut order: Vec<usize> = (0..axes.len()).rev().collect();
        order.sort_by_key(|d| std::cmp::Reverse(axes[*d].contiguity));
        order
    }

    /// How a thread moves what pointers point to, where a mask holds.
    pub fn access(&self, pointers: ValueId, mask: Option<ValueId>) -> Access {
        let Facts { axes, unit, .. } = self.facts(pointers);
        let mask = mask.map(|mask| self.facts(mask).axes);
        let elements = |dimension: usize, axis: &AxisInfo| {
            let aligned = axis.contiguity.min(axis.divisibility / unit).min(ACCESS_BYTES / unit).max(1);
            mask.as_ref().and_then(|mask| mask.get(dimension)).map_or(aligned, |mask| gcd(aligned, mask.constancy))
        };
        let each =
            axes.iter().enumerate().map(|(dimension, axis)| (elements(dimension, axis), axis.contiguity, dimension));
        let (elements, _, dimension) = each.max().unwrap_or((1, 1, 0));
        Access { dimension, elements }
    }

    fn facts(&self, value: ValueId) -> Facts {
        self.known[value.index()].clone().unwrap_or_else(|| self.unknown(value))
    }

    fn shape(&self, value: ValueId) -> Vec<u64> {
        self.module.type_of(value).known_shape().unwrap_or_else(|| vec![1])
    }

    fn unknown(&self, value: ValueId) -> Facts {
        let axes = vec![AxisInfo::UNKNOWN; self.shape(value).len()];
        Facts { axes, constant: None, unit: self.unit(value) }
    }

    fn unit(&self, value: ValueId) -> u64 {
        let pointee = self.module.type_of(value).pointed_to();
        pointee.and_then(|to| to.element().scalar_bits()).map_or(1, |bits| u64::from(bits / 8).max(1))
    }

    /// Arguments of the function and of blocks that are no bodies of loops.
    fn begin(&mut self, function: OperationId) {
        let module = self.module;
        for (index, value) in module.arguments(function).iter().enumerate() {
            let mut facts = self.unknown(*value);
            if let (Some(attributes), [axis]) = (module.argument_attributes(function, index), facts.axes.as_mut_slice())
            {
                axis.divisibility = attributes.integer("tt.divisibility").map_or(1, |n| power_of_two(i128::from(n)));
            }
            self.known[value.index()] = Some(facts);
        }
        let entry = module.body(function);
        let blocks: HashSet<BlockId> = module.walk(function).filter_map(|id| module.operation(id).block).collect();
        for block in blocks.into_iter().filter(|block| Some(*block) != entry) {
            if module.for_loop(module.region(module.block(block).region).operation).is_none() {
                for value in &module.block(block).arguments {
                    self.known[value.index()] = Some(self.unknown(*value));
                }
            }
        }
    }

    /// Results of what no rule looks at: `scf.while`, operations of several results.
    fn begin_others(&mut self, function: OperationId) {
        let module = self.module;
        for id in module.walk(function) {
            let operation = module.operation(id);
            let has_rule = matches!(operation.name.as_str(), "scf.for" | "scf.if");
            if !has_rule && (operation.results.len() > 1 || operation.name == "scf.while") {
                for value in &operation.results {
                    self.known[value.index()] = Some(self.unknown(*value));
                }
            }
        }
    }

    /// Goes through the function until nothing changes.
    fn settle(&mut self, function: OperationId) {
        while self.module.walk(function).skip(1).fold(false, |changed, id| self.update(id) | changed) {}
    }

    fn update(&mut self, id: OperationId) -> bool {
        let module = self.module;
        if let Some(parts) = module.for_loop(id) {
            return self.update_loop(&parts);
        }
        let operation = module.operation(id);
        if operation.name == "scf.if" {
            return self.update_branch(id);
        }
        let [result] = operation.results.as_slice() else { return false };
        let Some(mut facts) = self.result(operation, *result) else { return false };
        self.promise(operation, &mut facts);
        self.join(*result, facts)
    }

    fn update_loop(&mut self, parts: &ForLoop<'_>) -> bool {
        let mut changed = false;
        if let (Some(lower), Some(step)) = (&self.known[parts.lower.index()], &self.known[parts.step.index()]) {
            let mut facts = self.unknown(parts.induction);
            let ends = [lower, step].into_iter().flat_map(|facts| &facts.axes);
            let divisibility = ends.map(|axis| axis.divisibility).fold(MOST, gcd);
            facts.axes.iter_mut().for_each(|axis| axis.divisibility = divisibility);
            changed |= self.join(parts.induction, facts);
        }
        for (index, (carried, result)) in parts.carried.iter().zip(parts.results).enumerate() {
            for from in [parts.initial[index], parts.yielded[index]] {
                if let Some(facts) = self.known[from.index()].clone() {
                    changed |= self.join(*carried, facts.clone()) | self.join(*result, facts);
                }
            }
        }
        changed
    }

    fn update_branch(&mut self, id: OperationId) -> bool {
        let module = self.module;
        let operation = module.operation(id);
        let blocks = operation.regions.iter().flat_map(|region| &module.region(*region).blocks);
        let ends: Vec<OperationId> = blocks.filter_map(|block| module.terminator(*block)).collect();
        let mut changed = false;
        for (index, result) in operation.results.iter().enumerate() {
            for end in &ends {
                let from = module.operation(*end).operands.get(index);
                if let Some(facts) = from.and_then(|from| self.known[from.index()].clone()) {
                    changed |= self.join(*result, facts);
                }
            }
        }
        changed
    }

    /// What a value is on one more way.
    fn join(&mut self, value: ValueId, facts: Facts) -> bool {
        let joined = match &self.known[value.index()] {
            None => facts,
            Some(known) if known.axes.len() != facts.axes.len() || known.unit != facts.unit => self.unknown(value),
            Some(known) => {
                let both = |(a, b): (&AxisInfo, &AxisInfo)| {
                    let contiguity = gcd(a.contiguity, b.contiguity);
                    let divisibility =
                        gcd(a.divisibility_of(contiguity, facts.unit), b.divisibility_of(contiguity, facts.unit));
                    AxisInfo { contiguity, divisibility, constancy: gcd(a.constancy, b.constancy) }
                };
                let axes = known.axes.iter().zip(&facts.axes).map(both).collect();
                Facts { axes, constant: known.constant.filter(|c| facts.constant == Some(*c)), unit: facts.unit }
            }
        };
        let now = Some(joined);
        let changed = self.known[value.index()] != now;
        self.known[value.index()] = now;
        changed
    }

    /// What the source promises of an operation: `tl.multiple_of`, `tl.max_contiguous`, `tl.max_constancy`.
    fn promise(&self, operation: &Operation, facts: &mut Facts) {
        let mut set = |name: &str, field: fn(&mut AxisInfo) -> &mut u64| {
            let Some(numbers) = operation.attributes.get(name).map(numbers) else { return };
            for (index, axis) in facts.axes.iter_mut().enumerate() {
                // One number stands for all dimensions. What is known to be more stays so.
                if let Some(number) = numbers.get(index).or(numbers.first().filter(|_| numbers.len() == 1)) {
                    *field(axis) = power_of_two(*number).max(*field(axis));
                }
            }
        };
        set("tt.contiguity", |axis| &mut axis.contiguity);
        set("tt.divisibility", |axis| &mut axis.divisibility);
        set("tt.constancy", |axis| &mut axis.constancy);
    }

    /// The result of an operation without control flow; none while an operand is not known.
    fn result(&self, operation: &Operation, result: ValueId) -> Option<Facts> {
        let operands: Option<Vec<&Facts>> =
            operation.operands.iter().map(|value| self.known[value.index()].as_ref()).collect();
        let operands = operands?;
        let shape = self.shape(result);
        let unknown = self.unknown(result);
        let axes = |make: &dyn Fn(usize) -> Option<AxisInfo>| {
            let axes: Option<Vec<AxisInfo>> = (0..shape.len()).map(make).collect();
            axes.map_or_else(|| unknown.clone(), |axes| Facts { axes, ..unknown.clone() })
        };
        let zip = |make: fn(&Facts, &Facts, AxisInfo, AxisInfo) -> AxisInfo| match operands.as_slice() {
            [a, b] => axes(&|d| Some(make(a, b, *a.axes.get(d)?, *b.axes.get(d)?))),
            _ => unknown.clone(),
        };
        let facts = match (operation.name.as_str(), operands.as_slice()) {
            ("arith.constant", []) => {
                let constant = self.module.integer_constant(result);
                let divisibility = constant.map_or(1, power_of_two);
                let axes = shape.iter().map(|n| AxisInfo {
                    contiguity: 1,
                    divisibility,
                    constancy: power_of_two(i128::from(*n)),
                });
                let is_one = operation.attributes.get("value").and_then(Attribute::number).is_some();
                if is_one { Facts { axes: axes.collect(), constant, ..unknown } } else { unknown }
            }
            ("tt.make_range", []) => {
                let start = operation.attributes.integer("start").unwrap_or(0);
                let contiguity = power_of_two(i128::from(*shape.first()?));
                // The last block is shorter where the extent is no power of two.
                let divisibility = match shape.first() == Some(&contiguity) {
                    true => power_of_two(i128::from(start)),
                    false => gcd(power_of_two(i128::from(start)), contiguity),
                };
                Facts { axes: vec![AxisInfo { contiguity, divisibility, constancy: 1 }], ..unknown }
            }
            ("tt.splat", [x]) => {
                let divisibility = x.axes.first()?.divisibility;
                let axis = |n: &u64| AxisInfo { contiguity: 1, divisibility, constancy: power_of_two(i128::from(*n)) };
                Facts { axes: shape.iter().map(axis).collect(), constant: x.constant, ..unknown }
            }
            ("tt.expand_dims", [x]) => {
                let mut axes = x.axes.clone();
                // Its one element is the first of a block, or any of it.
                let divisibility = x.axes.iter().map(|a| a.divisibility_of(1, x.unit)).fold(MOST, gcd);
                let at = operation.attributes.axis().min(axes.len());
                axes.insert(at, AxisInfo { contiguity: 1, divisibility, constancy: 1 });
                Facts { axes, constant: x.constant, ..unknown }
            }
            ("tt.broadcast", [x]) => {
                let from = self.shape(*operation.operands.first()?);
                let axis = |d: usize| {
                    let axis = *x.axes.get(d)?;
                    let is_spread = from.get(d) == Some(&1) && shape[d] != 1;
                    let constancy = if is_spread { power_of_two(i128::from(shape[d])) } else { axis.constancy };
                    Some(AxisInfo { constancy, ..axis })
                };
                Facts { constant: x.constant, ..axes(&axis) }
            }
            ("tt.trans", [x]) => {
                let order = operation.attributes.integers("order")?;
                axes(&|d| x.axes.get(usize::try_from(*order.get(d)?).ok()?).copied())
            }
            ("arith.trunci", _) if self.module.type_of(result).element().scalar_bits().is_none_or(|bits| bits < 32) => {
                unknown
            }
            ("arith.extsi" | "arith.extui" | "arith.trunci" | "arith.index_cast" | "tt.bitcast", [x])
                if x.unit == unknown.unit =>
            {
                Facts { axes: x.axes.clone(), constant: x.constant, ..unknown }
            }
            ("arith.addi" | "tt.addptr", [a, b]) => axes(&|d| Some(sum(a, b, *a.axes.get(d)?, *b.axes.get(d)?, true))),
            ("arith.subi", [a, b]) => axes(&|d| Some(sum(a, b, *a.axes.get(d)?, *b.axes.get(d)?, false))),
            ("arith.muli", _) => zip(product),
            ("arith.shli", [a, b]) => {
                let factor = b.constant.and_then(|n| u32::try_from(n).ok()).filter(|n| *n < 30).map(|n| 1_u64 << n);
                axes(&|d| {
                    let (a, factor) = (*a.axes.get(d)?, factor.unwrap_or(1));
                    let contiguity = if factor == 1 && b.constant == Some(0) { a.contiguity } else { 1 };
                    let divisibility = (a.divisibility_of(contiguity, 1) * factor).min(MOST);
                    Some(AxisInfo { contiguity, divisibility, constancy: gcd(a.constancy, b.axes.get(d)?.constancy) })
                })
            }
            ("arith.remsi" | "arith.remui", _) => zip(remainder),
            ("arith.divsi" | "arith.divui", _) => zip(quotient),
            ("arith.shrsi" | "arith.shrui", _) => zip(shifted),
            ("arith.cmpi", [a, b]) => {
                let predicate = operation.attributes.text("predicate").unwrap_or_default();
                axes(&|d| Some(comparison(predicate, *a.axes.get(d)?, *b.axes.get(d)?)))
            }
            ("arith.select", [condition, a, b]) => axes(&|d| {
                // A number decides for all elements at once.
                let is_one = !self.module.type_of(*operation.operands.first()?).is_tensor();
                let alike = if is_one { MOST } else { condition.axes.get(d)?.constancy };
                let (a, b) = (*a.axes.get(d)?, *b.axes.get(d)?);
                let contiguity = gcd(gcd(a.contiguity, b.contiguity), alike);
                let unit = unknown.unit;
                let divisibility = gcd(a.divisibility_of(contiguity, unit), b.divisibility_of(contiguity, unit));
                Some(AxisInfo { contiguity, divisibility, constancy: gcd(gcd(a.constancy, b.constancy), alike) })
            }),
            ("arith.minsi" | "arith.maxsi" | "arith.minui" | "arith.maxui", _) => zip(|_, _, a, b| AxisInfo {
                contiguity: 1,
                divisibility: gcd(a.divisibility_of(1, 1), b.divisibility_of(1, 1)),
                constancy: gcd(a.constancy, b.constancy),
            }),
            (name, all) if is_elementwise(name) && !all.is_empty() => axes(&|d| {
                let constancies = all.iter().map(|x| x.axes.get(d).map(|axis| axis.constancy));
                let constancy = constancies.collect::<Option<Vec<u64>>>()?.into_iter().fold(MOST, gcd);
                Some(AxisInfo { constancy, ..AxisInfo::UNKNOWN })
            }),
            _ => unknown,
        };
        Some(facts)
    }
}

/// Operations whose result is equal where their operands are.
fn is_elementwise(name: &str) -> bool {
    name == "tt.load" || name.starts_with("arith.") || name.starts_with("math.")
}

fn sum(a: &Facts, b: &Facts, x: AxisInfo, y: AxisInfo, commutes: bool) -> AxisInfo {
    let ways = [gcd(x.contiguity, y.constancy), if commutes { gcd(x.constancy, y.contiguity) } else { 1 }];
    let contiguity = ways.into_iter().max().unwrap_or(1);
    // An offset of pointers counts elements.
    let scale = a.unit / b.unit.max(1);
    let first = |axis: AxisInfo, own: u64| {
        // Of a constant side each element is a first one.
        let within = if axis.contiguity == 1 { 1 } else { contiguity };
        axis.divisibility_of(within, own)
    };
    let right = (first(y, b.unit) * scale.max(1)).min(MOST);
    AxisInfo { contiguity, divisibility: gcd(first(x, a.unit), right), constancy: gcd(x.constancy, y.constancy) }
}

fn product(a: &Facts, b: &Facts, x: AxisInfo, y: AxisInfo) -> AxisInfo {
    let constancy = gcd(x.constancy, y.constancy);
    match (a.constant, b.constant) {
        (_, Some(1)) => AxisInfo { constancy, ..x },
        (Some(1), _) => AxisInfo { constancy, ..y },
        _ => {
            let divisibility = (x.divisibility_of(1, 1) * y.divisibility_of(1, 1)).min(MOST);
            AxisInfo { contiguity: 1, divisibility, constancy }
        }
    }
}

fn remainder(_: &Facts, _: &Facts, x: AxisInfo, y: AxisInfo) -> AxisInfo {
    let divisor = y.divisibility_of(1, 1);
    let contiguity = gcd(gcd(x.contiguity, x.divisibility), gcd(divisor, y.constancy));
    let divisibility = gcd(x.divisibility_of(contiguity, 1), divisor);
    AxisInfo { contiguity, divisibility, constancy: gcd(x.constancy, y.constancy) }
}

fn quotient(_: &Facts, b: &Facts, x: AxisInfo, y: AxisInfo) -> AxisInfo {
    let own = gcd(x.constancy, y.constancy);
    if b.constant == Some(1) {
        return AxisInfo { constancy: own, ..x };
    }
    // Neighbours from a multiple of the divisor on.
    let alike = gcd(gcd(x.contiguity, x.divisibility), gcd(y.divisibility_of(1, 1), y.constancy));
    // What the divisor divides is divided without a remainder.
    let whole = b.constant.and_then(|n| u64::try_from(n).ok()).filter(|n| n.is_power_of_two());
    let divisibility = whole.map_or(1, |n| (x.divisibility_of(1, 1) / n).max(1));
    AxisInfo { constancy: own.max(alike), divisibility, ..AxisInfo::UNKNOWN }
}

/// A shift to the right is a division by a power of two.
fn shifted(a: &Facts, b: &Facts, x: AxisInfo, y: AxisInfo) -> AxisInfo {
    match b.constant.and_then(|n| u32::try_from(n).ok()).filter(|n| *n < 30) {
        Some(n) => {
            let power = 1_u64 << n;
            let by = AxisInfo { divisibility: power, ..y };
            quotient(a, &Facts { constant: Some(i128::from(power)), ..b.clone() }, x, by)
        }
        None => AxisInfo { constancy: gcd(x.constancy, y.constancy), ..AxisInfo::UNKNOWN },
    }
}

fn comparison(predicate: &str, x: AxisInfo, y: AxisInfo) -> AxisInfo {
    // Neighbours from a multiple of `n` on are all below another multiple of it, or none is.
    let alike = |moving: AxisInfo, bound: AxisInfo| {
        gcd(gcd(moving.contiguity, moving.divisibility), gcd(bound.divisibility_of(1, 1), bound.constancy))
    };
    let found = match predicate {
        "slt" | "ult" | "sge" | "uge" => alike(x, y),
        "sgt" | "ugt" | "sle" | "ule" => alike(y, x),
        _ => 1,
    };
    AxisInfo { constancy: found.max(gcd(x.constancy, y.constancy)), ..AxisInfo::UNKNOWN }
}

/// The greatest common divisor of two powers of two.
fn gcd(a: u64, b: u64) -> u64 {
    a.min(b)
}

/// The largest power of two that divides a number.
fn power_of_two(number: i128) -> u64 {
    match number {
        0 => MOST,
        n => 1 << n.trailing_zeros().min(MOST.trailing_zeros()),
    }
}

/// The integers of an attribute: one, or a list.
fn numbers(attribute: &Attribute) -> Vec<i128> {
    match attribute {
        Attribute::Integer { value, .. } => vec![*value],
        Attribute::Splat { value, .. } => numbers(value),
        Attribute::Integers(all) => all.iter().map(|n| i128::from(*n)).collect(),
        Attribute::Typed { text, kind: Type::Tensor { .. } } => {
            let inner = text.trim_start_matches("dense<[").trim_end_matches("]>");
            inner.split(',').filter_map(|n| n.trim().parse().ok()).collect()
        }
        _ => Vec::new(),
    }
}
