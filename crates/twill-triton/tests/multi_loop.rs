//! Ties between the loops of kernels that Triton printed.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use twill_graph::{LoopGraph, TieReason};
use twill_machine::Machine;
use twill_triton::tile::Axis;
use twill_triton::{CtaCoarsening, Kernel, Options, lower, read};

fn text(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Ties as sets of names with the number of the loop in front.
fn ties(kernel: &Kernel, options: &[Options]) -> BTreeMap<TieKey, BTreeSet<Vec<String>>> {
    let machine = Machine::load("h100").unwrap();
    let each = || kernel.loops().iter().zip(options);
    let prepared: Vec<_> = each().map(|(l, o)| o.prepare(l, &machine).unwrap()).collect();
    let graphs: Vec<LoopGraph> = each().map(|(l, o)| lower(l, &machine, o).unwrap()).collect();
    let mut found: BTreeMap<TieKey, BTreeSet<Vec<String>>> = BTreeMap::new();
    for tie in kernel.ties(&prepared, &graphs.iter().collect::<Vec<_>>()) {
        let name = |o: &twill_graph::LoopOperation| format!("{}:{}", o.index, graphs[o.index].operation(o.op).name);
        let key = match tie.reason {
            TieReason::Carried => TieKey::Carried,
            TieReason::Corresponding => TieKey::Corresponding,
        };
        found.entry(key).or_default().insert(tie.operations.iter().map(name).collect());
    }
    found
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TieKey {
    Carried,
    Corresponding,
}

fn set(ties: &[[&str; 2]]) -> BTreeSet<Vec<String>> {
    ties.iter().map(|tie| tie.iter().map(|s| (*s).to_owned()).collect()).collect()
}

#[test]
fn causal_attention_ties_accumulators_and_all_but_the_mask() {
    for name in ["attention_forward_causal.ttir", "attention_forward_causal_d64.ttir"] {
        let kernel = read(&text(name), name).unwrap();
        let found = ties(&kernel, &[Options::default(), Options::default()]);
        let carried = [
            ["0:acc.dot.0", "1:acc.dot.0"],
            ["0:acc.dot.1", "1:acc.dot.1"],
            ["0:row_sum.fma.0", "1:row_sum.fma.0"],
            ["0:row_sum.fma.1", "1:row_sum.fma.1"],
            ["0:new_max.max.0", "1:new_max.max.0"],
            ["0:new_max.max.1", "1:new_max.max.1"],
        ];
        assert_eq!(found[&TieKey::Carried], set(&carried), "{name}");
        let corresponding = &found[&TieKey::Corresponding];
        assert_eq!(corresponding.len(), 28, "every operation of the unmasked loop: {corresponding:?}");
        assert!(corresponding.contains(&vec!["0:qk.0".to_owned(), "1:qk.dot.0".to_owned()]));
        let free = |name: &str| !corresponding.iter().flatten().any(|o| o == name);
        assert!(free("1:qk.compare.0") && free("1:qk.select.1"), "the mask is free");
    }
}

#[test]
fn programs_that_share_a_cta_are_tied_each_to_itself() {
    let kernel = read(&text("attention_forward_causal_d64_m64.ttir"), "causal").unwrap();
    // Along y, as bounds depend on the block of queries.
    let heads = Options { programs: Some(CtaCoarsening { count: 3, axis: Axis::Y }), ..Options::default() };
    let found = ties(&kernel, &[heads.clone(), heads]);
    let carried = ["acc.dot", "row_sum.fma", "new_max.max"];
    let pairs = carried.iter().flat_map(|name| (0..3).map(move |p| [format!("0:{name}.{p}"), format!("1:{name}.{p}")]));
    assert_eq!(found[&TieKey::Carried], pairs.map(Vec::from).collect());
    let corresponding = &found[&TieKey::Corresponding];
    assert_eq!(corresponding.len(), 3 * 15, "every operation of the unmasked loop, keys and values too");
    assert!(corresponding.contains(&vec!["0:k.2".to_owned(), "1:k.2".to_owned()]));
}

#[test]
fn loops_cut_differently_are_tied_by_what_they_carry_alone() {
    let kernel = read(&text("attention_forward_causal.ttir"), "causal").unwrap();
    let whole = Options { sub_tiles: Some(1), ..Options::default() };
    let found = ties(&kernel, &[whole, Options::default()]);
    let carried = &found[&TieKey::Carried];
    assert!(carried.contains(&["0:acc.dot", "1:acc.dot.0", "1:acc.dot.1"].map(str::to_owned).to_vec()), "{carried:?}");
    assert!(!found.contains_key(&TieKey::Corresponding), "{found:?}");
}

#[test]
fn trip_counts_are_known_where_bounds_differ_by_a_constant() {
    let causal = text("attention_forward_causal.ttir");
    let kernel = read(&causal, "causal").unwrap();
    let known = [0, 1, 2].map(|k| kernel.trip_count(k));
    assert_eq!(known, [None, Some(1), None], "from 0 to 128 x, from 128 x / 128 * 128 to 128 x + 128");
    // A quotient that may not be whole stays what it is.
    let other = causal.replacen("arith.divsi %first_query_18, %c128_i32", "arith.divsi %first_query, %c128_i32", 1);
    assert_eq!(read(&other, "other").unwrap().trip_count(1), None);
    // Seven blocks of 128, and what is left of them.
    let constant = "%c128_i32 = arith.constant 128 : i32";
    let given = causal.replacen(constant, &format!("{constant}\n    %end = arith.constant 800 : i32"), 1).replacen(
        "= %c0_i32 to %unmasked_end_23 step",
        "= %c0_i32 to %end step",
        1,
    );
    assert_eq!(read(&given, "given").unwrap().trip_count(0), Some(7));
}
