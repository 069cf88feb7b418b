//! The tile scheduler: which program of the grid a tile is, and which tiles a CTA works on, wave by wave.
//!
//! It is written once, as formulas over the numbers of tiles and CTAs. Back ends print them, and the interpreter evaluates them.

use super::formula::{Formula, name};
use crate::options::Options;
use twill_graph::saturate;

/// The tile scheduler: how programs of the grid are assigned to CTAs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileScheduler {
    /// A CTA works on one tile after another.
    pub persistent: bool,
    /// Waves of tiles are synchronised by a soft grid barrier.
    pub wave_sync: bool,
    /// CTAs that a multiprocessor runs at once.
    pub ctas_per_sm: u32,
    /// Programs along each axis that share a CTA.
    pub cta_coarsening: [u32; 3],
    /// In which order tiles are worked on.
    pub order: TileOrder,
}

impl TileScheduler {
    /// As options say.
    pub(crate) fn of(options: &Options) -> TileScheduler {
        let mut cta_coarsening = [1; 3];
        if let Some((count, axis)) = options.programs
            && let Some(slot) = cta_coarsening.get_mut(axis as usize)
        {
            *slot = count;
        }
        let Options { persistent, wave_sync, order, .. } = *options;
        let ctas_per_sm = options.shares.ctas_per_sm.unwrap_or(1);
        TileScheduler { persistent, wave_sync, ctas_per_sm, cta_coarsening, order }
    }

    /// The width of a swizzle group, in programs of the second axis, where waves of tiles that get shorter are assigned in
    /// serpentine order: every other wave from the last CTA to the first, so that two waves are as long for all.
    pub fn serpentine(&self) -> Option<u32> {
        match self.order {
            TileOrder::Lpt { width, even_in_pairs: true } if self.persistent => Some(width),
            _ => None,
        }
    }
}

/// In which order the programs of a grid are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileOrder {
    /// As a grid is: the first axis fastest.
    Linear,
    /// The first axis from its end, so that tiles with long loops come first.
    Lpt {
        /// Programs of the second axis in a swizzle group, so that what they share stays in the L2 cache.
        width: u32,
        /// Loops get shorter with the first axis, so that two waves in serpentine order are as long for all CTAs.
        even_in_pairs: bool,
    },
    /// Groups of this many along the first axis, the first axis fastest, then the second.
    GroupM(u32),
}

/// A number of CTAs to launch.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CtaCount {
    /// Waves of tiles, over `tiles`, `resident` (CTAs that run at once).
    pub waves: Formula,
    /// CTAs, over `waves` and `tiles`.
    pub ctas: Formula,
    /// That it is taken, over `waves`, `tiles`, `resident`, `columns` and `rows` of tiles; always, if there is none.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Formula>,
}

/// Which program of the grid a tile is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOf {
    /// In words.
    pub note: String,
    /// Numbers that get a name, in their order; over `tile`, `columns` (tiles along the first axis), `programs_y`.
    pub named: Vec<(&'static str, Formula)>,
    /// The program along each axis.
    pub program: [Formula; 3],
}

impl TileScheduler {
    /// Tiles along the first axis of the grid, over `programs_x`.
    pub fn columns(&self) -> Formula {
        match self.cta_coarsening[0] {
            0 | 1 => name("programs_x"),
            programs => (name("programs_x") + (programs - 1)) / programs,
        }
    }

    /// Tiles of the grid, each of which is the work of one CTA.
    pub fn tile_count(&self) -> Formula {
        self.columns() * name("programs_y") * name("programs_z")
    }

    /// The program that a tile is.
    pub fn program_of(&self) -> ProgramOf {
        let (tile, columns, rows) = (|| name("tile"), || name("columns"), || name("programs_y"));
        let plane = tile() / (columns() * rows());
        let rest = ("rest", tile() % (columns() * rows()));
        match self.order {
            TileOrder::Linear => ProgramOf {
                note: "the first axis fastest".to_owned(),
                named: Vec::new(),
                program: [tile() % columns(), tile() / columns() % rows(), tile() / columns() / rows()],
            },
            TileOrder::Lpt { width, .. } => ProgramOf {
                note: format!(
                    "longest processing time first, swizzled by {width} along the second axis for the L2 cache"
                ),
                named: vec![
                    rest,
                    ("first", name("rest") / (columns() * width) * width),
                    ("width", (rows() - name("first")).min(width)),
                    ("within", name("rest") - name("first") * columns()),
                ],
                program: [
                    columns() - 1 - name("within") / name("width"),
                    name("first") + name("within") % name("width"),
                    plane,
                ],
            },
            TileOrder::GroupM(width) => ProgramOf {
                note: format!("GROUP_M swizzle of width {width}"),
                named: vec![
                    rest,
                    ("first", name("rest") / (Formula::Number(width) * rows()) * width),
                    ("width", (columns() - name("first")).min(width)),
                    ("within", name("rest") - name("first") * rows()),
                ],
                program: [name("first") + name("within") % name("width"), name("within") / name("width"), plane],
            },
        }
    }

    /// The tile of a CTA in a wave, over `wave`, `cta` and `ctas`. In serpentine order, every other wave goes from the last CTA to the
    /// first.
    pub fn tile_of_wave(&self) -> Formula {
        let tile = name("wave") * name("ctas") + name("cta");
        match self.serpentine() {
            Some(_) => tile + name("wave") % 2 * (name("ctas") - 1 - Formula::Number(2) * name("cta")),
            None => tile,
        }
    }

    /// CTAs of a launch of at least one tile: the first of these that is taken, or else one for each tile.
    ///
    /// A persistent CTA works on a tile in each wave. As few CTAs as need no more waves than `resident` would share what they load
    /// at a time. In serpentine order, loops get shorter by an iteration from column to column: where two waves are whole
    /// swizzle groups, or the other way round, all CTAs have the same to do, but those that are left out of `resident` have nothing.
    /// That is worth it while it is less than an iteration for each tile, about what the start of a CTA takes; one wave more
    /// makes pairs of an odd number. Elsewhere the GPU assigns a tile to a CTA as others end.
    pub fn cta_counts(&self) -> Vec<CtaCount> {
        if !self.persistent {
            return Vec::new();
        }
        let (tiles, resident, waves) = (|| name("tiles"), || name("resident"), || name("waves"));
        let ceil_div = |a: Formula, b: Formula| (a + (b.clone() - 1)) / b;
        let fewest = || ceil_div(tiles(), resident());
        let ctas = || ceil_div(tiles(), waves());
        let Some(width) = self.serpentine() else {
            return vec![CtaCount { waves: fewest(), ctas: ctas(), condition: None }];
        };
        let pair = || Formula::Number(2) * ctas();
        let together = || name("rows").min(width);
        let swizzle_group = || name("columns") * together();
        let even = (tiles() % pair())
            .equals(0)
            .and((name("rows") % together()).equals(0))
            .and((pair() % swizzle_group()).equals(0).or((swizzle_group() % pair()).equals(0)));
        let idle = waves() * resident() - tiles();
        let condition = even.and((idle * name("columns")).less(Formula::Number(2) * waves() * resident()));
        let odd = Formula::Number(1).less(fewest()) * (fewest() % 2);
        [fewest(), fewest() + odd]
            .map(|waves| CtaCount { waves, ctas: ctas(), condition: Some(condition.clone()) })
            .into()
    }

    /// CTAs of a launch over a grid of this many tiles along each axis, of which `resident` run at once; see [`TileScheduler::cta_counts`].
    pub fn ctas(&self, tiles: [u32; 3], resident: u32) -> i64 {
        let all = tiles.iter().map(|count| i64::from(*count)).product();
        let names = |text: &str| match text {
            "tiles" => all,
            "resident" => i64::from(resident),
            "columns" => i64::from(tiles[0]),
            "rows" => i64::from(tiles[1]),
            _ => 0,
        };
        let counts = self.cta_counts();
        let mut found = counts.iter().filter_map(|count| {
            let waves = count.waves.value(&names);
            let names = |text: &str| if text == "waves" { waves } else { names(text) };
            let taken = count.condition.as_ref().is_none_or(|condition| condition.value(&names) != 0);
            taken.then(|| count.ctas.value(&names))
        });
        found.next().unwrap_or(all)
    }

    /// The programs that a CTA works on, of this many CTAs, in a grid of this many programs along each axis; in the order of its waves.
    pub fn programs_of_cta(&self, cta: u32, ctas: u32, grid: [u32; 3]) -> Vec<[u32; 3]> {
        let grid_names = |text: &str| match text {
            "programs_x" => i64::from(grid[0]),
            "programs_y" => i64::from(grid[1]),
            "programs_z" => i64::from(grid[2]),
            _ => 0,
        };
        let (columns, count) = (self.columns().value(&grid_names), self.tile_count().value(&grid_names));
        let (of_wave, order) = (self.tile_of_wave(), self.program_of());
        let waves = if self.persistent { (count + i64::from(ctas) - 1) / i64::from(ctas.max(1)) } else { 1 };
        let tiles = (0..waves).map(|wave| {
            of_wave.value(&|text| match text {
                "wave" => wave,
                "cta" => i64::from(cta),
                _ => i64::from(ctas),
            })
        });
        let program = |tile: i64| {
            let mut known: Vec<(&str, i64)> = vec![("tile", tile), ("columns", columns)];
            for (text, formula) in &order.named {
                let value = formula.value(&|wanted| lookup(&known, wanted).unwrap_or_else(|| grid_names(wanted)));
                known.push((text, value));
            }
            order.program.each_ref().map(|formula| {
                let value = formula.value(&|wanted| lookup(&known, wanted).unwrap_or_else(|| grid_names(wanted)));
                saturate::<u32>(value)
            })
        };
        tiles.filter(|tile| (0..count).contains(tile)).map(program).collect()
    }
}

fn lookup(known: &[(&str, i64)], wanted: &str) -> Option<i64> {
    known.iter().find(|(text, _)| *text == wanted).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Syntax;
    use std::collections::BTreeSet;

    fn tile_scheduler(order: TileOrder, programs: u32) -> TileScheduler {
        TileScheduler { persistent: true, wave_sync: false, ctas_per_sm: 1, cta_coarsening: [programs, 1, 1], order }
    }

    /// Each program of the grid is some CTA's, once.
    #[test]
    fn every_tile_is_assigned_once() {
        let orders = [
            TileOrder::Linear,
            TileOrder::GroupM(4),
            TileOrder::Lpt { width: 2, even_in_pairs: true },
            TileOrder::Lpt { width: 3, even_in_pairs: false },
        ];
        for order in orders {
            for (grid, programs, ctas) in [([7, 5, 2], 1, 6), ([8, 4, 1], 2, 5), ([1, 1, 1], 1, 3), ([10, 3, 1], 1, 40)]
            {
                let tile_scheduler = tile_scheduler(order, programs);
                let all: Vec<[u32; 3]> =
                    (0..ctas).flat_map(|cta| tile_scheduler.programs_of_cta(cta, ctas, grid)).collect();
                let distinct: BTreeSet<[u32; 3]> = all.iter().copied().collect();
                let columns = grid[0].div_ceil(programs);
                assert_eq!(
                    (all.len(), distinct.len()),
                    ((columns * grid[1] * grid[2]) as usize, all.len()),
                    "{order:?}"
                );
                assert!(
                    distinct.iter().all(|p| p[0] < columns && p[1] < grid[1] && p[2] < grid[2]),
                    "{order:?} {grid:?}"
                );
            }
        }
    }

    #[test]
    fn waves_alternate_in_serpentine_order() {
        let tile_scheduler = tile_scheduler(TileOrder::Lpt { width: 1, even_in_pairs: true }, 1);
        // The first axis from its end: CTA 0 has the longest tile of the first wave and the shortest of the second.
        assert_eq!(tile_scheduler.programs_of_cta(0, 4, [8, 1, 1]), [[7, 0, 0], [0, 0, 0]]);
        assert_eq!(tile_scheduler.programs_of_cta(3, 4, [8, 1, 1]), [[4, 0, 0], [3, 0, 0]]);
    }

    /// Where CTAs go back and forth, each has as many iterations as any other (loops get shorter by one from column to column).
    #[test]
    fn in_serpentine_order_all_ctas_have_the_same_to_do() {
        let mut persistent = 0;
        for (columns, resident) in [(4, 7), (8, 16), (12, 24), (32, 132), (64, 148)] {
            for (rows, width) in (1..70).flat_map(|rows| (1..4).map(move |width| (rows, width))) {
                let tile_scheduler = tile_scheduler(TileOrder::Lpt { width, even_in_pairs: true }, 1);
                let ctas = tile_scheduler.ctas([columns, rows, 1], resident);
                if ctas == i64::from(columns * rows) {
                    continue;
                }
                persistent += 1;
                let ctas = u32::try_from(ctas).unwrap();
                assert!(ctas <= resident);
                let work = |cta| -> u32 {
                    tile_scheduler
                        .programs_of_cta(cta, ctas, [columns, rows, 1])
                        .iter()
                        .map(|program| program[0] + 1)
                        .sum()
                };
                assert!((0..ctas).all(|cta| work(cta) == work(0)), "{columns} × {rows}, {width}: {ctas} of {resident}");
            }
        }
        assert!(persistent > 50, "{persistent}");
    }

    #[test]
    fn waves_are_as_few_as_with_all_multiprocessors() {
        let tile_scheduler = tile_scheduler(TileOrder::Linear, 1);
        let of = |x, y| tile_scheduler.ctas([x, y, 1], 264);
        assert_eq!([of(5, 3), of(88, 3), of(53, 5), of(60, 10), of(100, 100)], [15, 264, 133, 200, 264]);
        assert_eq!(TileScheduler { persistent: false, ..tile_scheduler.clone() }.ctas([100, 100, 1], 264), 10_000);
    }

    /// What `tests/runtime` computes with is what kernels get.
    #[test]
    fn counts_of_the_tests_in_python_are_these() {
        let serpentine = tile_scheduler(TileOrder::Lpt { width: 2, even_in_pairs: true }, 1).cta_counts();
        let counts = serde_json::json!({"persistent": tile_scheduler(TileOrder::Linear, 1).cta_counts(), "serpentine": serpentine});
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/runtime/cta_counts.json");
        let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(found, counts, "write {path} again: {counts}");
    }

    #[test]
    fn formulas_keep_their_parentheses() {
        let syntax = Syntax { division: "//", minimum: "min", maximum: "max", and: "and", or: "or" };
        let order = tile_scheduler(TileOrder::GroupM(8), 2);
        assert_eq!(order.columns().print(syntax), "(programs_x + 1) // 2");
        assert_eq!(order.program_of().named[1].1.print(syntax), "rest // (8 * programs_y) * 8");
        assert_eq!(order.tile_count().print(syntax), "(programs_x + 1) // 2 * programs_y * programs_z");
    }
}
