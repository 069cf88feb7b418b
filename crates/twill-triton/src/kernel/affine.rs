//! Values of the TTIR as polynomials, and the conditions in a mask.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::grid::Axis;
use crate::mlir::{Attribute, ForLoop, Module, Operation, OperationId, Type, ValueId};

use super::natural::{Natural, Naturals, axis_of};
use super::wrapped::Wrap;
use crate::polynomial::{Polynomial, Symbol};

/// Values that are looked at for one load; more belong to no address that anybody wrote.
const MOST_VALUES: u32 = 400;

/// Programs along the second and third axis of a grid (CUDA C++ Programming Guide, "Compute Capabilities").
const MOST_PROGRAMS: i128 = (1 << 16) - 1;
/// Programs of a launch, which generated kernels take no more of.
const MOST_TILES: i128 = (1 << 31) - 1;

/// For each dimension of a tensor, the dimension of the tile along which it runs; none where it is repeated.
type Along = [Option<usize>];

/// Reads values as they are in an iteration of a loop, or outside of loops.
///
/// Numbers are those of the kernel's arithmetic as long as that does not overflow.
pub(super) struct Reader<'m> {
    module: &'m Module,
    function: OperationId,
    parts: Option<&'m ForLoop<'m>>,
    /// Values that may still be looked at, so that a value used twice in every step takes no exponential time.
    left: Cell<u32>,
    /// Where `offsets % extent` was read as `offsets`.
    wraps: RefCell<Vec<Wrap>>,
    /// Whether a number was read that the kernel has widened: its arithmetic is in more than 32 bits.
    widened: Cell<bool>,
    /// What was positive where `where(condition, offsets, other)` or `minimum(offsets, most)` was read as `offsets`; nothing
    /// is read so without.
    assumed: Option<RefCell<Vec<Polynomial>>>,
    /// Whether scalars that are others in every iteration are read as they are.
    of_iterations: bool,
}

/// Values that change from iteration to iteration may be read, or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    Iteration,
    Invariants,
    /// The invariant part, outside of loops, with quotients taken apart that are whole. Addresses keep theirs, about
    /// which the kernel may have said something.
    Bounds,
}

impl<'m> Reader<'m> {
    pub fn new(module: &'m Module, function: OperationId, parts: Option<&'m ForLoop<'m>>) -> Reader<'m> {
        let left = Cell::new(MOST_VALUES);
        let (wraps, widened) = (RefCell::default(), Cell::new(false));
        Reader { module, function, parts, left, wraps, widened, assumed: None, of_iterations: false }
    }

    /// The same, where scalars of the loop's body are numbers that it takes as they are, such as one that is loaded in every
    /// iteration, or carried and added to.
    pub fn with_scalars_of_iterations(self) -> Reader<'m> {
        Reader { of_iterations: true, ..self }
    }

    /// The same for addresses under a mask: `where(condition, offsets, other)` is `offsets` if the mask says the condition
    /// ([`Reader::take_assumed`]).
    pub fn under_mask(self) -> Reader<'m> {
        Reader { assumed: Some(RefCell::default()), ..self }
    }

    /// A pointer's base, an argument of the kernel, and how many elements it lies after that.
    pub fn pointer(&self, value: ValueId, along: &Along) -> Option<(ValueId, Polynomial)> {
        self.look()?;
        if let Some(k) = self.carried(value) {
            let (from, amount) = self.step(k, "tt.addptr")?;
            let (base, first) = self.pointer(from, along)?;
            return Some((base, self.after_steps(&first, amount, along)?));
        }
        if self.module.arguments(self.function).contains(&value) {
            return Some((value, Polynomial::default()));
        }
        let (_, operation) = self.maker(value)?;
        match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.splat", [x]) => self.pointer(*x, &[]),
            ("tt.broadcast" | "tt.expand_dims", [x]) => self.pointer(*x, &self.before(operation, along)?),
            ("tt.addptr", [from, ahead]) => {
                let (base, offset) = self.pointer(*from, along)?;
                Some((base, offset.plus(&self.number(*ahead, along, Sight::Iteration)?)?))
            }
            _ => None,
        }
    }

    /// The loop in whose iterations values are read.
    pub fn loop_parts(&self) -> Option<&'m ForLoop<'m>> {
        self.parts
    }

    /// Offsets of a tile in an iteration of the loop.
    pub fn offsets(&self, value: ValueId, along: &Along) -> Option<Polynomial> {
        self.number(value, along, Sight::Iteration)
    }

    /// A scalar outside of loops, such as a loop's bound.
    pub fn bound(&self, value: ValueId) -> Option<Polynomial> {
        self.number(value, &[], Sight::Bounds)
    }

    /// The dimensions along which what was read begins again at an end: there it is another number.
    pub fn take_wraps(&self) -> Vec<Wrap> {
        self.wraps.take()
    }

    /// Returns whether a number was read since that the kernel computes in more than 32 bits.
    pub fn take_widened(&self) -> bool {
        self.widened.take()
    }

    /// Polynomials that must all be positive, or else what was read is another number.
    pub fn take_assumed(&self) -> Vec<Polynomial> {
        self.assumed.as_ref().map(RefCell::take).unwrap_or_default()
    }

    /// Polynomials that are all positive exactly where a mask is true.
    pub fn conditions(&self, mask: ValueId, along: &Along) -> Option<Vec<Polynomial>> {
        self.look()?;
        if let Some(constant) = self.module.integer_constant(mask) {
            return (constant != 0).then(Vec::new);
        }
        let (_, operation) = self.maker(mask)?;
        match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.splat", [x]) => self.conditions(*x, &[]),
            ("tt.broadcast" | "tt.expand_dims", [x]) => self.conditions(*x, &self.before(operation, along)?),
            ("arith.andi", [a, b]) => {
                let mut both = self.conditions(*a, along)?;
                both.extend(self.conditions(*b, along)?);
                Some(both)
            }
            ("arith.cmpi", [a, b]) => {
                let (a, b) = (self.number(*a, along, Sight::Iteration)?, self.number(*b, along, Sight::Iteration)?);
                let one = Polynomial::constant(1);
                let positive = match operation.attributes.get("predicate")? {
                    Attribute::Enumeration(predicate) => match predicate.as_str() {
                        "slt" => b.minus(&a)?,
                        "sgt" => a.minus(&b)?,
                        "sle" => b.minus(&a)?.plus(&one)?,
                        "sge" => a.minus(&b)?.plus(&one)?,
                        _ => return None,
                    },
                    _ => return None,
                };
                Some(vec![positive])
            }
            _ => None,
        }
    }

    /// What of the launch must not be negative so that a scalar is not either; `None` where it may be all the same.
    pub fn natural_if(&self, value: ValueId) -> Option<Natural> {
        Naturals::new(self.module, self.function).natural_if(value)
    }

    /// No more than this is a scalar, if it is not negative; `None` where that is not known.
    pub fn most(&self, value: ValueId) -> Option<i128> {
        self.look()?;
        let of_type = || match self.module.type_of(value) {
            Type::Integer(bits @ 1..=32) => Some((1_i128 << (bits - 1)) - 1),
            _ => None,
        };
        if let Some(constant) = self.module.integer_constant(value) {
            // Products with it would turn round what is more.
            return (constant >= 0).then_some(constant);
        }
        let Some((_, operation)) = self.maker(value) else { return of_type() };
        let found = match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.get_program_id" | "tt.get_num_programs", _) => match axis_of(operation)? {
                Axis::Y | Axis::Z => Some(MOST_PROGRAMS),
                Axis::X => None,
            },
            ("arith.extsi", [a]) if !self.is_flag(*a) => self.most(*a),
            ("arith.addi", [..]) if self.is_program(value) => Some(MOST_TILES),
            ("arith.addi", [a, b]) => self.most(*a)?.checked_add(self.most(*b)?),
            ("arith.muli", [a, b]) => self.most(*a)?.checked_mul(self.most(*b)?),
            ("arith.divsi", [a, by]) => {
                // No quotient of numbers that are not negative is more than what is divided.
                let by = self.module.integer_constant(*by).unwrap_or(1).max(1);
                self.most(*a).map(|a| a / by)
            }
            ("arith.remsi", [a, by]) => {
                let below = self.natural_if(*by).filter(BTreeSet::is_empty).and_then(|_| self.most(*by));
                [self.most(*a), below].into_iter().flatten().min()
            }
            ("arith.minsi", [a, b]) => [self.most(*a), self.most(*b)].into_iter().flatten().min(),
            ("arith.maxsi" | "arith.select", [.., a, b]) => Some(self.most(*a)?.max(self.most(*b)?)),
            _ => None,
        };
        [found, of_type()].into_iter().flatten().min()
    }

    /// Returns whether it is a program's number in the whole grid, the first axis fastest: a launch has fewer than 2³¹ of them.
    fn is_program(&self, value: ValueId) -> bool {
        let Some(number) = self.number(value, &[], Sight::Invariants) else { return false };
        let axis = |symbol: &Symbol, name: &str| {
            let Symbol::Scalar(value) = symbol else { return None };
            let (_, operation) = self.maker(*value).filter(|(_, operation)| operation.name == name)?;
            usize::try_from(axis_of(operation)?.number()).ok()
        };
        let axes = |product: &[Symbol], name| {
            let mut axes: Vec<usize> = product.iter().filter_map(|symbol| axis(symbol, name)).collect();
            axes.sort_unstable();
            axes
        };
        let mut terms = number.terms().map(|(product, coefficient)| {
            let (ids, counts) = (axes(product, "tt.get_program_id"), axes(product, "tt.get_num_programs"));
            let is_whole = ids.len() + counts.len() == product.len() && coefficient == 1;
            (is_whole && ids.len() == 1 && counts == (0..ids[0]).collect::<Vec<_>>()).then(|| ids[0])
        });
        let mut seen = BTreeSet::new();
        terms.all(|id| id.is_some_and(|id| seen.insert(id)))
    }

    fn number(&self, value: ValueId, along: &Along, sight: Sight) -> Option<Polynomial> {
        self.look()?;
        let module = self.module;
        self.widened.set(self.widened.get() || *module.type_of(value).element() == Type::Integer(64));
        if let Some(constant) = module.integer_constant(value) {
            return Some(Polynomial::constant(constant));
        }
        if let Some(parts) = self.parts.filter(|parts| parts.induction == value) {
            let (lower, step) = (parts.lower, parts.step);
            return self.changing(sight, || {
                let first = self.number(lower, &[], Sight::Invariants)?;
                self.after_steps(&first, step, &[])
            });
        }
        if let Some(k) = self.carried(value) {
            return self.changing(sight, || {
                let goes_on = || {
                    let (from, amount) = self.step(k, "arith.addi")?;
                    let first = self.number(from, along, Sight::Invariants)?;
                    self.after_steps(&first, amount, along)
                };
                goes_on().or_else(|| self.of_iteration(value, sight))
            });
        }
        let is_scalar = !module.type_of(value).is_tensor();
        let Some((id, operation)) = self.maker(value) else { return self.known_before(value) };
        match (operation.name.as_str(), operation.operands.as_slice()) {
            ("arith.addi", [a, b]) => self.number(*a, along, sight)?.plus(&self.number(*b, along, sight)?),
            ("arith.subi", [a, b]) => self.number(*a, along, sight)?.minus(&self.number(*b, along, sight)?),
            ("arith.muli", [a, b]) => self.number(*a, along, sight)?.times(&self.number(*b, along, sight)?),
            ("arith.extsi", [x]) if !self.is_flag(*x) => self.number(*x, along, sight),
            ("arith.divsi", [x, by]) if sight == Sight::Bounds => {
                let quotient = || self.number(*x, along, sight)?.over(module.integer_constant(*by)?);
                quotient().or_else(|| self.known_before(value))
            }
            ("arith.remsi", [x, extent]) if !is_scalar => self.before_wrap(*x, *extent, along, sight),
            ("arith.select", [condition, x, _]) if !is_scalar => {
                let assumed = self.assumed.as_ref()?;
                let conditions = self.conditions(*condition, along)?;
                assumed.borrow_mut().extend(conditions);
                self.number(*x, along, sight)
            }
            // The smaller, or greater, of an index and a limit is the index where that is within the limit.
            ("arith.minsi" | "arith.maxsi", [a, b]) if !is_scalar => {
                let assumed = self.assumed.as_ref()?;
                let (a, b) = (self.number(*a, along, sight)?, self.number(*b, along, sight)?);
                let runs = |number: &Polynomial| along.iter().flatten().any(|d| number.mentions(Symbol::Index(*d)));
                let (index, limit) = if runs(&a) { (a, b) } else { (b, a) };
                let within = match operation.name.as_str() {
                    "arith.minsi" => limit.minus(&index)?,
                    _ => index.minus(&limit)?,
                };
                assumed.borrow_mut().push(within.plus(&Polynomial::constant(1))?);
                Some(index)
            }
            ("tt.splat", [x]) => self.number(*x, &[], sight),
            ("tt.broadcast" | "tt.expand_dims", [x]) => self.number(*x, &self.before(operation, along)?, sight),
            ("tt.make_range", _) => {
                let start = Polynomial::constant(i128::from(operation.attributes.integer("start")?));
                match along.first()? {
                    Some(dimension) => start.plus(&Polynomial::symbol(Symbol::Index(*dimension))),
                    None => Some(start),
                }
            }
            _ if is_scalar && self.parts.is_none_or(|parts| module.operation(id).block != Some(parts.body)) => {
                self.known_before(value)
            }
            _ => self.of_iteration(value, sight),
        }
    }

    /// A scalar of the loop's body that no arithmetic of ours takes apart.
    fn of_iteration(&self, value: ValueId, sight: Sight) -> Option<Polynomial> {
        (self.of_iterations && sight == Sight::Iteration).then(|| self.known_before(value)).flatten()
    }

    /// `x % extent` as `x`, where it runs along one dimension.
    fn before_wrap(&self, x: ValueId, extent: ValueId, along: &Along, sight: Sight) -> Option<Polynomial> {
        let (x, extent) = (self.number(x, along, sight)?, self.number(extent, along, Sight::Invariants)?);
        let mut dimensions = along.iter().flatten().filter(|d| x.mentions(Symbol::Index(**d)));
        let (Some(&dimension), None) = (dimensions.next(), dimensions.next()) else { return None };
        let wrap = Wrap { dimension, before_end: extent.minus(&x)?, number: Some(x.clone()) };
        let mut wraps = self.wraps.borrow_mut();
        if !wraps.contains(&wrap) {
            wraps.push(wrap);
        }
        Some(x)
    }

    /// A scalar that no arithmetic of ours takes apart.
    fn known_before(&self, value: ValueId) -> Option<Polynomial> {
        let is_integer = matches!(self.module.type_of(value), Type::Integer(32 | 64));
        is_integer.then(|| Polynomial::symbol(Symbol::Scalar(value)))
    }

    /// Returns whether it is `true` or `false`, which as signed numbers are -1 and 0.
    fn is_flag(&self, value: ValueId) -> bool {
        *self.module.type_of(value).element() == Type::Integer(1)
    }

    fn changing(&self, sight: Sight, read: impl FnOnce() -> Option<Polynomial>) -> Option<Polynomial> {
        if sight == Sight::Iteration { read() } else { None }
    }

    /// Which of the values that the loop carries this is.
    fn carried(&self, value: ValueId) -> Option<usize> {
        self.parts?.carried.iter().position(|v| *v == value)
    }

    /// The initial value of a carried value, and its increment by this operation in every iteration.
    fn step(&self, k: usize, by: &str) -> Option<(ValueId, ValueId)> {
        let parts = self.parts?;
        let (carried, yielded) = (*parts.carried.get(k)?, *parts.yielded.get(k)?);
        let (_, operation) = self.maker(yielded)?;
        match operation.operands.as_slice() {
            [from, amount] if operation.name == by && *from == carried => Some((*parts.initial.get(k)?, *amount)),
            _ => None,
        }
    }

    fn after_steps(&self, first: &Polynomial, amount: ValueId, along: &Along) -> Option<Polynomial> {
        let amount = self.number(amount, along, Sight::Invariants)?;
        first.plus(&amount.times(&Polynomial::symbol(Symbol::Iteration))?)
    }

    /// Along which dimensions of the tile the operand of a view runs.
    fn before(&self, view: &Operation, along: &Along) -> Option<Vec<Option<usize>>> {
        let mut along = along.to_vec();
        if view.name == "tt.expand_dims" {
            let axis = usize::try_from(view.attributes.integer("axis")?).ok()?;
            return (axis < along.len()).then(|| {
                along.remove(axis);
                along
            });
        }
        let from = self.module.type_of(*view.operands.first()?).known_shape()?;
        if from.len() != along.len() {
            return None;
        }
        for (dimension, extent) in along.iter_mut().zip(from) {
            *dimension = dimension.filter(|_| extent > 1);
        }
        Some(along)
    }

    fn maker(&self, value: ValueId) -> Option<(OperationId, &'m Operation)> {
        let id = self.module.defining_operation(value)?;
        Some((id, self.module.operation(id)))
    }

    fn look(&self) -> Option<()> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(())
    }
}
