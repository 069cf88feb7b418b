//! Guards the results that loops leave in tensor memory, and names the group that works on them where no loop has one that
//! computes.
//!
//! Before: buffers have their barriers. After: whoever reads such results has a barrier to wait at. Without tensor memory, nothing
//! changes.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    builder.plan_results();
    Ok(())
}
