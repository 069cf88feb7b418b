//! Shared and tensor memory. What threads write to shared memory is seen by asynchronous units only after a fence, so a
//! slot has two contents.

use crate::fault::Fault;
use crate::value::{Data, Tile};
use std::rc::Rc;
use twill_codegen::ir::{Buffer, WarpProgram};
use twill_graph::SplitMix64;
use twill_triton::mlir::Type;

/// The writers whose writes asynchronous units do not see yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// A group's threads.
    Group(usize),
    /// Copies by threads (`cp.async`).
    Copies,
}

/// Part of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub buffer: usize,
    pub slot: usize,
    /// Dimension, first index, extent.
    pub slice: Option<(usize, usize, usize)>,
    pub transposed: bool,
}

#[derive(Clone, Debug)]
struct Slot {
    by_threads: Rc<Tile>,
    by_units: Rc<Tile>,
    unfenced: Option<Writer>,
}

/// All buffers of a CTA.
#[derive(Clone, Debug)]
pub(super) struct Storage<'p> {
    program: &'p WarpProgram,
    slots: Vec<Vec<Slot>>,
}

/// Contents that nobody has written: finite numbers that differ from run to run, so that reading them changes results
/// and is not hidden by a maximum, which passes over what is no number.
fn junk(buffer: &Buffer, random: &mut SplitMix64) -> Rc<Tile> {
    let shape: Vec<usize> = buffer.shape.iter().map(|e| *e as usize).collect();
    let count = shape.iter().product();
    let data = match &buffer.element {
        Type::Float(_) => Data::Floats((0..count).map(|_| 3.0 + random.index(61) as f64 / 8.0).collect()),
        _ => Data::Integers((0..count).map(|_| random.index(2) as i64).collect()),
    };
    Rc::new(Tile { shape, data })
}

impl<'p> Storage<'p> {
    pub fn new(program: &'p WarpProgram, random: &mut SplitMix64) -> Storage<'p> {
        let mut slot = |buffer: &Buffer| {
            let tile = junk(buffer, random);
            Slot { by_threads: tile.clone(), by_units: tile, unfenced: None }
        };
        let slots = program.buffers.iter().map(|b| (0..b.slots).map(|_| slot(b)).collect()).collect();
        Storage { program, slots }
    }

    fn slot(&self, at: &At) -> Result<&Slot, Fault> {
        self.slots.get(at.buffer).and_then(|b| b.get(at.slot)).ok_or_else(|| self.undefined(at))
    }

    fn undefined(&self, at: &At) -> Fault {
        let name = self.program.buffers.get(at.buffer).map_or("a buffer", |b| b.name.as_str());
        Fault::Undefined { what: format!("slot {} of {name}", at.slot) }
    }

    fn part(&self, tile: &Rc<Tile>, at: &At) -> Result<Rc<Tile>, Fault> {
        let mut part = tile.clone();
        if let Some((dimension, start, extent)) = at.slice {
            part = Rc::new(part.slice(dimension, start, extent).ok_or_else(|| self.undefined(at))?);
        }
        if at.transposed {
            part = Rc::new(part.transpose(&[1, 0]).ok_or_else(|| self.undefined(at))?);
        }
        Ok(part)
    }

    /// As threads see it.
    pub fn read_by_threads(&self, at: &At) -> Result<Rc<Tile>, Fault> {
        self.part(&self.slot(at)?.by_threads, at)
    }

    /// As asynchronous units see it.
    pub fn read_by_unit(&self, at: &At) -> Result<Rc<Tile>, Fault> {
        self.part(&self.slot(at)?.by_units, at)
    }

    /// Puts a tile there; without a writer, both see it.
    pub fn write(&mut self, at: &At, tile: Rc<Tile>, writer: Option<Writer>) -> Result<(), Fault> {
        let buffer = self.program.buffers.get(at.buffer).ok_or_else(|| self.undefined(at))?;
        // A number has a place as a tile of one element.
        let tile = match (tile.shape.as_slice(), buffer.shape.as_slice()) {
            ([], [1]) => Rc::new(tile.reshape(vec![1]).ok_or_else(|| self.undefined(at))?),
            _ => tile,
        };
        let wrong = || Fault::Shapes { what: format!("a write to {}", buffer.name) };
        let tile = if at.transposed { Rc::new(tile.transpose(&[1, 0]).ok_or_else(wrong)?) } else { tile };
        let tile = match at.slice {
            Some((dimension, start, _)) => {
                let whole = &self.slot(at)?.by_threads;
                Rc::new(whole.with_slice(dimension, start, &tile).ok_or_else(wrong)?)
            }
            None => tile,
        };
        if !tile.shape.iter().map(|e| *e as u64).eq(buffer.shape.iter().copied()) {
            return Err(wrong());
        }
        let is_tensor = buffer.is_tensor();
        let undefined = self.undefined(at);
        let slot = self.slots[at.buffer].get_mut(at.slot).ok_or(undefined)?;
        slot.by_threads = tile.clone();
        slot.unfenced = writer.filter(|_| !is_tensor);
        if slot.unfenced.is_none() {
            slot.by_units = tile;
        }
        Ok(())
    }

    /// A fence of a group: what its threads wrote, and what copies brought.
    pub fn fence(&mut self, group: usize) {
        for slot in self.slots.iter_mut().flatten() {
            if matches!(slot.unfenced, Some(Writer::Copies)) || slot.unfenced == Some(Writer::Group(group)) {
                slot.by_units = slot.by_threads.clone();
                slot.unfenced = None;
            }
        }
    }

    /// Slots whose new contents units do not see yet, though they may.
    pub fn unfenced(&self) -> Vec<(usize, usize)> {
        let of = |(b, slots): (usize, &Vec<Slot>)| -> Vec<(usize, usize)> {
            slots.iter().enumerate().filter(|(_, s)| s.unfenced.is_some()).map(|(k, _)| (b, k)).collect()
        };
        self.slots.iter().enumerate().flat_map(of).collect()
    }

    /// Units see a slot without a fence, as they happen to.
    pub fn reveal(&mut self, (buffer, slot): (usize, usize)) {
        let slot = &mut self.slots[buffer][slot];
        slot.by_units = slot.by_threads.clone();
        slot.unfenced = None;
    }
}
