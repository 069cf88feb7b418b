//! docs/gallery.md and its pictures are those of the code.
//!
//! `cargo xtask gallery` writes them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod kernels;
mod measured;
mod page;
mod scheduled;

use kernels::{KERNELS, Kernel};
use scheduled::{Loop, scheduled};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use twill_report::{TimelineOptions, compared_svg};

/// Pixels from side to side of a picture.
const WIDTH: u32 = 1100;

/// Iterations that a picture shows of either schedule.
const ITERATIONS: u32 = 3;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The timelines of a kernel's first loop.
fn picture(kernel: &Kernel, first: &Loop) -> String {
    let before = format!("{}, before: one iteration after another", kernel.title);
    let after = format!("{}, after: proved optimal", kernel.title);
    let both = [(&*before, &first.problem, &*first.before), (&*after, &first.problem, &*first.after)];
    compared_svg(&both, TimelineOptions { iterations: Some(ITERATIONS), width: Some(WIDTH) })
}

/// Every file of the gallery, by its path below docs/.
fn gallery() -> BTreeMap<String, String> {
    let loops: Vec<Vec<Loop>> = KERNELS.iter().map(scheduled).collect();
    let pictures =
        KERNELS.iter().zip(&loops).map(|(kernel, loops)| (page::picture(kernel), picture(kernel, &loops[0])));
    let mut files: BTreeMap<String, String> = pictures.collect();
    files.insert("gallery.md".into(), page::page(&loops));
    files
}

#[test]
fn the_gallery_is_that_of_the_code() {
    let docs = root().join("docs");
    for (path, text) in gallery() {
        let file = docs.join(&path);
        if std::env::var_os("TWILL_WRITE").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let written = fs::read_to_string(&file).unwrap_or_default();
        assert!(written == text, "docs/{path} has other figures: `cargo xtask gallery` writes it");
    }
}

#[test]
fn nothing_is_slower_after_than_before() {
    for kernel in &KERNELS {
        for one in scheduled(kernel) {
            assert!(one.after.interval <= one.before.interval, "{}", kernel.file);
            assert_eq!(one.after.interval, one.bound.interval, "{}", kernel.file);
            assert_eq!(one.before.stages(), 1, "{}", kernel.file);
        }
    }
}
