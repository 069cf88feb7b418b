//! Where annotations find their files.

use crate::annotate::Root;
use clap::Args;
use std::path::PathBuf;

/// Where annotations find their files.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct AnnotationArguments {
    /// With --format sarif or github: folder that files are named from [default: the current one].
    ///
    /// It is the top of the repository. A path of another machine is taken for the file here that it ends in.
    #[arg(long, value_name = "DIR")]
    source_root: Option<PathBuf>,
}

impl AnnotationArguments {
    /// The folder that files are named from.
    pub(crate) fn root(&self) -> Root {
        Root::new(self.source_root.as_deref())
    }
}
