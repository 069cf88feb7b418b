//! From elements of one type to those of another.

use super::elements::Elementwise;
use super::integers::{unsigned, wrapped};
use super::number;
use super::tile::{Data, Pointer};
use crate::fault::Fault;
use twill_graph::saturate;
use twill_triton::mlir::Type;

/// Floating-point numbers are rounded to nearest, integers towards zero and into the range of their type.
pub(super) fn convert(one: &Elementwise<'_>, operand: &Data) -> Result<Data, Fault> {
    let (from, to) = (one.from, one.element);
    let rounded = |x: f64| one.arithmetic.round(x, to);
    let bits = super::integers::bits(to);
    match (one.operation, operand) {
        ("arith.truncf" | "arith.extf" | "tt.fp_to_fp", Data::Floats(x)) => {
            Ok(Data::Floats(x.iter().map(|x| rounded(*x)).collect()))
        }
        ("arith.sitofp", Data::Integers(x)) => Ok(Data::Floats(x.iter().map(|x| rounded(*x as f64)).collect())),
        ("arith.uitofp", Data::Integers(x)) => {
            Ok(Data::Floats(x.iter().map(|x| rounded(unsigned(*x, from) as f64)).collect()))
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
        ("tt.ptr_to_int", data) => Ok(Data::Integers(addresses(data, from).ok_or_else(|| one.unfit())?)),
        ("tt.int_to_ptr", Data::Integers(x)) => {
            Ok(Data::Pointers(x.iter().map(|x| Pointer::at(*x, bytes(to))).collect()))
        }
        ("arith.bitcast" | "tt.bitcast", Data::Pointers(x)) if bytes(from) == bytes(to) => {
            Ok(Data::Pointers(x.clone()))
        }
        ("arith.bitcast" | "tt.bitcast", data) => bitcast(data, from, to).ok_or_else(|| one.unfit()),
        _ => Err(one.unfit()),
    }
}

/// Bytes of what a pointer of this type points to.
fn bytes(pointer: &Type) -> i64 {
    match pointer.element() {
        Type::Pointer { pointee, .. } => i64::from(pointee.scalar_bits().unwrap_or(8) / 8).max(1),
        _ => 1,
    }
}

/// Addresses as integers.
pub(super) fn addresses(data: &Data, pointer: &Type) -> Option<Vec<i64>> {
    let Data::Pointers(all) = data else { return None };
    Some(all.iter().map(|at| at.address(bytes(pointer))).collect())
}

/// The same bits as elements of another type.
fn bitcast(data: &Data, from: &Type, to: &Type) -> Option<Data> {
    Some(match (data, from, to) {
        (Data::Integers(x), _, Type::Float(kind)) => {
            Data::Floats(x.iter().map(|x| number::from_bits(*kind, unsigned(*x, from))).collect::<Option<_>>()?)
        }
        (Data::Integers(x), ..) => Data::Integers(x.iter().map(|x| wrapped(*x, to)).collect()),
        (Data::Floats(_), _, Type::Float(_)) => return None,
        (Data::Floats(x), Type::Float(kind), _) => {
            let bits = |x: &f64| Some(wrapped(number::to_bits(*kind, *x)? as i64, to));
            Data::Integers(x.iter().map(bits).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
