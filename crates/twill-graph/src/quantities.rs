//! Quantities that must not be mixed up: cycles, bytes, register words, tensor-memory columns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Clock cycles of one streaming multiprocessor: a point in time, a duration or a delay.
///
/// Signed, because delays and differences of times may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Cycles(pub i64);

impl Cycles {
    /// No cycles.
    pub const ZERO: Cycles = Cycles(0);

    /// The slot of a time in a modulo reservation table with `interval` rows: `self mod interval`.
    pub fn slot(self, interval: Cycles) -> Cycles {
        Cycles(self.0.rem_euclid(interval.0.max(1)))
    }

    /// The stage of a time: `⌊self / interval⌋`.
    pub fn stage(self, interval: Cycles) -> i64 {
        self.0.div_euclid(interval.0.max(1))
    }

    /// `⌈self / interval⌉`.
    pub fn div_ceil(self, interval: Cycles) -> i64 {
        // Without a sign to turn around: a claim may hold any number.
        self.stage(interval) + i64::from(self.slot(interval).0 > 0)
    }
}

impl fmt::Display for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Add for Cycles {
    type Output = Cycles;
    fn add(self, other: Cycles) -> Cycles {
        Cycles(self.0 + other.0)
    }
}

impl AddAssign for Cycles {
    fn add_assign(&mut self, other: Cycles) {
        self.0 += other.0;
    }
}

impl Sub for Cycles {
    type Output = Cycles;
    fn sub(self, other: Cycles) -> Cycles {
        Cycles(self.0 - other.0)
    }
}

impl Mul<u32> for Cycles {
    type Output = Cycles;
    fn mul(self, times: u32) -> Cycles {
        Cycles(self.0 * i64::from(times))
    }
}

impl Sum for Cycles {
    fn sum<I: Iterator<Item = Cycles>>(items: I) -> Cycles {
        Cycles(items.map(|c| c.0).sum())
    }
}

macro_rules! amount {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name(self.0.saturating_add(other.0))
            }
        }

        impl Mul<u64> for $name {
            type Output = $name;
            fn mul(self, times: u64) -> $name {
                $name(self.0.saturating_mul(times))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(items: I) -> $name {
                items.fold($name(0), |a, b| a + b)
            }
        }
    };
}

amount! {
    /// Bytes of shared memory.
    Bytes
}
amount! {
    /// 32-bit register words of a whole tile, summed over the threads that hold it.
    Words
}
amount! {
    /// Columns of Blackwell's tensor memory (128 lanes × 4 bytes each).
    Columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_and_stages_of_negative_times_floor() {
        let interval = Cycles(8);
        assert_eq!(Cycles(-1).slot(interval), Cycles(7));
        assert_eq!(Cycles(-1).stage(interval), -1);
        assert_eq!(Cycles(17).slot(interval), Cycles(1));
        assert_eq!(Cycles(17).stage(interval), 2);
        assert_eq!(Cycles(17).div_ceil(interval), 3);
        assert_eq!(Cycles(16).div_ceil(interval), 2);
        assert_eq!(Cycles(-9).div_ceil(interval), -1);
        assert_eq!(Cycles(i64::MIN).div_ceil(interval), i64::MIN / 8);
        assert_eq!(Cycles(i64::MAX).div_ceil(Cycles(1)), i64::MAX);
    }
}
