//! Operations.

use super::{Text, list, quoted};
use crate::ir::*;

impl Text<'_> {
    pub(super) fn op(&self, op: &Op) -> String {
        match op {
            Op::Let { to, value } => format!("let {} = {}", self.variable(*to), self.expression(value)),
            Op::Copy { to, from } => format!("copy {} = {}", self.variable(*to), self.variable(*from)),
            Op::Wgmma { to, left, right, accumulator } => {
                let adds = accumulator.map_or_else(String::new, |id| format!(" accumulator {}", self.variable(id)));
                format!("wgmma {} = {}, {}{adds}", self.variable(*to), self.operand(left), self.operand(right))
            }
            Op::Tcgen05Mma(mma) => {
                let addend = match &mma.addend {
                    Addend::Zero => "zero".to_owned(),
                    Addend::Value(value) => format!("value {}", Self::value(value)),
                    Addend::Before => "before".to_owned(),
                    Addend::BeforeUnlessFirst(number) => format!("before_unless_first({})", Self::number(*number)),
                };
                let [to, left, right] = [&mma.to, &mma.left, &mma.right].map(|slot| self.slot(slot));
                format!("tcgen05_mma {to} = {left}, {right}, {addend} signals {}", self.signals(&mma.signals))
            }
            Op::Tcgen05Commit(signals) => format!("tcgen05_commit {}", self.signals(signals)),
            Op::WgmmaInit(id) => format!("wgmma_init {}", self.variable(*id)),
            Op::WgmmaWait { pending, completed, in_flight } => format!(
                "wgmma_wait {pending} completed {} in_flight {}",
                self.variables(completed),
                self.variables(in_flight)
            ),
            Op::TmaLoad { descriptor, coordinates, to, full } => {
                let (descriptor, at) = (self.descriptor(*descriptor), self.expressions(coordinates));
                format!("tma_load {descriptor} [{at}] to {} full {}", self.slot(to), self.barrier(*full))
            }
            Op::CpAsync { pointers, mask, elements, whole, to, full } => {
                let (pointers, mask) = (self.expression(pointers), self.mask(mask.as_ref()));
                let whole = whole.as_ref().map_or_else(String::new, |whole| {
                    let (descriptor, at) = (self.descriptor(whole.descriptor), self.expressions(&whole.coordinates));
                    format!(" whole if {} {descriptor} [{at}]", self.expression(&whole.condition))
                });
                let full = full.map_or_else(String::new, |full| format!(" full {}", self.barrier(full)));
                format!("cp_async {pointers}{mask} elements {elements}{whole} to {}{full}", self.slot(to))
            }
            Op::CpAsyncCommit => "cp_async_commit".to_owned(),
            Op::CpAsyncWait(pending) => format!("cp_async_wait {pending}"),
            Op::LocalStore { value, to } => format!("local_store {} to {}", self.expression(value), self.slot(to)),
            Op::FenceProxyAsync => "fence_proxy_async".to_owned(),
            Op::GroupSync => "group_sync".to_owned(),
            Op::TmaStore { descriptor, coordinates, from, reduce } => {
                let (descriptor, at) = (self.descriptor(*descriptor), self.expressions(coordinates));
                let reduce = reduce.map_or("", |AtomicOp::Add| " reduce add");
                format!("tma_store {descriptor} [{at}] from {}{reduce}", self.slot(from))
            }
            Op::TmaStoreWait(pending) => format!("tma_store_wait {pending}"),
            Op::GlobalStore { pointers, value, mask } | Op::AtomicAdd { pointers, value, mask } => {
                let name = if matches!(op, Op::AtomicAdd { .. }) { "atomic_add" } else { "global_store" };
                let (to, value) = (self.expression(pointers), self.expression(value));
                format!("{name} {value} to {to}{}", self.mask(mask.as_ref()))
            }
            Op::MbarrierWait { barrier, at, previous } => {
                format!("mbarrier_wait {}{}", self.at(*barrier, *at), if *previous { " previous" } else { "" })
            }
            Op::MbarrierArrive { barrier, at } => format!("mbarrier_arrive {}", self.at(*barrier, *at)),
            Op::AdvanceCursor(cursor) => format!("advance_cursor {}", self.cursor(*cursor)),
            Op::CopyCursor { to, from } => format!("copy_cursor {} = {}", self.cursor(*to), self.cursor(*from)),
            Op::NamedBarrierSync(id) => format!("named_barrier_sync {}", self.named(*id)),
            Op::NamedBarrierArrive(id) => format!("named_barrier_arrive {}", self.named(*id)),
            Op::Opaque { operation, operands, results } => {
                format!("{}({}) to {}", self.opaque(operation), self.expressions(operands), self.variables(results))
            }
            Op::Timestamp(stamps) => {
                let stamp = |stamp: &Stamp| {
                    let moment = match stamp.moment {
                        Moment::Issue => "issue",
                        Moment::End => "end",
                        Moment::Completed => "completed",
                    };
                    format!("{} {moment} ({})", quoted(&stamp.operation), Self::number(stamp.at))
                };
                format!("timestamp {}", list(stamps.iter().map(stamp)))
            }
        }
    }
}
