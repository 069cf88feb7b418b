//! Indices of entities, as types of their own.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The entity at position `index` of its table.
            pub fn new(index: usize) -> Self {
                // Tables hold far fewer than 2^32 entities; `LoopGraph::new` refuses more.
                Self(index as u32)
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
