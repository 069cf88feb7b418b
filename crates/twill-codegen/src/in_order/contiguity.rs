//! Along which dimension a tile of pointers goes through memory element by element: Triton's axis information, as far as a layout
//! needs it.

use std::collections::HashMap;
use twill_triton::mlir::{Definition, Module, ValueId};

/// Operations that are followed back from a value.
const MOST_STEPS: u32 = 64;

/// Elements from a position to the next, along each dimension; none where that is not one number.
type Strides = Vec<Option<i128>>;

/// The dimension along which a tile of pointers is contiguous; the last, if there is none or several.
pub(super) fn contiguous_dimension(module: &Module, pointers: ValueId) -> Option<usize> {
    let shape = module.type_of(pointers).known_shape()?;
    let strides = of(module, pointers, MOST_STEPS, &mut HashMap::new());
    let candidates = (0..shape.len()).filter(|d| shape[*d] > 1 && strides.get(*d) == Some(&Some(1)));
    candidates.max_by_key(|d| (shape[*d], *d)).or(shape.len().checked_sub(1))
}

fn of(module: &Module, value: ValueId, steps: u32, known: &mut HashMap<ValueId, Strides>) -> Strides {
    if let Some(strides) = known.get(&value) {
        return strides.clone();
    }
    let rank = module.type_of(value).known_shape().map_or(0, |s| s.len());
    let unknown = vec![None; rank];
    if steps == 0 || rank == 0 {
        return unknown;
    }
    // What a loop carries goes on as it began.
    known.insert(value, unknown.clone());
    let strides = match module.definition(value) {
        Definition::Argument { block, index } => {
            let owner = module.region(module.block(block).region).operation;
            let first = module.for_loop(owner).and_then(|parts| parts.initial.get(index.checked_sub(1)?).copied());
            first.map_or(unknown, |first| of(module, first, steps - 1, known))
        }
        Definition::Result { operation, index } => {
            let op = module.operation(operation);
            let mut read = |k: usize| op.operands.get(k).map_or(vec![None; rank], |v| of(module, *v, steps - 1, known));
            match op.name.as_str() {
                "arith.constant" | "tt.splat" => vec![Some(0); rank],
                "tt.make_range" => vec![Some(1)],
                "tt.expand_dims" => {
                    let mut inner = read(0);
                    inner.insert(op.attributes.axis().min(inner.len()), Some(0));
                    inner
                }
                "tt.broadcast" => {
                    let from = op.operands.first().and_then(|v| module.type_of(*v).known_shape()).unwrap_or_default();
                    let inner = read(0);
                    (0..rank).map(|d| if from.get(d) == Some(&1) { Some(0) } else { *inner.get(d)? }).collect()
                }
                "arith.addi" | "tt.addptr" => {
                    read(0).into_iter().zip(read(1)).map(|(a, b)| a?.checked_add(b?)).collect()
                }
                "arith.subi" => read(0).into_iter().zip(read(1)).map(|(a, b)| a?.checked_sub(b?)).collect(),
                "arith.muli" => {
                    let factor = op.operands.get(1).and_then(|v| module.integer_constant(*v));
                    let other = op.operands.first().and_then(|v| module.integer_constant(*v));
                    let (factor, of) = if factor.is_some() { (factor, 0) } else { (other, 1) };
                    match factor {
                        Some(factor) => read(of).into_iter().map(|s| s?.checked_mul(factor)).collect(),
                        // Zero stays zero, whatever it is multiplied by.
                        None => {
                            let (a, b) = (read(0), read(1));
                            a.into_iter().zip(b).map(|(a, b)| (a == Some(0) && b == Some(0)).then_some(0)).collect()
                        }
                    }
                }
                // Of neighbours, most stay neighbours.
                "arith.remsi" | "arith.remui" | "arith.extsi" | "arith.extui" | "arith.trunci" | "tt.bitcast" => {
                    read(0)
                }
                "arith.select" => read(1),
                "tt.trans" => {
                    let inner = read(0);
                    let order = crate::builder::views::order(op);
                    order.iter().map(|d| *inner.get(*d)?).collect()
                }
                "scf.for" => {
                    let first = module.for_loop(operation).and_then(|parts| parts.initial.get(index).copied());
                    first.map_or(unknown, |first| of(module, first, steps - 1, known))
                }
                _ => unknown,
            }
        }
    };
    known.insert(value, strides.clone());
    strides
}
