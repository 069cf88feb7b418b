//! Formulas over whole numbers, which back ends print and the interpreter evaluates.

use serde::ser::{Serialize, SerializeTuple, Serializer};
use std::borrow::Cow;
use std::ops::{Add, Div, Mul, Rem, Sub};

/// Arithmetic on whole numbers. What is divided is not negative, so that all languages round alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// A number by its name.
    Name(Cow<'static, str>),
    /// A constant.
    Number(u32),
    /// Of two formulas.
    Binary(Operator, Box<Formula>, Box<Formula>),
}

/// How two numbers become one. Divisions round down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Their sum.
    Add,
    /// Their difference.
    Sub,
    /// Their product.
    Mul,
    /// Their quotient.
    Div,
    /// The rest of their division.
    Rem,
    /// The smaller one.
    Min,
    /// The greater one.
    Max,
    /// 1 if they are equal, else 0.
    Equal,
    /// 1 if the first is smaller, else 0.
    Less,
    /// 1 if both are 1, else 0.
    And,
    /// 1 if one of them is 1, else 0.
    Or,
}

impl Operator {
    const ALL: [(Operator, &'static str); 11] = [
        (Operator::Add, "add"),
        (Operator::Sub, "sub"),
        (Operator::Mul, "mul"),
        (Operator::Div, "div"),
        (Operator::Rem, "rem"),
        (Operator::Min, "min"),
        (Operator::Max, "max"),
        (Operator::Equal, "equal"),
        (Operator::Less, "less"),
        (Operator::And, "and"),
        (Operator::Or, "or"),
    ];

    fn name(self) -> &'static str {
        Operator::ALL.iter().find(|(operator, _)| *operator == self).map_or("", |(_, name)| name)
    }

    pub(super) fn of_name(text: &str) -> Option<Operator> {
        Operator::ALL.iter().find(|(_, name)| *name == text).map(|(operator, _)| *operator)
    }
}

/// What a language writes in another way than others.
#[derive(Clone, Copy, Debug)]
pub struct Syntax {
    /// A division of whole numbers.
    pub division: &'static str,
    /// The function for the smaller of two.
    pub minimum: &'static str,
    /// The function for the greater of two.
    pub maximum: &'static str,
    /// That two conditions hold.
    pub and: &'static str,
    /// That one of two conditions holds.
    pub or: &'static str,
}

macro_rules! operator {
    ($($of:ident $function:ident)*) => {
        $(impl<T: Into<Formula>> $of<T> for Formula {
            type Output = Formula;
            fn $function(self, other: T) -> Formula {
                Formula::Binary(Operator::$of, Box::new(self), Box::new(other.into()))
            }
        })*
    };
}
operator!(Add add Sub sub Mul mul Div div Rem rem);

impl From<u32> for Formula {
    fn from(number: u32) -> Formula {
        Formula::Number(number)
    }
}

pub(super) fn name(text: &'static str) -> Formula {
    Formula::Name(Cow::Borrowed(text))
}

impl Formula {
    pub(super) fn min(self, other: impl Into<Formula>) -> Formula {
        Formula::Binary(Operator::Min, Box::new(self), Box::new(other.into()))
    }

    pub(super) fn equals(self, other: impl Into<Formula>) -> Formula {
        Formula::Binary(Operator::Equal, Box::new(self), Box::new(other.into()))
    }

    pub(super) fn less(self, other: impl Into<Formula>) -> Formula {
        Formula::Binary(Operator::Less, Box::new(self), Box::new(other.into()))
    }

    pub(super) fn and(self, other: Formula) -> Formula {
        Formula::Binary(Operator::And, Box::new(self), Box::new(other))
    }

    pub(super) fn or(self, other: Formula) -> Formula {
        Formula::Binary(Operator::Or, Box::new(self), Box::new(other))
    }

    /// Its value, with those of the names.
    pub fn value(&self, names: &dyn Fn(&str) -> i64) -> i64 {
        match self {
            Formula::Name(text) => names(text),
            Formula::Number(number) => i64::from(*number),
            Formula::Binary(operator, a, b) => {
                let (a, b) = (a.value(names), b.value(names));
                match operator {
                    Operator::Add => a + b,
                    Operator::Sub => a - b,
                    Operator::Mul => a * b,
                    Operator::Div => a.checked_div_euclid(b).unwrap_or(0),
                    Operator::Rem => a.checked_rem_euclid(b).unwrap_or(0),
                    Operator::Min => a.min(b),
                    Operator::Max => a.max(b),
                    Operator::Equal => i64::from(a == b),
                    Operator::Less => i64::from(a < b),
                    Operator::And => i64::from(a != 0 && b != 0),
                    Operator::Or => i64::from(a != 0 || b != 0),
                }
            }
        }
    }

    /// The same with other names.
    pub fn renamed(&self, names: &dyn Fn(&str) -> String) -> Formula {
        match self {
            Formula::Name(text) => Formula::Name(names(text).into()),
            Formula::Number(number) => Formula::Number(*number),
            Formula::Binary(operator, a, b) => {
                Formula::Binary(*operator, Box::new(a.renamed(names)), Box::new(b.renamed(names)))
            }
        }
    }

    /// As a language writes it.
    pub fn print(&self, syntax: Syntax) -> String {
        match self {
            Formula::Name(text) => text.clone().into_owned(),
            Formula::Number(number) => number.to_string(),
            Formula::Binary(operator @ (Operator::Min | Operator::Max), a, b) => {
                let function = if *operator == Operator::Min { syntax.minimum } else { syntax.maximum };
                format!("{function}({}, {})", a.print(syntax), b.print(syntax))
            }
            Formula::Binary(operator, a, b) => {
                let rank = self.rank();
                let symbol = match operator {
                    Operator::Add => "+",
                    Operator::Sub => "-",
                    Operator::Mul => "*",
                    Operator::Div => syntax.division,
                    Operator::Rem | Operator::Min | Operator::Max => "%",
                    Operator::Equal => "==",
                    Operator::Less => "<",
                    Operator::And => syntax.and,
                    Operator::Or => syntax.or,
                };
                let nested = |of: &Formula, least: u32| {
                    let text = of.print(syntax);
                    if of.rank() < least { format!("({text})") } else { text }
                };
                format!("{} {symbol} {}", nested(a, rank), nested(b, rank + 1))
            }
        }
    }

    /// As functions, `sub(m, min(n, 8))`: what the text of a program has.
    pub(super) fn functions(&self) -> String {
        match self {
            Formula::Name(text) => text.clone().into_owned(),
            Formula::Number(number) => number.to_string(),
            Formula::Binary(operator, a, b) => format!("{}({}, {})", operator.name(), a.functions(), b.functions()),
        }
    }

    /// How tightly it binds: what binds less than what it stands in gets parentheses.
    fn rank(&self) -> u32 {
        match self {
            Formula::Binary(Operator::Or, ..) => 1,
            Formula::Binary(Operator::And, ..) => 2,
            Formula::Binary(Operator::Equal | Operator::Less, ..) => 3,
            Formula::Binary(Operator::Add | Operator::Sub, ..) => 4,
            Formula::Binary(Operator::Mul | Operator::Div | Operator::Rem, ..) => 5,
            _ => 6,
        }
    }
}

/// A name, a number, or `[operator, a, b]`, as `kernel.json` has it.
impl Serialize for Formula {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Formula::Name(text) => serializer.serialize_str(text),
            Formula::Number(number) => serializer.serialize_u32(*number),
            Formula::Binary(operator, a, b) => {
                let symbol = match operator {
                    Operator::Add => "+",
                    Operator::Sub => "-",
                    Operator::Mul => "*",
                    Operator::Div => "/",
                    Operator::Rem => "%",
                    Operator::Min => "min",
                    Operator::Max => "max",
                    Operator::Equal => "==",
                    Operator::Less => "<",
                    Operator::And => "and",
                    Operator::Or => "or",
                };
                let mut parts = serializer.serialize_tuple(3)?;
                parts.serialize_element(symbol)?;
                parts.serialize_element(a)?;
                parts.serialize_element(b)?;
                parts.end()
            }
        }
    }
}
