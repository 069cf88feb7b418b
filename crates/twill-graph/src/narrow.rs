//! Conversions between integer types: one for counts that fit, one that keeps to the range of its result.

/// A count or a position in a list as 32 bits: lists have fewer than 2³² entries, as each takes memory.
pub fn narrow(count: usize) -> u32 {
    debug_assert!(u32::try_from(count).is_ok(), "a list of {count} entries");
    count as u32
}

/// A number as another integer type; one out of its range becomes the nearest that is in it.
///
/// For amounts that are compared with a limit, where the largest number means "more than there is".
pub fn saturate<To: Integer>(number: impl Integer) -> To {
    To::nearest(number.wide())
}

/// A primitive integer type.
pub trait Integer: Copy {
    /// The number as 128 bits; above 2¹²⁷ − 1, that.
    fn wide(self) -> i128;

    /// The number of this type that is nearest to another.
    fn nearest(number: i128) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Integer for $type {
            fn wide(self) -> i128 {
                i128::try_from(self).unwrap_or(i128::MAX)
            }

            fn nearest(number: i128) -> Self {
                Self::try_from(number).unwrap_or(if number < 0 { Self::MIN } else { Self::MAX })
            }
        }
    )*};
}

integers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);

#[cfg(test)]
mod tests {
    use super::saturate;

    #[test]
    fn numbers_out_of_range_become_the_nearest() {
        assert_eq!((saturate::<u8>(-1), saturate::<u8>(255_i64), saturate::<u8>(u64::MAX)), (0, 255, 255));
        assert_eq!((saturate::<i8>(-129_i32), saturate::<i8>(128_u32)), (i8::MIN, i8::MAX));
        assert_eq!((saturate::<i64>(u128::MAX), saturate::<i64>(i128::MIN)), (i64::MAX, i64::MIN));
        assert_eq!(saturate::<u64>(u64::MAX), u64::MAX);
    }
}
