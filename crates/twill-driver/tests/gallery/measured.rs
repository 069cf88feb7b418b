//! Speed over stock Triton, as bench/results/gpu.json has it.

use crate::root;
use serde_json::Value;

/// How fast a kernel ran.
pub struct Measured {
    /// The GPU.
    pub card: String,
    /// The problem.
    pub size: String,
    /// When.
    pub date: String,
    /// The kernel's time in stock Triton's, and the least and the most of the rounds.
    pub speed: [f64; 3],
    /// Stock Triton's fastest configuration.
    pub stock: String,
}

/// The measurement of a contender in a row.
pub fn measured(row: &str, contender: &str) -> Measured {
    let text = std::fs::read_to_string(root().join("bench/results/gpu.json")).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    let rows = answer["rows"].as_array().unwrap();
    let found = rows.iter().find(|one| one["row"] == row).unwrap_or_else(|| panic!("no row {row}"));
    let contenders = found["contenders"].as_array().unwrap();
    let named = |name: &str| {
        let one = contenders.iter().find(|one| one["name"] == name);
        one.unwrap_or_else(|| panic!("{row} has no {name}"))
    };
    let stock = found["best"]["stock Triton"].as_str().unwrap();
    let rounds = |name: &str| named(name)["ms_rounds"].as_array().unwrap().clone();
    let each = rounds(stock).into_iter().zip(rounds(contender));
    let ratios: Vec<f64> = each.map(|(stock, ours)| stock.as_f64().unwrap() / ours.as_f64().unwrap()).collect();
    let (least, most) = (ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Measured {
        card: text(&answer["gpu"]["name"]),
        size: text(&found["size"]),
        date: text(&found["run"]["date"]),
        speed: [named(contender)["ratios"]["stock Triton"].as_f64().unwrap(), least, most],
        stock: stock.trim_start_matches("stock Triton, ").to_owned(),
    }
}
