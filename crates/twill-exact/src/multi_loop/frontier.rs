//! The vectors of intervals, one a loop, that are not excluded yet.
//!
//! Feasibility is monotone in every interval, so an excluded vector excludes all below it. What is
//! left is the set above some *corners*, its minimal vectors; the least `Σ weight · I` of a corner
//! bounds the objective from below. (Klamroth, Lacour & Vanderpooten, "On the representation of the
//! search region in multi-objective optimization", EJOR 2015.)

/// The remaining vectors between the lower bounds and the limits.
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    corners: Vec<Vec<i64>>,
    limits: Vec<i64>,
}

impl Frontier {
    /// Everything from `start` to `limits`.
    pub(super) fn new(start: Vec<i64>, limits: Vec<i64>) -> Frontier {
        let inside = start.iter().zip(&limits).all(|(s, l)| s <= l);
        Frontier { corners: if inside { vec![start] } else { Vec::new() }, limits }
    }

    /// Takes out `excluded` and everything below it.
    pub(super) fn exclude(&mut self, excluded: &[i64]) {
        let below = |c: &[i64], v: &[i64]| c.iter().zip(v).all(|(c, v)| c <= v);
        let (gone, mut corners): (Vec<_>, Vec<_>) = self.corners.drain(..).partition(|c| below(c, excluded));
        for corner in gone {
            for j in 0..corner.len() {
                let mut next = corner.clone();
                next[j] = excluded[j] + 1;
                if next[j] <= self.limits[j] && !corners.iter().any(|c| below(c, &next)) {
                    corners.retain(|c| !below(&next, c));
                    corners.push(next);
                }
            }
        }
        self.corners = corners;
    }

    /// The corner with the least `value`; `None` when nothing is left.
    pub(super) fn least(&self, value: impl Fn(&[i64]) -> i64) -> Option<&[i64]> {
        self.corners.iter().map(Vec::as_slice).min_by_key(|c| (value(c), c.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the definition: minimal vectors of the box that lie below no excluded one.
    #[test]
    fn corners_are_the_minimal_vectors_left() {
        let mut seed: u32 = 7;
        let mut random = |most: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            i64::from((seed >> 16) % most)
        };
        for _ in 0..200 {
            let mut frontier = Frontier::new(vec![0; 3], vec![5; 3]);
            let mut excluded: Vec<Vec<i64>> = Vec::new();
            for _ in 0..4 {
                excluded.push((0..3).map(|_| random(6)).collect());
                frontier.exclude(&excluded[excluded.len() - 1]);
            }
            let below = |a: &[i64], b: &[i64]| a.iter().zip(b).all(|(a, b)| a <= b);
            let all = (0..216).map(|n| vec![n / 36, n / 6 % 6, n % 6]);
            let left: Vec<Vec<i64>> = all.filter(|v| !excluded.iter().any(|e| below(v, e))).collect();
            let minimal = left.iter().filter(|v| !left.iter().any(|o| o != *v && below(o, v)));
            let mut expected: Vec<Vec<i64>> = minimal.cloned().collect();
            expected.sort();
            let mut corners = frontier.corners.clone();
            corners.sort();
            assert_eq!(corners, expected, "{excluded:?}");
        }
    }
}
