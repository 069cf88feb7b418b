//! The documented costs, and operation by operation those of the attention graphs that come with Twill.

use crate::{CostError, Element, ElementwiseClass, Machine, Mechanism, Memory, Reduction, TileWork};
use twill_graph::{Bytes, Columns, Cycles, Execution, Storage, Words, builtin};

fn machine(name: &str) -> Machine {
    Machine::builtin(name).unwrap_or_else(|e| panic!("{e}"))
}

/// The unit, the occupancy, the execution and the issue width of an operation whose latency is its occupancy.
fn priced(machine: &Machine, operation: TileWork) -> (String, i64, Execution, u32) {
    let cost = machine.cost(&operation).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(cost.latency, cost.occupancy);
    assert_eq!(cost.reservations.len(), 1);
    assert_eq!((cost.reservations[0].start, cost.reservations[0].cycles), (Cycles(0), cost.occupancy));
    assert_eq!(cost.variable_latency, operation.has_variable_latency());
    (cost.reservations[0].unit.clone(), cost.occupancy.0, cost.execution, cost.issue_width)
}

fn gemm(rows: u64, columns: u64, depth: u64) -> TileWork {
    TileWork::Mma { rows, columns, depth, element: Element::F16 }
}

fn elementwise(class: ElementwiseClass, elements: u64) -> TileWork {
    TileWork::Elementwise { class, elements, element_bits: 32 }
}

fn load(kilobytes: u64) -> TileWork {
    TileWork::Load { bytes: Bytes(kilobytes * 1024), mechanism: Mechanism::Tma }
}

/// The kinds of the operations of the attention graphs; the names are those of the graphs, less the sub-tile's number.
fn attention(machine: &Machine, name: &str) -> TileWork {
    let rows = machine.sub_tile_rows();
    let tile = rows * 128;
    match name {
        "ldK" | "ldV" => load(32),
        "S" | "O" => gemm(rows, 128, 128),
        "max" => TileWork::Reduce { kind: Reduction::Maximum, rows, columns: 128 },
        "sum" => TileWork::Reduce { kind: Reduction::Sum, rows, columns: 128 },
        "alpha" => elementwise(ElementwiseClass::SpecialFunction, machine.row_statistic_words(rows).0),
        "exp" => elementwise(ElementwiseClass::SpecialFunction, tile),
        "sub" | "resc" | "mulO" => elementwise(ElementwiseClass::Fma, tile),
        "cast" => TileWork::Elementwise { class: ElementwiseClass::Convert, elements: tile, element_bits: 16 },
        "ldS" | "ldO" => TileWork::TensorLoad { words: machine.register_words(tile, 32) },
        "stO" => TileWork::TensorStore { words: machine.register_words(tile, 32) },
        "stP" => TileWork::TensorStore { words: machine.register_words(tile, 16) },
        _ => panic!("{name} is not in the table above"),
    }
}

fn agrees_with_graph(name: &str, graph: &str) {
    let machine = machine(name);
    let rows = machine.sub_tile_rows();
    let (tile, columns) = (rows * 128, 128);
    for op in builtin::find(graph).unwrap().graph.operations() {
        let kind = op.name.trim_end_matches(char::is_numeric);
        let cost = machine.cost(&attention(&machine, kind)).unwrap();
        assert_eq!(cost.reservations, op.reservations, "{}", op.name);
        assert_eq!((cost.occupancy, cost.latency), (op.occupancy, op.latency), "{}", op.name);
        assert_eq!((cost.execution, cost.issue_width), (op.execution, op.issue_width), "{}", op.name);
        assert_eq!(cost.variable_latency, op.variable_latency, "{}", op.name);
        let (storage, handoff) = match kind {
            "ldK" | "ldV" => (Storage::Shared(machine.bytes(128 * 128, 16)), Cycles(0)),
            "max" | "sum" | "alpha" => {
                (Storage::Registers(machine.row_statistic_words(rows)), machine.row_statistic_handoff(rows))
            }
            "S" | "O" if machine.tensor_core().accumulator == Memory::Tensor => {
                (Storage::Tensor(machine.tensor_columns(rows, columns, 32)), Cycles(0))
            }
            "stP" => (Storage::Tensor(machine.tensor_columns(rows, columns, 16)), Cycles(0)),
            "stO" => (Storage::Tensor(machine.tensor_columns(rows, columns, 32)), Cycles(0)),
            "cast" => (Storage::Registers(machine.register_words(tile, 16)), machine.handoff(Words(tile / 2))),
            _ => (Storage::Registers(machine.register_words(tile, 32)), machine.handoff(Words(tile))),
        };
        assert_eq!((op.storage, op.handoff), (storage, handoff), "{}", op.name);
        if op.streaming {
            assert_eq!(op.transfer_latency, machine.transfer_latency(), "{}", op.name);
        }
    }
}

#[test]
fn hopper_attention_costs_are_those_of_its_graph() {
    agrees_with_graph("h100", "attention-forward-hopper");
}

#[test]
fn blackwell_attention_costs_are_those_of_its_graph() {
    agrees_with_graph("b200", "attention-forward-blackwell");
}

#[test]
fn hopper_costs_as_documented() {
    let h100 = machine("h100");
    let group = |unit: &str, cycles| (unit.to_owned(), cycles, Execution::Synchronous, 4);
    assert_eq!(priced(&h100, gemm(64, 128, 128)), ("tensor".into(), 512, Execution::Asynchronous, 4));
    assert_eq!(priced(&h100, gemm(128, 128, 128)), ("tensor".into(), 1024, Execution::Asynchronous, 4));
    assert_eq!(priced(&h100, elementwise(ElementwiseClass::SpecialFunction, 64 * 128)), group("xu", 512));
    assert_eq!(priced(&h100, elementwise(ElementwiseClass::SpecialFunction, 256)), group("xu", 16));
    assert_eq!(priced(&h100, elementwise(ElementwiseClass::Fma, 64 * 128)), group("fma", 64));
    assert_eq!(priced(&h100, elementwise(ElementwiseClass::Convert, 64 * 128)), group("alu", 64));
    assert_eq!(priced(&h100, TileWork::Reduce { kind: Reduction::Maximum, rows: 64, columns: 128 }), group("alu", 64));
    assert_eq!(priced(&h100, TileWork::Reduce { kind: Reduction::Sum, rows: 64, columns: 128 }), group("fma", 64));
    assert_eq!(priced(&h100, load(32)), ("tma".into(), 256, Execution::Asynchronous, 1));
    // Attention backward: dS to shared memory, and the reduction of half of dQ.
    assert_eq!(priced(&h100, TileWork::ToShared { bytes: Bytes(64 * 64 * 2) }), group("lsu", 64));
    let reduce = TileWork::AtomicReduce { bytes: Bytes(64 * 64 * 4), mechanism: Mechanism::Tma };
    assert_eq!(priced(&h100, reduce), ("tma".into(), 128, Execution::Asynchronous, 1));
    assert_eq!(h100.handoff(Words(8192)), Cycles(576));
    assert_eq!(h100.handoff(Words(4096)), Cycles(319));
    assert_eq!(h100.row_statistic_handoff(64), Cycles(65));
    assert_eq!(h100.row_statistic_words(64), Words(256));
    assert_eq!(h100.transfer_latency(), Cycles(650));
    assert_eq!(h100.tensor_columns(64, 128, 32), Columns(0));
    assert_eq!(h100.tensor_core().instruction_depth(Element::F16), 16);
    assert_eq!(h100.tensor_core().instruction_depth(Element::F8), 32);
    assert_eq!(h100.tensor_core().instruction_depth(Element::Tf32), 8);
}

#[test]
fn blackwell_costs_as_documented() {
    let b200 = machine("b200");
    assert_eq!(priced(&b200, gemm(128, 128, 128)), ("tc".into(), 512, Execution::Asynchronous, 1));
    let words = |elements, bits| b200.register_words(elements, bits);
    let group = |cycles| ("mem_tensor".to_owned(), cycles, Execution::Synchronous, 4);
    assert_eq!(priced(&b200, TileWork::TensorLoad { words: words(128 * 128, 32) }), group(256));
    assert_eq!(priced(&b200, TileWork::TensorStore { words: words(128 * 128, 32) }), group(64));
    assert_eq!(priced(&b200, TileWork::TensorStore { words: words(128 * 128, 16) }), group(32));
    assert_eq!(priced(&b200, elementwise(ElementwiseClass::SpecialFunction, 128 * 128)).1, 1024);
    assert_eq!(priced(&b200, elementwise(ElementwiseClass::SpecialFunction, 128)).1, 8);
    assert_eq!(b200.row_statistic_handoff(128), Cycles(69));
    assert_eq!(b200.tensor_columns(256, 128, 16), Columns(128));
}

#[test]
fn ampere_warps_execute_their_matrix_multiplies() {
    let a100 = machine("a100");
    assert_eq!(priced(&a100, gemm(64, 128, 128)), ("tensor".into(), 1024, Execution::Synchronous, 4));
    assert_eq!(a100.mechanism(Mechanism::Tma), Mechanism::Pointer);
    assert_eq!(priced(&a100, load(32)), ("lsu".into(), 512, Execution::Asynchronous, 4));
    let tensor_load = TileWork::TensorLoad { words: Words(1) };
    assert_eq!(
        a100.cost(&tensor_load).unwrap_err().to_string(),
        "machine `a100` has no cost for a load from tensor memory: its file has no [costs.tensor_load]"
    );
    let f8 = TileWork::Mma { rows: 64, columns: 64, depth: 64, element: Element::F8 };
    assert_eq!(
        a100.cost(&f8).unwrap_err().to_string(),
        "the tensor core of machine `a100` does not multiply f8; it multiplies f16, bf16, tf32, i8"
    );
}

#[test]
fn shapes_are_rounded_up_to_instructions_and_cycles_to_whole_ones() {
    let h100 = machine("h100");
    assert_eq!(priced(&h100, gemm(16, 128, 128)).1, 512);
    assert_eq!(priced(&h100, gemm(64, 1, 1)).1, 4);
    assert_eq!(priced(&h100, elementwise(ElementwiseClass::Fma, 129)).1, 2);
    assert_eq!(priced(&h100, elementwise(ElementwiseClass::Fma, 0)).1, 1);
    let wide = TileWork::Elementwise { class: ElementwiseClass::Alu, elements: 128, element_bits: 64 };
    assert_eq!(priced(&h100, wide).1, 2);
}

#[test]
fn amounts_beyond_what_graphs_hold_are_refused() {
    let h100 = machine("h100");
    for huge in [
        gemm(u64::MAX, u64::MAX, u64::MAX),
        elementwise(ElementwiseClass::Fma, u64::MAX),
        load(1 << 50),
        TileWork::Reduce { kind: Reduction::Sum, rows: u64::MAX, columns: u64::MAX },
    ] {
        assert!(matches!(h100.cost(&huge), Err(CostError::TooLarge { .. })), "{huge:?}");
    }
    assert_eq!(
        h100.cost(&load(1 << 50)).unwrap_err().to_string(),
        "a load of this size takes more than 2^40 cycles on machine `h100`; choose smaller tiles"
    );
    assert_eq!(h100.register_words(u64::MAX, 32), Words(u64::MAX / 32 + 1));
    assert!(h100.handoff(Words(u64::MAX)) > Cycles(1 << 40));
}

#[test]
fn costs_combine() {
    let h100 = machine("h100");
    let fma = h100.cost(&elementwise(ElementwiseClass::Fma, 8192)).unwrap();
    let xu = h100.cost(&elementwise(ElementwiseClass::SpecialFunction, 8192)).unwrap();
    let both = fma.clone().then(&xu);
    assert_eq!((both.occupancy, both.latency), (Cycles(576), Cycles(576)));
    assert_eq!(both.reservations[1].start, Cycles(64));
    let both = fma.alongside(&xu);
    assert_eq!((both.occupancy, both.latency), (Cycles(512), Cycles(512)));
    assert_eq!(both.reservations[1].start, Cycles(0));
}

#[test]
fn additional_latency_and_narrow_rates() {
    let text = r#"
        name = "mine"
        extends = "h100"
        [tensor_core]
        additional_latency = { measured = 100, source = "me" }
        [costs.fma]
        narrow_elements_per_cycle = { specified = 256, source = "half2" }
        additional_latency = { measured = 23, source = "me" }
    "#;
    let mine = crate::check(text, "mine.toml").unwrap();
    let cost = mine.cost(&gemm(64, 128, 128)).unwrap();
    assert_eq!((cost.occupancy, cost.latency), (Cycles(512), Cycles(612)));
    let half = TileWork::Elementwise { class: ElementwiseClass::Fma, elements: 8192, element_bits: 16 };
    let cost = mine.cost(&half).unwrap();
    assert_eq!((cost.occupancy, cost.latency), (Cycles(32), Cycles(55)));
    assert_eq!(mine.cost(&elementwise(ElementwiseClass::Fma, 8192)).unwrap().occupancy, Cycles(64));
}

#[test]
fn operations_move_their_bytes() {
    let h200 = machine("h200");
    let moved = |machine: &Machine, operation| {
        let traffic = machine.cost(&operation).unwrap_or_else(|e| panic!("{e}")).traffic;
        (traffic.shared.0, traffic.global.0, traffic.flop)
    };
    let bytes = Bytes(4096);
    assert_eq!(moved(&h200, TileWork::ToShared { bytes }), (4096, 0, 0));
    assert_eq!(moved(&h200, TileWork::FromShared { bytes }), (4096, 0, 0));
    assert_eq!(moved(&h200, load(4)), (0, 4096, 0));
    // Whole instructions.
    assert_eq!(moved(&h200, gemm(60, 120, 128)), (0, 0, 2 * 64 * 120 * 128));
    assert_eq!(moved(&h200, elementwise(ElementwiseClass::Fma, 64)), (0, 0, 0));
    let both = h200.cost(&TileWork::ToShared { bytes }).unwrap().then(&h200.cost(&load(4)).unwrap());
    assert_eq!((both.traffic.shared, both.traffic.global), (bytes, bytes));

    // Three eighths of what transfers move.
    let text =
        "name = \"x\"\nextends = \"h200\"\n[memory]\nshared_transfer_share = { measured = 0.375, source = \"x\" }";
    let part = crate::check(text, "part.toml").unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(moved(&part, load(4)), (1536, 4096, 0));
    let store = |mechanism| TileWork::Store { bytes, mechanism };
    assert_eq!(moved(&part, store(Mechanism::Tma)), (1536, 4096, 0));
    assert_eq!(moved(&part, store(Mechanism::Pointer)), (0, 4096, 0));
}

#[test]
fn instructions_read_operands_again() {
    let h200 = machine("h200");
    let (left, right) = (Bytes(1000), Bytes(10));
    assert_eq!(h200.operand_reads((64, left), (256, right)), Bytes(1010));
    assert_eq!(h200.operand_reads((128, left), (264, right)), Bytes(2020));
    assert_eq!(machine("b200").operand_reads((128, left), (256, right)), Bytes(1010));
}

#[test]
fn bandwidth_is_optional_and_can_be_taken_away() {
    assert_eq!(machine("h200").resources().shared_bytes_per_cycle, Some(Bytes(128)));
    assert_eq!(machine("a100").resources().shared_bytes_per_cycle, None);
    let with = |value: &str| {
        let text = format!("name = \"x\"\nextends = \"h200\"\n[memory]\nshared_bytes_per_cycle = {value}");
        crate::check(&text, "x.toml")
    };
    assert_eq!(with("false").unwrap_or_else(|e| panic!("{e:?}")).resources().shared_bytes_per_cycle, None);
    let none = with("{ measured = 0, source = \"x\" }").unwrap_err();
    assert!(none[0].to_string().contains("memory.shared_bytes_per_cycle"), "{none:?}");
}
