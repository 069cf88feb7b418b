//! Sub-tiles that may be swapped.

use crate::support::{changed, holds, machine};
use serde_json::{Value, json};
use twill_graph::{ModelOptions, Problem};

/// A load, and in each sub-tile an MMA and an exponential.
fn tiles(count: usize, change: impl Fn(&mut Value)) -> Problem {
    changed(machine(), ModelOptions::default(), |text| {
        let operations = text["operations"].as_array().unwrap().clone();
        let dependences = text["dependences"].as_array().unwrap().clone();
        let (mut all, mut between) = (vec![operations[0].clone()], Vec::new());
        for tile in 0..count {
            let named = |name: &Value| match name.as_str() {
                Some("load") => name.clone(),
                name => format!("{} {tile}", name.unwrap()).into(),
            };
            for operation in &operations[1..] {
                let mut operation = operation.clone();
                operation["name"] = named(&operation["name"]);
                operation["sub_tile"] = tile.into();
                all.push(operation);
            }
            for dependence in &dependences {
                let mut dependence = dependence.clone();
                for end in ["from", "to"] {
                    dependence[end] = named(&dependence[end]);
                }
                between.push(dependence);
            }
        }
        (text["operations"], text["dependences"]) = (all.into(), between.into());
        change(text);
    })
}

#[test]
fn sub_tiles_that_are_alike_may_be_in_order() {
    let in_order = |problem: &Problem, first: usize, second: usize| {
        let atom = format!("later {first} {second} {first} {second} 0");
        holds(problem, &[&atom], "1 0", &format!("sub-tile-order {first} {second}"))
    };
    let alike = tiles(3, |_| {});
    assert!(in_order(&alike, 1, 3) && in_order(&alike, 3, 5));
    // Only neighbours, by their first operations, in this order, and not by less than what is said.
    for (first, second) in [(1, 5), (3, 1), (2, 4), (1, 4), (2, 3), (0, 1)] {
        assert!(!in_order(&alike, first, second), "{first} {second}");
    }
    assert!(!holds(&alike, &["later 1 3 1 3 1"], "1 0", "sub-tile-order 1 3"));
    assert!(holds(&alike, &["later 1 3 1 3 -1", "later 1 3 1 3 0"], "1 2 0", "sub-tile-order 1 3"));
    let two = |change: &dyn Fn(&mut Value)| in_order(&tiles(2, change), 1, 3);
    assert!(two(&|text| text["operations"][3]["kind"] = "another".into()), "kinds are names");
    assert!(two(&|text| text["operations"][3]["source"] = json!({"file": "kernel.py", "line": 7})), "and places");
    // Anything that tells them apart.
    assert!(!two(&|text| text["operations"][3]["latency"] = 9.into()));
    assert!(!two(&|text| text["operations"][4]["handoff"] = 1.into()));
    assert!(!two(&|text| text["dependences"][3]["delay"] = 9.into()));
    assert!(!two(&|text| text["dependences"][3]["hold"] = 9.into()));
    assert!(!two(&|text| text["dependences"][2]["blocking"] = false.into()));
    assert!(!two(&|text| drop(text["dependences"].as_array_mut().unwrap().pop())));
    assert!(!two(&|text| {
        let more = json!({"name": "more", "kind": "exp", "units": [], "cycles": 1, "latency": 1, "sub_tile": 1});
        text["operations"].as_array_mut().unwrap().push(more);
    }));
    assert!(!two(&|text| {
        let across = json!({"from": "exponential 0", "to": "multiply 1", "delay": 0, "value": false});
        text["dependences"].as_array_mut().unwrap().push(across);
    }));
    // Dependences from each to the other are as symmetric.
    assert!(two(&|text| {
        for (from, to) in [("exponential 0", "multiply 1"), ("exponential 1", "multiply 0")] {
            let across = json!({"from": from, "to": to, "delay": 0, "distance": 1, "value": false});
            text["dependences"].as_array_mut().unwrap().push(across);
        }
    }));
}
