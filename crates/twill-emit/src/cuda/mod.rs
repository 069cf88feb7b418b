//! Warp programs as CUDA C++, for who has no Python where the kernel runs.
//!
//! | file | what |
//! |---|---|
//! | `source` | the file: tiles in shared memory, groups, kernel |
//! | `group` | what a group does |
//! | `expression` | what is computed, element by element |
//! | `fragment` | how threads hold tiles, as types of `twill.cuh` |
//! | `instruction` | the multiplies that the kernel uses |
//! | `host` | the entry from C, which makes tensor maps and launches |
//! | `names` | what C++ calls things |
//! | `twill.cuh` | tile primitives that every kernel uses |

mod expression;
mod fragment;
mod group;
mod host;
mod instruction;
mod names;
mod source;

use crate::error::Error;
use crate::gluon::Header;
use crate::kernel::Checked;

/// The tile primitives, written beside every kernel.
pub const PRIMITIVES: &str = include_str!("twill.cuh");

/// The kernel's source.
///
/// # Errors
/// [`Error::NotInCuda`] for what only the Gluon back end can write.
pub fn source(kernel: &Checked, header: &Header) -> Result<String, Error> {
    source::print(kernel, header)
}

/// `kernel.h`, for who calls the kernel from C or C++.
///
/// # Errors
/// [`Error::NotInCuda`] for parameters that C has no type for.
pub fn header(kernel: &Checked) -> Result<String, Error> {
    host::header(kernel)
}
