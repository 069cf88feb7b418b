//! Brings the attributes of both forms to one: names, enumerations, and defaults that are left out.
//! [`super::Operation`] documents the result.

use super::ast::OperationId;
use super::attributes::{Attribute, Attributes};
use super::error::ParseError;
use super::lexer::Token;
use super::parser::{Parsed, Parser};

/// An attribute that the generic form writes as a number.
struct Enumeration {
    attribute: &'static str,
    /// The operations it belongs to; all if there are none.
    operations: &'static [&'static str],
    /// The numbers and names of its cases.
    cases: &'static [(i128, &'static str)],
    /// The case that is left out.
    default: Option<&'static str>,
}

/// As declared in Triton's TritonAttrDefs.td and MLIR's ArithBase.td.
const ENUMERATIONS: &[Enumeration] = &[
    Enumeration {
        attribute: "predicate",
        operations: &["arith.cmpi"],
        cases: &[
            (0, "eq"),
            (1, "ne"),
            (2, "slt"),
            (3, "sle"),
            (4, "sgt"),
            (5, "sge"),
            (6, "ult"),
            (7, "ule"),
            (8, "ugt"),
            (9, "uge"),
        ],
        default: None,
    },
    Enumeration {
        attribute: "predicate",
        operations: &["arith.cmpf"],
        cases: &[
            (0, "false"),
            (1, "oeq"),
            (2, "ogt"),
            (3, "oge"),
            (4, "olt"),
            (5, "ole"),
            (6, "one"),
            (7, "ord"),
            (8, "ueq"),
            (9, "ugt"),
            (10, "uge"),
            (11, "ult"),
            (12, "ule"),
            (13, "une"),
            (14, "uno"),
            (15, "true"),
        ],
        default: None,
    },
    Enumeration {
        attribute: "roundingmode",
        operations: &[],
        cases: &[(0, "to_nearest_even"), (1, "downward"), (2, "upward"), (3, "toward_zero"), (4, "to_nearest_away")],
        default: None,
    },
    Enumeration {
        attribute: "cache",
        operations: &[],
        cases: &[(1, "none"), (2, "ca"), (3, "cg"), (4, "wb"), (5, "cs"), (6, "wt"), (7, "cv")],
        default: Some("none"),
    },
    Enumeration {
        attribute: "evict",
        operations: &[],
        cases: &[(1, "evict_normal"), (2, "evict_first"), (3, "evict_last")],
        default: Some("evict_normal"),
    },
    Enumeration {
        attribute: "padding",
        operations: &["tt.make_tensor_descriptor"],
        cases: &[(1, "zero"), (2, "nan")],
        default: Some("zero"),
    },
    Enumeration { attribute: "padding", operations: &["tt.load"], cases: &[(1, "zero"), (2, "nan")], default: None },
    Enumeration {
        attribute: "inputPrecision",
        operations: &["tt.dot"],
        cases: &[(0, "tf32"), (1, "tf32x3"), (2, "ieee"), (3, "bf16x3"), (4, "bf16x6")],
        default: Some("ieee"),
    },
    Enumeration {
        attribute: "axis",
        operations: &["tt.get_program_id", "tt.get_num_programs"],
        cases: &[(0, "x"), (1, "y"), (2, "z")],
        default: None,
    },
    Enumeration {
        attribute: "sem",
        operations: &[],
        cases: &[(1, "relaxed"), (2, "acquire"), (3, "release"), (4, "acq_rel")],
        default: None,
    },
    Enumeration { attribute: "scope", operations: &[], cases: &[(1, "gpu"), (2, "cta"), (3, "sys")], default: None },
    Enumeration {
        attribute: "atomic_rmw_op",
        operations: &[],
        cases: &[
            (1, "and"),
            (2, "or"),
            (3, "xor"),
            (4, "add"),
            (5, "fadd"),
            (6, "max"),
            (7, "min"),
            (8, "umax"),
            (9, "umin"),
            (10, "exch"),
        ],
        default: None,
    },
    Enumeration {
        attribute: "kind",
        operations: &["tt.descriptor_reduce"],
        cases: &[(1, "add"), (2, "min"), (3, "max"), (4, "inc"), (5, "dec"), (6, "and"), (7, "or"), (8, "xor")],
        default: None,
    },
    Enumeration {
        attribute: "rounding",
        operations: &["tt.fp_to_fp"],
        cases: &[(0, "rtz"), (1, "rtne")],
        default: None,
    },
    Enumeration { attribute: "propagateNan", operations: &[], cases: &[(0, "none"), (0xffff, "all")], default: None },
    Enumeration { attribute: "a_elem_type", operations: &["tt.dot_scaled"], cases: SCALED, default: None },
    Enumeration { attribute: "b_elem_type", operations: &["tt.dot_scaled"], cases: SCALED, default: None },
    Enumeration { attribute: "fastmath", operations: &[], cases: &[], default: Some("none") },
    Enumeration { attribute: "overflowFlags", operations: &[], cases: &[], default: Some("none") },
];

const SCALED: &[(i128, &str)] =
    &[(0, "e4m3"), (1, "e5m2"), (2, "e2m3"), (3, "e3m2"), (4, "e2m1"), (5, "bf16"), (6, "fp16")];

/// The bare words of custom forms that name an attribute's case by their position.
const POSITIONAL: &[(&str, &[&str])] = &[
    ("arith.cmpi", &["predicate"]),
    ("arith.cmpf", &["predicate"]),
    ("arith.truncf", &["roundingmode"]),
    ("arith.extf", &["roundingmode"]),
    ("tt.get_program_id", &["axis"]),
    ("tt.get_num_programs", &["axis"]),
    ("tt.atomic_rmw", &["atomic_rmw_op", "sem", "scope"]),
    ("tt.atomic_cas", &["sem", "scope"]),
    ("tt.atomic_load", &["sem", "scope"]),
    ("tt.atomic_poll", &["sem", "scope"]),
    ("tt.atomic_store", &["sem", "scope"]),
    ("tt.descriptor_reduce", &["kind"]),
    ("ttg.barrier", &["addrSpace"]),
];

/// The bare words of custom forms that are attributes themselves.
const FLAGS: &[(&str, &str)] = &[
    ("allow_reorder", "allow_reorder"),
    ("efficient_layout", "efficient_layout"),
    ("exact", "isExact"),
    ("nneg", "nonNeg"),
];

/// The strings of custom forms.
const STRINGS: &[(&str, &str)] =
    &[("tt.assert", "message"), ("tt.print", "prefix"), ("tt.elementwise_inline_asm", "asm_string")];

/// The name in the generic form of an attribute that the custom form writes `name = value` or `name<value>`.
pub(super) fn generic_name(name: &str) -> &str {
    match name {
        "cacheModifier" => "cache",
        "evictionPolicy" => "evict",
        "overflow" => "overflowFlags",
        "lhs" => "a_elem_type",
        "rhs" => "b_elem_type",
        other => other,
    }
}

/// Names the bare words of a custom form; an `Err` is the index of the first that means nothing here.
pub(super) fn name_words(operation: &str, words: &[&str], attributes: &mut Attributes) -> Result<(), usize> {
    let mut names = POSITIONAL.iter().find(|(name, _)| *name == operation).map_or(&[][..], |(_, names)| names).iter();
    for (index, word) in words.iter().enumerate() {
        if let Some((_, attribute)) = FLAGS.iter().find(|(flag, _)| flag == word) {
            attributes.insert((*attribute).to_owned(), Attribute::Unit);
        } else if let Some(name) = names.next() {
            attributes.insert((*name).to_owned(), Attribute::Enumeration((*word).to_owned()));
        } else {
            return Err(index);
        }
    }
    Ok(())
}

/// Names the strings of a custom form; `false` if one means nothing here.
pub(super) fn name_strings(operation: &str, strings: Vec<String>, attributes: &mut Attributes) -> bool {
    let name = STRINGS.iter().find(|(name, _)| *name == operation).map(|(_, attribute)| *attribute);
    for (index, text) in strings.into_iter().enumerate() {
        match name {
            Some(name) if index == 0 => attributes.insert(name.to_owned(), Attribute::String(text)),
            _ => return false,
        };
    }
    true
}

/// Returns whether the attribute is a default that both forms leave out.
fn is_default(operation: &str, name: &str, attribute: &Attribute) -> bool {
    match (name, attribute) {
        ("isVolatile", Attribute::Bool(false)) => operation == "tt.load",
        ("lhs_k_pack" | "rhs_k_pack", Attribute::Bool(true)) => true,
        ("maxNumImpreciseAcc", Attribute::Integer { value: 0, .. }) => true,
        ("boundaryCheck" | "op_bundle_sizes", Attribute::Integers(values)) => values.is_empty(),
        ("operandSegmentSizes", _) => operation == "tt.load",
        ("arg_attrs" | "res_attrs", Attribute::Array(items)) => {
            items.iter().all(|item| matches!(item, Attribute::Dictionary(attributes) if attributes.is_empty()))
        }
        _ => false,
    }
}

/// Names the cases of enumerations and leaves out defaults.
fn normalise(operation: &str, attributes: &mut Attributes) {
    for enumeration in ENUMERATIONS {
        if !enumeration.operations.is_empty() && !enumeration.operations.contains(&operation) {
            continue;
        }
        let Some(attribute) = attributes.get_mut(enumeration.attribute) else { continue };
        // Some names are those of types as well, such as that of the precision tf32.
        if let Attribute::Type(named) = attribute
            && let Some((_, name)) = enumeration.cases.iter().find(|(_, name)| *name == named.to_string())
        {
            *attribute = Attribute::Enumeration((*name).to_owned());
        }
        if let Attribute::Integer { value, .. } = attribute {
            let case = enumeration.cases.iter().find(|(number, _)| number == value);
            if let Some((_, name)) = case {
                *attribute = Attribute::Enumeration((*name).to_owned());
            }
        }
        if let (Attribute::Enumeration(name), Some(default)) = (&*attribute, enumeration.default)
            && name == default
        {
            attributes.remove(enumeration.attribute);
        }
    }
    let defaults: Vec<_> = attributes
        .iter()
        .filter(|(name, value)| is_default(operation, name, value))
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in defaults {
        attributes.remove(&name);
    }
}

impl Parser<'_> {
    /// The last step for an operation of either form.
    pub(super) fn complete(&mut self, id: OperationId, first: &Token<'_>) -> Parsed<()> {
        let operation = &mut self.module.operations[id.index()];
        normalise(&operation.name, &mut operation.attributes);
        if operation.name == "scf.if" && operation.regions.len() == 1 {
            self.module.add_region(id);
        }
        let operation = self.module.operation(id);
        let defect = match operation.name.as_str() {
            "scf.for" => self.module.loop_defect(id),
            "tt.func" if operation.regions.len() != 1 => Some("a function has one body"),
            "tt.func" if operation.attributes.text("sym_name").is_none() => Some("a function has a name"),
            "builtin.module" if self.module.body(id).is_none() => Some("a module has a body"),
            _ => None,
        };
        match defect {
            Some(reason) => {
                Err(ParseError::Malformed { place: self.place(first), operation: operation.name.clone(), reason })
            }
            None => Ok(()),
        }
    }
}
