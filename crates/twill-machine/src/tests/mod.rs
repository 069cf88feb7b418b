//! Tests of the whole: costs against the published graphs, every error with its message, `extends`, differences.

mod costs;
mod difference;
mod errors;
mod extends;
mod files;
mod power;
mod synchronization;
