//! The operations on elements: one row for each is all that both back ends need to write it.

use twill_codegen::ir::{Elementwise, FloatPredicate, IntegerPredicate};
use twill_triton::mlir::{FloatKind, Type};

/// How an operation on elements is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `a + b`, alike in both languages.
    Infix(&'static str),
    /// A division of numbers, as Triton's compiler approximates it.
    Division,
    /// A division of integers that rounds to 0; what Python calls it, and what C does.
    Quotient {
        /// Such as `//`.
        gluon: &'static str,
        /// Such as `/`.
        cuda: &'static str,
    },
    /// Of integers without a sign.
    Unsigned {
        /// Such as `//`.
        gluon: &'static str,
        /// Such as `/`.
        cuda: &'static str,
    },
    /// A function.
    Call(Call),
    /// `-a`.
    Negation,
    /// By its predicate.
    Comparison,
    /// One of two.
    Selection,
    /// To the type of the result; integers have signs.
    Conversion,
    /// The same of an integer without a sign.
    FromUnsigned,
    /// The same to an integer without a sign.
    ToUnsigned,
    /// Between two bounds.
    Clamping,
    /// A function of libdevice, whose symbol stands instead of a predicate.
    Libdevice,
}

/// A function's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// In Gluon.
    pub gluon: &'static str,
    /// What else Gluon's takes, after its operands.
    pub gluon_takes: &'static str,
    /// In CUDA: one of C's own, or of `twill.cuh`.
    pub cuda: &'static str,
    /// The function in CUDA knows numbers of these types.
    pub cuda_of: Domain,
}

/// Numbers that a function of CUDA knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    /// Overloaded for all.
    All,
    /// Numbers of 32 bits; those of 16 are converted to them and back.
    Single,
}

impl Domain {
    /// How operands of a type are passed to it: none where they cannot be.
    pub(crate) fn takes(self, element: &Type) -> Option<Operands> {
        match (self, element) {
            (Domain::All, _) | (Domain::Single, Type::Float(FloatKind::F32) | Type::Integer(_)) => {
                Some(Operands::AsTheyAre)
            }
            (Domain::Single, Type::Float(FloatKind::F16 | FloatKind::BF16)) => Some(Operands::Widened),
            (Domain::Single, _) => None,
        }
    }
}

/// How operands are handed to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    /// As they are.
    AsTheyAre,
    /// Converted to 32 bits, and the result back.
    Widened,
}

const fn call(gluon: &'static str, cuda: &'static str, cuda_of: Domain) -> Form {
    Form::Call(Call { gluon, gluon_takes: "", cuda, cuda_of })
}

const fn of_nans(gluon: &'static str, cuda: &'static str) -> Form {
    Form::Call(Call { gluon, gluon_takes: ", propagate_nan=PROPAGATE_NAN", cuda, cuda_of: Domain::Single })
}

/// How an operation is written; `None` where no back end has a rule for it.
pub(crate) fn form(operation: &Elementwise) -> Option<Form> {
    use Elementwise as E;
    Some(match operation {
        E::AddF | E::AddI | E::AddPtr => Form::Infix("+"),
        E::SubF | E::SubI => Form::Infix("-"),
        E::MulF | E::MulI => Form::Infix("*"),
        E::AndI => Form::Infix("&"),
        E::OrI => Form::Infix("|"),
        E::XorI => Form::Infix("^"),
        E::ShlI => Form::Infix("<<"),
        E::ShrSI => Form::Infix(">>"),
        E::DivSI => Form::Quotient { gluon: "//", cuda: "/" },
        E::RemSI => Form::Quotient { gluon: "%", cuda: "%" },
        E::DivUI => Form::Unsigned { gluon: "//", cuda: "/" },
        E::RemUI => Form::Unsigned { gluon: "%", cuda: "%" },
        E::ShrUI => Form::Unsigned { gluon: ">>", cuda: ">>" },
        E::DivF => Form::Division,
        E::NegF => Form::Negation,
        E::CmpF(_) | E::CmpI(_) => Form::Comparison,
        E::Select => Form::Selection,
        E::TruncF | E::ExtF | E::SIToFP | E::FPToSI | E::TruncI | E::ExtSI | E::IndexCast | E::FpToFp => {
            Form::Conversion
        }
        E::ExtUI | E::UIToFP => Form::FromUnsigned,
        E::FPToUI => Form::ToUnsigned,
        E::MaxNumF | E::MaxSI => call("gl.maximum", "maximum", Domain::All),
        E::MinNumF | E::MinSI => call("gl.minimum", "minimum", Domain::All),
        E::MaximumF => of_nans("gl.maximum", "maximum_nan"),
        E::MinimumF => of_nans("gl.minimum", "minimum_nan"),
        E::Exp => call("gl.exp", "exp_of", Domain::Single),
        E::Exp2 => call("gl.exp2", "exp2_of", Domain::Single),
        E::Log => call("gl.log", "logf", Domain::Single),
        E::Log2 => call("gl.log2", "log2f", Domain::Single),
        E::Sqrt => call("gl.sqrt", "sqrt_of", Domain::Single),
        E::Rsqrt => call("gl.rsqrt", "rsqrtf", Domain::Single),
        E::Sin => call("gl.sin", "sinf", Domain::Single),
        E::Cos => call("gl.cos", "cosf", Domain::Single),
        E::Erf => call("gl.erf", "erff", Domain::Single),
        E::AbsF => call("absolute", "fabsf", Domain::Single),
        E::AbsI => call("gl.abs", "abs", Domain::All),
        E::Floor => call("gl.floor", "floorf", Domain::Single),
        E::Ceil => call("gl.ceil", "ceilf", Domain::Single),
        E::Fma => call("gl.fma", "fmaf", Domain::Single),
        E::PreciseSqrt => call("gl.sqrt_rn", "__fsqrt_rn", Domain::Single),
        E::PreciseDivF => call("gl.div_rn", "__fdiv_rn", Domain::Single),
        E::MulhiUI => call("gl.umulhi", "__umulhi", Domain::Single),
        E::ClampF => Form::Clamping,
        E::Libdevice(_) => Form::Libdevice,
        E::Opaque(_) => return None,
    })
}

/// The symbol of a comparison, in both languages.
pub(crate) fn comparison(operation: &Elementwise) -> Option<&'static str> {
    use FloatPredicate as F;
    use IntegerPredicate as I;
    Some(match operation {
        Elementwise::CmpI(I::Eq) | Elementwise::CmpF(F::Oeq) => "==",
        Elementwise::CmpI(I::Ne) | Elementwise::CmpF(F::Une) => "!=",
        Elementwise::CmpI(I::Slt | I::Ult) | Elementwise::CmpF(F::Olt) => "<",
        Elementwise::CmpI(I::Sle | I::Ule) | Elementwise::CmpF(F::Ole) => "<=",
        Elementwise::CmpI(I::Sgt | I::Ugt) | Elementwise::CmpF(F::Ogt) => ">",
        Elementwise::CmpI(I::Sge | I::Uge) | Elementwise::CmpF(F::Oge) => ">=",
        _ => return None,
    })
}
