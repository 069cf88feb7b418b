//! A CTA at work.

use super::barriers::{Barrier, Named};
use super::choice::{Actor, Choice};
use super::code::{ProgramCounter, Values};
use super::storage::{Storage, Writer};
use super::units::{Completion, Copied, Flights, Held, Product, Source, Sum, Target};
use crate::fault::Fault;
use crate::memory::{Launch, Memory};
use crate::value::{Tile, dot};
use std::rc::Rc;
use twill_codegen::ir::{Expression, Group, Node, Op, VariableId, WarpProgram};

/// The cost of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Steps of groups.
    pub steps: u64,
    /// Ends of asynchronous copies and MMAs.
    pub events: u64,
}

/// Slot and phase.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub slot: u32,
    pub phase: bool,
    slots: u32,
}

impl Cursor {
    pub fn advance(&mut self) {
        self.slot += 1;
        if self.slot >= self.slots {
            self.slot = 0;
            self.phase = !self.phase;
        }
    }
}

/// A warp group at work.
#[derive(Debug)]
pub(super) struct Working<'p> {
    pub group: &'p Group,
    pub pc: ProgramCounter<'p>,
    /// The iteration of the pipelined loop around that point.
    pub iteration: Option<i64>,
    pub variables: Vec<Option<Held>>,
    pub cursors: Vec<Cursor>,
    pub in_flight: Flights,
    /// MMAs that were started.
    pub mmas: u64,
    /// At a named barrier: when it may go on.
    pub ticket: Option<u64>,
    /// Its remaining work: code, and for which program of the grid.
    parts: std::vec::IntoIter<(&'p [Node], [u32; 3])>,
    program: [u32; 3],
    /// The next thing that it does; none at the end.
    op: Option<&'p Op>,
}

/// A CTA.
pub(super) struct Machine<'p, 'm> {
    pub program: &'p WarpProgram,
    pub launch: &'m Launch,
    pub memory: &'m mut Memory,
    pub storage: Storage<'p>,
    pub barriers: Vec<Vec<Barrier>>,
    pub named: Vec<Named>,
    pub groups: Vec<Working<'p>>,
    figures: Figures,
}

/// Steps after which a program is not believed to end.
const MOST_STEPS: u64 = 4_000_000;

/// Executes a kernel's warp programs, one CTA after the other; where CTAs work on tile after tile, this many of them.
///
/// # Errors
/// When the program gets stuck, uses what is not there, reads or writes outside of arrays, or has something that is not known.
pub fn run(
    program: &WarpProgram,
    launch: &Launch,
    ctas: u32,
    memory: &mut Memory,
    choice: &mut Choice,
) -> Result<Figures, Fault> {
    let [per_x, ..] = program.tile_scheduler.cta_coarsening.map(|n| n.max(1));
    let columns = launch.grid[0].div_ceil(per_x);
    let count = columns * launch.grid[1] * launch.grid[2];
    let (ctas, persistent) = if program.tile_scheduler.persistent { (ctas.max(1), true) } else { (count, false) };
    let mut figures = Figures::default();
    for cta in 0..ctas {
        let tiles = program.tile_scheduler.programs_of_cta(cta, ctas, launch.grid);
        debug_assert!(persistent || tiles.len() == 1);
        let mut machine = Machine {
            program,
            launch,
            memory: &mut *memory,
            storage: Storage::new(program, choice.random()),
            barriers: program.barriers.iter().map(Barrier::all).collect(),
            named: Named::all(program),
            groups: program.groups.iter().map(|g| Working::new(g, &tiles)).collect(),
            figures: Figures::default(),
        };
        machine.run(choice)?;
        figures.steps += machine.figures.steps;
        figures.events += machine.figures.events;
    }
    Ok(figures)
}

impl<'p> Working<'p> {
    fn new(group: &'p Group, tiles: &[[u32; 3]]) -> Working<'p> {
        let bodies = tiles.iter().map(|t| (group.body.as_slice(), *t));
        let begin = std::iter::once((group.begin.as_slice(), [0; 3]));
        let end = std::iter::once((group.end.as_slice(), [0; 3]));
        let parts: Vec<(&[Node], [u32; 3])> = begin.chain(bodies).chain(end).collect();
        let cursor = |slots: u32| Cursor { slot: 0, phase: false, slots: slots.max(1) };
        Working {
            group,
            pc: ProgramCounter::default(),
            iteration: None,
            variables: vec![None; group.variables.len()],
            cursors: group.cursors.iter().map(|c| cursor(c.slots)).collect(),
            in_flight: Flights::default(),
            mmas: 0,
            ticket: None,
            parts: parts.into_iter(),
            program: [0; 3],
            op: None,
        }
    }
}

impl Machine<'_, '_> {
    /// `tl.program_id`; programs beyond the grid repeat its last one.
    pub(super) fn program_id(&self, g: usize, axis: usize, instance: Option<u32>) -> i64 {
        let id = self.groups[g].program.get(axis).copied().unwrap_or(0);
        let all = self.launch.grid.get(axis).copied().unwrap_or(1);
        let count = self.program.tile_scheduler.cta_coarsening.get(axis).copied().unwrap_or(1);
        i64::from(instance.map_or(id, |k| (id * count + k).min(all.saturating_sub(1))))
    }

    fn run(&mut self, choice: &mut Choice) -> Result<(), Fault> {
        for g in 0..self.groups.len() {
            self.go_on(g)?;
        }
        loop {
            let actors = self.actors();
            if actors.is_empty() {
                return self.end();
            }
            if self.figures.steps > MOST_STEPS {
                return Err(Fault::Endless { steps: self.figures.steps });
            }
            match actors[choice.of(&actors)] {
                Actor::Group(g) => self.step(g)?,
                Actor::Loads(g) => {
                    let which = choice.random().index(self.groups[g].in_flight.loads.len());
                    self.end_load(g, which)?;
                }
                Actor::Mmas(g) => self.end_mma(g)?,
                Actor::Stores(g) => self.end_store(g)?,
                Actor::Visibility => {
                    let slots = self.storage.unfenced();
                    self.storage.reveal(slots[choice.random().index(slots.len())]);
                }
            }
        }
    }

    /// The actors that can take a step.
    fn actors(&self) -> Vec<Actor> {
        let mut actors = Vec::new();
        for (g, group) in self.groups.iter().enumerate() {
            if group.op.is_some_and(|op| self.is_ready(g, op)) {
                actors.push(Actor::Group(g));
            }
            let in_flight = &group.in_flight;
            let units = [
                (!in_flight.loads.is_empty(), Actor::Loads(g)),
                (!in_flight.mmas.is_empty(), Actor::Mmas(g)),
                (!in_flight.stores.is_empty(), Actor::Stores(g)),
            ];
            actors.extend(units.into_iter().filter(|(busy, _)| *busy).map(|(_, actor)| actor));
        }
        // Writes of threads may be seen before their fence, but nobody waits for that.
        if !actors.is_empty() && !self.storage.unfenced().is_empty() {
            actors.push(Actor::Visibility);
        }
        actors
    }

    /// Nothing can happen any more: all are at their ends, or stuck.
    fn end(&self) -> Result<(), Fault> {
        let stuck: Vec<String> = self.groups.iter().filter_map(|g| Some((g, g.op?))).map(at).collect();
        if stuck.is_empty() { Ok(()) } else { Err(Fault::Deadlock { stuck }) }
    }

    fn step(&mut self, g: usize) -> Result<(), Fault> {
        self.figures.steps += 1;
        let Some(op) = self.groups[g].op else { return Ok(()) };
        if self.perform(g, op)? {
            self.groups[g].pc.step();
            self.go_on(g)?;
        }
        Ok(())
    }

    /// To the next operation.
    fn go_on(&mut self, g: usize) -> Result<(), Fault> {
        loop {
            let mut pc = std::mem::take(&mut self.groups[g].pc);
            let next = pc.next(&mut GroupValues { machine: self, g });
            let group = &mut self.groups[g];
            group.iteration = pc.iteration();
            group.pc = pc;
            group.op = next?;
            if group.op.is_some() {
                return Ok(());
            }
            let Some((nodes, program)) = group.parts.next() else { return Ok(()) };
            group.pc = ProgramCounter::of(nodes);
            group.program = program;
            // A tile begins with nothing of the one before.
            group.variables.fill(None);
        }
    }

    fn end_load(&mut self, g: usize, which: usize) -> Result<(), Fault> {
        self.figures.events += 1;
        let load = self.groups[g].in_flight.loads.swap_remove(which);
        let (tile, writer) = match &load.from {
            Copied::Block { tensor, tile_origin, block } => {
                // Of a block of one of several matrices a slot has the rows and columns alone.
                let rank = self.program.buffers.get(load.to.buffer).map_or(block.len(), |buffer| buffer.shape.len());
                let block = &block[block.len().saturating_sub(rank)..];
                (self.memory.load_block(tensor, tile_origin, block, &load.element)?, None)
            }
            Copied::Pointers { pointers, mask } => {
                (self.memory.load(pointers, mask.as_deref(), None, &load.element)?, Some(Writer::Copies))
            }
        };
        self.storage.write(&load.to, Rc::new(tile), writer)?;
        match load.tells {
            Completion::Barrier(full) => self.arrive(full),
            Completion::Committed(_) => Ok(()),
        }
    }

    fn end_mma(&mut self, g: usize) -> Result<(), Fault> {
        self.figures.events += 1;
        let Some(mma) = self.groups[g].in_flight.mmas.pop_front() else { return Ok(()) };
        if let Some(product) = mma.product {
            let tile = Rc::new(self.product(&product)?);
            match product.to {
                Target::Registers(result) => *result.tile.borrow_mut() = Some(tile),
                Target::Memory(at) => self.storage.write(&at, tile, None)?,
            }
        }
        for signal in mma.signals {
            self.arrive(signal)?;
        }
        Ok(())
    }

    fn product(&self, product: &Product) -> Result<Tile, Fault> {
        let read = |source: &Source| match source {
            Source::Slot(at) => self.storage.read_by_unit(at),
            Source::Tile(tile) => Ok(tile.clone()),
        };
        let (left, right) = (read(&product.left)?, read(&product.right)?);
        let sum = match (&product.sum, &product.to) {
            (Sum::Held(Held::Tile(tile)), _) => Some(tile.clone()),
            // An MMA before this one of the same group, which is done.
            (Sum::Held(Held::InFlight(result)), _) => result.tile.borrow().clone(),
            (Sum::Held(Held::Tensor(_)), _) => return Err(Fault::Shapes { what: "the accumulator of an MMA".into() }),
            (Sum::Destination, Target::Memory(at)) => Some(self.storage.read_by_unit(at)?),
            (Sum::Destination | Sum::Zero, _) => None,
        };
        dot(&left, &right, sum.as_deref(), &product.element, self.launch.arithmetic)
    }

    fn end_store(&mut self, g: usize) -> Result<(), Fault> {
        self.figures.events += 1;
        let Some(store) = self.groups[g].in_flight.stores.pop_front() else { return Ok(()) };
        let tile = self.storage.read_by_unit(&store.from)?;
        self.memory.store_block(&store.tensor, &store.tile_origin, &tile, store.how, self.launch.arithmetic)
    }
}

/// What a group's code asks of it.
struct GroupValues<'m, 'p, 'a> {
    machine: &'m mut Machine<'p, 'a>,
    g: usize,
}

impl Values for GroupValues<'_, '_, '_> {
    type Error = Fault;

    fn trips(&mut self, index: usize) -> Result<i64, Fault> {
        self.machine.trips(self.g, index)
    }

    fn value(&mut self, expression: &Expression, iteration: Option<i64>) -> Result<i64, Fault> {
        self.machine.groups[self.g].iteration = iteration;
        self.machine.integer(self.g, expression)
    }

    fn set(&mut self, variable: VariableId, value: i64) {
        self.machine.groups[self.g].variables[variable.index()] = Some(Held::Tile(Rc::new(Tile::integer(value))));
    }
}

/// Where a group stands.
fn at((group, op): (&Working<'_>, &Op)) -> String {
    let what = match op {
        Op::MbarrierWait { barrier, at, previous } => {
            let cursor = &group.cursors[at.index()];
            format!("barrier {} slot {} parity {}", barrier.index(), cursor.slot, u8::from(cursor.phase != *previous))
        }
        Op::WgmmaWait { .. } => "mmas".into(),
        Op::TmaStoreWait(_) => "stores".into(),
        Op::NamedBarrierSync(id) => format!("named barrier {}", id.0),
        _ => "nothing".into(),
    };
    format!("{} waits for {what}", group.group.name)
}
