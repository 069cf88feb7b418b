//! Sets of a thread's 32-bit registers.

use std::fmt;

/// A set of registers `R0` to `R254`; `RZ` is none.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers([u64; 4]);

impl Registers {
    /// No register.
    pub const NONE: Registers = Registers([0; 4]);

    /// `count` registers from `first` on, as far as there are such.
    pub fn range(first: u8, count: u32) -> Registers {
        let mut set = Registers::NONE;
        for register in u32::from(first)..(u32::from(first) + count).min(255) {
            set.0[register as usize / 64] |= 1 << (register % 64);
        }
        set
    }

    /// Those of both.
    #[must_use]
    pub fn union(self, other: Registers) -> Registers {
        Registers(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Those that both have.
    #[must_use]
    pub fn intersection(self, other: Registers) -> Registers {
        Registers(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// Those of the first that the second lacks.
    #[must_use]
    pub fn without(self, other: Registers) -> Registers {
        Registers(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// True if it holds none.
    pub fn is_empty(self) -> bool {
        self.0 == [0; 4]
    }

    /// Its registers, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..255u8).filter(move |register| self.0[usize::from(*register) / 64] >> (register % 64) & 1 == 1)
    }
}

impl fmt::Display for Registers {
    /// `R24..R87, R90`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u8, u8)> = Vec::new();
        for register in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == register => *last = register,
                _ => ranges.push((register, register)),
            }
        }
        for (index, (first, last)) in ranges.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            match first == last {
                true => write!(f, "{comma}R{first}")?,
                false => write!(f, "{comma}R{first}..R{last}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Registers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_print_as_ranges_and_leave_rz_out() {
        let set = Registers::range(24, 4).union(Registers::range(90, 1));
        assert_eq!(set.to_string(), "R24..R27, R90");
        assert_eq!(Registers::range(253, 4).to_string(), "R253..R254");
        assert!(set.without(set).is_empty());
    }
}
