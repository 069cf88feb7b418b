//! SARIF 2.1.0 (OASIS): the part of it that annotations need.

use super::{Annotation, Level, Place, Root, Rule};
use serde_json::{Value, json};

/// Where the format is described.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
/// What relative paths are relative to, by GitHub's name for it.
const ROOT: &str = "%SRCROOT%";

/// The document of one run.
pub(super) fn document(rules: &[Rule], all: &[Annotation], root: &Root) -> String {
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| {
            json!({
                "id": rule.id,
                "shortDescription": {"text": rule.meaning},
                "defaultConfiguration": {"level": level(rule.level)},
            })
        })
        .collect();
    let results: Vec<Value> = all.iter().map(|one| result(one, &rules, root)).collect();
    let driver = json!({"name": "twill", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules});
    let run = json!({"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results});
    let document = json!({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]});
    format!("{document:#}\n")
}

fn result(annotation: &Annotation, rules: &[Value], root: &Root) -> Value {
    let Annotation { rule, level, message, place, function, related } = annotation;
    let mut location = json!({"physicalLocation": physical(place, root)});
    if let Some(function) = function {
        location["logicalLocations"] = json!([{"name": function, "kind": "function"}]);
    }
    let mut result = json!({
        "ruleId": rule.id,
        "level": self::level(*level),
        "message": {"text": message},
        "locations": [location],
    });
    if let Some(index) = rules.iter().position(|known| known["id"] == rule.id) {
        result["ruleIndex"] = json!(index);
    }
    if !related.is_empty() {
        let each = related.iter().enumerate().map(|(id, (place, what))| {
            json!({"id": id, "physicalLocation": physical(place, root), "message": {"text": what}})
        });
        result["relatedLocations"] = each.collect();
    }
    result
}

fn physical(place: &Place, root: &Root) -> Value {
    let name = root.name(&place.file);
    let artifact = match name.strip_prefix('/') {
        Some(_) => json!({"uri": format!("file://{}", encoded(&name))}),
        None => json!({"uri": encoded(&name), "uriBaseId": ROOT}),
    };
    let mut physical = json!({"artifactLocation": artifact});
    if let Some(line) = place.line {
        physical["region"] = json!({"startLine": line});
        if let Some(column) = place.column {
            physical["region"]["startColumn"] = json!(column);
        }
    }
    physical
}

/// A path as a URI (RFC 3986): what is not allowed there is written as its bytes.
fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    }
}
