//! A kernel as a list of operations.

use arbitrary::{Arbitrary, Result, Unstructured};

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A matrix of `f32`.
    Single(u32, u32),
    /// A matrix of `f16`.
    Half(u32, u32),
    /// A number of type `f32` for every row.
    Rows(u32),
}

/// Where the tiles of a tensor are that iterations load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// One below the other.
    Down,
    /// Side by side.
    Across,
    /// Always the same, of a program.
    Stay,
}

/// A matrix of `f16` that the kernel loads tiles of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub rows: u32,
    pub columns: u32,
    pub walk: Walk,
    /// Through a block of pointers with a mask, instead of a descriptor.
    pub by_pointers: bool,
}

/// An operation; numbers are positions of values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Loads a tile of a source.
    Load(usize),
    /// Loads a number for every row through a vector of pointers.
    LoadRows(usize),
    /// Transposes a matrix.
    Transpose(usize),
    /// MMAs, adding to the third or to zero.
    Dot(usize, usize, Option<usize>),
    /// Elements with elements.
    Combine(&'static str, usize, usize),
    /// `max(min(x · factor, limit), −limit)` of elements, then two to the power of it.
    Power(usize),
    /// Times a constant.
    Scale(usize, f64),
    /// A matrix with the second value spread over its columns.
    WithRows(&'static str, usize, usize),
    /// Along rows: `arith.addf` or `arith.maxnumf`.
    Reduce(&'static str, usize),
    /// Bounded, and to `f16`.
    Halve(usize),
    /// Stores a matrix of `f16` somewhere for this iteration.
    Store(usize),
    /// Adds a matrix of `f32` to what is somewhere.
    Add(usize),
}

/// A carried value: what it begins with, and what it becomes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub kind: ValueKind,
    pub initial: f64,
    pub next: usize,
}

/// A random kernel.
///
/// Values are numbered: carried ones first, then tiles loaded before the loop, then what steps make.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub(super) rows: u32,
    pub(super) sources: Vec<Source>,
    /// Sources that are loaded before the loop.
    pub(super) outer: Vec<usize>,
    /// How many vectors of row numbers it loads.
    pub(super) vectors: usize,
    pub(super) carried: Vec<Carried>,
    pub(super) steps: Vec<Step>,
    /// The step of the induction variable; a trip is one step.
    pub(super) stride: u32,
    /// The loop is there twice, the second going on where the first ends.
    pub(super) twice: bool,
    /// The results are divided by the first carried number of rows.
    pub(super) divides: bool,
}

const SIZES: [u32; 3] = [16, 32, 64];
const ELEMENTWISE: [&str; 5] = ["arith.addf", "arith.subf", "arith.mulf", "arith.maxnumf", "arith.minnumf"];

/// A kernel in the making.
struct Maker<'u, 'b> {
    from: &'u mut Unstructured<'b>,
    recipe: Recipe,
    kinds: Vec<ValueKind>,
    /// Matrices of `f16` that are loaded, and may so be right operands.
    loaded: Vec<usize>,
}

impl<'b> Arbitrary<'b> for Recipe {
    fn arbitrary(from: &mut Unstructured<'b>) -> Result<Recipe> {
        let rows = if from.ratio(1, 3)? { 128 } else { 64 };
        let recipe = Recipe {
            rows,
            sources: Vec::new(),
            outer: Vec::new(),
            vectors: 0,
            carried: Vec::new(),
            steps: Vec::new(),
            stride: if from.ratio(1, 4)? { 16 } else { 1 },
            twice: from.ratio(1, 8)?,
            divides: from.ratio(1, 4)?,
        };
        let mut maker = Maker { from, recipe, kinds: Vec::new(), loaded: Vec::new() };
        maker.make()?;
        Ok(maker.recipe)
    }
}

impl Maker<'_, '_> {
    fn make(&mut self) -> Result<()> {
        let rows = self.recipe.rows;
        let width = *self.from.choose(&SIZES)?;
        for _ in 0..self.from.int_in_range(1..=3)? {
            let (kind, initial) = match self.from.int_in_range(0..=5)? {
                0 | 1 => (ValueKind::Rows(rows), *self.from.choose(&[0.0, -1.0e4, 1.0])?),
                2 => (ValueKind::Half(rows, width), 1.0),
                _ => (ValueKind::Single(rows, width), 0.0),
            };
            self.recipe.carried.push(Carried { kind, initial, next: 0 });
            self.kinds.push(kind);
        }
        for _ in 0..self.from.int_in_range(0..=1)? {
            let columns = *self.from.choose(&SIZES)?;
            let source = self.source(rows, columns, Walk::Stay, false);
            self.recipe.outer.push(source);
            self.kinds.push(ValueKind::Half(rows, columns));
        }
        for _ in 0..self.from.int_in_range(1..=7)? {
            self.step(width)?;
        }
        for k in 0..self.recipe.carried.len() {
            self.close(k, width)?;
        }
        self.recipe.sweep();
        Ok(())
    }

    fn push(&mut self, step: Step, kind: ValueKind) -> usize {
        self.recipe.steps.push(step);
        self.kinds.push(kind);
        self.kinds.len() - 1
    }

    fn source(&mut self, rows: u32, columns: u32, walk: Walk, by_pointers: bool) -> usize {
        self.recipe.sources.push(Source { rows, columns, walk, by_pointers });
        self.recipe.sources.len() - 1
    }

    fn load(&mut self, rows: u32, columns: u32) -> Result<usize> {
        let walk = *self.from.choose(&[Walk::Down, Walk::Across])?;
        let by_pointers = self.from.ratio(1, 5)?;
        let source = self.source(rows, columns, walk, by_pointers);
        let value = self.push(Step::Load(source), ValueKind::Half(rows, columns));
        self.loaded.push(value);
        Ok(value)
    }

    /// A value that is like this; the newest are likelier.
    fn any(&mut self, is: impl Fn(ValueKind) -> bool) -> Result<Option<usize>> {
        let found: Vec<usize> = (0..self.kinds.len()).filter(|k| is(self.kinds[*k])).collect();
        let last = found.len().saturating_sub(1);
        let back = self.from.int_in_range(0..=last.min(3))?;
        Ok(found.get(last - back).copied())
    }

    fn matrix(&mut self) -> Result<Option<usize>> {
        self.any(|kind| matches!(kind, ValueKind::Single(..)))
    }

    fn numbers(&mut self) -> Result<Option<usize>> {
        self.any(|kind| matches!(kind, ValueKind::Rows(_)))
    }

    fn step(&mut self, width: u32) -> Result<()> {
        let rows = self.recipe.rows;
        match self.from.int_in_range(0..=11)? {
            0..=3 => {
                self.dot(width)?;
            }
            4 => {
                let Some(a) = self.matrix()? else { return Ok(()) };
                let kind = self.kinds[a];
                let Some(b) = self.any(|other| other == kind)? else { return Ok(()) };
                let name = *self.from.choose(&ELEMENTWISE)?;
                self.push(Step::Combine(name, a, b), kind);
            }
            5 => {
                let Some(a) = self.matrix()? else { return Ok(()) };
                self.push(Step::Power(a), self.kinds[a]);
            }
            6 => {
                let (Some(a), Some(b)) = (self.matrix()?, self.numbers()?) else { return Ok(()) };
                let name = *self.from.choose(&ELEMENTWISE)?;
                self.push(Step::WithRows(name, a, b), self.kinds[a]);
            }
            7 => {
                let Some(a) = self.matrix()? else { return Ok(()) };
                let name = *self.from.choose(&["arith.addf", "arith.maxnumf"])?;
                self.push(Step::Reduce(name, a), ValueKind::Rows(rows));
            }
            8 => {
                let (Some(a), Some(b)) = (self.numbers()?, self.numbers()?) else { return Ok(()) };
                let name = *self.from.choose(&ELEMENTWISE)?;
                self.push(Step::Combine(name, a, b), ValueKind::Rows(rows));
            }
            9 => {
                let vector = self.recipe.vectors;
                self.recipe.vectors += 1;
                self.push(Step::LoadRows(vector), ValueKind::Rows(rows));
            }
            10 => {
                let Some(a) = self.matrix()? else { return Ok(()) };
                let ValueKind::Single(r, c) = self.kinds[a] else { return Ok(()) };
                if self.from.ratio(1, 2)? {
                    self.push(Step::Halve(a), ValueKind::Half(r, c));
                } else {
                    self.push(Step::Scale(a, 0.0625), ValueKind::Single(r, c));
                }
            }
            _ => {
                let Some(a) = self.matrix()? else { return Ok(()) };
                let ValueKind::Single(r, c) = self.kinds[a] else { return Ok(()) };
                if self.from.ratio(1, 2)? {
                    self.push(Step::Add(a), ValueKind::Single(r, c));
                } else {
                    let half = self.push(Step::Halve(a), ValueKind::Half(r, c));
                    self.push(Step::Store(half), ValueKind::Half(r, c));
                }
            }
        }
        Ok(())
    }

    /// An MMA of a tile with as many rows as the kernel has, and a tile that is loaded.
    fn dot(&mut self, width: u32) -> Result<usize> {
        let rows = self.recipe.rows;
        let is_left = |kind: ValueKind| matches!(kind, ValueKind::Half(r, _) if r == rows);
        let left = match self.any(is_left)? {
            Some(left) if self.from.ratio(2, 3)? => left,
            _ => {
                let depth = *self.from.choose(&SIZES)?;
                self.load(rows, depth)?
            }
        };
        let ValueKind::Half(_, depth) = self.kinds[left] else { return Ok(left) };
        let columns = if self.from.ratio(2, 3)? { width } else { *self.from.choose(&SIZES)? };
        let right = if self.from.ratio(1, 2)? {
            let turned = self.load(columns, depth)?;
            self.push(Step::Transpose(turned), ValueKind::Half(depth, columns))
        } else {
            self.load(depth, columns)?
        };
        let sum = match self.from.ratio(1, 2)? {
            true => self.any(|kind| kind == ValueKind::Single(rows, columns))?,
            false => None,
        };
        let product = self.push(Step::Dot(left, right, sum), ValueKind::Single(rows, columns));
        Ok(self.push(Step::Scale(product, 0.0625), ValueKind::Single(rows, columns)))
    }

    /// An MMA of this left operand, made small.
    fn dot_with(&mut self, left: usize, columns: u32) -> Result<usize> {
        let (rows, ValueKind::Half(_, depth)) = (self.recipe.rows, self.kinds[left]) else { return Ok(left) };
        let right = self.load(depth, columns)?;
        let product = self.push(Step::Dot(left, right, None), ValueKind::Single(rows, columns));
        Ok(self.push(Step::Scale(product, 0.0625), ValueKind::Single(rows, columns)))
    }

    /// The next value of a carried value: the newest that is like it, or its half plus something new, so that numbers
    /// stay small.
    fn close(&mut self, k: usize, width: u32) -> Result<()> {
        let kind = self.recipe.carried[k].kind;
        let first = self.recipe.carried.len() + self.recipe.outer.len();
        let is_made = |v: &usize| !matches!(self.recipe.steps.get(v - first), Some(Step::Load(_)));
        let newest = (first..self.kinds.len()).rev().find(|v| self.kinds[*v] == kind && is_made(v));
        let new = match (newest, kind) {
            (Some(new), _) => new,
            (None, ValueKind::Rows(_)) => {
                let matrix = match self.matrix()? {
                    Some(matrix) => matrix,
                    None => self.dot(width)?,
                };
                self.push(Step::Reduce("arith.maxnumf", matrix), kind)
            }
            (None, ValueKind::Half(r, c)) => {
                let left = self.dot_with(k, c)?;
                self.push(Step::Halve(left), ValueKind::Half(r, c))
            }
            (None, _) => {
                let rows = self.recipe.rows;
                let left = self.load(rows, 16)?;
                let right = self.load(16, width)?;
                self.push(Step::Dot(left, right, Some(k)), kind)
            }
        };
        let is_loaded = matches!(self.recipe.steps.get(new - first), Some(Step::LoadRows(_)));
        let next = match self.from.int_in_range(0..=2)? {
            // A value that only passes through the loop is refused.
            0 if !is_loaded => new,
            1 if !matches!(kind, ValueKind::Half(..)) => {
                let half = self.push(Step::Scale(k, 0.5), kind);
                self.push(Step::Combine("arith.addf", half, new), kind)
            }
            _ => self.push(Step::Combine("arith.maxnumf", k, new), kind),
        };
        self.recipe.carried[k].next = next;
        Ok(())
    }
}
