//! Counts in the model's types.

/// A count as a type has it that may be too small for it; what is more than that holds is as much as it does.
pub(crate) fn saturating_u32<T: TryInto<u32>>(count: T) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}
