//! Layered drawing of a directed graph: Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical
//! System Structures", IEEE Transactions on Systems, Man, and Cybernetics 11 (1981).
//!
//! Layers by longest path, order within layers by barycentres, then coordinates that follow neighbours. An edge over
//! several layers goes through a point on each of them. Edges that lead upwards are laid out as if they led downwards.

/// Rounds of ordering, down and up.
const ROUNDS: usize = 12;
/// Rounds of moving boxes to their neighbours.
const SETTLING: usize = 60;
/// Pixels between boxes of a layer.
const GAP: f64 = 18.0;
/// Room that an edge takes in a layer.
const THREAD: f64 = 10.0;

/// An edge of the graph to draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    /// True if it must lead downwards; such edges form no cycle.
    pub down: bool,
}

/// Where things stand.
#[derive(Debug)]
pub(super) struct Layout {
    /// Layer of each node, from 0.
    pub layers: Vec<usize>,
    /// Centre of each node in pixels, from 0.
    pub centres: Vec<f64>,
    /// For each edge, its points on the layers between its ends, from the upper to the lower: layer and pixels.
    pub bends: Vec<Vec<(usize, f64)>>,
    /// Pixels in all.
    pub width: f64,
}

/// A box, or a point of an edge, with its neighbours in the layers above and below.
#[derive(Default)]
struct Item {
    half: f64,
    centre: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Lays out nodes of these widths in pixels.
pub(super) fn layout(widths: &[f64], edges: &[Edge]) -> Layout {
    let layers = layers(widths.len(), edges);
    let box_of = |width: &f64| Item { half: width / 2.0, ..Item::default() };
    let mut items: Vec<Item> = widths.iter().map(box_of).collect();
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers.iter().max().map_or(0, |most| most + 1)];
    for (node, layer) in layers.iter().enumerate() {
        rows[*layer].push(node);
    }
    let mut chains: Vec<Vec<(usize, usize)>> = Vec::new();
    for edge in edges {
        let mut chain = Vec::new();
        let ends = if layers[edge.from] <= layers[edge.to] { (edge.from, edge.to) } else { (edge.to, edge.from) };
        let mut upper = ends.0;
        let (first, last) = (layers[ends.0] + 1, layers[ends.1]);
        for (layer, row) in rows.iter_mut().enumerate().take(last + 1).skip(first) {
            let lower = if layer == last { ends.1 } else { items.len() };
            if lower == items.len() {
                items.push(Item { half: THREAD / 2.0, ..Item::default() });
                row.push(lower);
                chain.push((layer, lower));
            }
            items[upper].below.push(lower);
            items[lower].above.push(upper);
            upper = lower;
        }
        chains.push(chain);
    }
    order(&mut rows, &items);
    place(&rows, &mut items);
    let width = items.iter().map(|item| item.centre + item.half).fold(0.0, f64::max);
    Layout {
        centres: items[..widths.len()].iter().map(|item| item.centre).collect(),
        bends: chains.into_iter().map(|c| c.into_iter().map(|(l, i)| (l, items[i].centre)).collect()).collect(),
        layers,
        width,
    }
}

/// Layers by longest path; what nothing leads to stands right above what it leads to.
fn layers(nodes: usize, edges: &[Edge]) -> Vec<usize> {
    let down = || edges.iter().filter(|edge| edge.down);
    let mut missing = vec![0_usize; nodes];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for edge in down() {
        missing[edge.to] += 1;
        readers[edge.from].push(edge.to);
    }
    let sources: Vec<usize> = (0..nodes).filter(|node| missing[*node] == 0).collect();
    let mut layers = vec![0; nodes];
    let mut ready = sources.clone();
    while let Some(node) = ready.pop() {
        for &reader in &readers[node] {
            layers[reader] = layers[reader].max(layers[node] + 1);
            missing[reader] -= 1;
            if missing[reader] == 0 {
                ready.push(reader);
            }
        }
    }
    for source in sources {
        let first = readers[source].iter().map(|reader| layers[*reader]).min();
        layers[source] = first.map_or(0, |layer: usize| layer.saturating_sub(1));
    }
    layers
}

/// Orders each row so that few edges cross, and keeps the best order of several rounds.
fn order(rows: &mut Vec<Vec<usize>>, items: &[Item]) {
    let mut position = vec![0_usize; items.len()];
    number(rows, &mut position);
    let mut best = (crossings(rows, items, &position), rows.clone());
    for round in 0..ROUNDS {
        let count = rows.len();
        for step in 0..count {
            let (row, neighbours): (usize, fn(&Item) -> &Vec<usize>) =
                if round % 2 == 0 { (step, |item| &item.above) } else { (count - 1 - step, |item| &item.below) };
            let wanted = |item: usize| {
                let near = neighbours(&items[item]);
                let sum: usize = near.iter().map(|other| position[*other]).sum();
                if near.is_empty() { position[item] as f64 } else { sum as f64 / near.len() as f64 }
            };
            let mut keyed: Vec<(f64, usize)> = rows[row].iter().map(|item| (wanted(*item), *item)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[row] = keyed.into_iter().map(|(_, item)| item).collect();
            number(&rows[row..=row], &mut position);
        }
        let found = crossings(rows, items, &position);
        if found < best.0 {
            best = (found, rows.clone());
        }
    }
    *rows = best.1;
}

fn number(rows: &[Vec<usize>], position: &mut [usize]) {
    for row in rows {
        for (place, item) in row.iter().enumerate() {
            position[*item] = place;
        }
    }
}

/// Pairs of edges between neighbouring layers that cross: inversions, counted in a Fenwick tree (Barth, Mutzel,
/// Jünger, "Simple and Efficient Bilayer Cross Counting", 2004).
fn crossings(rows: &[Vec<usize>], items: &[Item], position: &[usize]) -> usize {
    let mut total = 0;
    for pair in rows.windows(2) {
        let mut tree = vec![0_usize; pair[1].len() + 1];
        let mut seen = 0;
        for upper in &pair[0] {
            let mut ends: Vec<usize> = items[*upper].below.iter().map(|lower| position[*lower]).collect();
            ends.sort_unstable();
            for &end in &ends {
                let mut not_after = 0;
                let mut at = end + 1;
                while at > 0 {
                    not_after += tree[at];
                    at &= at - 1;
                }
                total += seen - not_after;
            }
            for &end in &ends {
                seen += 1;
                let mut at = end + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
            }
        }
    }
    total
}

/// Moves everything towards its neighbours, in order and without overlap.
fn place(rows: &[Vec<usize>], items: &mut [Item]) {
    for row in rows {
        let mut at = 0.0;
        for &item in row {
            items[item].centre = at + items[item].half;
            at += 2.0 * items[item].half + GAP;
        }
    }
    for round in 0..SETTLING {
        for step in 0..rows.len() {
            let row = &rows[if round % 2 == 0 { step } else { rows.len() - 1 - step }];
            let wanted: Vec<f64> = row.iter().map(|item| desired(*item, items)).collect();
            let centres = nearest(row, &wanted, items);
            for (&item, centre) in row.iter().zip(centres) {
                items[item].centre = centre;
            }
        }
    }
    let left = items.iter().map(|item| item.centre - item.half).fold(f64::INFINITY, f64::min);
    if left.is_finite() {
        items.iter_mut().for_each(|item| item.centre -= left);
    }
}

/// The middle of an item's neighbours.
fn desired(item: usize, items: &[Item]) -> f64 {
    let near = || items[item].above.iter().chain(&items[item].below).map(|other| items[*other].centre);
    let count = near().count();
    if count == 0 { items[item].centre } else { near().sum::<f64>() / count as f64 }
}

/// Centres in the order of the row, apart enough, with the least sum of squared distances from the wanted ones: pool
/// adjacent violators (isotonic regression).
fn nearest(row: &[usize], wanted: &[f64], items: &[Item]) -> Vec<f64> {
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    for (place, &item) in row.iter().enumerate() {
        if place > 0 {
            offset += items[row[place - 1]].half + GAP + items[item].half;
        }
        offsets.push(offset);
    }
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (want, offset) in wanted.iter().zip(&offsets) {
        let mut pool = (want - offset, 1);
        while let Some(before) = pools.last().filter(|before| before.0 > pool.0) {
            let count = before.1 + pool.1;
            pool = ((before.0 * before.1 as f64 + pool.0 * pool.1 as f64) / count as f64, count);
            pools.pop();
        }
        pools.push(pool);
    }
    let bases = pools.into_iter().flat_map(|(base, count)| std::iter::repeat_n(base, count));
    bases.zip(offsets).map(|(base, offset)| base + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(from: usize, to: usize) -> Edge {
        Edge { from, to, down: true }
    }

    #[test]
    fn edges_lead_down_and_boxes_do_not_overlap() {
        let edges = [down(0, 3), down(1, 2), down(2, 3), down(0, 2), Edge { from: 3, to: 1, down: false }];
        let found = layout(&[50.0; 4], &edges);
        assert_eq!(found.layers, [0, 0, 1, 2]);
        assert_eq!(found.bends.iter().map(Vec::len).collect::<Vec<_>>(), [1, 0, 0, 0, 1]);
        assert!((found.centres[0] - found.centres[1]).abs() >= 50.0 + GAP);
    }

    #[test]
    fn crossings_are_counted_and_removed() {
        let edges = [down(0, 3), down(1, 2)];
        let mut rows = vec![vec![0, 1], vec![2, 3]];
        let mut items: Vec<Item> = (0..4).map(|_| Item::default()).collect();
        for edge in edges {
            items[edge.from].below.push(edge.to);
            items[edge.to].above.push(edge.from);
        }
        let mut position = vec![0; 4];
        number(&rows, &mut position);
        assert_eq!(crossings(&rows, &items, &position), 1);
        order(&mut rows, &items);
        number(&rows, &mut position);
        assert_eq!(crossings(&rows, &items, &position), 0);
    }

    #[test]
    fn a_source_stands_above_its_first_reader() {
        let edges = [down(0, 1), down(1, 2), down(2, 3), down(4, 3)];
        assert_eq!(layers(5, &edges), [0, 1, 2, 3, 2]);
    }

    #[test]
    fn nothing_to_draw() {
        assert!(layout(&[], &[]).width.abs() < 1e-9);
    }
}
