//! Tests of the whole: costs against the published graphs, every error with its message, `extends`.

mod costs;
mod errors;
mod extends;
mod files;
