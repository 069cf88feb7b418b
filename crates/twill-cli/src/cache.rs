//! `twill cache`: what the cache on disk holds.

use crate::Exit;
use crate::arguments::{CacheArguments, CacheCommand, SearchArguments};
use crate::error::Error;
use crate::files;
use twill_driver::{Cache, CacheInfo};

impl SearchArguments {
    /// The cache that the search uses.
    pub(crate) fn cache(&self) -> Option<Cache> {
        of_environment().filter(|_| !self.no_cache)
    }
}

fn of_environment() -> Option<Cache> {
    Cache::of_environment(|name| std::env::var_os(name))
}

pub(crate) fn run(arguments: &CacheArguments) -> Result<Exit, Error> {
    let Some(cache) = of_environment() else {
        files::write(None, "there is no cache: TWILL_CACHE is off, or HOME is not set\n")?;
        return Ok(Exit::Done);
    };
    let (info, what) = match arguments.command {
        CacheCommand::Info => (cache.info()?, "holds"),
        CacheCommand::Clear => (cache.clear()?, "is empty; there were"),
    };
    let CacheInfo { schedules, kernels, configurations, bytes } = info;
    let text = format!(
        "{} {what} {schedules} schedules, {kernels} kernels, {configurations} configurations, {bytes} bytes\n",
        cache.folder().display()
    );
    files::write(None, &text)?;
    Ok(Exit::Done)
}
