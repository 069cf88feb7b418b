//! Tiles of elements, and how they are seen.

use std::rc::Rc;

/// An address: an element of an array in global memory, or one outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The array's position in the [`Memory`](crate::Memory).
    pub array: usize,
    /// Elements from its first.
    pub offset: i64,
}

/// Bits of an address that say where in an array it is; those above are the array's number, from 1. Address 0 is in none.
const PLACE_BITS: u32 = 40;

impl Pointer {
    /// The address as an integer, of elements of so many bytes.
    pub fn address(self, bytes: i64) -> i64 {
        let middle = ((self.array as i64 + 1) << PLACE_BITS) + (1 << (PLACE_BITS - 1));
        middle.wrapping_add(self.offset.wrapping_mul(bytes))
    }

    /// Where an address points to; a pointer to no array, if it is in none.
    pub(super) fn at(address: i64, bytes: i64) -> Pointer {
        let array = usize::try_from((address >> PLACE_BITS) - 1).unwrap_or(usize::MAX);
        let offset = (address & ((1 << PLACE_BITS) - 1)) - (1 << (PLACE_BITS - 1));
        Pointer { array, offset: offset / bytes }
    }
}

/// Elements of one sort.
#[derive(Clone, Debug)]
pub enum Data {
    /// Floating-point numbers, each one that its type can hold.
    Floats(Vec<f64>),
    /// Integers, with their signs; a truth value is 0 or 1.
    Integers(Vec<i64>),
    /// Addresses.
    Pointers(Vec<Pointer>),
}

/// A tile, row-major; a scalar if it has no dimension.
#[derive(Clone, Debug)]
pub struct Tile {
    /// Extents.
    pub shape: Vec<usize>,
    /// Its elements.
    pub data: Data,
}

impl Data {
    /// How many elements.
    pub fn len(&self) -> usize {
        match self {
            Data::Floats(x) => x.len(),
            Data::Integers(x) => x.len(),
            Data::Pointers(x) => x.len(),
        }
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those at these positions.
    pub(crate) fn gather(&self, at: impl Iterator<Item = usize>) -> Data {
        match self {
            Data::Floats(x) => Data::Floats(at.map(|k| x[k]).collect()),
            Data::Integers(x) => Data::Integers(at.map(|k| x[k]).collect()),
            Data::Pointers(x) => Data::Pointers(at.map(|k| x[k]).collect()),
        }
    }

    /// Returns whether an element is the same bit by bit as one of another.
    pub(crate) fn is_same_at(&self, at: usize, other: &Data, to: usize) -> bool {
        match (self, other) {
            (Data::Floats(a), Data::Floats(b)) => a[at].to_bits() == b[to].to_bits(),
            (Data::Integers(a), Data::Integers(b)) => a[at] == b[to],
            _ => false,
        }
    }

    /// Adds elements of the same sort at the end; returns whether they are.
    pub(crate) fn append(&mut self, more: &Data) -> bool {
        match (self, more) {
            (Data::Floats(x), Data::Floats(y)) => x.extend(y),
            (Data::Integers(x), Data::Integers(y)) => x.extend(y),
            (Data::Pointers(x), Data::Pointers(y)) => x.extend(y),
            _ => return false,
        }
        true
    }

    /// The same with the elements of `part` at these positions; `None` where they are of another kind.
    fn scattered(&self, at: impl Iterator<Item = usize>, part: &Data) -> Option<Data> {
        fn put<T: Copy>(whole: &[T], at: impl Iterator<Item = usize>, part: &[T]) -> Vec<T> {
            let mut all = whole.to_vec();
            at.zip(part).for_each(|(to, value)| all[to] = *value);
            all
        }
        Some(match (self, part) {
            (Data::Floats(x), Data::Floats(y)) => Data::Floats(put(x, at, y)),
            (Data::Integers(x), Data::Integers(y)) => Data::Integers(put(x, at, y)),
            (Data::Pointers(x), Data::Pointers(y)) => Data::Pointers(put(x, at, y)),
            _ => return None,
        })
    }

    /// Returns whether two are the same bit by bit, but that all numbers that are none are alike.
    pub fn is_same(&self, other: &Data) -> bool {
        let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        match (self, other) {
            (Data::Floats(a), Data::Floats(b)) => a.len() == b.len() && a.iter().zip(b).all(same),
            (Data::Integers(a), Data::Integers(b)) => a == b,
            (Data::Pointers(a), Data::Pointers(b)) => a == b,
            _ => false,
        }
    }
}

/// Positions of the elements of a tensor of this shape if one step along dimension `d` is `strides[d]` positions.
fn positions<'s>(shape: &'s [usize], strides: &'s [usize], start: usize) -> impl Iterator<Item = usize> + 's {
    let count: usize = shape.iter().product();
    let mut index = vec![0; shape.len()];
    let mut next = start;
    (0..count).map(move |_| {
        let position = next;
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            next += strides[d];
            if index[d] < shape[d] {
                break;
            }
            next -= strides[d] * shape[d];
            index[d] = 0;
        }
        position
    })
}

/// Positions from an element to the next along every dimension of a row-major tensor.
pub(crate) fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d];
    }
    strides
}

impl Tile {
    /// A scalar integer.
    pub fn integer(value: i64) -> Tile {
        Tile { shape: Vec::new(), data: Data::Integers(vec![value]) }
    }

    /// A scalar floating-point number.
    pub fn float(value: f64) -> Tile {
        Tile { shape: Vec::new(), data: Data::Floats(vec![value]) }
    }

    /// A scalar address.
    pub fn pointer(array: usize) -> Tile {
        Tile { shape: Vec::new(), data: Data::Pointers(vec![Pointer { array, offset: 0 }]) }
    }

    /// The same in all elements.
    pub(crate) fn full(shape: &[usize], element: &Data) -> Tile {
        let count = shape.iter().product();
        Tile { shape: shape.to_vec(), data: element.gather(std::iter::repeat_n(0, count)) }
    }

    /// `start, start + 1, …`.
    pub(crate) fn range(start: i64, count: usize) -> Tile {
        Tile { shape: vec![count], data: Data::Integers((start..).take(count).collect()) }
    }

    /// Blocked over this shape along dimensions of extent 1, or from a scalar; none if it cannot be.
    pub(crate) fn broadcast(&self, shape: &[usize]) -> Option<Tile> {
        if self.data.len() == 1 {
            return Some(Tile::full(shape, &self.data));
        }
        if self.shape.len() != shape.len() || self.shape.iter().zip(shape).any(|(from, to)| *from != 1 && from != to) {
            return None;
        }
        let mut strides = row_major(&self.shape);
        for (stride, extent) in strides.iter_mut().zip(&self.shape) {
            if *extent == 1 {
                *stride = 0;
            }
        }
        Some(Tile { shape: shape.to_vec(), data: self.data.gather(positions(shape, &strides, 0)) })
    }

    /// Dimension `d` is dimension `order[d]` of this one.
    pub(crate) fn transpose(&self, order: &[usize]) -> Option<Tile> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.shape.len()) {
            return None;
        }
        let strides = row_major(&self.shape);
        let shape: Vec<usize> = order.iter().map(|d| self.shape[*d]).collect();
        let strides: Vec<usize> = order.iter().map(|d| strides[*d]).collect();
        let data = self.data.gather(positions(&shape, &strides, 0));
        Some(Tile { shape, data })
    }

    /// The same elements in another shape.
    pub(crate) fn reshape(&self, shape: Vec<usize>) -> Option<Tile> {
        let fits = shape.iter().product::<usize>() == self.data.len();
        fits.then(|| Tile { shape, data: self.data.clone() })
    }

    /// A range of indices along one dimension.
    pub(crate) fn slice(&self, dimension: usize, start: usize, extent: usize) -> Option<Tile> {
        if dimension >= self.shape.len() || start + extent > self.shape[dimension] {
            return None;
        }
        let strides = row_major(&self.shape);
        let mut shape = self.shape.clone();
        shape[dimension] = extent;
        let data = self.data.gather(positions(&shape, &strides, start * strides[dimension]));
        Some(Tile { shape, data })
    }

    /// The same with a range of indices along one dimension taken from another tile; `None` where that does not fit.
    pub(crate) fn with_slice(&self, dimension: usize, start: usize, part: &Tile) -> Option<Tile> {
        let extent = *part.shape.get(dimension)?;
        let mut shape = self.shape.clone();
        *shape.get_mut(dimension)? = extent;
        if part.shape != shape || start + extent > self.shape[dimension] {
            return None;
        }
        let strides = row_major(&self.shape);
        let to = positions(&shape, &strides, start * strides[dimension]);
        Some(Tile { shape: self.shape.clone(), data: self.data.scattered(to, &part.data)? })
    }

    /// The only element, if it is an integer.
    pub fn as_integer(&self) -> Option<i64> {
        match &self.data {
            Data::Integers(x) if x.len() == 1 => x.first().copied(),
            _ => None,
        }
    }

    /// Its elements, if they are floating-point numbers.
    pub(crate) fn floats(&self) -> Option<&[f64]> {
        match &self.data {
            Data::Floats(x) => Some(x),
            _ => None,
        }
    }

    pub(crate) fn shared(self) -> Rc<Tile> {
        Rc::new(self)
    }
}
