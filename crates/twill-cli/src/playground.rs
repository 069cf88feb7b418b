//! `twill playground`: the page in which schedules follow sliders.

use crate::arguments::PlaygroundArguments;
use crate::error::Error;
use crate::exit::Exit;
use crate::{files, python_source};
use std::path::{Path, PathBuf};
use twill_driver::Content;
use twill_graph::builtin;
use twill_machine::Machine;
use twill_report::page::playground_link;

/// Names the file where it stands elsewhere; the Python package sets it.
const VARIABLE: &str = "TWILL_PLAYGROUND";
const FILE: &str = "playground.html";

pub(crate) fn run(arguments: &PlaygroundArguments) -> Result<Exit, Error> {
    let file = found()?;
    if let Some(output) = &arguments.output {
        files::write(Some(output), &files::read(&file)?)?;
        return Ok(Exit::Done);
    }
    let file = file.canonicalize().map_err(|error| Error::Folder { path: file, error })?;
    let address = format!("{}{}", address(&file), state(arguments)?);
    files::write(None, &format!("{address}\n"))?;
    if !arguments.no_browser
        && let Err(error) = open::that_detached(&address)
    {
        eprintln!("no browser could be started ({error}); open the address in one");
    }
    Ok(Exit::Done)
}

/// The file: where the environment says, next to the command, or above it, as in a checkout's `target`.
fn found() -> Result<PathBuf, Error> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let command = std::env::current_exe().ok();
    let folder = command.as_deref().and_then(Path::parent);
    let beside = folder.map(|folder| folder.join(FILE));
    let above = folder.and_then(Path::parent);
    let shared = above.map(|above| above.join("share").join("twill").join(FILE));
    let places: Vec<PathBuf> = match named {
        Some(named) => vec![named],
        None => [beside, above.map(|above| above.join(FILE)), shared].into_iter().flatten().collect(),
    };
    places.iter().find(|place| place.is_file()).cloned().ok_or_else(|| {
        let shown: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        Error::NoPlayground { places: shown.join(", ") }
    })
}

/// The part of the address with the input; empty without one.
fn state(arguments: &PlaygroundArguments) -> Result<String, Error> {
    let machine = arguments.machine.as_deref();
    if let Some(name) = machine {
        // A file cannot be had in a browser.
        Machine::builtin(name).map_err(twill_driver::Error::from)?;
    }
    let Some(name) = &arguments.input else { return Ok(String::new()) };
    let input = python_source::input(name, &arguments.python, machine)?;
    Ok(match input.content {
        Content::Kernel(text) => playground_link(&text, machine.unwrap_or(twill_driver::DEFAULT_MACHINE)),
        Content::Graph(_) => {
            let own = Path::new(name);
            let text = match builtin::text(name).filter(|_| !files::exists(own)) {
                Some(text) => text.to_owned(),
                None => files::read(own)?,
            };
            playground_link(&text, machine.unwrap_or_default())
        }
    })
}

/// A file as browsers take it.
fn address(file: &Path) -> String {
    let mut address = String::from("file://");
    for byte in file.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => address.push(byte.into()),
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}
