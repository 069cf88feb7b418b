//! A listing with what the rules need to know of it.

use crate::flow::Graph;
use crate::sass::{Effects, Listing, ListingError, Wgmma};

/// A listing, its flow of control, and what each instruction does with registers.
#[derive(Clone, Debug)]
pub struct Program {
    /// The instructions.
    pub listing: Listing,
    /// The flow of control.
    pub graph: Graph,
    /// What each instruction reads and writes at once.
    pub effects: Vec<Effects>,
    /// What each `wgmma` reads and writes while it runs.
    pub wgmmas: Vec<Option<Wgmma>>,
}

impl Program {
    /// Reads a listing.
    ///
    /// # Errors
    /// [`ListingError`] if there is nothing in it to check.
    pub fn read(text: &str) -> Result<Program, ListingError> {
        let listing = Listing::read(text)?;
        let graph = Graph::of(&listing);
        let effects = listing.code.iter().map(Effects::of).collect();
        let wgmmas = listing.code.iter().map(Wgmma::read).collect();
        Ok(Program { listing, graph, effects, wgmmas })
    }
}
