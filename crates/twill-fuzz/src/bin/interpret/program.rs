//! `program.json`: what a kernel is called with.

use serde::Deserialize;
use std::collections::HashMap;
use std::error::Error;
use std::rc::Rc;
use twill_interpret::{Argument, Array, Data, Memory, Pointer, Tensor, Tile};
use twill_triton::mlir::{FloatKind, Type};

/// The arguments of a kernel.
#[derive(Deserialize)]
pub(crate) struct Program {
    pointers: Vec<Memories>,
    #[serde(default)]
    tensors: Vec<Described>,
    pub(crate) calls: Vec<Call>,
}

/// Memory that a pointer points to.
#[derive(Deserialize)]
struct Memories {
    name: String,
    element: String,
    count: usize,
    contents: String,
    /// Elements before the one that the pointer points to.
    #[serde(default)]
    before: i64,
}

/// A tensor descriptor, of memory of the same name.
#[derive(Deserialize)]
struct Described {
    name: String,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// A call: the grid, and numbers by name.
#[derive(Deserialize)]
pub(crate) struct Call {
    pub(crate) grid: [u32; 3],
    numbers: HashMap<String, serde_json::Number>,
}

impl Program {
    /// Global memory before a call.
    pub(crate) fn memory(&self) -> Result<Memory, Box<dyn Error>> {
        let array = |(k, one): (usize, &Memories)| -> Result<Array, Box<dyn Error>> {
            let data = match one.contents.strip_prefix("addresses ") {
                Some(other) => Data::Integers(vec![self.address(other)?; one.count]),
                None => one.data(k)?,
            };
            Ok(Array { name: one.name.clone(), element: one.element()?, data })
        };
        let arrays = self.pointers.iter().enumerate().map(array).collect::<Result<_, _>>()?;
        Ok(Memory { arrays, ..Memory::default() })
    }

    /// The address of a pointer's memory.
    fn address(&self, name: &str) -> Result<i64, Box<dyn Error>> {
        let array =
            self.pointers.iter().position(|one| one.name == name).ok_or_else(|| format!("no pointer {name}"))?;
        let one = &self.pointers[array];
        let bytes = i64::from(one.element()?.scalar_bits().unwrap_or(8) / 8);
        Ok(Pointer { array, offset: one.before }.address(bytes.max(1)))
    }

    /// By name, what parameters are given in a call.
    pub(crate) fn arguments(&self, call: &Call) -> HashMap<String, Argument> {
        let mut arguments = HashMap::new();
        for (array, one) in self.pointers.iter().enumerate() {
            let described = self.tensors.iter().find(|tensor| tensor.name == one.name);
            let argument = match described {
                Some(Described { shape, strides, .. }) => {
                    let (extents, strides) = (shape.clone(), strides.clone());
                    Argument::Tensor(Tensor { array, first: one.before, extents, strides })
                }
                None => {
                    let data = Data::Pointers(vec![Pointer { array, offset: one.before }]);
                    Argument::Scalar(Rc::new(Tile { shape: Vec::new(), data }))
                }
            };
            arguments.insert(one.name.clone(), argument);
        }
        for (name, number) in &call.numbers {
            let tile = number.as_i64().map_or_else(|| Tile::float(number.as_f64().unwrap_or(f64::NAN)), Tile::integer);
            arguments.insert(name.clone(), Argument::Scalar(Rc::new(tile)));
        }
        arguments
    }
}

impl Memories {
    fn element(&self) -> Result<Type, Box<dyn Error>> {
        Ok(match self.element.as_str() {
            "float16" => Type::Float(FloatKind::F16),
            "bfloat16" => Type::Float(FloatKind::BF16),
            "float32" => Type::Float(FloatKind::F32),
            "float64" => Type::Float(FloatKind::F64),
            "float8e4nv" | "float8_e4m3fn" => Type::Float(FloatKind::F8E4M3FN),
            "float8e5" | "float8_e5m2" => Type::Float(FloatKind::F8E5M2),
            "bool" => Type::Integer(1),
            other => {
                let bits = other.trim_start_matches('u').strip_prefix("int").and_then(|bits| bits.parse().ok());
                Type::Integer(bits.ok_or_else(|| format!("{}: {other} is no type of elements", self.name))?)
            }
        })
    }

    /// What is in memory before a call: the `k`th pointer's elements, each a function of its place alone, so that programs in
    /// other languages (`contents` in execute.py) begin with the same.
    fn data(&self, k: usize) -> Result<Data, Box<dyn Error>> {
        // Places count from where the pointer points to.
        let places = || 0..self.count as u64;
        let hashes = || places().map(|place| hash(place, k as u64));
        let from = |place: u64| (place as i64 - self.before).max(0);
        let each = |number: &dyn Fn(i64) -> i64| Data::Integers(places().map(|place| number(from(place))).collect());
        let is_float = self.element.contains("float");
        let (what, number) = self.contents.split_once(' ').unwrap_or((&self.contents, "1"));
        let number: i64 = number.parse()?;
        Ok(match what {
            "below" => Data::Integers(hashes().map(|h| (h % number.max(1) as u64) as i64).collect()),
            "all" => each(&|_| number),
            // Of sequences of this length, as many as a table of them may name.
            "starts" => each(&|place| place.min(64) * number),
            // Of two, as a scale's byte: from ½ to 4.
            "exponents" => Data::Integers(hashes().map(|h| i64::from((126 + h % 4) as u8 as i8)).collect()),
            "places" => each(&|place| place % number.max(1)),
            // Of a sequence and a block in it.
            "pairs" => each(&|place| if place % 2 == 0 { place / 4 % 4 } else { place / 2 % 2 }),
            "zeros" if is_float => Data::Floats(vec![0.0; self.count]),
            "zeros" => Data::Integers(vec![0; self.count]),
            _ if is_float => Data::Floats(hashes().map(|h| ((h % 17) as f64 - 8.0) / 4.0).collect()),
            _ if self.element == "bool" => Data::Integers(hashes().map(|h| (h % 2) as i64).collect()),
            _ => Data::Integers(hashes().map(|h| (h % 9) as i64 - 4).collect()),
        })
    }
}

fn hash(place: u64, pointer: u64) -> u64 {
    let low = u64::from(u32::MAX);
    let mut h = (place * 0x9E37_79B1 + pointer * 0x85EB_CA6B) & low;
    h ^= h >> 15;
    h = (h * 0x2C1B_3C6D) & low;
    h ^ (h >> 12)
}
