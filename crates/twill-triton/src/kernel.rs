//! From a module of TTIR to a kernel's loops of tile operations.

mod affine;
mod carried_loads;
mod carried_offsets;
mod carried_operands;
mod counted_loops;
mod critical_sections;
mod dependent_launch;
mod dimensions;
mod early_returns;
mod equal_elements;
mod extract;
mod grid;
mod if_conversion;
mod mapped_functions;
mod masked_loads;
mod matrix;
mod names;
mod natural;
mod needs;
mod nested_loops;
mod resolve;
mod scaled_maxima;
mod scaled_products;
mod single_results;
mod strides;
mod unroll;
mod varies;
pub(crate) mod views;
mod wrapped;

use crate::error::{Error, OperationLocation};
use crate::mlir::{self, Attribute, ForLoop, Module, OperationId, ValueId};
pub use crate::operations::{along_axis, axis_of, is_conversion, is_pure};
pub use crate::polynomial::{Polynomial, Symbol};
pub use crate::tile::{Amount, Matrix};
use crate::tile::{Axes, TileLoop};
pub use crate::tile::{ENDLESS, LaunchNumber, LaunchOperator, MatrixTile, WholeTile};
pub use critical_sections::CRITICAL_SECTION;
pub use dependent_launch::grid_control;
pub use early_returns::{RETURN_IF, RETURN_UNLESS};
use grid::Differences;
pub use if_conversion::NOT_ZERO;
pub use scaled_maxima::POSITIVE;
use twill_graph::showable;

/// A module in which a function has no operation that stands for several others: scaled products, functions mapped over tiles.
pub fn expanded(module: Module, function: OperationId) -> Module {
    mapped_functions::written_out(scaled_products::without_scales(module, function), function)
}

/// A kernel and its innermost loops.
#[derive(Clone, Debug)]
pub struct Kernel {
    module: Module,
    function: OperationId,
    name: String,
    loops: Vec<TileLoop>,
    differences: Differences,
    dependent_launch: bool,
    critical_section: Option<OperationId>,
}

impl Kernel {
    /// Reads the only kernel of a module, or the one of this name.
    ///
    /// # Errors
    /// When there is no such kernel, or one of its innermost loops is not a straight line of known operations.
    pub fn new(module: Module, name: Option<&str>) -> Result<Kernel, Error> {
        Kernel::with_step(module, name, None)
    }

    /// The same, its loop in steps of another size ([`retile_loop`](crate::retile_loop)).
    ///
    /// # Errors
    /// As [`Kernel::new`], and where the loop cannot be made so.
    pub fn with_step(mut module: Module, name: Option<&str>, step: Option<u64>) -> Result<Kernel, Error> {
        // A text that uses our attributes itself is not taken for our result.
        module.forget("twill.");
        let function = find(&module, name)?;
        let (module, dependent_launch) = dependent_launch::taken_out(module, function);
        let module = expanded(module, function);
        let module = early_returns::in_line(module, function);
        let module = critical_sections::enclosed(module, function);
        let module = counted_loops::counted(module, function);
        let module = nested_loops::nested(module, function);
        let module = unroll::unrolled(module, function);
        let module = if_conversion::if_converted(module, function);
        let module = masked_loads::with_zeros(module, function);
        let module = equal_elements::loaded_once(module, function);
        let module = single_results::split(module, function);
        let module = scaled_maxima::before_scaling(module, function);
        let module = carried_offsets::as_numbers(module, function);
        let module = carried_loads::through_registers(module, function);
        let module = carried_operands::copied_where_read(module, function);
        let module = match step {
            Some(step) => crate::retile_loop::with_step(module, function, step)?,
            None => module,
        };
        let name = showable(module.function_name(function).unwrap_or_default());
        let needed = needs::values(&module, function);
        let differences = Differences::new(&module, function);
        let mut loops = Vec::new();
        for parts in innermost(&module, function) {
            check_trips(&module, &parts)?;
            loops.extend(extract::tile_loop(&module, function, parts, &needed, &differences, &name)?);
        }
        match loops.as_mut_slice() {
            [] => return Err(Error::NoLoop { file: module.file().to_owned(), kernel: name }),
            [_] => {}
            several => {
                for (index, tile_loop) in several.iter_mut().enumerate() {
                    tile_loop.name = format!("{name}.loop{index}");
                }
            }
        }
        let critical_section = critical_sections::of(&module, function);
        Ok(Kernel { module, function, name, loops, differences, dependent_launch, critical_section })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its innermost loops that have tile operations, in the order of the text. There is at least one.
    pub fn loops(&self) -> &[TileLoop] {
        &self.loops
    }

    /// The module it was read from.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The axes of the grid along which programs differ in a value of the TTIR, in the loops, before or after them.
    pub fn differs(&self, value: ValueId) -> Axes {
        self.differences.of(value)
    }

    /// The tile of a matrix that a `tt.store` through pointers writes outside of loops: what a tensor descriptor could write
    /// as well. `None` where that is not proved, and before a critical section, which comes after all stores.
    pub fn stored_matrix(&self, store: OperationId) -> Option<MatrixTile> {
        if self.critical_section().is_some() {
            return None;
        }
        matrix::stored(&self.module, self.function, store)
    }

    /// `to - from` of two scalars that are known outside of loops, where that is one number for all programs and arguments and the
    /// kernel's arithmetic does not overflow.
    pub(crate) fn distance(&self, from: ValueId, to: ValueId) -> Option<i128> {
        let reader = affine::Reader::new(&self.module, self.function, None);
        reader.bound(to)?.minus(&reader.bound(from)?)?.number()
    }

    /// Whether a program waits for the grids before its own (`griddepcontrol.wait`). The module has none of these waits any more:
    /// they belong before everything else.
    pub fn has_dependent_launch(&self) -> bool {
        self.dependent_launch
    }

    /// The branch that is a [critical section](CRITICAL_SECTION), if the kernel ends with one.
    pub fn critical_section(&self) -> Option<OperationId> {
        self.critical_section
    }

    /// Whether a loop of tile operations stands in another loop or in a branch.
    pub fn is_nested(&self) -> bool {
        self.loops.iter().any(|l| self.module.parent(l.statement()) != Some(self.function))
    }

    /// The kernel's `tt.func`.
    pub fn function(&self) -> OperationId {
        self.function
    }
}

/// The only kernel of a module, or the one of this name: its `tt.func`.
///
/// # Errors
/// When there is no such kernel.
pub fn find(module: &Module, name: Option<&str>) -> Result<OperationId, Error> {
    let kernels: Vec<OperationId> = module.kernels().filter(|id| module.body(*id).is_some()).collect();
    let file = || module.file().to_owned();
    let names = || kernels.iter().filter_map(|id| module.function_name(*id)).map(str::to_owned).collect();
    match (name, kernels.as_slice()) {
        (_, []) => Err(Error::NoKernel { file: file() }),
        (None, [kernel]) => Ok(*kernel),
        (None, _) => Err(Error::SeveralKernels { file: file(), names: names() }),
        (Some(name), _) => kernels
            .iter()
            .copied()
            .find(|id| module.function_name(*id) == Some(name))
            .ok_or_else(|| Error::NoSuchKernel { file: file(), name: name.to_owned(), names: names() }),
    }
}

/// `scf.for` loops that hold no other; one that holds an `scf.while` is among them, and rejected later.
fn innermost(module: &Module, function: OperationId) -> impl Iterator<Item = ForLoop<'_>> {
    let is_for = |id: OperationId| module.operation(id).name == "scf.for";
    let is_innermost = move |parts: &ForLoop<'_>| !module.walk(parts.operation).skip(1).any(is_for);
    let is_ordered = |parts: &ForLoop<'_>| critical_sections::has(module, parts.operation);
    module.for_loops(function).filter(move |parts| is_innermost(parts) && !is_ordered(parts))
}

fn check_trips(module: &Module, parts: &ForLoop<'_>) -> Result<(), Error> {
    let constants = [parts.lower, parts.upper, parts.step].map(|value| constant_integer(module, value));
    if let [Some(lower), Some(upper), Some(step)] = constants
        && lower >= upper
    {
        return Err(Error::ZeroTrips { place: OperationLocation::of(module, parts.operation), lower, upper, step });
    }
    Ok(())
}

fn constant_integer(module: &Module, value: ValueId) -> Option<i128> {
    match constant(module, value)?.number()? {
        Attribute::Integer { value, .. } => Some(*value),
        _ => None,
    }
}

/// For each dimension of what a view such as `tt.reshape` shows, the dimension of its operand that it is, if it is one.
pub fn view_dimensions(module: &Module, view: OperationId) -> Vec<Option<usize>> {
    let shape = |value: Option<&ValueId>| value.and_then(|v| module.type_of(*v).known_shape()).unwrap_or_default();
    let operation = module.operation(view);
    views::mapping(module, view, &shape(operation.operands.first()), &shape(operation.results.first()))
}

/// The constant that a value is.
fn constant(module: &mlir::Module, value: ValueId) -> Option<&Attribute> {
    let operation = module.operation(module.defining_operation(value)?);
    if operation.name == "arith.constant" { operation.attributes.get("value") } else { None }
}
