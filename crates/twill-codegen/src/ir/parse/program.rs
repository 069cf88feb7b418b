//! What a program declares before its groups.

use super::{NameKind, Read, Reader};
use crate::ir::*;
use twill_graph::Source;

impl Reader<'_> {
    pub(super) fn program(&mut self) -> Read<WarpProgram> {
        self.expect_word("warp_program")?;
        let mut program = WarpProgram::empty(self.word()?.to_owned());
        self.expect("{")?;
        while !self.accept("}") {
            let keyword = self.word()?;
            match keyword {
                "parameter" => program.parameters.push(self.parameter()?),
                "dependent_launch" => program.dependent_launch = true,
                "loop" => program.loops.push(self.loop_of_program()?),
                "descriptor" => {
                    let descriptor = self.descriptor(program.descriptors.len())?;
                    program.descriptors.push(descriptor);
                }
                "smem" | "tmem" => {
                    let buffer = self.buffer(keyword == "tmem", program.buffers.len())?;
                    program.buffers.push(buffer);
                }
                "mbarrier" => {
                    let name = self.word()?;
                    self.define(NameKind::Barrier, name, program.barriers.len());
                    let slots = self.number()?;
                    let arrivals = self.list(Self::arrival)?;
                    program.barriers.push(Barriers { name: stem(name), slots, arrivals });
                }
                "named_barrier" => {
                    let name = self.word()?;
                    self.define(NameKind::Named, name, program.named_barriers.len());
                    program.named_barriers.push((stem(name), self.number()?));
                }
                "tiles" => program.tile_scheduler = self.tile_scheduler()?,
                "multicast" => {
                    let ring = MulticastRing {
                        buffer: BufferId(self.name(NameKind::Buffer)?),
                        descriptor: DescriptorId(self.name(NameKind::Descriptor)?),
                        full: BarrierId(self.name(NameKind::Barrier)?),
                        empty: BarrierId(self.name(NameKind::Barrier)?),
                    };
                    program.cluster.get_or_insert(Cluster { rings: Vec::new() }).rings.push(ring);
                }
                "trace" => {
                    let (parameter, iterations) = (self.word()?.to_owned(), self.number()?);
                    let detail = match self.word()? {
                        "operations" => Detail::Operations,
                        "segments" => Detail::Segments,
                        "iterations" => Detail::Iterations,
                        other => return Err(self.unknown("detail of a trace", other)),
                    };
                    program.trace = Some(Trace { parameter, iterations, detail, timestamps: Vec::new() });
                }
                "group" => {
                    let group = self.group()?;
                    program.groups.push(group);
                }
                other => return Err(self.unknown("part of a warp program", other)),
            }
        }
        // Loops that a group has no part in are not written.
        let loops = program.loops.len();
        program.groups.iter_mut().for_each(|group| group.trips.resize(loops.max(group.trips.len()), None));
        let timestamps = program.timestamps();
        if let Some(trace) = &mut program.trace {
            trace.timestamps = timestamps;
        }
        Ok(program)
    }

    pub(super) fn parameter(&mut self) -> Read<Parameter> {
        let name = self.word()?.to_owned();
        self.expect(":")?;
        let kind = self.element()?;
        let mut parameter = Parameter::new(name, kind);
        self.attributes(|reader, name| {
            match name {
                "divisible_by_16" => parameter.divisible_by_16 = true,
                "not_zero" => parameter.not_zero = true,
                "positive" => parameter.positive = true,
                "read_only" => parameter.read_only = true,
                "at_least" => parameter.at_least = Some(reader.number()?),
                other => return Err(reader.unknown("attribute of a parameter", other)),
            }
            Ok(())
        })?;
        Ok(parameter)
    }

    pub(super) fn loop_of_program(&mut self) -> Read<LoopMetadata> {
        let _: usize = self.number()?;
        let name = self.string()?;
        let mut found = LoopMetadata { name, interval: 0, stages: 1, dot: None, trip_count: None, source_step: None };
        self.attributes(|reader, name| {
            match name {
                "interval" => found.interval = reader.number()?,
                "stages" => found.stages = reader.number()?,
                "dot" => found.dot = Some(reader.array(Self::number)?),
                "trips" => found.trip_count = Some(reader.number()?),
                "source_step" => found.source_step = Some(reader.number()?),
                other => return Err(reader.unknown("attribute of a loop", other)),
            }
            Ok(())
        })?;
        Ok(found)
    }

    pub(super) fn amount(&mut self) -> Read<Amount> {
        let word = self.word()?;
        Ok(word.parse().map_or_else(|_| Amount::Parameter(word.to_owned()), Amount::Constant))
    }

    /// A number, a name, or a function of two: `sub(m, min(n, 8))`.
    fn formula(&mut self) -> Read<Formula> {
        let word = self.word()?;
        if let Ok(number) = word.parse() {
            return Ok(Formula::Number(number));
        }
        if !self.accept("(") {
            return Ok(Formula::Name(word.to_owned().into()));
        }
        let Some(operator) = Operator::of_name(word) else { return Err(self.unknown("function", word)) };
        let first = self.formula()?;
        self.expect(",")?;
        let second = self.formula()?;
        self.expect(")")?;
        Ok(Formula::Binary(operator, Box::new(first), Box::new(second)))
    }

    pub(super) fn descriptor(&mut self, number: usize) -> Read<Descriptor> {
        let name = self.word()?;
        self.define(NameKind::Descriptor, name, number);
        self.expect("=")?;
        let (parameter, block) = (self.word()?.to_owned(), self.list(Self::number)?);
        self.expect(":")?;
        let element = self.element()?;
        let (mut batches, mut extents, mut stride, mut natural) = (Vec::new(), None, None, Vec::new());
        let mut rows_before = 0;
        self.attributes(|reader, name| {
            match name {
                "extents" => extents = Some(reader.array(Self::amount)?),
                "stride" => stride = Some(reader.amount()?),
                "rows_before" => rows_before = reader.number()?,
                "batches" => batches = reader.list(Self::amount)?,
                "not_negative" => natural = reader.list(Self::formula)?,
                other => return Err(reader.unknown("attribute of a descriptor", other)),
            }
            Ok(())
        })?;
        let made = |(extents, stride)| Matrix { batches, extents, stride, rows_before, natural };
        let matrix = extents.zip(stride).map(made);
        Ok(Descriptor { name: stem(name), parameter, block, element, matrix })
    }

    pub(super) fn buffer(&mut self, is_tensor: bool, number: usize) -> Read<Buffer> {
        let name = self.word()?;
        self.define(NameKind::Buffer, name, number);
        let shape = self.list(Self::number)?;
        self.expect(":")?;
        let element = self.element()?;
        let memory = if is_tensor { Memory::Tensor { columns: 0 } } else { Memory::Shared };
        let mut found =
            Buffer { name: stem(name), shape, element, slots: 1, least_slots: 1, memory, plain: false, source: None };
        let (mut file, mut line, mut column) = (None, 0, None);
        self.attributes(|reader, name| {
            match name {
                "slots" => found.slots = reader.number()?,
                "least" => found.least_slots = reader.number()?,
                "plain" => found.plain = true,
                "columns" => found.memory = Memory::Tensor { columns: reader.number()? },
                "file" => file = Some(reader.string()?),
                "line" => line = reader.number()?,
                "column" => column = Some(reader.number()?),
                other => return Err(reader.unknown("attribute of a buffer", other)),
            }
            Ok(())
        })?;
        found.source = file.map(|file| Source { file, line, column });
        Ok(found)
    }

    pub(super) fn arrival(&mut self) -> Read<Arrival> {
        let kind = self.word()?;
        let mut warps = || {
            self.expect("(")?;
            let warps = self.number()?;
            self.expect(")")?;
            Ok(warps)
        };
        match kind {
            "unit" => Ok(Arrival::Unit),
            "threads" => Ok(Arrival::Threads { warps: warps()? }),
            "each_thread" => Ok(Arrival::EachThread { warps: warps()? }),
            other => Err(self.unknown("arrival", other)),
        }
    }

    pub(super) fn tile_scheduler(&mut self) -> Read<TileScheduler> {
        let order = match self.word()? {
            "linear" => TileOrder::Linear,
            "group_m" => {
                self.expect("(")?;
                let rows = self.number()?;
                self.expect(")")?;
                TileOrder::GroupM(rows)
            }
            "lpt" => {
                self.expect("(")?;
                let width = self.number()?;
                let even_in_pairs = self.accept(",");
                if even_in_pairs {
                    self.expect_word("even")?;
                }
                self.expect(")")?;
                TileOrder::Lpt { width, even_in_pairs }
            }
            other => return Err(self.unknown("order of tiles", other)),
        };
        let mut tile_scheduler =
            TileScheduler { persistent: false, wave_sync: false, ctas_per_sm: 1, cta_coarsening: [1; 3], order };
        self.attributes(|reader, name| {
            match name {
                "persistent" => tile_scheduler.persistent = true,
                "wave_sync" => tile_scheduler.wave_sync = true,
                "ctas_per_sm" => tile_scheduler.ctas_per_sm = reader.number()?,
                "cta_coarsening" => tile_scheduler.cta_coarsening = reader.array(Self::number)?,
                other => return Err(reader.unknown("attribute of the tiles", other)),
            }
            Ok(())
        })?;
        Ok(tile_scheduler)
    }
}

/// A name without the number that tells it from others.
pub(super) fn stem(name: &str) -> String {
    name.split('#').next().unwrap_or(name).to_owned()
}
