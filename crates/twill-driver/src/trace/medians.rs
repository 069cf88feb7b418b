//! Medians.

/// The middle one, or the mean of the two in the middle; none of nothing.
pub(super) fn median(mut values: Vec<i64>) -> Option<f64> {
    values.sort_unstable();
    let middle = values.len() / 2;
    let upper = super::as_float(*values.get(middle)?);
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(super::as_float(*values.get(middle.checked_sub(1)?)?), upper))
}
