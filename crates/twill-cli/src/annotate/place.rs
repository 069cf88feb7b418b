//! Where an annotation stands, and how its file is called from the root of the sources.

use std::path::{Component, Path, PathBuf};
use twill_graph::Source;

/// A line of a file, or the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// As the compiler or the user names it.
    pub(crate) file: String,
    /// From 1 on.
    pub(crate) line: Option<u32>,
    /// From 1 on.
    pub(crate) column: Option<u32>,
}

impl Place {
    /// A file as a whole.
    pub(crate) fn file(file: &str) -> Place {
        Place { file: file.to_owned(), line: None, column: None }
    }

    /// A line of the source.
    pub(crate) fn of(source: &Source) -> Place {
        let number = |number: u32| Some(number).filter(|number| *number > 0);
        Place { file: source.file.clone(), line: number(source.line), column: source.column.and_then(number) }
    }
}

/// The folder that files are named from.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    folder: PathBuf,
    canonical: PathBuf,
}

impl Root {
    /// This folder, or the current one.
    pub(crate) fn new(folder: Option<&Path>) -> Root {
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let canonical = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        Root { folder, canonical }
    }

    /// A file as it is called from the root. A path of another machine ends as one that is here: its longest such end is the file.
    /// What is not here keeps its name.
    pub(crate) fn name(&self, file: &str) -> String {
        let path = Path::new(file);
        if let Some(inside) =
            path.canonicalize().ok().as_deref().and_then(|path| path.strip_prefix(&self.canonical).ok())
        {
            return slashes(inside);
        }
        let parts: Vec<Component<'_>> = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let is_whole = parts.len() == path.components().filter(|part| *part != Component::RootDir).count();
        let ends = (0..parts.len()).filter(|_| is_whole).map(|first| parts[first..].iter().collect::<PathBuf>());
        let here = ends.into_iter().find(|end| self.folder.join(end).is_file());
        here.map_or_else(|| slashes(path), |end| slashes(&end))
    }
}

fn slashes(path: &Path) -> String {
    let text = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' { text.into_owned() } else { text.replace('\\', "/") }
}

#[cfg(test)]
mod tests {
    use super::Root;
    use std::fs;

    #[test]
    fn files_are_named_from_the_root() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("kernels")).unwrap();
        let file = folder.path().join("kernels/a b.py");
        fs::write(&file, "").unwrap();
        let root = Root::new(Some(folder.path()));
        let cases = [
            (file.to_str().unwrap(), "kernels/a b.py"),
            ("/home/somebody/project/kernels/a b.py", "kernels/a b.py"),
            ("kernels/a b.py", "kernels/a b.py"),
            ("/usr/lib/other.py", "/usr/lib/other.py"),
            ("scaled.py", "scaled.py"),
            ("", ""),
        ];
        for (given, named) in cases {
            assert_eq!(root.name(given), named, "{given}");
        }
    }
}
