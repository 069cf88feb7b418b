//! Reads MLIR text as Triton 3.6 to 3.9 print it, without LLVM.
//!
//! A hand-written lexer and a recursive-descent parser read the custom form (`%c = arith.addf %a, %b : f32`) and the
//! generic form (`%c = "arith.addf"(%a, %b) : (f32, f32) -> f32`) of every operation of TTIR, and the generic form of any
//! other dialect. Both forms of one kernel give the same [`Module`]; what "the same" means for operand order, enumerations
//! and defaults stands in [`Operation`].
//!
//! ```
//! let text = r#"
//! module {
//!   tt.func public @double(%x: f32) -> f32 {
//!     %y = arith.addf %x, %x : f32
//!     tt.return %y : f32
//!   }
//! }
//! "#;
//! let module = twill_triton::mlir::parse(text, "double.ttir")?;
//! let function = module.function("double").ok_or("no such function")?;
//! let names: Vec<_> = module.walk(function).map(|id| module.operation(id).name.as_str()).collect();
//! assert_eq!(names, ["tt.func", "arith.addf", "tt.return"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ast;
mod attributes;
mod branches;
mod build;
mod clone;
mod constants;
mod control_flow;
mod custom;
mod edit;
mod error;
mod functions;
mod generic;
mod lexer;
mod location;
mod lookalike;
mod loops;
mod normalise;
mod numbers;
mod parser;
mod print;
mod read_attributes;
mod read_locations;
mod read_types;
mod regions;
mod result_types;
mod scope;
mod types;
mod walk;

pub use ast::{Block, BlockId, Definition, Module, Operation, OperationId, Region, RegionId, Use, Value, ValueId};
pub use attributes::{Attribute, Attributes, FloatValue};
pub(crate) use clone::Copies;
pub(crate) use edit::NewOperation;
pub use error::{FileLineColumn, Lookalike, ParseError};
pub use location::{FilePosition, SourceLocation};
pub use loops::ForLoop;
pub use parser::{NESTING_LIMIT, parse};
pub use types::{Dimension, FloatKind, Type};
pub use walk::Walk;
