//! Which memory a kernel writes, of that which its arguments point to.

use super::bases::bases;
use std::collections::BTreeSet;
use twill_triton::kernel::is_pure;
use twill_triton::mlir::{Module, OperationId, ValueId};

/// Operations that touch global memory, those that write it apart.
const READ: [&str; 3] = ["tt.load", "tt.descriptor_load", "tt.descriptor_gather"];
const WRITE: [&str; 6] = [
    "tt.store",
    "tt.descriptor_store",
    "tt.descriptor_scatter",
    "tt.descriptor_reduce",
    "tt.atomic_rmw",
    "tt.atomic_cas",
];

/// The arguments through which a kernel may write; `None` where it may write anything.
pub(crate) fn written(module: &Module, function: OperationId) -> Option<BTreeSet<ValueId>> {
    let mut found = BTreeSet::new();
    for id in module.walk(function).skip(1) {
        let operation = module.operation(id);
        let name = operation.name.as_str();
        if WRITE.contains(&name) {
            let own = bases(module, function, *operation.operands.first()?);
            // What a table of addresses leads to may be any memory.
            if own.is_empty() || own.iter().any(|(_, loads)| *loads > 0) {
                return None;
            }
            found.extend(own.into_iter().map(|(argument, _)| argument));
        } else if !(READ.contains(&name)
            || is_pure(operation)
            || operation.regions.iter().any(|region| !module.region(*region).blocks.is_empty())
            || matches!(name, "scf.yield" | "scf.condition" | "tt.return" | "tt.reduce.return" | "tt.scan.return")
            || matches!(name, "gpu.barrier" | "ttg.barrier" | "llvm.intr.assume"))
        {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use twill_triton::kernel::find;

    /// Names of the arguments that the kernel of a body writes; its arguments are `%p`, `%q`, `%n`, `%x`, `%c`.
    fn names(body: &str) -> Option<Vec<String>> {
        let text = format!(
            "tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %x: f32, %c: i1, %t: !tt.ptr<i64>) {{\n{body}\ntt.return\n}}"
        );
        let module = twill_triton::mlir::parse(&text, "f.ttir").unwrap();
        let found = written(&module, find(&module, None).unwrap())?;
        Some(found.into_iter().map(|value| module.value(value).name.clone()).collect())
    }

    #[test]
    fn what_is_stored_to_is_written_and_nothing_else() {
        let found = |body: &str| names(body).unwrap();
        assert_eq!(found("%a = tt.load %p : !tt.ptr<f32>\ntt.store %q, %a : !tt.ptr<f32>"), ["q"]);
        assert_eq!(found("%d = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %c : (!tt.ptr<f32>, f32, i1) -> f32"), ["p"]);
        assert!(found("%a = tt.load %p : !tt.ptr<f32>").is_empty());
        let moved = "%r = tt.addptr %p, %n : !tt.ptr<f32>, i32\n";
        assert_eq!(found(&format!("{moved}tt.store %r, %x : !tt.ptr<f32>")), ["p"]);
        let either = "%r = arith.select %c, %p, %q : !tt.ptr<f32>\ntt.store %r, %x : !tt.ptr<f32>";
        assert_eq!(found(either), ["p", "q"]);
        let inside = "scf.if %c {\n  tt.store %q, %x : !tt.ptr<f32>\n}";
        assert_eq!(found(inside), ["q"]);
    }

    #[test]
    fn an_address_from_memory_and_an_unknown_effect_may_write_anything() {
        let table = "%a = tt.load %t : !tt.ptr<i64>\n%r = tt.int_to_ptr %a : i64 -> !tt.ptr<f32>\ntt.store %r, %x : !tt.ptr<f32>";
        assert_eq!(names(table), None);
        let assembly = "%r = tt.elementwise_inline_asm \"st.global.b32 [0], 0;\" {constraints = \"=r,r\", packed_element = 1 : i32, pure = false} %n : i32 -> i32";
        assert_eq!(names(assembly), None);
    }
}
