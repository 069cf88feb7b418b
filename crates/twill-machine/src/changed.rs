//! A machine with other rates, latencies and memory: what a change would bring.

use crate::machine::Machine;
use crate::provenance::Row;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is changed of a machine. What is left out stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Factors of the units' rates, by the unit's name: 2 makes it twice as fast.
    pub rates: BTreeMap<String, f64>,
    /// Factor of the latencies: of transfers, handoffs, and of what follows an operation's occupancy.
    pub latencies: Option<f64>,
    /// Shared memory of a thread block in bytes.
    pub shared_bytes: Option<u64>,
}

impl Machine {
    /// The text of a machine file that extends the built-in machine `base`, which this is, with these changes.
    pub fn changed(&self, base: &str, changes: &Changes) -> String {
        let mut text = format!("name = \"{base}-changed\"\nextends = \"{base}\"\n");
        let mut quantity = |key: &str, value: f64| {
            // Rows are `table.key`, and dotted keys at the top are the same to TOML.
            let _ = writeln!(text, "{key} = {{ derived = {value}, source = \"a change of {base}\" }}");
        };
        for row in self.rows() {
            if let Some(factor) = self.factor(row, changes) {
                quantity(&row.key, row.value * factor);
            }
        }
        if let Some(bytes) = changes.shared_bytes {
            quantity("memory.shared_bytes", bytes as f64);
        }
        text
    }

    /// What a number is multiplied by; `None` where it stays.
    fn factor(&self, row: &Row, changes: &Changes) -> Option<f64> {
        let (table, key) = row.key.rsplit_once('.')?;
        let is_latency = table == "latency" || key.ends_with("_latency");
        let factor = if is_latency {
            changes.latencies
        } else if table == "tensor_core.flop_per_cycle" {
            changes.rates.get(&self.tensor_core.unit).copied()
        } else {
            let rule = table.strip_prefix("costs.").filter(|_| key.contains("per_cycle"))?;
            let (_, rule) = self.rules.iter().find(|(name, _)| name.key() == rule)?;
            changes.rates.get(&rule.unit).copied()
        };
        factor.filter(|factor| *factor != 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Changes;
    use crate::{Machine, check};
    use std::collections::BTreeMap;

    fn changed(base: &str, changes: &Changes) -> (Machine, Machine) {
        let machine = Machine::builtin(base).expect("it is built in");
        let text = machine.changed(base, changes);
        (machine, check(&text, "changed").expect("it is a machine file"))
    }

    fn value(machine: &Machine, key: &str) -> f64 {
        machine.rows().find(|row| row.key == key).map(|row| row.value).expect("every machine has it")
    }

    #[test]
    fn a_unit_is_as_many_times_as_fast_with_all_that_holds_it() {
        for (base, tensor) in [("h200", "tensor"), ("b200", "tc"), ("a100", "tensor")] {
            let rates = BTreeMap::from([("fma".into(), 2.0), (tensor.into(), 0.5)]);
            let changes = Changes { rates, ..Changes::default() };
            let (before, after) = changed(base, &changes);
            for key in ["costs.fma.elements_per_cycle", "costs.reduce_sum.elements_per_cycle"] {
                assert_eq!(value(&after, key), 2.0 * value(&before, key), "{base}: {key}");
            }
            assert_eq!(
                after.tensor_core.flop_per_cycle(crate::Element::F16),
                before.tensor_core.flop_per_cycle(crate::Element::F16).map(|f| f / 2.0)
            );
            for key in ["costs.alu.elements_per_cycle", "latency.handoff", "memory.shared_bytes"] {
                assert_eq!(value(&after, key), value(&before, key), "{base}: {key}");
            }
        }
    }

    #[test]
    fn latencies_and_shared_memory_change_alone() {
        let changes = Changes { latencies: Some(2.0), shared_bytes: Some(100 * 1024), ..Changes::default() };
        let (before, after) = changed("h200", &changes);
        for key in ["latency.transfer", "tensor_core.additional_latency", "costs.shared_store.additional_latency"] {
            assert_eq!(value(&after, key), 2.0 * value(&before, key), "{key}");
        }
        assert_eq!(value(&after, "memory.shared_bytes"), 102_400.0);
        assert_eq!(value(&after, "costs.fma.elements_per_cycle"), value(&before, "costs.fma.elements_per_cycle"));
        let (before, after) = changed("h200", &Changes::default());
        assert_eq!(before.resources().units, after.resources().units);
    }
}
