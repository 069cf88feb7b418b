//! Global memory, and what a kernel is called with.

use crate::fault::Fault;
use crate::value::{Arithmetic, Data, Pointer, Tile, unsigned, wrapped};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use twill_triton::mlir::{FloatKind, Type};

/// An array in global memory.
#[derive(Clone, Debug)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub element: Type,
    /// Its elements.
    pub data: Data,
}

/// Global memory: arrays that do not touch each other.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The arrays.
    pub arrays: Vec<Array>,
    /// Places that nobody says the last value of. They are written down where there is a list.
    pub contested: Option<Contested>,
}

/// A place in an array: the array's number and the element's.
pub type Place = (usize, usize);

/// Places, by array, to which several elements of one store went, or stores and exchanges of several programs with different values:
/// nobody says which of them is there afterwards.
#[derive(Clone, Debug, Default)]
pub struct Contested {
    /// The places.
    pub places: BTreeSet<Place>,
    /// The program that stores now.
    pub(crate) program: usize,
    /// The last program that stored to a place.
    writers: HashMap<Place, usize>,
}

impl Contested {
    /// A store goes to a place; `again`: it has been there with another element; `changes`: what is there becomes another value.
    fn store(&mut self, place: Place, again: bool, changes: bool) {
        let before = self.writers.insert(place, self.program);
        if again || changes && before.is_some_and(|before| before != self.program) {
            self.places.insert(place);
        }
    }
}

/// The argument for a parameter of a kernel.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A number, or a pointer to an array.
    Scalar(Rc<Tile>),
    /// A tensor descriptor.
    Tensor(Tensor),
}

/// A tensor in global memory.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The array in which it lies.
    pub array: usize,
    /// Elements of the array before its first one.
    pub first: i64,
    /// Extents.
    pub extents: Vec<i64>,
    /// Elements from an index to the next along every dimension.
    pub strides: Vec<i64>,
}

/// A call of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// By name, what parameters are given.
    pub arguments: HashMap<String, Argument>,
    /// Programs along x, y and z.
    pub grid: [u32; 3],
    /// How numbers are held.
    pub arithmetic: Arithmetic,
}

impl Launch {
    pub(crate) fn argument(&self, name: &str) -> Result<&Argument, Fault> {
        self.arguments.get(name).ok_or_else(|| Fault::Undefined { what: format!("the parameter {name}") })
    }

    pub(crate) fn scalar(&self, name: &str) -> Result<Rc<Tile>, Fault> {
        match self.argument(name)? {
            Argument::Scalar(tile) => Ok(tile.clone()),
            Argument::Tensor(_) => Err(Fault::Shapes { what: format!("the parameter {name}") }),
        }
    }
}

impl Tensor {
    /// That of a descriptor that a kernel makes of an address, extents and strides; none where they do not belong together.
    pub(crate) fn made(base: &Tile, sizes: &[i64]) -> Option<Tensor> {
        let Data::Pointers(pointers) = &base.data else { return None };
        let (&[first], true) = (pointers.as_slice(), sizes.len().is_multiple_of(2)) else { return None };
        let (extents, strides) = sizes.split_at(sizes.len() / 2);
        let (extents, strides) = (extents.to_vec(), strides.to_vec());
        Some(Tensor { array: first.array, first: first.offset, extents, strides })
    }

    /// The addresses of a block's elements, row-major; none outside of the tensor.
    fn addresses(&self, tile_origin: &[i64], block: &[usize]) -> Vec<Option<i64>> {
        let count: usize = block.iter().product();
        let mut addresses = Vec::with_capacity(count);
        let mut index = vec![0_usize; block.len()];
        for _ in 0..count {
            let mut address = Some(self.first);
            for d in 0..block.len() {
                let at = tile_origin[d] + index[d] as i64;
                let inside = (0..self.extents[d]).contains(&at);
                address = address.filter(|_| inside).map(|a: i64| a + at * self.strides[d]);
            }
            addresses.push(address);
            for d in (0..block.len()).rev() {
                index[d] += 1;
                if index[d] < block[d] {
                    break;
                }
                index[d] = 0;
            }
        }
        addresses
    }
}

/// How what is written combines with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combination {
    Overwrite,
    Add,
    Max,
    Min,
    /// Of integers without signs.
    MaxUnsigned,
    MinUnsigned,
    And,
    Or,
    Xor,
}

impl Combination {
    /// That of an atomic operation, by the TTIR's word for it.
    pub(crate) fn of(word: &str) -> Option<Combination> {
        Some(match word {
            "add" | "fadd" => Combination::Add,
            "exch" => Combination::Overwrite,
            "max" => Combination::Max,
            "min" => Combination::Min,
            "umax" => Combination::MaxUnsigned,
            "umin" => Combination::MinUnsigned,
            "and" => Combination::And,
            "or" => Combination::Or,
            "xor" => Combination::Xor,
            _ => return None,
        })
    }

    fn floats(self, old: f64, new: f64) -> Option<f64> {
        Some(match self {
            Combination::Overwrite => new,
            Combination::Add => old + new,
            Combination::Max => old.max(new),
            Combination::Min => old.min(new),
            _ => return None,
        })
    }

    fn integers(self, old: i64, new: i64, element: &Type) -> i64 {
        let natural = |x: i64| unsigned(x, element);
        let found = match self {
            Combination::Overwrite => new,
            Combination::Add => old.wrapping_add(new),
            Combination::Max => old.max(new),
            Combination::Min => old.min(new),
            Combination::MaxUnsigned if natural(old) > natural(new) => old,
            Combination::MinUnsigned if natural(old) < natural(new) => old,
            Combination::MaxUnsigned | Combination::MinUnsigned => new,
            Combination::And => old & new,
            Combination::Or => old | new,
            Combination::Xor => old ^ new,
        };
        wrapped(found, element)
    }
}

/// What an atomic operation does to an element.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Atomic<'a> {
    Combine(Combination),
    /// Overwrites what is the same as this.
    CompareAndSwap(&'a Tile),
}

impl Memory {
    fn place(&self, at: Pointer) -> Result<usize, Fault> {
        let array = self.arrays.get(at.array).ok_or_else(|| Fault::Undefined { what: "an array".into() })?;
        let place = usize::try_from(at.offset).ok().filter(|k| *k < array.data.len());
        place.ok_or_else(|| Fault::OutOfBounds {
            array: array.name.clone(),
            offset: at.offset,
            length: array.data.len(),
        })
    }

    fn is_of_f32(&self, at: Option<Pointer>) -> bool {
        at.and_then(|at| self.arrays.get(at.array)).is_some_and(|array| array.element == Type::Float(FloatKind::F32))
    }

    /// Elements at addresses; where there is none, or the mask says so, those of `other`, or zero.
    fn gather(&self, at: &[Option<Pointer>], element: &Type, other: Option<&Data>) -> Result<Data, Fault> {
        let is_float = matches!(element, Type::Float(_));
        let (mut floats, mut integers) = (Vec::new(), Vec::new());
        for (k, at) in at.iter().enumerate() {
            let from = match at {
                Some(at) => {
                    Some((&self.arrays[at.array.min(self.arrays.len().saturating_sub(1))].data, self.place(*at)?))
                }
                None => other.map(|o| (o, if o.len() == 1 { 0 } else { k })),
            };
            match (from, is_float) {
                (Some((Data::Floats(x), k)), true) => floats.push(x[k]),
                (None, true) => floats.push(0.0),
                (Some((Data::Integers(x), k)), false) => integers.push(x[k]),
                (Some((Data::Floats(x), k)), false) if *element == Type::Integer(32) && self.is_of_f32(*at) => {
                    integers.push(i64::from((x[k] as f32).to_bits() as i32));
                }
                (None, false) => integers.push(0),
                _ => return Err(Fault::Shapes { what: "a load".into() }),
            }
        }
        Ok(if is_float { Data::Floats(floats) } else { Data::Integers(integers) })
    }

    fn scatter(
        &mut self,
        at: &[Option<Pointer>],
        value: &Data,
        how: Combination,
        arithmetic: Arithmetic,
    ) -> Result<(), Fault> {
        let unfit = |array: &str| Fault::Shapes { what: format!("a store to {array}") };
        let mut written = HashSet::new();
        for (k, at) in at.iter().enumerate() {
            let Some(at) = at else { continue };
            let place = self.place(*at)?;
            let array = &mut self.arrays[at.array];
            let k = if value.len() == 1 { 0 } else { k };
            if let (Some(contested), Combination::Overwrite) = (&mut self.contested, how) {
                let changes = !array.data.is_same_at(place, value, k);
                contested.store((at.array, place), !written.insert((at.array, place)), changes);
            }
            match (&mut array.data, value) {
                (Data::Floats(x), Data::Floats(y)) => {
                    let new = how.floats(x[place], y[k]).ok_or_else(|| unfit(&array.name))?;
                    x[place] = arithmetic.round(new, &array.element);
                }
                (Data::Integers(x), Data::Integers(y)) => x[place] = how.integers(x[place], y[k], &array.element),
                // The bits of a float as an integer (Triton's atomic maximum of floats).
                (Data::Floats(x), Data::Integers(y)) if array.element == Type::Float(FloatKind::F32) => {
                    let old = i64::from((x[place] as f32).to_bits() as i32);
                    let new = how.integers(old, y[k], &Type::Integer(32));
                    x[place] = f64::from(f32::from_bits(new as u32));
                }
                _ => return Err(unfit(&array.name)),
            }
        }
        Ok(())
    }

    /// A load through pointers.
    pub(crate) fn load(
        &self,
        pointers: &Tile,
        mask: Option<&Tile>,
        other: Option<&Tile>,
        element: &Type,
    ) -> Result<Tile, Fault> {
        let at = masked(pointers, mask)?;
        Ok(Tile { shape: pointers.shape.clone(), data: self.gather(&at, element, other.map(|o| &o.data))? })
    }

    /// A store through pointers.
    pub(crate) fn store(
        &mut self,
        pointers: &Tile,
        value: &Tile,
        mask: Option<&Tile>,
        how: Combination,
        arithmetic: Arithmetic,
    ) -> Result<(), Fault> {
        self.scatter(&masked(pointers, mask)?, &value.data, how, arithmetic)
    }

    /// An atomic operation through pointers, one element after another. Returns what was there before; zero where the mask is.
    pub(crate) fn atomic(
        &mut self,
        pointers: &Tile,
        value: &Tile,
        mask: Option<&Tile>,
        how: Atomic<'_>,
        element: &Type,
        arithmetic: Arithmetic,
    ) -> Result<Tile, Fault> {
        let unfit = || Fault::Shapes { what: "an atomic operation".into() };
        let at = masked(pointers, mask)?;
        let of = |tile: &Tile, k: usize| tile.data.gather(std::iter::once(if tile.data.len() == 1 { 0 } else { k }));
        let mut before = self.gather(&[], element, None)?;
        for (k, at) in at.iter().enumerate() {
            let old = self.gather(&[*at], element, None)?;
            let (how, wanted) = match how {
                Atomic::Combine(how) => (how, true),
                Atomic::CompareAndSwap(expected) => (Combination::Overwrite, of(expected, k).is_same(&old)),
            };
            if wanted {
                self.scatter(&[*at], &of(value, k), how, arithmetic)?;
            }
            if !before.append(&old) {
                return Err(unfit());
            }
        }
        Ok(Tile { shape: pointers.shape.clone(), data: before })
    }

    fn addresses(&self, tensor: &Tensor, tile_origin: &[i64], block: &[usize]) -> Result<Vec<Option<Pointer>>, Fault> {
        if tile_origin.len() != block.len()
            || tensor.extents.len() != block.len()
            || tensor.strides.len() != block.len()
        {
            return Err(Fault::Shapes { what: "a block of a tensor".into() });
        }
        let at = |offset: Option<i64>| offset.map(|offset| Pointer { array: tensor.array, offset });
        Ok(tensor.addresses(tile_origin, block).into_iter().map(at).collect())
    }

    /// A block of a tensor; zero outside of it.
    pub(crate) fn load_block(
        &self,
        tensor: &Tensor,
        tile_origin: &[i64],
        block: &[usize],
        element: &Type,
    ) -> Result<Tile, Fault> {
        let at = self.addresses(tensor, tile_origin, &in_tensor(tensor, block))?;
        Ok(Tile { shape: block.to_vec(), data: self.gather(&at, element, None)? })
    }

    /// Writes a block of a tensor; outside of it nothing but what is left of 16 bytes where a row ends: TMA writes no less.
    pub(crate) fn store_block(
        &mut self,
        tensor: &Tensor,
        tile_origin: &[i64],
        value: &Tile,
        how: Combination,
        arithmetic: Arithmetic,
    ) -> Result<(), Fault> {
        let mut written = tensor.clone();
        if let (Some(array), Some(columns)) = (self.arrays.get(tensor.array), written.extents.last_mut()) {
            let granule = 128 / i64::from(array.element.scalar_bits().unwrap_or(8).clamp(1, 128));
            *columns = (*columns + granule - 1) / granule * granule;
        }
        let at = self.addresses(&written, tile_origin, &in_tensor(tensor, &value.shape))?;
        self.scatter(&at, &value.data, how, arithmetic)
    }
}

/// A block with all dimensions of a tensor: one that has fewer has the last ones.
fn in_tensor(tensor: &Tensor, block: &[usize]) -> Vec<usize> {
    let lacking = tensor.extents.len().saturating_sub(block.len());
    [vec![1; lacking].as_slice(), block].concat()
}

fn masked(pointers: &Tile, mask: Option<&Tile>) -> Result<Vec<Option<Pointer>>, Fault> {
    let unfit = || Fault::Shapes { what: "an access through pointers".into() };
    let Data::Pointers(at) = &pointers.data else { return Err(unfit()) };
    match mask.map(|m| &m.data) {
        None => Ok(at.iter().copied().map(Some).collect()),
        Some(Data::Integers(mask)) if mask.len() == at.len() => {
            Ok(at.iter().zip(mask).map(|(at, mask)| (*mask != 0).then_some(*at)).collect())
        }
        Some(Data::Integers(mask)) if mask.len() == 1 => {
            Ok(at.iter().map(|at| (mask[0] != 0).then_some(*at)).collect())
        }
        Some(_) => Err(unfit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_several_elements_go_to_are_written_down() {
        let array = Array { name: "x".into(), element: Type::Integer(32), data: Data::Integers(vec![0; 6]) };
        let mut memory = Memory { arrays: vec![array], contested: Some(Contested::default()) };
        let to = |places: &[i64]| -> Vec<Option<Pointer>> {
            places.iter().map(|offset| Some(Pointer { array: 0, offset: *offset })).collect()
        };
        let mut store = |places: &[i64], how, program| {
            let values = Data::Integers(vec![1, 2, 3]);
            memory.contested.as_mut().unwrap().program = program;
            memory.scatter(&to(places), &values, how, Arithmetic::Rounded).unwrap();
            memory.contested.clone().unwrap().places.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(store(&[0, 1, 2], Combination::Overwrite, 0), []);
        assert_eq!(store(&[0, 0, 0], Combination::Add, 0), []);
        assert_eq!(store(&[2, 1, 2], Combination::Overwrite, 0), [(0, 2)]);
        // Another program may store what is there.
        assert_eq!(store(&[3, 1, 3], Combination::Overwrite, 1), [(0, 2), (0, 3)]);
        assert_eq!(store(&[1, 4, 5], Combination::Overwrite, 2), [(0, 1), (0, 2), (0, 3)]);
    }
}
