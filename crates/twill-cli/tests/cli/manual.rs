//! Completions and manual pages have every command and option.

use crate::common::{stderr, stdout, twill};
use std::collections::BTreeSet;
use std::fs;

/// Commands that `--help-all` lists.
fn commands() -> BTreeSet<String> {
    let help = stdout(&twill(&["--help-all"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Where the words of one go on, lines are indented further.
    let names = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

/// Long options in a text.
fn options(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| word.starts_with("--") && word.len() > 3).map(str::to_owned).collect()
}

#[test]
fn shells_complete_every_command_and_option() {
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = stdout(&twill(&["completions", shell]));
        let missing: Vec<_> = commands.iter().filter(|name| !text.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "{shell}: {missing:?}");
        // The last three are of sweep, collect and machine calibrate, whose words Python reads.
        for option in ["certificate", "sub-tiles", "retile-loop", "constexpr", "rank", "repeat-check"] {
            assert!(text.contains(option), "{shell}: {option}");
        }
    }
    let output = twill(&["completions", "tcsh"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("bash"));
}

#[test]
fn every_command_has_a_page_with_its_options() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    assert_eq!(twill(&["man", pages.to_str().unwrap()]).status.code(), Some(0));
    for name in commands() {
        let page = fs::read_to_string(pages.join(format!("twill-{name}.1"))).unwrap();
        // Roff has a backslash before a hyphen, and names of fonts.
        let page = ["\\fB", "\\fI", "\\fR"].iter().fold(page.replace("\\-", "-"), |text, font| text.replace(font, " "));
        if ["collect", "sweep"].contains(&name.as_str()) {
            // Python reads their words, and its test knows them.
            let one = if name == "sweep" { "--measure" } else { "--output" };
            assert!(options(&page).contains(one), "{page}");
            continue;
        }
        let help = stdout(&twill(&[&name, "--help-all"]));
        let of_page = options(&page);
        let missing: Vec<_> = options(&help).into_iter().filter(|option| !of_page.contains(option)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
    assert!(fs::read_to_string(pages.join("twill.1")).unwrap().contains("schedule"));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let output = twill(&["man", "Cargo.toml/man1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("Cargo.toml/man1"), "{}", stderr(&output));
}
