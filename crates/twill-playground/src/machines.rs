//! The machines that there are, with the numbers that can be changed.

use serde_json::{Value, json};
use twill_machine::{Machine, builtin_names};

/// JSON of the built-in machines: name, description, units, shared memory, registers of a thread, compute groups.
pub fn machines() -> String {
    let each = builtin_names().filter_map(|name| Machine::builtin(name).ok()).map(|machine| shown(&machine));
    Value::Array(each.collect()).to_string()
}

fn shown(machine: &Machine) -> Value {
    let resources = machine.resources();
    json!({
        "name": machine.name(),
        "description": machine.description(),
        "units": resources.units.iter().map(|unit| unit.name.as_str()).collect::<Vec<_>>(),
        "shared_bytes": resources.shared_memory,
        "registers_per_thread": resources.registers.maximum_per_thread,
        "compute_groups": resources.compute_groups.maximum,
    })
}
