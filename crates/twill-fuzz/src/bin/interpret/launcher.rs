//! What the launcher of a kernel refuses (`launch.py`, `launch.cu`): such calls are none of the kernel's.

use twill_codegen::ir::{Amount, Descriptor, Parameter, WarpProgram};
use twill_interpret::{Argument, Data, Launch};

/// Bytes of which addresses and strides of TMA are multiples.
const TMA_BYTES: i64 = 16;

/// Why the launcher refuses a call; `None` where it does not.
pub(crate) fn refusal(program: &WarpProgram, launch: &Launch) -> Option<String> {
    let of_parameter = program.parameters.iter().find_map(|parameter| of_parameter(parameter, launch));
    of_parameter.or_else(|| program.descriptors.iter().find_map(|descriptor| of_matrix(descriptor, launch)))
}

fn of_parameter(parameter: &Parameter, launch: &Launch) -> Option<String> {
    let name = &parameter.name;
    let Some(Argument::Scalar(tile)) = launch.arguments.get(name) else { return None };
    match &tile.data {
        Data::Floats(number) if parameter.positive && !(2f64.powi(-32)..=2f64.powi(32)).contains(number.first()?) => {
            Some(format!("{name} is not positive"))
        }
        Data::Integers(number) => {
            let number = *number.first()?;
            let is_short = parameter.at_least.is_some_and(|least| number > 0 && number < least);
            let is_odd = parameter.divisible_by_16 && number % 16 != 0;
            (is_short || is_odd || parameter.not_zero && number == 0).then(|| format!("{name} is {number}"))
        }
        _ => None,
    }
}

fn of_matrix(descriptor: &Descriptor, launch: &Launch) -> Option<String> {
    let matrix = descriptor.matrix.as_ref()?;
    let scalar = |name: &str| match launch.arguments.get(name) {
        Some(Argument::Scalar(tile)) => tile.as_integer(),
        _ => None,
    };
    let number = |name: &str| match name.strip_prefix("programs_") {
        Some(axis) => i64::from(launch.grid[usize::from(axis.as_bytes().first().map_or(0, |c| c - b'x')).min(2)]),
        None => scalar(name).unwrap_or(0),
    };
    let amount = |amount: &Amount| match amount {
        Amount::Parameter(name) => number(name),
        Amount::Constant(constant) => i64::try_from(*constant).unwrap_or(i64::MAX),
    };
    if let Some(natural) = matrix.natural.iter().find(|natural| natural.value(&number) < 0) {
        return Some(format!("{natural:?} is negative"));
    }
    let bytes = i64::from(descriptor.element.scalar_bits().unwrap_or(8) / 8).max(1);
    // The last is that of columns, which is 1.
    let strides = matrix.all_strides();
    let odd = strides.iter().rev().skip(1).map(amount).find(|stride| *stride < 0 || stride * bytes % TMA_BYTES != 0);
    odd.map(|stride| format!("{}: a stride is {stride} elements", descriptor.name))
}
