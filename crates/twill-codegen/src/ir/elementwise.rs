//! The operations on elements: one row for each is all that both back ends need to write it.

use twill_triton::mlir::{FloatKind, Type};

/// How an operation on elements is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
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
    /// A function of libdevice, whose symbol stands in the place of a predicate.
    Libdevice,
}

/// A function's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// In Gluon.
    pub gluon: &'static str,
    /// What else Gluon's takes, behind its operands.
    pub gluon_takes: &'static str,
    /// In CUDA: one of C's own, or of `twill.cuh`.
    pub cuda: &'static str,
    /// The function in CUDA knows numbers of these types.
    pub cuda_of: Domain,
}

/// Numbers that a function of CUDA knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Overloaded for all.
    All,
    /// Numbers of 32 bits; those of 16 are converted to them and back.
    Single,
}

impl Domain {
    /// How operands of a type come to it: none where they do not.
    pub fn takes(self, element: &Type) -> Option<Operands> {
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
pub enum Operands {
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

/// All of them, by the TTIR's names.
pub const OPERATIONS: &[(&str, Form)] = &[
    ("arith.addf", Form::Infix("+")),
    ("arith.addi", Form::Infix("+")),
    ("tt.addptr", Form::Infix("+")),
    ("arith.subf", Form::Infix("-")),
    ("arith.subi", Form::Infix("-")),
    ("arith.mulf", Form::Infix("*")),
    ("arith.muli", Form::Infix("*")),
    ("arith.andi", Form::Infix("&")),
    ("arith.ori", Form::Infix("|")),
    ("arith.xori", Form::Infix("^")),
    ("arith.shli", Form::Infix("<<")),
    ("arith.shrsi", Form::Infix(">>")),
    ("arith.divsi", Form::Quotient { gluon: "//", cuda: "/" }),
    ("arith.remsi", Form::Quotient { gluon: "%", cuda: "%" }),
    ("arith.divui", Form::Unsigned { gluon: "//", cuda: "/" }),
    ("arith.remui", Form::Unsigned { gluon: "%", cuda: "%" }),
    ("arith.shrui", Form::Unsigned { gluon: ">>", cuda: ">>" }),
    ("arith.divf", Form::Division),
    ("arith.negf", Form::Negation),
    ("arith.cmpf", Form::Comparison),
    ("arith.cmpi", Form::Comparison),
    ("arith.select", Form::Selection),
    ("arith.truncf", Form::Conversion),
    ("arith.extf", Form::Conversion),
    ("arith.sitofp", Form::Conversion),
    ("arith.fptosi", Form::Conversion),
    ("arith.trunci", Form::Conversion),
    ("arith.extsi", Form::Conversion),
    ("arith.index_cast", Form::Conversion),
    ("tt.fp_to_fp", Form::Conversion),
    ("arith.extui", Form::FromUnsigned),
    ("arith.uitofp", Form::FromUnsigned),
    ("arith.fptoui", Form::ToUnsigned),
    ("arith.maxnumf", call("gl.maximum", "maximum", Domain::All)),
    ("arith.minnumf", call("gl.minimum", "minimum", Domain::All)),
    ("arith.maxsi", call("gl.maximum", "maximum", Domain::All)),
    ("arith.minsi", call("gl.minimum", "minimum", Domain::All)),
    ("arith.maximumf", of_nans("gl.maximum", "maximum_nan")),
    ("arith.minimumf", of_nans("gl.minimum", "minimum_nan")),
    ("math.exp", call("gl.exp", "exp_of", Domain::Single)),
    ("math.exp2", call("gl.exp2", "exp2_of", Domain::Single)),
    ("math.log", call("gl.log", "logf", Domain::Single)),
    ("math.log2", call("gl.log2", "log2f", Domain::Single)),
    ("math.sqrt", call("gl.sqrt", "sqrt_of", Domain::Single)),
    ("math.rsqrt", call("gl.rsqrt", "rsqrtf", Domain::Single)),
    ("math.sin", call("gl.sin", "sinf", Domain::Single)),
    ("math.cos", call("gl.cos", "cosf", Domain::Single)),
    ("math.erf", call("gl.erf", "erff", Domain::Single)),
    ("math.absf", call("gl.abs", "fabsf", Domain::Single)),
    ("math.absi", call("gl.abs", "abs", Domain::All)),
    ("math.floor", call("gl.floor", "floorf", Domain::Single)),
    ("math.ceil", call("gl.ceil", "ceilf", Domain::Single)),
    ("math.fma", call("gl.fma", "fmaf", Domain::Single)),
    ("tt.precise_sqrt", call("gl.sqrt_rn", "__fsqrt_rn", Domain::Single)),
    ("tt.precise_divf", call("gl.div_rn", "__fdiv_rn", Domain::Single)),
    ("tt.mulhiui", call("gl.umulhi", "__umulhi", Domain::Single)),
    ("tt.clampf", Form::Clamping),
    ("tt.extern_elementwise", Form::Libdevice),
];

/// How an operation is written; none where it is not one on elements.
pub fn form(name: &str) -> Option<Form> {
    OPERATIONS.iter().find(|(known, _)| *known == name).map(|(_, form)| *form)
}

/// The symbol of a comparison.
pub fn comparison(predicate: &str) -> Option<&'static str> {
    Some(match predicate {
        "eq" | "oeq" => "==",
        "ne" | "une" => "!=",
        _ => match predicate.get(1..) {
            Some("lt") => "<",
            Some("le") => "<=",
            Some("gt") => ">",
            Some("ge") => ">=",
            _ => return None,
        },
    })
}
