//! "Did you mean …?"

/// The candidate with the least edit distance to `name`, if that is at most a third of its length (and at least 1).
pub(crate) fn nearest(name: &str, candidates: impl IntoIterator<Item = impl AsRef<str>>) -> Option<String> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|c| (distance(&name.to_lowercase(), &c.as_ref().to_lowercase()), c))
        .filter(|(d, _)| *d <= limit)
        .min_by(|a, b| (a.0, a.1.as_ref()).cmp(&(b.0, b.1.as_ref())))
        .map(|(_, c)| c.as_ref().to_owned())
}

/// Levenshtein distance: insertions, deletions and substitutions.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_far_ones_are_not() {
        let machines = ["a100", "h100", "h200", "b200"];
        assert_eq!(nearest("H100", machines), Some("h100".into()));
        assert_eq!(nearest("h10", machines), Some("h100".into()));
        assert_eq!(nearest("h1000", machines), Some("h100".into()));
        assert_eq!(nearest("mi300x", machines), None);
        assert_eq!(nearest("bytes_per_cycles", ["bytes_per_cycle"]), Some("bytes_per_cycle".into()));
        assert_eq!(nearest("", machines), None);
    }
}
