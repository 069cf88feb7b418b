//! Each `wgmma` has a result.
//!
//! Where ptxas takes nothing of a `wgmma`'s result to be used, it puts `HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT` there. 12.8 and
//! 12.9 also do so where one bit of every number is not used, as the signs of tiles of which `abs` is taken by `and.b32`
//! (`bench.random_programs`, seed 1287); 13.1 does not.

use crate::finding::{Finding, Rule};
use crate::program::Program;

/// Finds each `wgmma` without a result.
pub fn check(program: &Program) -> Vec<Finding> {
    let is_lost = |at: &usize| program.wgmmas[*at].as_ref().is_some_and(|mma| mma.first.is_none());
    let why = "it has no register for a result: ptxas has lost the product, unless nothing uses it";
    let finding = |at| Finding::new(program, Rule::WgmmaLost, at, why.to_owned());
    (0..program.wgmmas.len()).filter(is_lost).map(finding).collect()
}
