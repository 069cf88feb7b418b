//! The instructions of elementwise operations.
//!
//! Counts are instructions an element, as Triton 3.6 and ptxas emit them for f32 without `fastmath` flags; those of
//! divisions and of functions that take several steps are rounded. Machines know the rates.

/// Instructions that one element of an elementwise operation takes, by unit family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// Floating-point adds, multiplies, multiply-adds.
    pub fma: u32,
    /// Comparison, selection, minimum, maximum, integer and logical arithmetic.
    pub alu: u32,
    /// exp2, log2, reciprocal, square roots, sine, cosine.
    pub special: u32,
}

const fn recipe(fma: u32, alu: u32, special: u32) -> Recipe {
    Recipe { fma, alu, special }
}

/// A multiply and an add in one instruction.
pub(crate) const FUSED: (&str, Recipe) = ("fma", recipe(1, 0, 0));

/// The name and cost of an operation, if it is elementwise arithmetic.
pub(crate) fn elementwise(operation: &str) -> Option<(&'static str, Recipe)> {
    let (fma, alu, special) = (recipe(1, 0, 0), recipe(0, 1, 0), recipe(0, 0, 1));
    Some(match operation {
        "arith.addf" => ("add", fma),
        "arith.subf" => ("subtract", fma),
        "arith.mulf" => ("multiply", fma),
        "arith.negf" => ("negate", fma),
        "math.fma" => FUSED,
        "arith.maxnumf" | "arith.maximumf" | "arith.maxsi" | "arith.maxui" => ("max", alu),
        "arith.minnumf" | "arith.minimumf" | "arith.minsi" | "arith.minui" => ("min", alu),
        "tt.clampf" => ("clamp", recipe(0, 2, 0)),
        "arith.cmpf" | "arith.cmpi" => ("compare", alu),
        "arith.select" => ("select", alu),
        "math.absf" | "math.absi" => ("abs", alu),
        "arith.addi" => ("add", alu),
        "arith.subi" => ("subtract", alu),
        "arith.muli" => ("multiply", alu),
        "tt.mulhiui" => ("multiply_high", recipe(0, 2, 0)),
        "arith.andi" => ("and", alu),
        "arith.ori" => ("or", alu),
        "arith.xori" => ("xor", alu),
        "arith.shli" | "arith.shrsi" | "arith.shrui" => ("shift", alu),
        "arith.divsi" | "arith.divui" => ("divide", recipe(0, 16, 2)),
        "arith.remsi" | "arith.remui" => ("remainder", recipe(0, 18, 2)),
        "arith.divf" => ("divide", recipe(2, 0, 1)),
        "arith.remf" => ("remainder", recipe(4, 0, 1)),
        "tt.precise_divf" => ("divide", recipe(8, 0, 1)),
        "math.exp2" => ("exp2", special),
        "math.exp" => ("exp", recipe(1, 0, 1)),
        "math.log2" => ("log2", special),
        "math.log" => ("log", recipe(1, 0, 1)),
        "math.rsqrt" => ("rsqrt", special),
        "math.sqrt" => ("sqrt", recipe(1, 0, 1)),
        "tt.precise_sqrt" => ("sqrt", recipe(8, 0, 1)),
        "math.sin" => ("sin", recipe(1, 0, 1)),
        "math.cos" => ("cos", recipe(1, 0, 1)),
        "math.tanh" => ("tanh", recipe(3, 0, 2)),
        "math.erf" => ("erf", recipe(12, 0, 1)),
        // A function of libdevice takes several steps; most are about as long as these.
        "tt.extern_elementwise" => ("call", recipe(12, 4, 2)),
        "math.floor" => ("floor", special),
        "math.ceil" => ("ceil", special),
        _ => return None,
    })
}
