//! Slots of rings that a group fills and reads next, and their phases.

use super::group::Printer;
use twill_codegen::ir::CursorId;

impl Printer<'_> {
    /// To the next slot.
    pub(super) fn advance(&self, cursor: CursorId) -> String {
        let c = &self.group.cursors[cursor.index()];
        let name = &c.name;
        match (c.slots, c.phase) {
            (1, true) => format!("{name}_phase = {name}_phase ^ 1"),
            (1, false) => String::new(),
            (slots, true) => format!("{name}, {name}_phase = advance({name}, {name}_phase, {slots})"),
            // The function is one of kernels with warp groups.
            (slots, false) if self.names.in_order => {
                format!("{name} = gl.where({name} == {}, 0, {name} + 1)", slots - 1)
            }
            (slots, false) => format!("{name} = next_slot({name}, {slots})"),
        }
    }

    /// One stands where another one does.
    pub(super) fn copy_cursor(&self, to: CursorId, from: CursorId) -> String {
        let (to, from) = (&self.group.cursors[to.index()], &self.group.cursors[from.index()]);
        let mut lines = Vec::new();
        if to.slots > 1 {
            lines.push(format!("{} = {}", to.name, from.name));
        }
        if to.phase {
            lines.push(format!("{}_phase = {}_phase", to.name, from.name));
        }
        lines.join("\n")
    }
}
