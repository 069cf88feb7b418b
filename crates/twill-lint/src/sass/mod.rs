//! Machine code as text: listings of nvdisasm and cuobjdump, their instructions, and what those do with registers.

mod effects;
mod instruction;
mod listing;
mod registers;
mod wgmma;

pub use effects::Effects;
pub use instruction::{Instruction, SourceLine, number};
pub use listing::{Function, Listing, ListingError};
pub use registers::Registers;
pub use wgmma::{Wgmma, is_fence, wait};
