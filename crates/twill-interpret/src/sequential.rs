//! A kernel as its TTIR says: one program of the grid after the other, one operation after the other.

use crate::fault::Fault;
use crate::memory::{Argument, Atomic, Combination, Launch, Memory, Tensor};
use crate::value::{
    Combine, Data, Elementwise, Scaled, Tile, apply, dot, gather, histogram, inline_ptx, join, reduce, reduce_by,
    scan_by, split,
};
use std::collections::HashMap;
use std::rc::Rc;
use twill_triton::Kernel;
use twill_triton::kernel::{RETURN_IF, RETURN_UNLESS, grid_control};
use twill_triton::mlir::{Attribute, BlockId, FloatKind, Module, Operation, OperationId, Type, ValueId};

/// Blocks and iterations of one loop after which a kernel is not believed to end.
const MOST_BLOCKS: u64 = 1_000_000;

/// Executes a kernel.
///
/// # Errors
/// When the kernel has an operation that is not known, or reads or writes outside of its arrays.
pub fn run(kernel: &Kernel, launch: &Launch, memory: &mut Memory) -> Result<(), Fault> {
    run_function(kernel.module(), kernel.function(), launch, memory)
}

/// Executes a function of a module, whatever its loops are.
///
/// # Errors
/// As [`run`].
pub fn run_function(module: &Module, function: OperationId, launch: &Launch, memory: &mut Memory) -> Result<(), Fault> {
    let body = module.body(function).ok_or_else(|| Fault::Undefined { what: "the kernel's body".into() })?;
    let [x, y, z] = launch.grid;
    let programs = (0..z).flat_map(|c| (0..y).flat_map(move |b| (0..x).map(move |a| [a, b, c])));
    for (number, program) in programs.enumerate() {
        if let Some(contested) = &mut memory.contested {
            contested.program = number;
        }
        let values = vec![None; module.value_count()];
        let mut instance = ProgramInstance {
            module,
            launch,
            memory: &mut *memory,
            program,
            values,
            tensors: HashMap::new(),
            ended: false,
        };
        instance.function(body)?;
    }
    Ok(())
}

/// A program instance of the grid at work.
struct ProgramInstance<'a> {
    module: &'a Module,
    launch: &'a Launch,
    memory: &'a mut Memory,
    program: [u32; 3],
    values: Vec<Option<Rc<Tile>>>,
    /// Descriptors that it has made.
    tensors: HashMap<ValueId, Tensor>,
    /// It has returned.
    ended: bool,
}

impl<'a> ProgramInstance<'a> {
    fn get(&self, value: ValueId) -> Result<Rc<Tile>, Fault> {
        if let Some(tile) = &self.values[value.index()] {
            return Ok(tile.clone());
        }
        self.launch.scalar(&self.module.value(value).name)
    }

    fn set(&mut self, value: ValueId, tile: Rc<Tile>) {
        self.values[value.index()] = Some(tile);
    }

    fn integer(&self, value: ValueId) -> Result<i64, Fault> {
        let unfit = || Fault::Shapes { what: format!("the number %{}", self.module.value(value).name) };
        self.get(value)?.as_integer().ok_or_else(unfit)
    }

    fn shape(&self, value: ValueId) -> Vec<usize> {
        let shape = self.module.type_of(value).known_shape().unwrap_or_default();
        shape.into_iter().map(|e| e as usize).collect()
    }

    fn element(&self, value: ValueId) -> &'a Type {
        self.module.type_of(value).element()
    }

    fn tensor(&self, value: ValueId) -> Result<Tensor, Fault> {
        if let Some(tensor) = self.tensors.get(&value) {
            return Ok(tensor.clone());
        }
        let name = &self.module.value(value).name;
        match self.launch.argument(name)? {
            Argument::Tensor(tensor) => Ok(tensor.clone()),
            Argument::Scalar(_) => Err(Fault::Shapes { what: format!("the descriptor {name}") }),
        }
    }

    fn tile_origin(&self, coordinates: &[ValueId]) -> Result<Vec<i64>, Fault> {
        coordinates.iter().map(|c| self.integer(*c)).collect()
    }

    fn block(&mut self, block: BlockId) -> Result<(), Fault> {
        for id in &self.module.block(block).operations {
            if !self.ended {
                self.operation(*id)?;
            }
        }
        Ok(())
    }

    /// The blocks of the kernel's body, from branch to branch.
    fn function(&mut self, body: BlockId) -> Result<(), Fault> {
        let mut next = Some(body);
        for _ in 0..MOST_BLOCKS {
            let Some(block) = next else { return Ok(()) };
            self.block(block)?;
            if self.ended {
                return Ok(());
            }
            let Some(last) = self.module.terminator(block) else { return Ok(()) };
            let operation = self.module.operation(last);
            let arguments = |which: usize| {
                let target = operation.successors.get(which).copied();
                target.map_or(0, |target| self.module.block(target).arguments.len())
            };
            let (which, first) = match operation.name.as_str() {
                "cf.br" => (0, 0),
                "cf.cond_br" => {
                    let condition = operation.operands.first().ok_or_else(|| unknown(operation))?;
                    if self.integer(*condition)? != 0 { (0, 1) } else { (1, 1 + arguments(0)) }
                }
                _ => return Ok(()),
            };
            next = operation.successors.get(which).copied();
            if let Some(target) = next {
                let given =
                    operation.operands.iter().skip(first).map(|v| self.get(*v)).collect::<Result<Vec<_>, _>>()?;
                for (argument, tile) in self.module.block(target).arguments.iter().zip(given) {
                    self.set(*argument, tile);
                }
            }
        }
        Err(Fault::Endless { steps: MOST_BLOCKS })
    }

    /// The values that a block ends with, after its operations.
    fn region(&mut self, block: BlockId) -> Result<Vec<Rc<Tile>>, Fault> {
        self.block(block)?;
        let last = self.module.terminator(block).map(|last| self.module.operation(last));
        last.map_or(Ok(Vec::new()), |last| last.operands.iter().map(|v| self.get(*v)).collect())
    }

    fn branch(&mut self, operation: &Operation) -> Result<(), Fault> {
        let condition = operation.operands.first().ok_or_else(|| unknown(operation))?;
        let which = usize::from(self.integer(*condition)? == 0);
        let region = operation.regions.get(which).map(|region| self.module.region(*region));
        if let Some(block) = region.and_then(|region| region.blocks.first()) {
            let found = self.region(*block)?;
            for (result, tile) in operation.results.iter().zip(found) {
                self.set(*result, tile);
            }
        }
        Ok(())
    }

    fn while_loop(&mut self, operation: &Operation) -> Result<(), Fault> {
        let blocks: Vec<BlockId> =
            operation.regions.iter().filter_map(|r| self.module.region(*r).blocks.first().copied()).collect();
        let [before, body] = blocks.as_slice() else { return Err(unknown(operation)) };
        let mut carried: Vec<Rc<Tile>> = operation.operands.iter().map(|v| self.get(*v)).collect::<Result<_, _>>()?;
        for _ in 0..MOST_BLOCKS {
            for (argument, tile) in self.module.block(*before).arguments.iter().zip(carried) {
                self.set(*argument, tile);
            }
            let found = self.region(*before)?;
            let Some((condition, passed)) = found.split_first() else { return Err(unknown(operation)) };
            if condition.as_integer() == Some(0) {
                for (result, tile) in operation.results.iter().zip(passed) {
                    self.set(*result, tile.clone());
                }
                return Ok(());
            }
            for (argument, tile) in self.module.block(*body).arguments.iter().zip(passed) {
                self.set(*argument, tile.clone());
            }
            carried = self.region(*body)?;
        }
        Err(Fault::Endless { steps: MOST_BLOCKS })
    }

    /// The results of a `tt.reduce` or `tt.scan`, whatever its region does.
    fn combined(&mut self, id: OperationId) -> Result<(), Fault> {
        let module = self.module;
        let operation = module.operation(id);
        let tiles: Vec<Rc<Tile>> = operation.operands.iter().map(|v| self.get(*v)).collect::<Result<_, _>>()?;
        let block = module.body(id).ok_or_else(|| unknown(operation))?;
        let axis = operation.attributes.axis();
        let results = operation.results.clone();
        let is_scan = operation.name == "tt.scan";
        let reverse = operation.attributes.flag("reverse");
        let mut combine = |given: Vec<Rc<Tile>>| {
            for (argument, tile) in module.block(block).arguments.iter().zip(given) {
                self.set(*argument, tile);
            }
            self.region(block)
        };
        let found = match is_scan {
            true => scan_by(&tiles, axis, reverse, &mut combine)?,
            false => reduce_by(&tiles, axis, &mut combine)?,
        };
        for (result, tile) in results.iter().zip(found) {
            self.set(*result, tile.shared());
        }
        Ok(())
    }

    fn for_loop(&mut self, id: OperationId) -> Result<(), Fault> {
        let parts = self.module.for_loop(id).ok_or_else(|| Fault::Undefined { what: "the parts of a loop".into() })?;
        let (lower, upper, step) = (self.integer(parts.lower)?, self.integer(parts.upper)?, self.integer(parts.step)?);
        if step <= 0 {
            return Err(Fault::Endless { steps: 0 });
        }
        let mut carried: Vec<Rc<Tile>> = parts.initial.iter().map(|v| self.get(*v)).collect::<Result<_, _>>()?;
        let mut at = lower;
        while at < upper {
            self.set(parts.induction, Rc::new(Tile::integer(at)));
            for (argument, tile) in parts.carried.iter().zip(carried) {
                self.set(*argument, tile);
            }
            self.block(parts.body)?;
            carried = parts.yielded.iter().map(|v| self.get(*v)).collect::<Result<_, _>>()?;
            at += step;
        }
        for (result, tile) in parts.results.iter().zip(carried) {
            self.set(*result, tile);
        }
        Ok(())
    }

    fn operation(&mut self, id: OperationId) -> Result<(), Fault> {
        let module = self.module;
        let operation = module.operation(id);
        let operands = operation.operands.as_slice();
        let arithmetic = self.launch.arithmetic;
        match (operation.name.as_str(), operands) {
            ("scf.for", _) => return self.for_loop(id),
            (RETURN_IF | RETURN_UNLESS, [condition]) => {
                self.ended |= (self.integer(*condition)? != 0) == (operation.name == RETURN_IF);
                return Ok(());
            }
            ("scf.if", _) => return self.branch(operation),
            ("scf.while", _) => return self.while_loop(operation),
            ("tt.scan", _) => return self.combined(id),
            ("tt.reduce", _) if self.simple_combination(id).is_none() => return self.combined(id),
            ("tt.split", [x]) => {
                let halves = split(&*self.get(*x)?)?;
                for (result, half) in operation.results.iter().zip(halves) {
                    self.set(*result, half.shared());
                }
                return Ok(());
            }
            (
                "scf.yield" | "scf.condition" | "cf.br" | "cf.cond_br" | "tt.return" | "tt.reduce.return"
                | "tt.scan.return" | "llvm.intr.assume" | "gpu.barrier",
                _,
            ) => return Ok(()),
            ("tt.make_tensor_descriptor", [base, sizes @ ..]) => {
                let sizes = sizes.iter().map(|size| self.integer(*size)).collect::<Result<Vec<i64>, Fault>>()?;
                let tensor = Tensor::made(&*self.get(*base)?, &sizes).ok_or_else(|| unknown(operation))?;
                self.tensors.extend(operation.results.first().map(|result| (*result, tensor)));
                return Ok(());
            }
            // Kernels are executed one after another.
            _ if grid_control(operation).is_some() => return Ok(()),
            ("tt.descriptor_store" | "tt.descriptor_reduce", [tensor, value, coordinates @ ..]) => {
                let how = combination(operation)?;
                let (tensor, tile_origin, value) =
                    (self.tensor(*tensor)?, self.tile_origin(coordinates)?, self.get(*value)?);
                return self.memory.store_block(&tensor, &tile_origin, &value, how, arithmetic);
            }
            ("tt.store", [pointers, value, mask @ ..]) => {
                let (pointers, value) = (self.get(*pointers)?, self.get(*value)?);
                let mask = mask.first().map(|m| self.get(*m)).transpose()?;
                return self.memory.store(&pointers, &value, mask.as_deref(), Combination::Overwrite, arithmetic);
            }
            ("tt.atomic_rmw", [pointers, value, mask @ ..]) => {
                let how = Atomic::Combine(combination(operation)?);
                let mask = mask.first().map(|m| self.get(*m)).transpose()?;
                return self.atomic(operation, *pointers, *value, mask, how);
            }
            ("tt.atomic_cas", [pointers, expected, value]) => {
                let expected = self.get(*expected)?;
                return self.atomic(operation, *pointers, *value, None, Atomic::CompareAndSwap(&expected));
            }
            ("tt.print" | "tt.assert", _) => return Ok(()),
            _ => {}
        }
        let Some(result) = operation.results.first().copied() else { return Err(unknown(operation)) };
        let tile = self.value(id, operation, result)?;
        self.set(result, tile);
        Ok(())
    }

    fn atomic(
        &mut self,
        operation: &Operation,
        pointers: ValueId,
        value: ValueId,
        mask: Option<Rc<Tile>>,
        how: Atomic<'_>,
    ) -> Result<(), Fault> {
        let (pointers, value, element) = (self.get(pointers)?, self.get(value)?, self.element(value));
        let arithmetic = self.launch.arithmetic;
        let before = self.memory.atomic(&pointers, &value, mask.as_deref(), how, element, arithmetic)?;
        if let Some(result) = operation.results.first() {
            self.set(*result, before.shared());
        }
        Ok(())
    }

    /// A product of operands with scales.
    fn scaled_dot(&self, operation: &Operation, element: &Type) -> Result<Tile, Fault> {
        let unfit = || Fault::Shapes { what: format!("`{}`", operation.name) };
        let (Some(Attribute::Integers(segments)), [a, b, sum, scales @ ..]) =
            (operation.attributes.get("operandSegmentSizes"), operation.operands.as_slice())
        else {
            return Err(unfit());
        };
        let mut scales = scales.iter();
        let is_half = [a, b].iter().any(|v| *self.element(**v) == Type::Float(FloatKind::F16));
        let product = Type::Float(if is_half { FloatKind::F16 } else { FloatKind::BF16 });
        let mut side = |value: &ValueId, k: usize, format: &str, packing: &str| -> Result<Tile, Fault> {
            let scale = match segments.get(3 + k) {
                Some(1) => Some(self.get(*scales.next().ok_or_else(unfit)?)?),
                _ => None,
            };
            let along_depth = !matches!(operation.attributes.get(packing), Some(Attribute::Bool(false)));
            let operand = Scaled { is_left: k == 0, is_e2m1: word(operation, format) == Some("e2m1"), along_depth };
            operand.numbers(&*self.get(*value)?, scale.as_deref(), &product, self.launch.arithmetic).ok_or_else(unfit)
        };
        let (a, b) = (side(a, 0, "a_elem_type", "lhs_k_pack")?, side(b, 1, "b_elem_type", "rhs_k_pack")?);
        dot(&a, &b, Some(&*self.get(*sum)?), element, self.launch.arithmetic)
    }

    /// The result of an operation without effects.
    fn value(&self, id: OperationId, operation: &Operation, result: ValueId) -> Result<Rc<Tile>, Fault> {
        let (shape, element, arithmetic) = (self.shape(result), self.element(result), self.launch.arithmetic);
        let unfit = || Fault::Shapes { what: format!("`{}`", operation.name) };
        let number = |name: &str| operation.attributes.integer(name);
        let axis = || operation.attributes.axis();
        let tile = match (operation.name.as_str(), operation.operands.as_slice()) {
            ("arith.constant", _) => self.constant(result, &shape, element).ok_or_else(|| unknown(operation))?,
            ("tt.get_program_id", _) => Tile::integer(i64::from(self.program[program_axis(operation)])),
            ("tt.get_num_programs", _) => Tile::integer(i64::from(self.launch.grid[program_axis(operation)])),
            ("tt.make_range", _) => Tile::range(number("start").unwrap_or(0), shape.first().copied().unwrap_or(0)),
            ("tt.splat" | "tt.broadcast", [x]) => self.get(*x)?.broadcast(&shape).ok_or_else(unfit)?,
            ("tt.expand_dims" | "tt.reshape", [x]) => self.get(*x)?.reshape(shape).ok_or_else(unfit)?,
            ("tt.trans", [x]) => {
                let order = operation.attributes.integers("order").unwrap_or_default();
                let order: Vec<usize> = order.iter().filter_map(|d| usize::try_from(*d).ok()).collect();
                self.get(*x)?.transpose(&order).ok_or_else(unfit)?
            }
            ("tt.reduce", [x]) => {
                let combine = self.simple_combination(id).ok_or_else(|| unknown(operation))?;
                reduce(&*self.get(*x)?, axis(), combine, element, arithmetic)?
            }
            ("tt.gather", [x, places]) => gather(&*self.get(*x)?, &*self.get(*places)?, axis())?,
            ("tt.join", [a, b]) => join(&*self.get(*a)?, &*self.get(*b)?)?,
            ("tt.dot", [a, b, c]) => dot(&*self.get(*a)?, &*self.get(*b)?, Some(&*self.get(*c)?), element, arithmetic)?,
            ("tt.dot_scaled", _) => self.scaled_dot(operation, element)?,
            ("tt.histogram", [x, mask @ ..]) => {
                let mask = mask.first().map(|m| self.get(*m)).transpose()?;
                histogram(&*self.get(*x)?, mask.as_deref(), shape.first().copied().unwrap_or(0))?
            }
            ("tt.load", [pointers, rest @ ..]) => {
                let pointers = self.get(*pointers)?;
                let mask = rest.first().map(|m| self.get(*m)).transpose()?;
                let other = rest.get(1).map(|o| self.get(*o)).transpose()?;
                self.memory.load(&pointers, mask.as_deref(), other.as_deref(), element)?
            }
            ("tt.descriptor_load", [tensor, coordinates @ ..]) => {
                self.memory.load_block(&self.tensor(*tensor)?, &self.tile_origin(coordinates)?, &shape, element)?
            }
            ("tt.elementwise_inline_asm", operands) => {
                let tiles: Vec<Rc<Tile>> = operands.iter().map(|v| self.get(*v)).collect::<Result<_, _>>()?;
                let text = word(operation, "asm_string").ok_or_else(|| unknown(operation))?;
                inline_ptx(text, &tiles, element, arithmetic)?
            }
            (name, operands) => {
                let tiles: Vec<Rc<Tile>> = operands.iter().map(|v| self.get(*v)).collect::<Result<_, _>>()?;
                let from = operands.first().map_or(element, |v| self.element(*v));
                let key = match name {
                    "tt.extern_elementwise" => "symbol",
                    "tt.clampf" => "propagateNan",
                    _ => "predicate",
                };
                // In the generic form it is a number.
                let is_number = matches!(operation.attributes.get(key), Some(Attribute::Integer { value: 1.., .. }));
                let predicate = word(operation, key).or((name == "tt.clampf" && is_number).then_some("all"));
                let (operation, shape, divides_by_zero) = (name, &shape, false);
                let one = Elementwise { operation, predicate, shape, element, from, arithmetic, divides_by_zero };
                apply(one, &tiles)?
            }
        };
        Ok(tile.shared())
    }

    /// The one operation with which a reduction of one tile combines two elements, if it is one.
    fn simple_combination(&self, id: OperationId) -> Option<Combine> {
        let module = self.module;
        let body = module.body(id).map(|b| module.block(b).operations.as_slice()).unwrap_or_default();
        match body {
            [one, _] if module.operation(id).results.len() == 1 => Combine::of(&module.operation(*one).name),
            _ => None,
        }
    }

    fn constant(&self, value: ValueId, shape: &[usize], element: &Type) -> Option<Tile> {
        let data = match (self.module.float_constant(value), self.module.integer_constant(value)) {
            (Some(x), _) => Data::Floats(vec![self.launch.arithmetic.round(x, element)]),
            (None, Some(n)) => Data::Integers(vec![i64::try_from(n).ok()?]),
            (None, None) => return None,
        };
        Some(Tile::full(shape, &data))
    }
}

fn unknown(operation: &Operation) -> Fault {
    Fault::Unknown { what: format!("`{}` in line {}", operation.name, operation.line) }
}

/// A word among the attributes.
fn word<'o>(operation: &'o Operation, key: &str) -> Option<&'o str> {
    match operation.attributes.get(key)? {
        Attribute::String(word) | Attribute::Enumeration(word) | Attribute::Symbol(word) | Attribute::Other(word) => {
            Some(word)
        }
        _ => None,
    }
}

fn program_axis(operation: &Operation) -> usize {
    match (word(operation, "axis"), operation.attributes.integer("axis")) {
        (Some("y"), _) | (_, Some(1)) => 1,
        (Some("z"), _) | (_, Some(2)) => 2,
        _ => 0,
    }
}

fn combination(operation: &Operation) -> Result<Combination, Fault> {
    match operation.name.as_str() {
        "tt.descriptor_store" => Ok(Combination::Overwrite),
        _ => match ["kind", "atomic_rmw_op", "reduceKind"].iter().find_map(|key| word(operation, key)) {
            None => Ok(Combination::Add),
            Some(word) => Combination::of(word).ok_or_else(|| unknown(operation)),
        },
    }
}
