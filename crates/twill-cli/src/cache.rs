//! `twill cache`: what the cache on disk holds.

use crate::arguments::{CacheArguments, CacheCommand};
use crate::error::Error;
use crate::exit::Exit;
use crate::{files, request};
use twill_driver::CacheInfo;
use twill_graph::grouped;

pub(crate) fn run(arguments: &CacheArguments) -> Result<Exit, Error> {
    let columns = arguments.width.columns();
    let Some(cache) = request::cache() else {
        files::write(
            None,
            &twill_report::folded("there is no cache: TWILL_CACHE is off, or HOME is not set\n", columns),
        )?;
        return Ok(Exit::Done);
    };
    let (info, what) = match arguments.command {
        CacheCommand::Info => (cache.info()?, "holds"),
        CacheCommand::Clear => (cache.clear()?, "is empty; there were"),
    };
    let CacheInfo { schedules, kernels, configurations, bytes } = info;
    let text = format!(
        "{} {what} {} schedules, {} kernels, {} configurations, {} bytes\n",
        cache.folder().display(),
        grouped(schedules as u64),
        grouped(kernels as u64),
        grouped(configurations as u64),
        grouped(bytes),
    );
    files::write(None, &twill_report::folded(&text, columns))?;
    Ok(Exit::Done)
}
