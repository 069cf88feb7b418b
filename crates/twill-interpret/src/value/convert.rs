//! From elements of one type to those of another.

use super::elements::Elementwise;
use super::integers::{unsigned, wrapped};
use super::tile::Data;
use crate::fault::Fault;
use twill_graph::saturate;

/// Floating-point numbers are rounded to nearest, integers towards zero and into the range of their type.
pub(super) fn convert(one: &Elementwise<'_>, operand: &Data) -> Result<Data, Fault> {
    let (from, to) = (one.from, one.element);
    let number = |x: f64| one.arithmetic.round(x, to);
    let bits = super::integers::bits(to);
    match (one.operation, operand) {
        ("arith.truncf" | "arith.extf" | "tt.fp_to_fp", Data::Floats(x)) => {
            Ok(Data::Floats(x.iter().map(|x| number(*x)).collect()))
        }
        ("arith.sitofp", Data::Integers(x)) => Ok(Data::Floats(x.iter().map(|x| number(*x as f64)).collect())),
        ("arith.uitofp", Data::Integers(x)) => {
            Ok(Data::Floats(x.iter().map(|x| number(unsigned(*x, from) as f64)).collect()))
        }
        ("arith.fptosi", Data::Floats(x)) => {
            let limit = 2_f64.powi(saturate::<i32>(bits) - 1);
            Ok(Data::Integers(x.iter().map(|x| x.clamp(-limit, limit - 1.0) as i64).collect()))
        }
        ("arith.fptoui", Data::Floats(x)) => {
            let largest = u64::MAX >> (64 - bits);
            Ok(Data::Integers(x.iter().map(|x| wrapped((*x as u64).min(largest) as i64, to)).collect()))
        }
        ("arith.extui", Data::Integers(x)) => {
            Ok(Data::Integers(x.iter().map(|x| wrapped(unsigned(*x, from) as i64, to)).collect()))
        }
        // A truth value that is extended with its sign is 0 or −1.
        ("arith.extsi", Data::Integers(x)) if super::integers::bits(from) == 1 => {
            Ok(Data::Integers(x.iter().map(|x| -x).collect()))
        }
        ("arith.trunci" | "arith.extsi" | "arith.index_cast", Data::Integers(x)) => {
            Ok(Data::Integers(x.iter().map(|x| wrapped(*x, to)).collect()))
        }
        _ => Err(one.unfit()),
    }
}
