//! Options of the command as keywords, as the Python package has them: `sub_tiles=2` for `--sub-tiles=2`.

use crate::arguments::Arguments;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory};
use std::error::Error as _;
use thiserror::Error as ThisError;

/// What a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A flag takes none.
    Nothing,
    /// One may be left out.
    Maybe,
    /// One is needed.
    Value,
}

/// An option by its keyword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// With underscores.
    pub name: String,
    /// Whether it has a value.
    pub takes: Takes,
    /// All values that there are; empty where there are too many to name.
    pub values: Vec<String>,
}

/// Options of a subcommand, such as `compile`; none where there is no such subcommand.
pub fn keywords(command: &str) -> Vec<Keyword> {
    let all = Arguments::command();
    let found = all.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments);
    found.filter_map(|argument| Some(keyword(argument, argument.get_long()?))).collect()
}

fn keyword(argument: &Arg, long: &str) -> Keyword {
    let takes = match argument.get_num_args() {
        _ if !argument.get_action().takes_values() => Takes::Nothing,
        Some(range) if range.min_values() == 0 => Takes::Maybe,
        _ => Takes::Value,
    };
    let values = match takes {
        // clap knows `true` and `false` of flags.
        Takes::Nothing => Vec::new(),
        _ => argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
    };
    Keyword { name: name(long), takes, values }
}

/// The keyword of an option as clap calls it: `--sub-tiles <N>`.
fn name(option: &str) -> String {
    let long = option.trim_start_matches('-').split([' ', '=', '[']).next().unwrap_or_default();
    long.replace('-', "_")
}

/// Why options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum OptionError {
    /// A value that an option cannot have.
    #[error("{keyword} {why}, not '{value}'")]
    Value {
        /// The option.
        keyword: String,
        /// What was given.
        value: String,
        /// What is allowed, such as `must be from 1 to 16`.
        why: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl OptionError {
    /// What clap says.
    pub(crate) fn of(error: &clap::Error) -> OptionError {
        let texts = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        };
        let names = |kind| texts(kind).iter().map(|text| name(text)).collect::<Vec<_>>().join(", ");
        let keyword = names(ContextKind::InvalidArg);
        let value = texts(ContextKind::InvalidValue).concat();
        match error.kind() {
            ErrorKind::InvalidValue => {
                let values: Vec<String> = texts(ContextKind::ValidValue).iter().map(|v| format!("'{v}'")).collect();
                OptionError::Value { keyword, value, why: format!("must be {}", listed(&values)) }
            }
            ErrorKind::ValueValidation => {
                let why = error.source().map(ToString::to_string).unwrap_or_default();
                OptionError::Value { keyword, value, why: allowed(&why) }
            }
            ErrorKind::ArgumentConflict => {
                OptionError::Other(format!("{keyword} cannot be used with {}", names(ContextKind::PriorArg)))
            }
            ErrorKind::MissingRequiredArgument => OptionError::Other(format!("{keyword} is needed as well")),
            ErrorKind::UnknownArgument => OptionError::Other(format!("there is no option {keyword}")),
            _ => {
                let text = error.to_string();
                OptionError::Other(text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
            }
        }
    }
}

/// `a`, `a or b`, `a, b or c`.
fn listed(values: &[String]) -> String {
    match values {
        [] => "another value".into(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

/// What is allowed, of the words of a parser that refused a value.
fn allowed(why: &str) -> String {
    if let Some((_, range)) = why.split_once(" is not in ") {
        let (least, most) = range.split_once("..").unwrap_or((range, ""));
        let most = most.trim_start_matches('=');
        let unbounded = [u64::from(u16::MAX), u64::from(u32::MAX), u64::MAX].map(|most| most.to_string());
        return if most.is_empty() || unbounded.iter().any(|largest| largest == most) {
            format!("must be at least {least}")
        } else {
            format!("must be from {least} to {most}")
        };
    }
    // Rust's own words for numbers.
    match why {
        "not a number" => "must be a number".into(),
        _ if why.contains("digit found in string") || why.contains("integer from empty string") => {
            "must be a whole number".into()
        }
        _ if why.starts_with("number too ") => format!("must be another number ({why})"),
        _ if why.starts_with("must be ") => why.into(),
        _ => format!("must be {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Takes, keywords};
    use crate::{Requested, GausAnswer, gaus};

    fn wrong(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Requested::read(&words).expect_err("it is wrong").to_string()
    }

    #[test]
    fn options_are_those_that_are_read() {
        let all = keywords("compile");
        let of = |name: &str| all.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!((of("no_cache").takes, of("trace").takes, of("sub_tiles").takes), {
            (Takes::Nothing, Takes::Maybe, Takes::Value)
        });
        assert_eq!(of("persistent").values, ["on", "off"]);
        assert!(of("no_cache").values.is_empty() && of("sub_tiles").values.is_empty());
        // Each is one: its keyword as a word is not unknown.
        for one in all.iter().filter(|one| one.takes == Takes::Value && !one.values.is_empty()) {
            let word = format!("--{}={}", one.name.replace('_', "-"), one.values[0]);
            assert!(!matches!(Requested::read(&[word]), Err(error) if error.to_string().contains("no option")));
        }
        assert!(keywords("gaus").iter().any(|one| one.name == "smallest_ii"));
        assert!(keywords("nothing").is_empty());
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_allowed() {
        assert_eq!(wrong(&["--persistent=maybe"]), "persistent must be 'on' or 'off', not 'maybe'");
        assert_eq!(wrong(&["--compute-groups=17"]), "compute_groups must be from 1 to 16, not '17'");
        assert_eq!(wrong(&["--sub-tiles=0"]), "sub_tiles must be at least 1, not '0'");
        assert_eq!(wrong(&["--sub-tiles=two"]), "sub_tiles must be a whole number, not 'two'");
        assert_eq!(wrong(&["--time-limit=-1"]), "time_limit must be above 0 and at most 1e9, or none, not '-1'");
        assert_eq!(wrong(&["--time-limit=soon"]), "time_limit must be a number, not 'soon'");
        assert_eq!(wrong(&["--trip-counts=1,x"]), "trip_counts must be a whole number, not 'x'");
        let random = |weights: &str| gaus(&["--random=nodes=9".into(), weights.into()], Default::default());
        let said = "weights must be two whole numbers with a comma between, not both 0, not '0,0'";
        assert_eq!(random("--weights=0,0"), GausAnswer::Wrong(said.into()));
    }

    #[test]
    fn what_does_not_go_together_is_named() {
        let both = wrong(&["--sub-tiles=2", "--cta-coarsening=2"]);
        assert!(
            both.contains("sub_tiles") && both.contains("cta_coarsening") && both.contains("cannot be used with")
        );
        assert_eq!(wrong(&["--trace-detail=segments"]), "trace is needed as well");
        assert_eq!(wrong(&["--sub-tile=2"]), "there is no option sub_tile");
    }
}
