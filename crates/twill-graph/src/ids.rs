//! Indices of entities, as types of their own.

use crate::saturate;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The entity at position `index` of its table.
            pub fn new(index: usize) -> Self {
                // Tables hold far fewer than 2^32 entities; what a file says beyond must not become another entity.
                Self(saturate::<u32>(index))
            }

            /// The position in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// An operation of a [`LoopGraph`](crate::LoopGraph).
    OpId
}
id! {
    /// A dependence of a [`LoopGraph`](crate::LoopGraph).
    DependenceId
}
id! {
    /// A functional unit of a [`Resources`](crate::Resources).
    UnitId
}
id! {
    /// A warp group of a [`Problem`](crate::Problem)'s pool.
    GroupId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_index_stands_for_another() {
        assert_eq!(GroupId::new(7).index(), 7);
        // As a schedule file may say it of a 64-bit number.
        assert_eq!(GroupId::new((1 << 32) + 1).index(), u32::MAX as usize);
    }
}
