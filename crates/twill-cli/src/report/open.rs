//! `twill report --open`: the page on loopback, and a browser to look at it.

use super::server::Server;
use crate::arguments::ReportArguments;
use crate::error::Error;
use crate::exit::Exit;
use crate::{files, progress};
use std::path::Path;
use std::sync::atomic::Ordering;
use twill_report::page::{html, is_page};

pub(super) fn run(arguments: &ReportArguments) -> Result<Exit, Error> {
    let stop = progress::interrupt();
    let page = page(arguments)?;
    // Ctrl-C ended the search: nobody waits for the page.
    if stop.load(Ordering::Relaxed) {
        if !arguments.subject.search.quiet {
            eprintln!("stopped: nothing is served");
        }
        return Ok(Exit::Stopped);
    }
    let port = arguments.port;
    let failed = |error| Error::Serve { port, error };
    let server = Server::new(port, page).map_err(failed)?;
    let address = server.address();
    files::write(None, &format!("{address}\n"))?;
    if !arguments.subject.search.quiet {
        eprintln!("Ctrl-C ends it");
    }
    if !arguments.no_browser
        && let Err(error) = open::that_detached(&address)
    {
        eprintln!("no browser could be started ({error}); open the address in one");
    }
    server.run(&stop).map_err(failed)?;
    Ok(Exit::Done)
}

/// The page as HTML: drawn, or as it was written.
fn page(arguments: &ReportArguments) -> Result<String, Error> {
    let path = Path::new(&arguments.subject.search.source.input);
    let is_html = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("html") || e.eq_ignore_ascii_case("htm"));
    if !is_html {
        return Ok(html(&super::draw(&arguments.subject)?.0));
    }
    super::refuse_on_page(&arguments.subject)?;
    let text = files::read(path)?;
    if is_page(&text) { Ok(text) } else { Err(Error::NotAPage { path: path.to_owned() }) }
}
