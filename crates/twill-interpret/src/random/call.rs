//! A call of a random kernel.

use super::recipe::{Recipe, ValueKind, Walk};
use super::text::{MOST_TRIPS, half};
use crate::memory::{Argument, Array, Launch, Memory, Tensor};
use crate::value::{Arithmetic, Data, Tile};
use std::collections::HashMap;
use std::rc::Rc;
use twill_graph::SplitMix64;
use twill_triton::mlir::{FloatKind, Type};

/// The arguments of a kernel.
struct Giver {
    arguments: HashMap<String, Argument>,
    memory: Memory,
    random: SplitMix64,
}

impl Recipe {
    /// A call with these trips of each loop and this many programs, and what is in memory before it. Loads reach over
    /// the ends of what they load from.
    pub fn call(&self, trips: [u32; 2], programs: u32, arithmetic: Arithmetic, seed: u64) -> (Launch, Memory) {
        let random = SplitMix64::new(seed);
        let mut giver = Giver { arguments: HashMap::new(), memory: Memory::default(), random };
        let all = trips[0] + if self.twice { trips[1] } else { 0 };
        for (k, source) in self.sources.iter().enumerate() {
            let (down, across) = match source.walk {
                Walk::Down => (all, 1),
                Walk::Across => (1, all),
                Walk::Stay => (1, 1),
            };
            let (rows, columns) = (i64::from(source.rows * down.max(1)) - 8, i64::from(source.columns * across.max(1)));
            let name = format!("source{k}");
            if source.by_pointers {
                giver.pointer(&name, rows * columns, FloatKind::F16, true);
                giver.give(&format!("{name}_rows"), Tile::integer(rows));
                giver.give(&format!("{name}_columns"), Tile::integer(columns));
            } else {
                giver.tensor(&name, [rows, columns], FloatKind::F16, true);
            }
        }
        for k in 0..self.vectors {
            giver.pointer(&format!("vector{k}"), i64::from(self.rows * all.max(1)), FloatKind::F32, true);
        }
        let own = i64::from(MOST_TRIPS * self.rows);
        let stored = self.stored();
        let within = stored.len() - self.carried.len();
        for (k, kind) in stored.into_iter().enumerate() {
            let (name, kind) = (format!("stored{k}"), if k >= within { half(kind) } else { kind });
            let rows = i64::from(programs) * own;
            match kind {
                ValueKind::Rows(_) => giver.pointer(&name, rows, FloatKind::F32, false),
                ValueKind::Half(_, c) => giver.tensor(&name, [rows, i64::from(c)], FloatKind::F16, false),
                ValueKind::Single(_, c) => giver.tensor(&name, [rows, i64::from(c)], FloatKind::F32, false),
            }
        }
        // Bounds that are no multiples of the step count as well.
        let bound = |trips: u32| i64::from(trips * self.stride) - i64::from((self.stride - 1) * u32::from(trips > 0));
        giver
            .give("first", Tile::integer(if self.twice { i64::from(trips[0] * self.stride) } else { bound(trips[0]) }));
        giver.give("second", Tile::integer(i64::from(all * self.stride)));
        (Launch { arguments: giver.arguments, grid: [programs, 1, 1], arithmetic }, giver.memory)
    }
}

impl Giver {
    fn give(&mut self, name: &str, tile: Tile) {
        self.arguments.insert(name.to_owned(), Argument::Scalar(Rc::new(tile)));
    }

    fn array(&mut self, name: &str, count: i64, kind: FloatKind, random: bool) -> usize {
        let mut number = || if random { (self.random.unit() * 512.0).round() / 256.0 - 1.0 } else { 0.0 };
        let data = Data::Floats((0..count).map(|_| number()).collect());
        self.memory.arrays.push(Array { name: name.to_owned(), element: Type::Float(kind), data });
        self.memory.arrays.len() - 1
    }

    fn pointer(&mut self, name: &str, count: i64, kind: FloatKind, random: bool) {
        let array = self.array(name, count, kind, random);
        self.give(name, Tile::pointer(array));
    }

    fn tensor(&mut self, name: &str, extents: [i64; 2], kind: FloatKind, random: bool) {
        let array = self.array(name, extents[0] * extents[1], kind, random);
        let tensor = Tensor { array, first: 0, extents: extents.to_vec(), strides: vec![extents[1], 1] };
        self.arguments.insert(name.to_owned(), Argument::Tensor(tensor));
    }
}
