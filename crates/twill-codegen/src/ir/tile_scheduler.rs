//! The tile scheduler: which program of the grid a tile is, and which tiles a CTA works on, wave by wave.
//!
//! It is written once, as formulas over the numbers of tiles and CTAs. Back ends print them, and the interpreter evaluates them.

use super::{TileOrder, Tiling};
use serde::ser::{Serialize, SerializeTuple, Serializer};
use std::ops::{Add, Div, Mul, Rem, Sub};

/// Arithmetic on whole numbers that are not negative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// A number by its name.
    Name(&'static str),
    /// A constant.
    Number(u32),
    /// Of two formulas.
    Binary(Operator, Box<Formula>, Box<Formula>),
}

/// How two numbers become one. Divisions round down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Their sum.
    Add,
    /// Their difference.
    Sub,
    /// Their product.
    Mul,
    /// Their quotient.
    Div,
    /// The rest of their division.
    Rem,
    /// The smaller one.
    Min,
    /// 1 if they are equal, else 0.
    Equal,
    /// 1 if the first is smaller, else 0.
    Less,
    /// 1 if both are 1, else 0.
    And,
    /// 1 if one of them is 1, else 0.
    Or,
}

/// What a language writes in another way than others.
#[derive(Clone, Copy, Debug)]
pub struct Syntax {
    /// A division of whole numbers.
    pub division: &'static str,
    /// The function for the smaller of two.
    pub minimum: &'static str,
    /// That two conditions hold.
    pub and: &'static str,
    /// That one of two conditions holds.
    pub or: &'static str,
}

macro_rules! operator {
    ($($of:ident $function:ident)*) => {
        $(impl<T: Into<Formula>> $of<T> for Formula {
            type Output = Formula;
            fn $function(self, other: T) -> Formula {
                Formula::Binary(Operator::$of, Box::new(self), Box::new(other.into()))
            }
        })*
    };
}
operator!(Add add Sub sub Mul mul Div div Rem rem);

impl From<u32> for Formula {
    fn from(number: u32) -> Formula {
        Formula::Number(number)
    }
}

fn name(text: &'static str) -> Formula {
    Formula::Name(text)
}

impl Formula {
    fn min(self, other: impl Into<Formula>) -> Formula {
        Formula::Binary(Operator::Min, Box::new(self), Box::new(other.into()))
    }

    fn equals(self, other: impl Into<Formula>) -> Formula {
        Formula::Binary(Operator::Equal, Box::new(self), Box::new(other.into()))
    }

    fn less(self, other: impl Into<Formula>) -> Formula {
        Formula::Binary(Operator::Less, Box::new(self), Box::new(other.into()))
    }

    fn and(self, other: Formula) -> Formula {
        Formula::Binary(Operator::And, Box::new(self), Box::new(other))
    }

    fn or(self, other: Formula) -> Formula {
        Formula::Binary(Operator::Or, Box::new(self), Box::new(other))
    }

    /// Its value, with those of the names.
    pub fn value(&self, names: &dyn Fn(&str) -> i64) -> i64 {
        match self {
            Formula::Name(text) => names(text),
            Formula::Number(number) => i64::from(*number),
            Formula::Binary(operator, a, b) => {
                let (a, b) = (a.value(names), b.value(names));
                match operator {
                    Operator::Add => a + b,
                    Operator::Sub => a - b,
                    Operator::Mul => a * b,
                    Operator::Div => a.checked_div_euclid(b).unwrap_or(0),
                    Operator::Rem => a.checked_rem_euclid(b).unwrap_or(0),
                    Operator::Min => a.min(b),
                    Operator::Equal => i64::from(a == b),
                    Operator::Less => i64::from(a < b),
                    Operator::And => i64::from(a != 0 && b != 0),
                    Operator::Or => i64::from(a != 0 || b != 0),
                }
            }
        }
    }

    /// As a language writes it.
    pub fn print(&self, syntax: Syntax) -> String {
        match self {
            Formula::Name(text) => (*text).to_owned(),
            Formula::Number(number) => number.to_string(),
            Formula::Binary(Operator::Min, a, b) => {
                format!("{}({}, {})", syntax.minimum, a.print(syntax), b.print(syntax))
            }
            Formula::Binary(operator, a, b) => {
                let rank = self.rank();
                let symbol = match operator {
                    Operator::Add => "+",
                    Operator::Sub => "-",
                    Operator::Mul => "*",
                    Operator::Div => syntax.division,
                    Operator::Rem | Operator::Min => "%",
                    Operator::Equal => "==",
                    Operator::Less => "<",
                    Operator::And => syntax.and,
                    Operator::Or => syntax.or,
                };
                let nested = |of: &Formula, least: u32| {
                    let text = of.print(syntax);
                    if of.rank() < least { format!("({text})") } else { text }
                };
                format!("{} {symbol} {}", nested(a, rank), nested(b, rank + 1))
            }
        }
    }

    /// How tightly it binds: what binds less than what it stands in gets parentheses.
    fn rank(&self) -> u32 {
        match self {
            Formula::Binary(Operator::Or, ..) => 1,
            Formula::Binary(Operator::And, ..) => 2,
            Formula::Binary(Operator::Equal | Operator::Less, ..) => 3,
            Formula::Binary(Operator::Add | Operator::Sub, ..) => 4,
            Formula::Binary(Operator::Mul | Operator::Div | Operator::Rem, ..) => 5,
            _ => 6,
        }
    }
}

/// A name, a number, or `[operator, a, b]`, as `kernel.json` has it.
impl Serialize for Formula {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Formula::Name(text) => serializer.serialize_str(text),
            Formula::Number(number) => serializer.serialize_u32(*number),
            Formula::Binary(operator, a, b) => {
                let symbol = match operator {
                    Operator::Add => "+",
                    Operator::Sub => "-",
                    Operator::Mul => "*",
                    Operator::Div => "/",
                    Operator::Rem => "%",
                    Operator::Min => "min",
                    Operator::Equal => "==",
                    Operator::Less => "<",
                    Operator::And => "and",
                    Operator::Or => "or",
                };
                let mut parts = serializer.serialize_tuple(3)?;
                parts.serialize_element(symbol)?;
                parts.serialize_element(a)?;
                parts.serialize_element(b)?;
                parts.end()
            }
        }
    }
}

/// A number of CTAs to launch.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CtaCount {
    /// Waves of tiles, over `tiles`, `most` (CTAs that run at once).
    pub waves: Formula,
    /// CTAs, over `waves` and `tiles`.
    pub ctas: Formula,
    /// That it is taken, over `waves`, `tiles`, `most`, `columns` and `rows` of tiles; always, if there is none.
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

impl Tiling {
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
    /// A persistent CTA works on a tile in each wave. As few CTAs as need no more waves than `most` would share what they load
    /// at a time. In serpentine order, loops get shorter by an iteration from column to column: where two waves are whole
    /// swizzle groups, or the other way round, all CTAs have the same to do, but those that are left out of `most` have nothing.
    /// That is worth it while it is less than an iteration for each tile, about what the start of a CTA takes; one wave more
    /// makes pairs of an odd number. Elsewhere the GPU assigns a tile to a CTA as others end.
    pub fn cta_counts(&self) -> Vec<CtaCount> {
        if !self.persistent {
            return Vec::new();
        }
        let (tiles, most, waves) = (|| name("tiles"), || name("most"), || name("waves"));
        let ceil_div = |a: Formula, b: Formula| (a + (b.clone() - 1)) / b;
        let fewest = || ceil_div(tiles(), most());
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
        let idle = waves() * most() - tiles();
        let condition = even.and((idle * name("columns")).less(Formula::Number(2) * waves() * most()));
        let odd = Formula::Number(1).less(fewest()) * (fewest() % 2);
        [fewest(), fewest() + odd]
            .map(|waves| CtaCount { waves, ctas: ctas(), condition: Some(condition.clone()) })
            .into()
    }

    /// CTAs of a launch over a grid of this many tiles along each axis, of which `most` run at once; see [`Tiling::cta_counts`].
    pub fn ctas(&self, tiles: [u32; 3], most: u32) -> i64 {
        let all = tiles.iter().map(|count| i64::from(*count)).product();
        let names = |text: &str| match text {
            "tiles" => all,
            "most" => i64::from(most),
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
                u32::try_from(value).unwrap_or(0)
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
    use std::collections::BTreeSet;

    fn tiling(order: TileOrder, programs: u32) -> Tiling {
        Tiling { persistent: true, wave_sync: false, cta_coarsening: [programs, 1, 1], order }
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
                let tiling = tiling(order, programs);
                let all: Vec<[u32; 3]> = (0..ctas).flat_map(|cta| tiling.programs_of_cta(cta, ctas, grid)).collect();
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
    fn waves_go_there_and_come_back_in_serpentine_order() {
        let tiling = tiling(TileOrder::Lpt { width: 1, even_in_pairs: true }, 1);
        // The first axis from its end: CTA 0 has the longest tile of the first wave and the shortest of the second.
        assert_eq!(tiling.programs_of_cta(0, 4, [8, 1, 1]), [[7, 0, 0], [0, 0, 0]]);
        assert_eq!(tiling.programs_of_cta(3, 4, [8, 1, 1]), [[4, 0, 0], [3, 0, 0]]);
    }

    /// Where CTAs go back and forth, each has as many iterations as any other (loops get shorter by one from column to column).
    #[test]
    fn in_serpentine_order_all_ctas_have_the_same_to_do() {
        let mut persistent = 0;
        for (columns, most) in [(4, 7), (8, 16), (12, 24), (32, 132), (64, 148)] {
            for (rows, width) in (1..70).flat_map(|rows| (1..4).map(move |width| (rows, width))) {
                let tiling = tiling(TileOrder::Lpt { width, even_in_pairs: true }, 1);
                let ctas = tiling.ctas([columns, rows, 1], most);
                if ctas == i64::from(columns * rows) {
                    continue;
                }
                persistent += 1;
                let ctas = u32::try_from(ctas).unwrap();
                assert!(ctas <= most);
                let work = |cta| -> u32 {
                    tiling.programs_of_cta(cta, ctas, [columns, rows, 1]).iter().map(|program| program[0] + 1).sum()
                };
                assert!((0..ctas).all(|cta| work(cta) == work(0)), "{columns} × {rows}, {width}: {ctas} of {most}");
            }
        }
        assert!(persistent > 50, "{persistent}");
    }

    #[test]
    fn waves_are_as_few_as_with_all_multiprocessors() {
        let tiling = tiling(TileOrder::Linear, 1);
        let of = |x, y| tiling.ctas([x, y, 1], 264);
        assert_eq!([of(5, 3), of(88, 3), of(53, 5), of(60, 10), of(100, 100)], [15, 264, 133, 200, 264]);
        assert_eq!(Tiling { persistent: false, ..tiling.clone() }.ctas([100, 100, 1], 264), 10_000);
    }

    /// What `tests/runtime` computes with is what kernels get.
    #[test]
    fn counts_of_the_tests_in_python_are_these() {
        let serpentine = tiling(TileOrder::Lpt { width: 2, even_in_pairs: true }, 1).cta_counts();
        let counts =
            serde_json::json!({"persistent": tiling(TileOrder::Linear, 1).cta_counts(), "serpentine": serpentine});
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/runtime/cta_counts.json");
        let found: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(found, counts, "write {path} again: {counts}");
    }

    #[test]
    fn formulas_keep_their_parentheses() {
        let syntax = Syntax { division: "//", minimum: "min", and: "and", or: "or" };
        let order = tiling(TileOrder::GroupM(8), 2);
        assert_eq!(order.columns().print(syntax), "(programs_x + 1) // 2");
        assert_eq!(order.program_of().named[1].1.print(syntax), "rest // (8 * programs_y) * 8");
        assert_eq!(order.tile_count().print(syntax), "(programs_x + 1) // 2 * programs_y * programs_z");
    }
}
