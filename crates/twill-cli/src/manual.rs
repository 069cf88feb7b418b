//! `twill completions` and `twill man`: what shells and `man` know of the command, made from its options.

use crate::arguments::{CompletionsArguments, ManArguments};
use crate::error::Error;
use crate::exit::Exit;
use crate::{files, help, python_options};
use std::fs;

pub(crate) fn completions(arguments: &CompletionsArguments) -> Result<Exit, Error> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut python_options::added(help::whole()), "twill", &mut text);
    files::write(None, &text)?;
    Ok(Exit::Done)
}

pub(crate) fn pages(arguments: &ManArguments) -> Result<Exit, Error> {
    let folder = &arguments.folder;
    let failed = |error| Error::Manual { path: folder.clone(), error };
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(python_options::added(help::whole()), folder).map_err(failed)?;
    Ok(Exit::Done)
}
