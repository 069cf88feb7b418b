//! From arguments to a request: its input read, its machine loaded, its limits counted from when the command began.

use crate::arguments::{SearchArguments, SourceArguments};
use crate::error::Error;
use crate::{budgets, progress, python_source};
use twill_driver::{Cache, Input, Request, SiblingOptions};
use twill_exact::SearchOptions;

impl SourceArguments {
    /// The input.
    pub(crate) fn read(&self) -> Result<Input, Error> {
        python_source::input(&self.input, &self.python, self.lowering.machine.as_deref())
    }
}

impl SearchArguments {
    /// What is requested.
    pub(crate) fn request(&self, siblings: &SiblingOptions) -> Result<Request, Error> {
        let input = self.source.read()?;
        Ok(self.options(siblings).request(input, None)?)
    }

    /// How to search; Ctrl-C ends it.
    pub(crate) fn search(&self) -> SearchOptions {
        self.search.search(budgets::started(), progress::interrupt())
    }

    /// How to search for code; Ctrl-C ends it.
    pub(crate) fn search_for_code(&self) -> SearchOptions {
        self.search.patient().search(budgets::started(), progress::interrupt())
    }

    /// The cache that the search uses.
    pub(crate) fn cache(&self) -> Option<Cache> {
        cache().filter(|_| !self.search.no_cache)
    }
}

/// The cache that the environment names.
pub(crate) fn cache() -> Option<Cache> {
    Cache::of_environment(|name| std::env::var_os(name))
}
