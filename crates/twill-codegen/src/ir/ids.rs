//! Numbers of things in a warp program.

macro_rules! index_type {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Of a position in its list. A list has fewer than 2³² entries: each takes memory.
            pub fn at(index: usize) -> $name {
                debug_assert!(index <= u32::MAX as usize);
                $name(index as u32)
            }

            /// The position in its list.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type! {
    /// Names a [`Variable`](super::Variable) of one [`Group`](super::Group).
    VariableId
}
index_type! {
    /// Names a [`Cursor`](super::Cursor) of one [`Group`](super::Group).
    CursorId
}
index_type! {
    /// Names a [`Descriptor`](super::Descriptor) of a [`WarpProgram`](super::WarpProgram).
    DescriptorId
}
index_type! {
    /// Names a [`Buffer`](super::Buffer) of a [`WarpProgram`](super::WarpProgram).
    BufferId
}
index_type! {
    /// Names [`Barriers`](super::Barriers) of a [`WarpProgram`](super::WarpProgram).
    BarrierId
}
index_type! {
    /// Names a named barrier of a [`WarpProgram`](super::WarpProgram).
    NamedBarrierId
}
