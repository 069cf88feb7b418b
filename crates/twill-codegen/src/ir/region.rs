//! Which part of a tensor of the source somebody works on.

/// A box in the index space of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    /// First index along every dimension.
    pub starts: Vec<u64>,
    /// Extent along every dimension.
    pub extents: Vec<u64>,
}

impl Region {
    /// All of a tensor of this shape; of a scalar for an empty one.
    pub fn whole(shape: &[u64]) -> Region {
        Region { starts: vec![0; shape.len()], extents: shape.to_vec() }
    }

    /// Part `index` of those that cut a tensor of shape `shape` into parts of shape `part`: the parts
    /// follow each other along the only dimension in which the shapes differ.
    pub fn part(shape: &[u64], part: &[u64], index: u32) -> Region {
        let mut region = Region::whole(part);
        if let Some(d) = shape.iter().zip(part).position(|(whole, part)| whole != part) {
            region.starts[d] = u64::from(index) * part[d];
        }
        region
    }

    /// Without a dimension.
    pub fn without(&self, axis: usize) -> Region {
        let keep = |values: &[u64]| values.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, v)| *v).collect();
        Region { starts: keep(&self.starts), extents: keep(&self.extents) }
    }

    /// With all of a dimension of this extent put in at `axis`.
    pub fn with(&self, axis: usize, extent: u64) -> Region {
        let mut region = self.clone();
        region.starts.insert(axis.min(region.starts.len()), 0);
        region.extents.insert(axis.min(region.extents.len()), extent);
        region
    }

    /// The same with all of a dimension, of this extent.
    pub fn all_along(&self, dimension: usize, extent: u64) -> Region {
        let mut region = self.clone();
        if let (Some(start), Some(own)) = (region.starts.get_mut(dimension), region.extents.get_mut(dimension)) {
            (*start, *own) = (0, extent);
        }
        region
    }

    /// Whether it has all of a dimension of a tensor of this shape, or the tensor has no such dimension.
    pub fn is_all_along(&self, dimension: usize, shape: &[u64]) -> bool {
        self.extents.get(dimension) == shape.get(dimension)
    }

    /// Of a transposed tensor, whose dimension `d` is dimension `order[d]` of the one that is asked for.
    pub fn before_transposition(&self, order: &[usize]) -> Region {
        let mut region = self.clone();
        for (d, from) in order.iter().enumerate() {
            if let (Some(start), Some(extent)) = (region.starts.get_mut(*from), region.extents.get_mut(*from)) {
                *start = self.starts[d];
                *extent = self.extents[d];
            }
        }
        region
    }

    /// Of the tensor of shape `from` that is broadcast: where its extent is 1, that one element.
    pub fn before_broadcast(&self, from: &[u64]) -> Region {
        let mut region = self.clone();
        for (d, extent) in from.iter().enumerate().filter(|(d, e)| **e == 1 && *d < self.extents.len()) {
            region.starts[d] = 0;
            region.extents[d] = *extent;
        }
        region
    }

    /// Whether it holds another one.
    pub fn holds(&self, other: &Region) -> bool {
        let within = |d: usize| {
            self.starts[d] <= other.starts[d] && other.starts[d] + other.extents[d] <= self.starts[d] + self.extents[d]
        };
        self.starts.len() == other.starts.len() && (0..self.starts.len()).all(within)
    }

    /// What two have in common, if that is anything.
    pub fn overlap(&self, other: &Region) -> Option<Region> {
        if self.starts.len() != other.starts.len() {
            return None;
        }
        let mut common = self.clone();
        for d in 0..self.starts.len() {
            let start = self.starts[d].max(other.starts[d]);
            let end = (self.starts[d] + self.extents[d]).min(other.starts[d] + other.extents[d]);
            if end <= start {
                return None;
            }
            common.starts[d] = start;
            common.extents[d] = end - start;
        }
        Some(common)
    }

    /// The same region, counted from the start of one that holds it.
    pub fn within(&self, outer: &Region) -> Region {
        let starts = self.starts.iter().zip(&outer.starts).map(|(s, o)| s.saturating_sub(*o)).collect();
        Region { starts, extents: self.extents.clone() }
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.extents.iter().product()
    }
}
