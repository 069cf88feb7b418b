//! Numbers that are not negative, and when: what a launch has to show where the kernel's text does not.
//!
//! Programs in groups of rows (`group_size = min(rows - first, 8)`, `column = (program % width) // group_size`) have columns
//! that are not negative only if the grid is no larger than the matrix. The launcher knows both: least and greatest values of
//! differences are numbers of arguments and the grid's extents (interval arithmetic: Moore, "Interval Analysis", 1966). A grid that
//! is larger is refused, also where its other programs return at once.

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::grid::Axis;
use crate::mlir::{Attribute, Definition, Module, Operation, OperationId, Type, ValueId};
use crate::tile::{LaunchNumber, LaunchOperator};

/// Numbers of the launch, none of which may be negative.
pub(super) type Natural = BTreeSet<LaunchNumber>;

/// What a scalar is between, where none of `natural` is negative.
struct Range {
    least: LaunchNumber,
    most: LaunchNumber,
    natural: Natural,
}

impl Range {
    fn exact(number: LaunchNumber) -> Range {
        Range { least: number.clone(), most: number, natural: Natural::new() }
    }

    /// Known at the launch, whatever the program.
    fn is_exact(&self) -> bool {
        self.least == self.most
    }
}

/// Reads scalars of a kernel.
pub(super) struct Naturals<'m> {
    module: &'m Module,
    function: OperationId,
    /// Values that may still be looked at, so that one that is used twice in every step takes no exponential time.
    left: Cell<u32>,
}

/// Values that are looked at for one number; more belong to no coordinate that anybody wrote.
const MOST_VALUES: u32 = 200;

impl<'m> Naturals<'m> {
    pub fn new(module: &'m Module, function: OperationId) -> Naturals<'m> {
        Naturals { module, function, left: Cell::new(MOST_VALUES) }
    }

    /// What of the launch must not be negative so that a scalar is not either; `None` where it may be all the same.
    pub fn natural_if(&self, value: ValueId) -> Option<Natural> {
        self.left.set(self.left.get().checked_sub(1)?);
        if let Some(constant) = self.module.integer_constant(value) {
            return (constant >= 0).then(Natural::new);
        }
        if self.is_argument(value) {
            return Some(Natural::from([LaunchNumber::Argument(value)]));
        }
        if self.is_assumed_natural(value) {
            return Some(Natural::new());
        }
        if let Some((lower, _)) = self.bounds_of_induction(value) {
            return self.natural_if(lower);
        }
        let operation = self.maker(value)?;
        match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.get_program_id" | "tt.get_num_programs", _) => Some(Natural::new()),
            ("arith.addi" | "arith.muli" | "arith.divsi" | "arith.minsi", operands)
            | ("arith.select", [_, operands @ ..]) => {
                let each: Option<Vec<_>> = operands.iter().map(|v| self.natural_if(*v)).collect();
                Some(each?.into_iter().flatten().collect())
            }
            ("arith.subi", [a, b]) => {
                // Of two numbers that vary together, least and greatest say too little; and a difference of arguments may well
                // be negative in a launch that is right.
                let (a, b) = (self.range(*a)?, self.range(*b)?);
                let difference = (a.is_exact() && !b.is_exact()).then(|| a.least.minus(&b.most))?;
                Some(a.natural.into_iter().chain(b.natural).chain([difference]).collect())
            }
            ("arith.remsi" | "arith.shrsi", [a, _]) => self.natural_if(*a),
            ("arith.maxsi", [a, b]) => self.natural_if(*a).or_else(|| self.natural_if(*b)),
            ("arith.extsi", [a]) if !self.is_flag(*a) => self.natural_if(*a),
            _ => None,
        }
    }

    /// What a scalar is between.
    fn range(&self, value: ValueId) -> Option<Range> {
        self.left.set(self.left.get().checked_sub(1)?);
        if let Some(constant) = self.module.integer_constant(value) {
            return Some(Range::exact(LaunchNumber::constant(constant)?));
        }
        if self.is_argument(value) {
            let is_integer = matches!(self.module.type_of(value), Type::Integer(8..=64));
            return is_integer.then(|| Range::exact(LaunchNumber::Argument(value)));
        }
        if let Some((lower, upper)) = self.bounds_of_induction(value) {
            let (lower, upper) = (self.range(lower)?, self.range(upper)?);
            let natural = lower.natural.into_iter().chain(upper.natural).collect();
            return Some(Range { least: lower.least, most: upper.most.minus(&LaunchNumber::Constant(1)), natural });
        }
        let operation = self.maker(value)?;
        let pair = |a, b| Some((self.range(a)?, self.range(b)?));
        let naturals = |a, b| Some((self.natural_range(a)?, self.natural_range(b)?));
        let of = |least, most, a: Natural, b: Natural| {
            Some(Range { least, most, natural: a.into_iter().chain(b).collect() })
        };
        let zero = LaunchNumber::Constant(0);
        match (operation.name.as_str(), operation.operands.as_slice()) {
            ("tt.get_program_id", _) => {
                let last = LaunchNumber::Programs(axis_of(operation)?).minus(&LaunchNumber::Constant(1));
                Some(Range { least: zero, most: last, natural: Natural::new() })
            }
            ("tt.get_num_programs", _) => Some(Range::exact(LaunchNumber::Programs(axis_of(operation)?))),
            ("arith.addi", [a, b]) => {
                let (a, b) = pair(*a, *b)?;
                of(a.least.plus(&b.least), a.most.plus(&b.most), a.natural, b.natural)
            }
            ("arith.subi", [a, b]) => {
                let (a, b) = pair(*a, *b)?;
                of(a.least.minus(&b.most), a.most.minus(&b.least), a.natural, b.natural)
            }
            ("arith.muli", [a, b]) => {
                let (a, b) = naturals(*a, *b)?;
                of(a.least.times(&b.least), a.most.times(&b.most), a.natural, b.natural)
            }
            ("arith.divsi", [a, by]) => {
                let (a, by) = naturals(*a, *by)?;
                let (least, most) = (a.least.over(&by.most), a.most.over(&by.least));
                of(least, most, a.natural, by.natural)
            }
            ("arith.remsi", [a, by]) => {
                let a = self.natural_range(*a)?;
                let Some(by) = self.natural_range(*by) else {
                    return of(zero, a.most, a.natural, Natural::new());
                };
                let below = by.most.minus(&LaunchNumber::Constant(1)).greater(&LaunchNumber::Constant(0));
                of(zero, a.most.smaller(&below), a.natural, by.natural)
            }
            ("arith.minsi", [a, b]) => {
                let (a, b) = pair(*a, *b)?;
                of(a.least.smaller(&b.least), a.most.smaller(&b.most), a.natural, b.natural)
            }
            ("arith.maxsi", [a, b]) => {
                let (a, b) = pair(*a, *b)?;
                of(a.least.greater(&b.least), a.most.greater(&b.most), a.natural, b.natural)
            }
            ("arith.select", [_, a, b]) => {
                let (a, b) = pair(*a, *b)?;
                of(a.least.smaller(&b.least), a.most.greater(&b.most), a.natural, b.natural)
            }
            ("arith.extsi", [a]) if !self.is_flag(*a) => self.range(*a),
            _ => None,
        }
    }

    /// The same of a scalar that is not negative: then what it is at least is not either.
    fn natural_range(&self, value: ValueId) -> Option<Range> {
        let (range, natural) = (self.range(value)?, self.natural_if(value)?);
        let least = match range.least.is_natural(&natural) {
            true => range.least.clone(),
            false => range.least.greater(&LaunchNumber::Constant(0)),
        };
        let most = if range.is_exact() { least.clone() } else { range.most };
        Some(Range { least, most, natural: range.natural.into_iter().chain(natural).collect() })
    }

    /// First value, and the one before which it ends, of the number of an `scf.for`'s iteration: steps are positive.
    fn bounds_of_induction(&self, value: ValueId) -> Option<(ValueId, ValueId)> {
        let Definition::Argument { block, .. } = self.module.definition(value) else { return None };
        let parts = self.module.for_loop(self.module.region(self.module.block(block).region).operation)?;
        (parts.induction == value).then_some((parts.lower, parts.upper))
    }

    /// Returns whether the kernel says `tl.assume(value >= 0)`, or that it is more than a number that is not negative.
    fn is_assumed_natural(&self, value: ValueId) -> bool {
        let is_assumed = |result: ValueId| {
            let mut users = self.module.uses(result).iter().map(|usage| self.module.operation(usage.operation));
            users.any(|user| user.name == "llvm.intr.assume" && user.block == self.module.body(self.function))
        };
        self.module.uses(value).iter().map(|usage| self.module.operation(usage.operation)).any(|operation| {
            let (&[low, high], &[result]) = (operation.operands.as_slice(), operation.results.as_slice()) else {
                return false;
            };
            let at_least = match operation.attributes.get("predicate") {
                Some(Attribute::Enumeration(predicate)) if operation.name == "arith.cmpi" && low == value => {
                    let least = self.module.integer_constant(high);
                    (predicate == "sge" && least >= Some(0)) || (predicate == "sgt" && least >= Some(-1))
                }
                _ => false,
            };
            at_least && is_assumed(result)
        })
    }

    fn is_argument(&self, value: ValueId) -> bool {
        self.module.arguments(self.function).contains(&value)
    }

    /// Returns whether it is `true` or `false`, which as signed numbers are -1 and 0.
    fn is_flag(&self, value: ValueId) -> bool {
        *self.module.type_of(value).element() == Type::Integer(1)
    }

    fn maker(&self, value: ValueId) -> Option<&'m Operation> {
        Some(self.module.operation(self.module.defining_operation(value)?))
    }
}

/// The axis of the grid that an operation asks about.
pub(super) fn axis_of(operation: &Operation) -> Option<Axis> {
    match operation.attributes.get("axis")? {
        Attribute::Enumeration(axis) => match axis.as_str() {
            "x" => Some(Axis::X),
            "y" => Some(Axis::Y),
            "z" => Some(Axis::Z),
            _ => None,
        },
        Attribute::Integer { value, .. } => [Axis::X, Axis::Y, Axis::Z].get(usize::try_from(*value).ok()?).copied(),
        _ => None,
    }
}

impl LaunchNumber {
    fn constant(number: i128) -> Option<LaunchNumber> {
        match u32::try_from(number) {
            Ok(number) => Some(LaunchNumber::Constant(number)),
            Err(_) => Some(LaunchNumber::Constant(0).minus(&LaunchNumber::Constant(u32::try_from(-number).ok()?))),
        }
    }

    /// Returns whether it is not negative where none of these is.
    fn is_natural(&self, natural: &Natural) -> bool {
        match self {
            LaunchNumber::Constant(_) | LaunchNumber::Programs(_) => true,
            LaunchNumber::Argument(_) | LaunchNumber::Of(LaunchOperator::Minus, ..) => natural.contains(self),
            LaunchNumber::Of(LaunchOperator::Max, a, b) => a.is_natural(natural) || b.is_natural(natural),
            LaunchNumber::Of(_, a, b) => a.is_natural(natural) && b.is_natural(natural),
        }
    }

    fn of(&self, operator: LaunchOperator, other: &LaunchNumber) -> LaunchNumber {
        LaunchNumber::Of(operator, Box::new(self.clone()), Box::new(other.clone()))
    }

    fn plus(&self, other: &LaunchNumber) -> LaunchNumber {
        match (self, other) {
            (_, LaunchNumber::Constant(0)) => self.clone(),
            (LaunchNumber::Constant(0), _) => other.clone(),
            _ => self.of(LaunchOperator::Plus, other),
        }
    }

    fn minus(&self, other: &LaunchNumber) -> LaunchNumber {
        if *other == LaunchNumber::Constant(0) { self.clone() } else { self.of(LaunchOperator::Minus, other) }
    }

    fn times(&self, other: &LaunchNumber) -> LaunchNumber {
        match (self, other) {
            (LaunchNumber::Constant(0), _) | (_, LaunchNumber::Constant(1)) => self.clone(),
            (LaunchNumber::Constant(1), _) | (_, LaunchNumber::Constant(0)) => other.clone(),
            _ => self.of(LaunchOperator::Times, other),
        }
    }

    /// A quotient of numbers that are not negative, rounded down; by 0 as by 1.
    fn over(&self, by: &LaunchNumber) -> LaunchNumber {
        match (self, by) {
            (LaunchNumber::Constant(0), _) | (_, LaunchNumber::Constant(0 | 1)) => self.clone(),
            (_, LaunchNumber::Constant(_)) => self.of(LaunchOperator::Over, by),
            _ => self.of(LaunchOperator::Over, &by.greater(&LaunchNumber::Constant(1))),
        }
    }

    fn smaller(&self, other: &LaunchNumber) -> LaunchNumber {
        if self == other { self.clone() } else { self.of(LaunchOperator::Min, other) }
    }

    fn greater(&self, other: &LaunchNumber) -> LaunchNumber {
        if self == other { self.clone() } else { self.of(LaunchOperator::Max, other) }
    }
}
