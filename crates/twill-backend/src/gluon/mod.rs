//! Warp programs as Gluon source, Triton's explicit language (Triton 3.6 to 3.9).
//!
//! | file | what |
//! |---|---|
//! | `source` | the file: groups, entry |
//! | `barriers` | how mbarriers are initialised |
//! | `cursors` | slots that are filled and read next |
//! | `group` | a group's function: its loops and branches |
//! | `ops` | what a group does, one operation at a time |
//! | `expression` | what is computed |
//! | `operation` | operations on elements |
//! | `layout` | names of layouts |
//! | `load` | loads through pointers |
//! | `names` | what parameters are called in a group |
//! | `tensor_memory` | Blackwell's MMAs and the memory of their results |
//! | `started_mmas` | MMAs beside a pipeline, and when they are waited for |
//! | `in_order` | layouts of programs that execute one operation after the other |
//! | `opaque` | operations that no pass has a rule for |
//! | `in_order.py` | what these call |
//! | `prelude.py` | functions that every kernel uses |
//! | `copies.py` | functions for tiles that threads copy |

mod ahead;
mod barriers;
mod changing;
mod cursors;
mod dot;
mod expression;
mod group;
mod in_order;
mod layout;
mod load;
mod names;
mod opaque;
mod operation;
mod ops;
mod source;
mod started_mmas;
mod tensor_memory;

use crate::dead_code;
use crate::header::Header;
use crate::listing::Listing;
pub(crate) use source::arguments;
use twill_codegen::Checked;
use twill_codegen::Error;
use twill_codegen::ir::{Node, Op, WarpProgram};

/// Whether Triton can compile a kernel.
///
/// # Errors
/// [`Error::NotInGluon`] where a tile has an extent that is no power of two, where an early return leaves a loop, and where no pass
/// has a rule for an operation.
pub fn check(kernel: &WarpProgram) -> Result<(), Error> {
    let held = kernel.groups.iter().flat_map(|g| &g.variables).map(|v| &v.shape);
    let copied = kernel.descriptors.iter().map(|d| &d.block);
    let odd = |shape: &&Vec<u64>| shape.iter().any(|extent| !extent.is_power_of_two());
    if let Some(shape) = held.chain(copied).find(odd) {
        let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
        return Err(Error::NotInGluon { what: format!("tiles of {}, no powers of two", extents.join(" × ")) });
    }
    kernel
        .groups
        .iter()
        .flat_map(|group| [&group.begin, &group.body, &group.end])
        .try_for_each(|nodes| check_nodes(nodes))
}

fn check_nodes(nodes: &[Node]) -> Result<(), Error> {
    let refuse = |what: String| Err(Error::NotInGluon { what });
    nodes.iter().try_for_each(|node| match node {
        Node::Return => refuse("an early return from a loop".into()),
        Node::Op(Op::Opaque { operation, .. }, _) if !opaque::is_known(operation) => {
            refuse(format!("the operation {}", operation.name))
        }
        _ => node.blocks().into_iter().try_for_each(|block| check_nodes(block)),
    })
}

/// The kernel's source.
pub fn source(kernel: &Checked, header: &Header) -> String {
    listing(kernel, header).text
}

/// The kernel's source, with the lines that run operations.
pub fn listing(kernel: &Checked, header: &Header) -> Listing {
    Listing::new(&source::print(&dead_code::removed(kernel), header))
}
