//! `twill compile --top`: a folder of folders, one for the kernel of each of several schedules.

use super::folder::{Staged, Target};
use super::{command, report};
use crate::arguments::CompileArguments;
use crate::error::Error;
use crate::exit::Exit;
use crate::files;
use crate::progress::Ticker;
use std::fs;
use std::path::Path;
use twill_driver::options::Which;
use twill_driver::tune::{Assembler, GeneratedKernel, compile, others};
use twill_driver::{Session, TopOptions};

/// Writes the folders 1, 2, … of the output; what they replace are kernels of twill's, of which none is left over.
pub(super) fn run(arguments: &CompileArguments, requested: TopOptions) -> Result<Exit, Error> {
    if arguments.code.schedule != Which::Optimal {
        return Err(Error::Arguments(
            "--top gives schedules in addition to the optimal one; leave --schedule out".into(),
        ));
    }
    let folder = arguments.output.as_path();
    let request = arguments.search.request(&arguments.siblings)?;
    let before = numbered(folder)?;
    let search = arguments.search.search_for_code();
    let first = Target::new(&folder.join("1"))?.stage()?;
    let python = arguments.python.clone();
    let assembler = (!arguments.code.no_assemble).then(|| Assembler::new(python, first.path().to_owned()));
    let mut ticker = Ticker::new(arguments.search.quiet);
    let mut session = Session { cache: arguments.cache(), ..Session::new(search, &mut ticker) };
    let how = arguments.code(command());
    let compiled = compile(&request, &how, assembler.as_ref(), &mut session)?;
    let best = match super::kernel(compiled, &request) {
        Ok(best) => best,
        Err(exit) => return Ok(exit),
    };
    let others = others(&request, &how, requested, &best, assembler.as_ref(), &mut session)?;
    drop(ticker);
    let count = 1 + others.len();
    let mut staged = vec![(first, &*best, [].as_slice())];
    for (number, other) in (2..).zip(&others) {
        let place = Target::new(&folder.join(number.to_string()))?.stage()?;
        staged.push((place, &other.kernel, other.differences.as_slice()));
    }
    for (place, kernel, _) in &staged {
        place.write(&super::files_of(kernel, arguments))?;
    }
    for (number, (place, kernel, differences)) in (1..).zip(staged) {
        finish(arguments, place, kernel, differences, &folder.join(number.to_string()))?;
    }
    for number in before.into_iter().filter(|number| *number > count) {
        let left = folder.join(number.to_string());
        Target::new(&left)?;
        fs::remove_dir_all(&left).map_err(|error| Error::Write { path: left.clone(), error })?;
    }
    Ok(Exit::Done)
}

fn finish(
    arguments: &CompileArguments,
    place: Staged,
    kernel: &GeneratedKernel,
    differences: &[String],
    folder: &Path,
) -> Result<(), Error> {
    place.finish()?;
    if !arguments.search.quiet {
        files::write(None, &report::text(kernel, None, folder, crate::arguments::width(None, None)))?;
        if !differences.is_empty() {
            files::write(None, &format!("against 1: {}\n", twill_report::differences(differences)))?;
        }
    }
    Ok(())
}

/// The numbers of the folders in a folder that holds nothing else, or is not there.
fn numbered(folder: &Path) -> Result<Vec<usize>, Error> {
    if fs::symlink_metadata(folder).is_err() {
        return Ok(Vec::new());
    }
    let failed = |error| Error::Write { path: folder.to_owned(), error };
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(number) = number else {
            let why = format!("it holds {}, and --top writes folders 1, 2, … into it", Path::new(&name).display());
            return Err(Error::NotOurs { path: folder.to_owned(), why });
        };
        Target::new(&folder.join(&name))?;
        numbers.push(number);
    }
    Ok(numbers)
}
