//! `twill explain`.

use crate::annotate::{self, AnnotationFormat};
use crate::arguments::{ExplainArguments, ExplainFormat, WhatIfs};
use crate::error::Error;
use crate::exit::Exit;
use crate::progress::Ticker;
use crate::{budgets, files, loop_text, printable, progress};
use serde_json::Value;
use std::path::Path;
use std::time::Instant;
use twill_driver::options::explain_options;
use twill_driver::{Explained, Request, Session, SiblingOptions};
use twill_graph::format::ExplanationFile;

pub(crate) fn run(arguments: &ExplainArguments) -> Result<Exit, Error> {
    let path = Path::new(&arguments.search.source.input);
    let inputs = if path.is_dir() { files::kernels(&[path.to_owned()])? } else { vec![path.to_owned()] };
    let (is_folder, format) = (path.is_dir(), arguments.format());
    let as_annotations = match format {
        ExplainFormat::Text | ExplainFormat::Json => None,
        ExplainFormat::Sarif => Some(AnnotationFormat::Sarif),
        ExplainFormat::Github => Some(AnnotationFormat::Github),
    };
    let (mut texts, mut annotations, mut exits) = (Vec::new(), Vec::new(), Vec::new());
    for input in inputs {
        let input = input.display().to_string();
        // Each kernel of a folder has the time that is given for one.
        let started = if is_folder { Instant::now() } else { budgets::started() };
        match explained(arguments, &input, started) {
            Ok((request, all)) => {
                exits.push(all.iter().map(|e| Exit::of(e.status)).max().unwrap_or(Exit::Done));
                match as_annotations {
                    Some(_) => {
                        let places = twill_driver::places(&request).ok().flatten();
                        annotations.extend(annotate::explained(&input, &all, places.as_ref()));
                    }
                    None => texts.push(render(arguments, &all)),
                }
            }
            // A kernel that cannot be explained has its line, too; those beside it are explained.
            Err(error) if is_folder || as_annotations.is_some() => {
                eprintln!("error: {}", printable(&error.to_string()));
                annotations.push(annotate::refused(&input, &error));
                exits.push(Exit::Error);
            }
            Err(error) => return Err(error),
        }
        if progress::is_interrupted() {
            break;
        }
    }
    let text = match as_annotations {
        Some(as_annotations) => {
            annotate::render(as_annotations, &annotate::EXPLAIN_RULES, &annotations, &arguments.annotations.root())
        }
        None if is_folder && format == ExplainFormat::Json => together(&texts),
        None => texts.join("\n"),
    };
    files::write(arguments.page.output.as_deref(), &text)?;
    let exit = if exits.contains(&Exit::Error) { Exit::Error } else { exits.into_iter().max().unwrap_or(Exit::Done) };
    Ok(budgets::explain_stop(&arguments.search.search, arguments.search.quiet, exit))
}

/// Documents, each of which may be an array, as one array.
fn together(texts: &[String]) -> String {
    let read = texts.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let all = read.flat_map(|one| match one {
        Value::Array(all) => all,
        one => vec![one],
    });
    format!("{:#}\n", Value::Array(all.collect()))
}

/// The loops of an input, explained within the time from `started`.
fn explained(arguments: &ExplainArguments, input: &str, started: Instant) -> Result<(Request, Vec<Explained>), Error> {
    let mut search = arguments.search.clone();
    input.clone_into(&mut search.source.input);
    let request = search.request(&SiblingOptions::default())?;
    let mut options = search.search.search(started, progress::interrupt());
    let explain = explain_options(&mut options, arguments.effort, arguments.what_if == WhatIfs::All);
    let mut ticker = Ticker::new(search.quiet);
    let mut session = Session { cache: search.cache(), ..Session::new(options, &mut ticker) };
    let all = twill_driver::explanations(&request, &explain, &mut session)?;
    Ok((request, all))
}

fn render(arguments: &ExplainArguments, all: &[Explained]) -> String {
    if arguments.format() == ExplainFormat::Json {
        return twill_driver::json(all.iter().map(|e| ExplanationFile::new(&e.of.problem, &e.explanation)));
    }
    let options = arguments.page.text_options();
    let one = |e: &Explained| {
        loop_text::normalised(&e.of, options) + &twill_report::explanation(&e.of.problem, &e.explanation, options)
    };
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}
