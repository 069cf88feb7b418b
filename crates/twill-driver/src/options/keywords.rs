//! Options by keywords, as the Python package has them: `sub_tiles=2` for `--sub-tiles 2`.

use super::gaus::GausOptions;
use super::{CompileOptions, LimitOptions, LoweringOptions, ModelVariant, Options, SearchLimits, SiblingOptions};
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor, value::Error as FieldError};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::{Map, Value};
use thiserror::Error as ThisError;

/// What options are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Kernels and loop graphs: [`Options`].
    Compile,
    /// Large graphs without warps: [`GausOptions`].
    Gaus,
}

/// Why options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum OptionError {
    /// A value that an option cannot have.
    #[error("{keyword} {why}, not {value}")]
    Value {
        /// The option.
        keyword: String,
        /// What was given, as JSON.
        value: String,
        /// What is allowed, such as `must be from 1 to 16`.
        why: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// The keywords of a task.
pub fn keywords(task: Task) -> Vec<&'static str> {
    match task {
        Task::Gaus => fields::<GausOptions>().to_vec(),
        Task::Compile => [
            fields::<LoweringOptions>(),
            fields::<LimitOptions>(),
            fields::<ModelVariant>(),
            fields::<SiblingOptions>(),
            fields::<SearchLimits>(),
            fields::<CompileOptions>(),
        ]
        .concat(),
    }
}

impl Options {
    /// Options by keywords; those that are left out have their defaults.
    ///
    /// # Errors
    /// Where there is no such option, it cannot have this value, or two do not go together.
    pub fn from_keywords(given: &Map<String, Value>) -> Result<Options, OptionError> {
        let unknown = given.keys().find(|name| !keywords(Task::Compile).contains(&name.as_str()));
        if let Some(name) = unknown {
            return Err(OptionError::Other(format!("there is no option {name}")));
        }
        let excluded = [("cta_coarsening", "sub_tiles"), ("candidates", "no_assemble")];
        let needed = [("coarsening_axis", "cta_coarsening"), ("trace_detail", "trace")];
        together(given, &excluded, &needed)?;
        Ok(Options {
            lowering: group(given)?,
            limits: group(given)?,
            model: group(given)?,
            loops: group(given)?,
            search: group(given)?,
            code: group(given)?,
        })
    }
}

impl GausOptions {
    /// Options by keywords; those that are left out have their defaults. `has_input`: a graph is given besides.
    ///
    /// # Errors
    /// Where there is no such option, it cannot have this value, or two do not go together.
    pub fn from_keywords(given: &Map<String, Value>, has_input: bool) -> Result<GausOptions, OptionError> {
        let unknown = given.keys().find(|name| !keywords(Task::Gaus).contains(&name.as_str()));
        if let Some(name) = unknown {
            return Err(OptionError::Other(format!("there is no option {name}")));
        }
        let excluded = [
            ("latency", "latency_factor"),
            ("smallest_ii", "ii"),
            ("smallest_ii", "objective"),
            ("smallest_ii", "weights"),
            ("known", "smallest_ii"),
            ("windows", "smallest_ii"),
        ];
        together(given, &excluded, &[])?;
        match (has_input, is_given(given, "random")) {
            (true, true) => Err(OptionError::Other("random cannot be used with a graph".into())),
            (false, false) => Err(OptionError::Other("random is needed as well".into())),
            _ => group(given),
        }
    }
}

/// Whether an option is set to something: nothing, false and off leave it alone.
fn is_given(given: &Map<String, Value>, name: &str) -> bool {
    given.get(name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)) && value != "off")
}

fn together(given: &Map<String, Value>, excluded: &[(&str, &str)], needed: &[(&str, &str)]) -> Result<(), OptionError> {
    let both = excluded.iter().find(|(one, other)| is_given(given, one) && is_given(given, other));
    if let Some((one, other)) = both {
        return Err(OptionError::Other(format!("{one} cannot be used with {other}")));
    }
    match needed.iter().find(|(one, other)| is_given(given, one) && !is_given(given, other)) {
        Some((_, other)) => Err(OptionError::Other(format!("{other} is needed as well"))),
        None => Ok(()),
    }
}

/// The group that has some of the keywords. Each is read by itself first, so that an error is of one.
fn group<T: DeserializeOwned>(given: &Map<String, Value>) -> Result<T, OptionError> {
    let own: Map<String, Value> = given
        .iter()
        .filter(|(name, value)| !value.is_null() && fields::<T>().contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in &own {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = serde_json::from_value::<T>(Value::Object(alone)) {
            return Err(OptionError::Value {
                keyword: name.clone(),
                value: value.to_string(),
                why: super::numbers::needed(&error),
            });
        }
    }
    serde_json::from_value(Value::Object(own)).map_err(|error| OptionError::Other(error.to_string()))
}

/// The options of a group that differ from their defaults, as the command spells them.
pub fn given<T: Serialize + Default>(group: &T) -> Vec<String> {
    // Plain data always serialises.
    let fields = |group: &T| serde_json::to_value(group).unwrap_or_default();
    let (own, default) = (fields(group), fields(&T::default()));
    let own = own.as_object().into_iter().flatten();
    own.filter(|(name, value)| default.get(name) != Some(value)).map(|(name, _)| name.replace('_', "-")).collect()
}

impl Options {
    /// The options that differ from their defaults, by keyword: what [`Options::from_keywords`] reads.
    pub fn to_keywords(&self) -> Map<String, Value> {
        let mut all = Map::new();
        let default = Options::default();
        let mut add = |own: Value, default: Value| {
            if let Value::Object(own) = own {
                all.extend(own.into_iter().filter(|(name, value)| default.get(name) != Some(value)));
            }
        };
        // Plain data always serialises.
        let value = |group: serde_json::Result<Value>| group.unwrap_or_default();
        use serde_json::to_value;
        add(value(to_value(&self.lowering)), value(to_value(&default.lowering)));
        add(value(to_value(&self.limits)), value(to_value(&default.limits)));
        add(value(to_value(&self.model)), value(to_value(&default.model)));
        add(value(to_value(&self.loops)), value(to_value(&default.loops)));
        add(value(to_value(&self.search)), value(to_value(&default.search)));
        add(value(to_value(&self.code)), value(to_value(&default.code)));
        all.retain(|name, _| keywords(Task::Compile).contains(&name.as_str()));
        all
    }
}

/// The names of a struct's fields.
fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // It fails as soon as it knows them.
    let _ = T::deserialize(Names(&mut found));
    found
}

/// Reads nothing but the names of a struct's fields.
struct Names<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = FieldError;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, FieldError> {
        Err(FieldError::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, FieldError> {
        *self.0 = fields;
        Err(FieldError::custom("names are enough"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::{OptionError, Task, keywords};
    use crate::options::{GausOptions, Options};
    use serde_json::{Value, json};

    fn read(given: Value) -> Result<Options, OptionError> {
        Options::from_keywords(given.as_object().expect("it is an object"))
    }

    fn wrong(given: Value) -> String {
        read(given).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_wrong_value_is_named_with_what_is_allowed() {
        for (given, said) in [
            (json!({"persistent": "maybe"}), "persistent must be 'on', 'off', True or False, not \"maybe\""),
            (json!({"emit": "ptx"}), "emit must be 'gluon' or 'cuda', not \"ptx\""),
            (json!({"compute_groups": 17}), "compute_groups must be from 1 to 16, not 17"),
            (json!({"sub_tiles": 0}), "sub_tiles must be at least 1, not 0"),
            (json!({"sub_tiles": "two"}), "sub_tiles must be a whole number, not \"two\""),
            (json!({"ring_depth": true}), "ring_depth must be a whole number, not true"),
            (json!({"time_limit": -1}), "time_limit must be above 0 and at most 1e9, or none, not -1"),
            (json!({"time_limit": "soon"}), "time_limit must be a number, not \"soon\""),
            (json!({"trip_counts": [1, "x"]}), "trip_counts must be a whole number, not [1,\"x\"]"),
            (json!({"sub_tile": 2}), "there is no option sub_tile"),
            (json!({"sub_tiles": 2, "cta_coarsening": 2}), "cta_coarsening cannot be used with sub_tiles"),
            (json!({"trace_detail": "segments"}), "trace is needed as well"),
        ] {
            assert_eq!(wrong(given), said);
        }
        let weights = json!({"random": "nodes=9", "weights": "0,0"});
        let gaus = GausOptions::from_keywords(weights.as_object().expect("it is an object"), false);
        let said = "weights must be two whole numbers with a comma between, not both 0, not \"0,0\"";
        assert_eq!(gaus.expect_err("it is wrong").to_string(), said);
    }

    #[test]
    fn values_are_those_of_the_command() {
        let options = read(json!({
            "emit": "cuda", "trace": true, "loop": 1, "warp_assignment": "by-sub-tile", "trip_counts": "4,8",
            "persistent": false, "mma_batches": "off", "time_limit": "none", "sub_tiles": null,
        }))
        .expect("all are right");
        assert_eq!((options.code.trace, options.lowering.loop_index), (Some(16), Some(1)));
        assert_eq!((options.code.persistent, options.code.mma_batches), (Some(false), false));
        assert_eq!((options.loops.trip_counts, options.search.seconds()), (vec![4, 8], None));
        assert_eq!(read(json!({})).expect("nothing is right"), Options::default());
    }

    /// What is written reads back: files and keys of the cache have the same values.
    #[test]
    fn what_is_serialised_reads_back() {
        let given = json!({"emit": "cuda", "trace": 8, "liveness": "paper", "time_limit": "none", "cluster": 2});
        let options = read(given).expect("all are right");
        let file = serde_json::to_value(&options).expect("plain data");
        let mut flat = serde_json::Map::new();
        file.as_object()
            .into_iter()
            .flatten()
            .for_each(|(_, group)| flat.extend(group.as_object().cloned().unwrap_or_default()));
        // What the caller decides.
        for name in ["command", "in_order"] {
            flat.remove(name);
        }
        flat.retain(|name, value| name != "coarsening_axis" || value != "x");
        assert_eq!(Options::from_keywords(&flat).expect("it reads back"), options);
        assert!(keywords(Task::Compile).contains(&"loop") && !keywords(Task::Compile).contains(&"command"));
        assert!(keywords(Task::Gaus).contains(&"smallest_ii"));
    }
}
