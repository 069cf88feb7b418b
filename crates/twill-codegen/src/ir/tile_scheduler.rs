//! The tile scheduler: which program of the grid a tile is, and which tiles a CTA works on, wave by wave.
//!
//! It is written once, as formulas over the numbers of tiles and CTAs. Back ends print them, and the interpreter evaluates them.

use super::{TileOrder, Tiling};
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
}

/// What a language writes in another way than others.
#[derive(Clone, Copy, Debug)]
pub struct Syntax {
    /// A division of whole numbers.
    pub division: &'static str,
    /// The function for the smaller of two.
    pub minimum: &'static str,
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
                let (symbol, rank) = match operator {
                    Operator::Add => ("+", 1),
                    Operator::Sub => ("-", 1),
                    Operator::Mul => ("*", 2),
                    Operator::Div => (syntax.division, 2),
                    Operator::Rem | Operator::Min => ("%", 2),
                };
                let nested = |of: &Formula, least: u32| {
                    let text = of.print(syntax);
                    if of.rank() < least { format!("({text})") } else { text }
                };
                format!("{} {symbol} {}", nested(a, rank), nested(b, rank + 1))
            }
        }
    }

    fn rank(&self) -> u32 {
        match self {
            Formula::Binary(Operator::Add | Operator::Sub, ..) => 1,
            Formula::Binary(Operator::Mul | Operator::Div | Operator::Rem, ..) => 2,
            _ => 3,
        }
    }
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

    /// The programs that a CTA works on, of so many CTAs, in a grid of so many programs along each axis; in the order of its waves.
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

    #[test]
    fn formulas_keep_their_parentheses() {
        let syntax = Syntax { division: "//", minimum: "min" };
        let order = tiling(TileOrder::GroupM(8), 2);
        assert_eq!(order.columns().print(syntax), "(programs_x + 1) // 2");
        assert_eq!(order.program_of().named[1].1.print(syntax), "rest // (8 * programs_y) * 8");
        assert_eq!(order.tile_count().print(syntax), "(programs_x + 1) // 2 * programs_y * programs_z");
    }
}
