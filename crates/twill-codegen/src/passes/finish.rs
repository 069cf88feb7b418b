//! Settles names, and refuses programs that no multiprocessor can hold.
//!
//! Before: the program is complete. After: no variable has the name of a parameter, and buffers and barriers fit shared and
//! tensor memory.

use crate::builder::kernel::KernelBuilder;
use crate::error::Error;
use crate::ir::Parameter;
use crate::ir::names;
use twill_triton::OperationLocation;

/// The pass.
pub(crate) fn run(builder: &mut KernelBuilder<'_>) -> Result<(), Error> {
    let (kernel, options, program) = (builder.kernel, &builder.options, &mut builder.program);
    let refused = |p: &Parameter| names::refused(program, &p.name).map(|why| (p.name.clone(), why));
    if let Some((name, why)) = program.parameters.iter().find_map(refused) {
        return Err(Error::Unsupported {
            place: OperationLocation::of(kernel.module(), kernel.function()),
            what: format!("a parameter named `{name}`, {why}"),
            way_out: "rename it",
        });
    }
    names::settle(program);
    let (columns, available) = (program.tensor_columns(), options.tensor_columns.unwrap_or(0));
    if columns > available {
        return Err(Error::TensorMemory { needed: columns, available });
    }
    let (needed, available) = (program.shared_bytes(), options.shared_bytes);
    if needed > available {
        return Err(Error::SharedMemory { needed, available });
    }
    Ok(())
}
