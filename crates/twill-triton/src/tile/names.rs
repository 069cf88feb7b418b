//! Names of operations.

use std::collections::HashMap;

use super::TileOperation;

/// The variable alone if no other operation has it, otherwise with the operation's label, and then with a number from the
/// second on; after it the sub-tile. Copies of an operation come out alike.
pub(super) fn unique(operations: &[TileOperation]) -> Vec<String> {
    let is_first = |op: &&TileOperation| op.sub_tile.unwrap_or(0) == 0;
    let mut sharing: HashMap<&str, u32> = HashMap::new();
    for op in operations.iter().filter(is_first) {
        *sharing.entry(&op.variable).or_default() += 1;
    }
    let mut seen: HashMap<(String, Option<u32>), u32> = HashMap::new();
    let mut names = Vec::with_capacity(operations.len());
    for op in operations {
        let mut name = op.variable.clone();
        if sharing.get(op.variable.as_str()).is_some_and(|count| *count > 1) {
            name = format!("{name}.{}", op.label());
        }
        // Operations before it that a reader of this sub-tile sees under the name.
        let count = |sub_tile: Option<u32>| seen.get(&(name.clone(), sub_tile)).copied().unwrap_or(0);
        let before = count(None) + count(Some(op.sub_tile.unwrap_or(0)));
        *seen.entry((name.clone(), op.sub_tile)).or_default() += 1;
        if before > 0 {
            name = format!("{name}#{}", before + 1);
        }
        names.push(op.sub_tile.map_or_else(|| name.clone(), |sub_tile| format!("{name}.{sub_tile}")));
    }
    names
}
