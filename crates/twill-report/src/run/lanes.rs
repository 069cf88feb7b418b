//! Stretches of time on as few lanes as they need.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Puts each item on the first lane that is free, in the order in which they begin; as many lanes as items overlap at
/// once. `time` is the first cycle and the cycle after the last.
pub(crate) fn first_fit<T>(mut items: Vec<T>, time: impl Fn(&T) -> (i64, i64)) -> Vec<Vec<T>> {
    items.sort_by_key(|item| time(item));
    let mut lanes: Vec<Vec<T>> = Vec::new();
    let mut free: BinaryHeap<Reverse<usize>> = BinaryHeap::new();
    let mut busy: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    for item in items {
        let (start, end) = time(&item);
        while let Some(&Reverse((_, lane))) = busy.peek().filter(|Reverse((until, _))| *until <= start) {
            busy.pop();
            free.push(Reverse(lane));
        }
        let lane = free.pop().map_or(lanes.len(), |Reverse(lane)| lane);
        if lane == lanes.len() {
            lanes.push(Vec::new());
        }
        lanes[lane].push(item);
        busy.push(Reverse((end, lane)));
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::first_fit;

    #[test]
    fn as_many_lanes_as_overlap_and_the_first_free_one() {
        let lanes = first_fit(vec![(4, 6), (0, 4), (1, 3), (3, 5)], |item| *item);
        assert_eq!(lanes, [vec![(0, 4), (4, 6)], vec![(1, 3), (3, 5)]]);
    }
}
