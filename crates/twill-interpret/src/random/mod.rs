//! Random kernels whose loops compute something: loads, MMAs, arithmetic, row sums and maxima, carried values, stores.
//!
//! | file | what |
//! |---|---|
//! | `recipe` | a kernel as a list of operations, from bytes |
//! | `sweep` | without what nobody reads |
//! | `text` | its TTIR |
//! | `call` | a call of it, with random numbers |

mod call;
mod recipe;
mod sweep;
mod text;

pub use recipe::Recipe;
