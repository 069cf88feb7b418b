//! Names of operations.

use std::collections::HashMap;

use super::TileOperation;

/// The variable alone if no other operation of the sub-tile has it, otherwise with the operation's label, and then with a
/// number from the second on; behind it the sub-tile.
pub(super) fn unique(operations: &[TileOperation]) -> Vec<String> {
    let mut shared: HashMap<(&str, Option<u32>), u32> = HashMap::new();
    // All copies of an operation must come out alike, so operations of no sub-tile count against those of the first.
    let first = |op: &TileOperation| op.sub_tile.filter(|s| *s > 0);
    for op in operations.iter().filter(|op| first(op).is_none()) {
        *shared.entry((&op.variable, None)).or_default() += 1;
    }
    let mut taken: HashMap<String, u32> = HashMap::new();
    operations
        .iter()
        .map(|op| {
            let mut name = op.variable.clone();
            if shared.get(&(op.variable.as_str(), None)).is_some_and(|count| *count > 1) {
                name = format!("{name}.{}", op.label());
            }
            let key = op.sub_tile.map_or_else(|| name.clone(), |s| format!("{name}.{s}"));
            let count = taken.entry(key).or_default();
            *count += 1;
            if *count > 1 {
                name = format!("{name}#{count}");
            }
            op.sub_tile.map_or_else(|| name.clone(), |s| format!("{name}.{s}"))
        })
        .collect()
}
