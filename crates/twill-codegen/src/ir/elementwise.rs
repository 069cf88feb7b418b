//! Operations on elements, by their names in the TTIR.

use super::Expression;
use std::fmt;
use twill_triton::mlir::Type;

macro_rules! operations {
    ($($(#[$documentation:meta])* $variant:ident = $name:literal,)*) => {
        /// An operation on elements.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "their names are those of the TTIR")]
        pub enum Elementwise {
            $($(#[$documentation])* $variant,)*
            /// `arith.cmpf`.
            CmpF(FloatPredicate),
            /// `arith.cmpi`.
            CmpI(IntegerPredicate),
            /// A pure function of libdevice (`tt.extern_elementwise`), by its symbol, such as `__nv_tanhf`.
            Libdevice(String),
            /// An operation that no pass has a rule for.
            Opaque(Box<Opaque>),
        }

        impl Elementwise {
            /// All that are told by their name alone.
            pub const NAMED: &[Elementwise] = &[$(Elementwise::$variant,)*];

            /// The TTIR's name.
            pub fn name(&self) -> &str {
                match self {
                    $(Elementwise::$variant => $name,)*
                    Elementwise::CmpF(_) => CMPF,
                    Elementwise::CmpI(_) => CMPI,
                    Elementwise::Libdevice(_) => EXTERN,
                    Elementwise::Opaque(opaque) => &opaque.name,
                }
            }
        }
    };
}

const CMPF: &str = "arith.cmpf";
const CMPI: &str = "arith.cmpi";
const EXTERN: &str = "tt.extern_elementwise";

operations! {
    AddF = "arith.addf",
    AddI = "arith.addi",
    AddPtr = "tt.addptr",
    SubF = "arith.subf",
    SubI = "arith.subi",
    MulF = "arith.mulf",
    MulI = "arith.muli",
    AndI = "arith.andi",
    OrI = "arith.ori",
    XorI = "arith.xori",
    ShlI = "arith.shli",
    ShrSI = "arith.shrsi",
    ShrUI = "arith.shrui",
    DivSI = "arith.divsi",
    RemSI = "arith.remsi",
    DivUI = "arith.divui",
    RemUI = "arith.remui",
    DivF = "arith.divf",
    NegF = "arith.negf",
    Select = "arith.select",
    TruncF = "arith.truncf",
    ExtF = "arith.extf",
    SIToFP = "arith.sitofp",
    FPToSI = "arith.fptosi",
    TruncI = "arith.trunci",
    ExtSI = "arith.extsi",
    IndexCast = "arith.index_cast",
    FpToFp = "tt.fp_to_fp",
    ExtUI = "arith.extui",
    UIToFP = "arith.uitofp",
    FPToUI = "arith.fptoui",
    MaxNumF = "arith.maxnumf",
    MinNumF = "arith.minnumf",
    MaxSI = "arith.maxsi",
    MinSI = "arith.minsi",
    MaximumF = "arith.maximumf",
    MinimumF = "arith.minimumf",
    Exp = "math.exp",
    Exp2 = "math.exp2",
    Log = "math.log",
    Log2 = "math.log2",
    Sqrt = "math.sqrt",
    Rsqrt = "math.rsqrt",
    Sin = "math.sin",
    Cos = "math.cos",
    Erf = "math.erf",
    AbsF = "math.absf",
    AbsI = "math.absi",
    Floor = "math.floor",
    Ceil = "math.ceil",
    Fma = "math.fma",
    PreciseSqrt = "tt.precise_sqrt",
    PreciseDivF = "tt.precise_divf",
    MulhiUI = "tt.mulhiui",
    ClampF = "tt.clampf",
}

impl Elementwise {
    /// The operation of a name, and of the predicate of a comparison or the symbol of a function of libdevice; `None` where it is
    /// none on elements, or its predicate is not one that code can be generated for.
    pub fn of(name: &str, predicate: Option<&str>) -> Option<Elementwise> {
        match (name, predicate) {
            (CMPF, Some(predicate)) => FloatPredicate::of(predicate).map(Elementwise::CmpF),
            (CMPI, Some(predicate)) => IntegerPredicate::of(predicate).map(Elementwise::CmpI),
            (EXTERN, Some(symbol)) => Some(Elementwise::Libdevice(symbol.to_owned())),
            _ => Elementwise::NAMED.iter().find(|known| known.name() == name).cloned(),
        }
    }

    /// Whether an operation of the TTIR with this name is one on elements.
    pub fn is_known(name: &str) -> bool {
        matches!(name, CMPF | CMPI | EXTERN) || Elementwise::NAMED.iter().any(|known| known.name() == name)
    }

    /// The predicate of a comparison, or the symbol of a function.
    pub fn predicate(&self) -> Option<&str> {
        match self {
            Elementwise::CmpF(predicate) => Some(predicate.name()),
            Elementwise::CmpI(predicate) => Some(predicate.name()),
            Elementwise::Libdevice(symbol) => Some(symbol),
            Elementwise::Opaque(opaque) => {
                ["predicate", "symbol", "propagateNan"].iter().find_map(|name| opaque.attribute(name))
            }
            _ => None,
        }
    }

    /// Whether a reduction may combine elements by it.
    pub fn is_combination(&self) -> bool {
        use Elementwise::{AddF, AddI, MaxNumF, MaxSI, MinNumF, MinSI};
        matches!(self, AddF | AddI | MaxNumF | MaxSI | MinNumF | MinSI)
    }

    /// Whether it takes its integer operands as numbers without a sign.
    pub fn is_unsigned(&self) -> bool {
        use Elementwise::{CmpI, DivUI, RemUI, ShrUI};
        match self {
            DivUI | RemUI | ShrUI => true,
            CmpI(predicate) => predicate.is_unsigned(),
            _ => false,
        }
    }
}

impl fmt::Display for Elementwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.predicate() {
            Some(predicate) => write!(f, "{}<{predicate}>", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

macro_rules! predicates {
    ($(#[$documentation:meta])* $kind:ident: $($variant:ident = $name:literal,)*) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "their names are those of MLIR")]
        pub enum $kind {
            $($variant,)*
        }

        impl $kind {
            /// From MLIR's name.
            pub fn of(name: &str) -> Option<$kind> {
                Some(match name {
                    $($name => $kind::$variant,)*
                    _ => return None,
                })
            }

            /// MLIR's name.
            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name,)*
                }
            }
        }
    };
}

predicates! {
    /// How integers are compared.
    IntegerPredicate:
    Eq = "eq",
    Ne = "ne",
    Slt = "slt",
    Sle = "sle",
    Sgt = "sgt",
    Sge = "sge",
    Ult = "ult",
    Ule = "ule",
    Ugt = "ugt",
    Uge = "uge",
}

predicates! {
    /// How numbers are compared: false where one is NaN, but for `une`.
    FloatPredicate:
    Oeq = "oeq",
    Une = "une",
    Olt = "olt",
    Ole = "ole",
    Ogt = "ogt",
    Oge = "oge",
}

impl IntegerPredicate {
    /// Whether it takes integers as numbers without a sign.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::Ult | Self::Ule | Self::Ugt | Self::Uge)
    }
}

/// An operation that no pass has a rule for, as the TTIR has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Opaque {
    /// Its name, such as `tt.histogram`.
    pub name: String,
    /// Its attributes as text, such as `axis` and `1 : i32`.
    pub attributes: Vec<(String, String)>,
    /// What a reduction or a scan does to two elements.
    pub combine: Option<CombineRegion>,
}

impl Opaque {
    /// An attribute's text.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }
}

/// The region of a `tt.reduce` or `tt.scan`: a function of scalars. Expressions name arguments and what was computed before by
/// [`Parameter`](super::ExpressionKind::Parameter).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CombineRegion {
    /// The elements of one side, then those of the other.
    pub arguments: Vec<(String, Type)>,
    /// What is computed, in order.
    pub body: Vec<(String, Expression)>,
    /// The combined elements.
    pub results: Vec<Expression>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_predicates_read_back() {
        let all = Elementwise::NAMED.iter().cloned().chain([
            Elementwise::CmpF(FloatPredicate::Une),
            Elementwise::CmpI(IntegerPredicate::Ult),
            Elementwise::Libdevice("__nv_tanhf".into()),
        ]);
        for one in all {
            assert_eq!(Elementwise::of(one.name(), one.predicate()), Some(one.clone()));
            assert!(Elementwise::is_known(one.name()));
        }
        assert_eq!(Elementwise::of("arith.cmpf", Some("ueq")), None);
        assert_eq!(Elementwise::of("tt.histogram", None), None);
    }
}
