//! Warp programs as Gluon source.
