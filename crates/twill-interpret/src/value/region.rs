//! Reductions and scans by any region.

use super::tile::{Data, Tile};
use crate::fault::Fault;
use std::rc::Rc;

/// What a region does to the elements of one side and those of the other.
pub(crate) type Combined<'c> = dyn FnMut(Vec<Rc<Tile>>) -> Result<Vec<Rc<Tile>>, Fault> + 'c;

/// The elements of several tiles along an axis, at each place of the others.
struct Lines {
    extent: usize,
    inner: usize,
    outer: usize,
}

impl Lines {
    fn of(tile: &Tile, axis: usize) -> Option<Lines> {
        let extent = tile.shape.get(axis).copied().filter(|extent| *extent > 0)?;
        Some(Lines {
            extent,
            inner: tile.shape[axis + 1..].iter().product(),
            outer: tile.shape[..axis].iter().product(),
        })
    }

    fn place(&self, o: usize, k: usize, i: usize) -> usize {
        (o * self.extent + k) * self.inner + i
    }
}

fn elements(tiles: &[Rc<Tile>], at: usize) -> Vec<Rc<Tile>> {
    let one = |tile: &Rc<Tile>| Tile { shape: Vec::new(), data: tile.data.gather(std::iter::once(at)) }.shared();
    tiles.iter().map(one).collect()
}

/// The tiles' elements put together in the order of their places.
fn collected(tiles: &[Rc<Tile>], shape: &[usize], found: Vec<(usize, Vec<Rc<Tile>>)>) -> Result<Vec<Tile>, Fault> {
    let mut found = found;
    found.sort_by_key(|(place, _)| *place);
    let unfit = || Fault::Shapes { what: "what a region makes".into() };
    let of = |k: usize| {
        let mut data = tiles[k].data.gather(std::iter::empty());
        for (_, one) in &found {
            if !data.append(&one.get(k).ok_or_else(unfit)?.data) {
                return Err(unfit());
            }
        }
        Ok(Tile { shape: shape.to_vec(), data })
    };
    (0..tiles.len()).map(of).collect()
}

/// The first element of each line combined with the second, the result with the third and so on.
pub(crate) fn reduce_by(tiles: &[Rc<Tile>], axis: usize, combine: &mut Combined<'_>) -> Result<Vec<Tile>, Fault> {
    let unfit = || Fault::Shapes { what: "tt.reduce".into() };
    let lines = tiles.first().and_then(|tile| Lines::of(tile, axis)).ok_or_else(unfit)?;
    let mut shape = tiles[0].shape.clone();
    shape.remove(axis);
    let mut found = Vec::new();
    for (o, i) in (0..lines.outer).flat_map(|o| (0..lines.inner).map(move |i| (o, i))) {
        let mut held = elements(tiles, lines.place(o, 0, i));
        for k in 1..lines.extent {
            held.extend(elements(tiles, lines.place(o, k, i)));
            held = combine(held)?;
        }
        found.push((o * lines.inner + i, held));
    }
    collected(tiles, &shape, found)
}

/// The results on the way of a reduction, from the other end if it is `reverse`.
pub(crate) fn scan_by(
    tiles: &[Rc<Tile>],
    axis: usize,
    reverse: bool,
    combine: &mut Combined<'_>,
) -> Result<Vec<Tile>, Fault> {
    let unfit = || Fault::Shapes { what: "tt.scan".into() };
    let lines = tiles.first().and_then(|tile| Lines::of(tile, axis)).ok_or_else(unfit)?;
    let mut found = Vec::new();
    for (o, i) in (0..lines.outer).flat_map(|o| (0..lines.inner).map(move |i| (o, i))) {
        let place = |k: usize| lines.place(o, if reverse { lines.extent - 1 - k } else { k }, i);
        let mut held = elements(tiles, place(0));
        found.push((place(0), held.clone()));
        for k in 1..lines.extent {
            held.extend(elements(tiles, place(k)));
            held = combine(held)?;
            found.push((place(k), held.clone()));
        }
    }
    collected(tiles, &tiles[0].shape, found)
}

/// Two tiles as one whose last dimension tells them apart.
pub(crate) fn join(a: &Tile, b: &Tile) -> Result<Tile, Fault> {
    let data = match (&a.data, &b.data) {
        (Data::Floats(a), Data::Floats(b)) => Data::Floats(a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect()),
        (Data::Integers(a), Data::Integers(b)) => Data::Integers(a.iter().zip(b).flat_map(|(a, b)| [*a, *b]).collect()),
        _ => return Err(Fault::Shapes { what: "tt.join".into() }),
    };
    Ok(Tile { shape: a.shape.iter().copied().chain([2]).collect(), data })
}

/// For each place the element that is there along an axis, elsewhere at the same index.
pub(crate) fn gather(tile: &Tile, places: &Tile, axis: usize) -> Result<Tile, Fault> {
    let unfit = || Fault::Shapes { what: "tt.gather".into() };
    let Data::Integers(along) = &places.data else { return Err(unfit()) };
    let is_other = |(d, (a, b)): (usize, (&usize, &usize))| d != axis && a != b;
    let mut extents = tile.shape.iter().zip(&places.shape).enumerate();
    if places.shape.len() != tile.shape.len() || extents.any(is_other) {
        return Err(unfit());
    }
    let extent = *tile.shape.get(axis).ok_or_else(unfit)?;
    let (inner, own): (usize, usize) = (tile.shape[axis + 1..].iter().product(), places.shape[axis..].iter().product());
    let at = |(k, place): (usize, &i64)| {
        let place = usize::try_from(*place).ok().filter(|place| *place < extent)?;
        Some((k / own * extent + place) * inner + k % inner)
    };
    let at: Vec<usize> = along.iter().enumerate().map(at).collect::<Option<_>>().ok_or_else(unfit)?;
    Ok(Tile { shape: places.shape.clone(), data: tile.data.gather(at.into_iter()) })
}

/// The two tiles that a last dimension tells apart.
pub(crate) fn split(tile: &Tile) -> Result<[Tile; 2], Fault> {
    let Some((2, shape)) = tile.shape.split_last() else { return Err(Fault::Shapes { what: "tt.split".into() }) };
    let half =
        |first: usize| Tile { shape: shape.to_vec(), data: tile.data.gather((first..tile.data.len()).step_by(2)) };
    Ok([half(0), half(1)])
}

/// How many elements are each of the numbers below `bins`; those where the mask is zero are not counted.
pub(crate) fn histogram(tile: &Tile, mask: Option<&Tile>, bins: usize) -> Result<Tile, Fault> {
    let unfit = || Fault::Shapes { what: "tt.histogram".into() };
    let Data::Integers(all) = &tile.data else { return Err(unfit()) };
    let mask = match mask.map(|mask| &mask.data) {
        Some(Data::Integers(mask)) if mask.len() == all.len() => Some(mask),
        None => None,
        Some(_) => return Err(unfit()),
    };
    let mut counts = vec![0; bins];
    for (k, x) in all.iter().enumerate() {
        if mask.is_none_or(|mask| mask[k] != 0) {
            *usize::try_from(*x).ok().and_then(|x| counts.get_mut(x)).ok_or_else(unfit)? += 1;
        }
    }
    Ok(Tile { shape: vec![bins], data: Data::Integers(counts) })
}
