//! Numbered inputs, one after the other, until enough was done.

use std::time::{Duration, Instant};

/// Time between two notes of how far it is, so that little is lost where it is stopped.
const NOTE: Duration = Duration::from_secs(60);

/// Calls `one` with the numbers from `first` on until it says that it is enough; `note` now and then and at the end, with
/// the number to go on with and the seconds since the last.
pub fn numbered<S>(
    state: &mut S,
    first: u64,
    mut one: impl FnMut(&mut S, u64) -> bool,
    mut note: impl FnMut(&S, u64, f64) -> Result<(), String>,
) -> Result<(), String> {
    let mut noted = Instant::now();
    let mut number = first;
    loop {
        let enough = one(state, number);
        number += 1;
        if enough || noted.elapsed() > NOTE {
            note(state, number, noted.elapsed().as_secs_f64())?;
            noted = Instant::now();
        }
        if enough {
            return Ok(());
        }
    }
}
