//! The TTIR of a random kernel.

use super::recipe::{Recipe, Source, Step, ValueKind, Walk};
use std::fmt::Write as _;

/// Iterations for which stores of different programs do not overlap.
pub(super) const MOST_TRIPS: u32 = 12;

impl Recipe {
    /// The kernel's text.
    pub fn text(&self) -> String {
        let mut writer = Writer { recipe: self, out: String::new(), names: Vec::new(), next: 0 };
        writer.kernel();
        writer.out
    }

    /// The tensors that the loop and the epilogue store to: kinds of the stored values, in the order of their tensors.
    pub(super) fn stored(&self) -> Vec<ValueKind> {
        let kinds = self.kinds();
        let within = self.steps.iter().filter_map(|s| match s {
            Step::Store(v) | Step::Add(v) => Some(kinds[*v]),
            _ => None,
        });
        within.chain(self.carried.iter().map(|c| c.kind)).collect()
    }

    /// The kind of every value.
    pub(super) fn kinds(&self) -> Vec<ValueKind> {
        let mut kinds: Vec<ValueKind> = self.carried.iter().map(|c| c.kind).collect();
        kinds.extend(self.outer.iter().map(|s| ValueKind::Half(self.sources[*s].rows, self.sources[*s].columns)));
        for step in &self.steps {
            let kind = match *step {
                Step::Load(s) => ValueKind::Half(self.sources[s].rows, self.sources[s].columns),
                Step::LoadRows(_) | Step::Reduce(..) => ValueKind::Rows(self.rows),
                Step::Transpose(v) => match kinds[v] {
                    ValueKind::Half(r, c) => ValueKind::Half(c, r),
                    other => other,
                },
                Step::Dot(a, b, _) => match (kinds[a], kinds[b]) {
                    (ValueKind::Half(r, _), ValueKind::Half(_, c)) => ValueKind::Single(r, c),
                    (other, _) => other,
                },
                Step::Halve(v) => match kinds[v] {
                    ValueKind::Single(r, c) => ValueKind::Half(r, c),
                    other => other,
                },
                Step::Combine(_, v, _) | Step::WithRows(_, v, _) | Step::Scale(v, _) | Step::Power(v) => kinds[v],
                Step::Store(v) | Step::Add(v) => kinds[v],
            };
            kinds.push(kind);
        }
        kinds
    }
}

impl ValueKind {
    fn shape(self, element: &str) -> String {
        match self {
            ValueKind::Single(r, c) | ValueKind::Half(r, c) => format!("tensor<{r}x{c}x{element}>"),
            ValueKind::Rows(r) => format!("tensor<{r}x{element}>"),
        }
    }

    /// Its type in the TTIR.
    pub(super) fn text(self) -> String {
        self.shape(self.element())
    }

    pub(super) fn element(self) -> &'static str {
        if matches!(self, ValueKind::Half(..)) { "f16" } else { "f32" }
    }
}

struct Writer<'a> {
    recipe: &'a Recipe,
    out: String,
    /// The type of every value.
    names: Vec<String>,
    next: u32,
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "  ".repeat(depth));
    }

    /// A line that makes something new; its name.
    fn make(&mut self, depth: usize, text: &str) -> String {
        self.next += 1;
        let name = format!("%v{}", self.next);
        self.line(depth, &format!("{name} = {text}"));
        name
    }

    fn kernel(&mut self) {
        let recipe = self.recipe;
        let mut parameters = Vec::new();
        let mut descriptor = |name: String, block: String| {
            parameters.push(format!("%{name}: !tt.tensordesc<{block}>"));
            parameters
                .extend(["rows: i32", "columns: i32", "down: i64", "across: i64"].map(|p| format!("%{name}_{p}")));
        };
        for (k, source) in recipe.sources.iter().enumerate().filter(|(_, s)| !s.by_pointers) {
            descriptor(format!("source{k}"), ValueKind::Half(source.rows, source.columns).text());
        }
        for (k, kind) in recipe.stored().iter().enumerate().filter(|(_, kind)| !matches!(kind, ValueKind::Rows(_))) {
            let kind = if k >= recipe.stored().len() - recipe.carried.len() { half(*kind) } else { *kind };
            descriptor(format!("stored{k}"), kind.text());
        }
        let pointer =
            |name: String, element: &str| format!("%{name}: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}");
        for (k, _) in recipe.sources.iter().enumerate().filter(|(_, s)| s.by_pointers) {
            parameters.push(pointer(format!("source{k}"), "f16"));
            parameters.push(format!("%source{k}_rows: i32 {{tt.divisibility = 16 : i32}}"));
            parameters.push(format!("%source{k}_columns: i32 {{tt.divisibility = 16 : i32}}"));
        }
        parameters.extend((0..recipe.vectors).map(|k| pointer(format!("vector{k}"), "f32")));
        for (k, kind) in recipe.stored().iter().enumerate() {
            if matches!(kind, ValueKind::Rows(_)) {
                parameters.push(pointer(format!("stored{k}"), "f32"));
            }
        }
        parameters.extend(["%first: i32", "%second: i32"].map(str::to_owned));
        self.line(0, "module {");
        self.line(1, &format!("tt.func public @random({}) {{", parameters.join(", ")));
        self.body();
        self.line(2, "tt.return");
        self.line(1, "}");
        self.line(0, "}");
    }

    fn body(&mut self) {
        let recipe = self.recipe;
        for n in [0, 1, 16, 64, MOST_TRIPS * recipe.rows, recipe.stride] {
            if !self.out.contains(&format!("%c{n} =")) {
                self.line(2, &format!("%c{n} = arith.constant {n} : i32"));
            }
        }
        for (k, carried) in recipe.carried.iter().enumerate() {
            let (kind, initial) = (carried.kind.text(), carried.initial);
            self.line(2, &format!("%initial{k} = arith.constant dense<{initial:.6e}> : {kind}"));
        }
        self.line(2, "%program = tt.get_program_id x : i32");
        self.line(2, "%own16 = arith.muli %program, %c16 : i32");
        self.line(2, &format!("%own = arith.muli %program, %c{} : i32", MOST_TRIPS * recipe.rows));
        self.line(
            2,
            &format!(
                "%range = tt.make_range {{end = {} : i32, start = 0 : i32}} : {}",
                recipe.rows,
                rows_of(recipe.rows, "i32")
            ),
        );
        self.names = (0..recipe.carried.len()).map(|k| format!("%initial{k}")).collect();
        for source in recipe.outer.clone() {
            let tile = self.load(2, source, "%c0");
            self.names.push(tile);
        }
        let outer: Vec<String> = self.names[recipe.carried.len()..].to_vec();
        let results = self.for_loop("a", "%c0", "%first", &outer);
        let results = if recipe.twice {
            self.names = results;
            self.for_loop("b", "%first", "%second", &outer)
        } else {
            results
        };
        self.results(&results);
    }

    /// A loop that begins with the first names; the names of its results.
    fn for_loop(&mut self, name: &str, lower: &str, upper: &str, outer: &[String]) -> Vec<String> {
        let recipe = self.recipe;
        let count = recipe.carried.len();
        let kinds: Vec<String> = recipe.carried.iter().map(|c| c.kind.text()).collect();
        let arguments: Vec<String> = (0..count).map(|k| format!("%carried_{name}{k} = {}", self.names[k])).collect();
        self.line(
            2,
            &format!(
                "%loop_{name}:{count} = scf.for %i_{name} = {lower} to {upper} step %c{} iter_args({}) -> ({}) : i32 {{",
                recipe.stride,
                arguments.join(", "),
                kinds.join(", ")
            ),
        );
        self.names = (0..count).map(|k| format!("%carried_{name}{k}")).chain(outer.iter().cloned()).collect();
        let i = format!("%i_{name}");
        let mut stored = 0;
        for step in recipe.steps.clone() {
            let made = self.step(step, &i, &mut stored);
            self.names.push(made);
        }
        let yielded: Vec<String> = recipe.carried.iter().map(|c| self.names[c.next].clone()).collect();
        self.line(3, &format!("scf.yield {} : {}", yielded.join(", "), kinds.join(", ")));
        self.line(2, "}");
        (0..count).map(|k| format!("%loop_{name}#{k}")).collect()
    }

    /// An iteration's number times this.
    fn ahead(&mut self, depth: usize, i: &str, by: u32) -> String {
        let by = by / self.recipe.stride;
        let factor = self.make(depth, &format!("arith.constant {by} : i32"));
        self.make(depth, &format!("arith.muli {i}, {factor} : i32"))
    }

    /// The first row and column of a source's tile.
    fn tile_origin(&mut self, depth: usize, source: Source, i: &str) -> (String, String) {
        match source.walk {
            Walk::Down => {
                let ahead = self.ahead(depth, i, source.rows);
                (self.make(depth, &format!("arith.addi {ahead}, %own16 : i32")), "%c0".into())
            }
            Walk::Across => ("%own16".into(), self.ahead(depth, i, source.columns)),
            Walk::Stay => ("%own16".into(), "%c0".into()),
        }
    }

    fn load(&mut self, depth: usize, number: usize, i: &str) -> String {
        let source = self.recipe.sources[number];
        let (row, column) = self.tile_origin(depth, source, i);
        let kind = ValueKind::Half(source.rows, source.columns);
        let tile = kind.text();
        if !source.by_pointers {
            return self.make(
                depth,
                &format!("tt.descriptor_load %source{number}[{row}, {column}] : !tt.tensordesc<{tile}> -> {tile}"),
            );
        }
        let (r, c) = (source.rows, source.columns);
        let integers = kind.shape("i32");
        let bits = kind.shape("i1");
        let pointers = kind.shape("!tt.ptr<f16>");
        let rows = self.indices(depth, &row, r, 1, &integers, (r, 1));
        let columns = self.indices(depth, &column, c, 0, &integers, (1, c));
        let stride = self.make(depth, &format!("tt.splat %source{number}_columns : i32 -> {integers}"));
        let below = self.make(depth, &format!("arith.muli {rows}, {stride} : {integers}"));
        let base = self.make(depth, &format!("tt.splat %source{number} : !tt.ptr<f16> -> {pointers}"));
        let line = self.make(depth, &format!("tt.addptr {base}, {below} : {pointers}, {integers}"));
        let place = self.make(depth, &format!("tt.addptr {line}, {columns} : {pointers}, {integers}"));
        let most = self.make(depth, &format!("tt.splat %source{number}_rows : i32 -> {integers}"));
        let inside = self.make(depth, &format!("arith.cmpi slt, {rows}, {most} : {integers}"));
        let within = self.make(depth, &format!("arith.cmpi slt, {columns}, {stride} : {integers}"));
        let mask = self.make(depth, &format!("arith.andi {inside}, {within} : {bits}"));
        let zero = self.make(depth, &format!("arith.constant dense<0.0> : {tile}"));
        self.make(depth, &format!("tt.load {place}, {mask}, {zero} : {pointers}"))
    }

    /// Indices from a first one on, spread over a tile; `axis`: the dimension that is put in.
    fn indices(&mut self, depth: usize, first: &str, count: u32, axis: u32, to: &str, thin: (u32, u32)) -> String {
        let line = rows_of(count, "i32");
        let range = self.make(depth, &format!("tt.make_range {{end = {count} : i32, start = 0 : i32}} : {line}"));
        let start = self.make(depth, &format!("tt.splat {first} : i32 -> {line}"));
        let all = self.make(depth, &format!("arith.addi {start}, {range} : {line}"));
        let thin = format!("tensor<{}x{}xi32>", thin.0, thin.1);
        let expanded = self.make(depth, &format!("tt.expand_dims {all} {{axis = {axis} : i32}} : {line} -> {thin}"));
        self.make(depth, &format!("tt.broadcast {expanded} : {thin} -> {to}"))
    }

    fn constant(&mut self, depth: usize, x: f64, kind: ValueKind) -> String {
        self.make(depth, &format!("arith.constant dense<{x:.6e}> : {}", kind.text()))
    }

    /// Between −limit and limit.
    fn bounded(&mut self, depth: usize, value: &str, limit: f64, kind: ValueKind) -> String {
        let (high, low) = (self.constant(depth, limit, kind), self.constant(depth, -limit, kind));
        let below = self.make(depth, &format!("arith.minnumf {value}, {high} : {}", kind.text()));
        self.make(depth, &format!("arith.maxnumf {below}, {low} : {}", kind.text()))
    }

    /// A number for every row, spread over a matrix.
    fn spread(&mut self, depth: usize, value: &str, kind: ValueKind) -> String {
        let ValueKind::Single(r, _) = kind else { return value.into() };
        let (line, thin) = (rows_of(r, "f32"), format!("tensor<{r}x1xf32>"));
        let column = self.make(depth, &format!("tt.expand_dims {value} {{axis = 1 : i32}} : {line} -> {thin}"));
        self.make(depth, &format!("tt.broadcast {column} : {thin} -> {}", kind.text()))
    }

    fn step(&mut self, step: Step, i: &str, stored: &mut usize) -> String {
        let kinds = self.recipe.kinds();
        let (rows, name) = (self.recipe.rows, |writer: &Self, v: usize| writer.names[v].clone());
        match step {
            Step::Load(source) => self.load(3, source, i),
            Step::LoadRows(vector) => {
                let ahead = self.ahead(3, i, rows.max(16));
                let (integers, pointers) = (rows_of(rows, "i32"), rows_of(rows, "!tt.ptr<f32>"));
                let start = self.make(3, &format!("tt.splat {ahead} : i32 -> {integers}"));
                let all = self.make(3, &format!("arith.addi {start}, %range : {integers}"));
                let base = self.make(3, &format!("tt.splat %vector{vector} : !tt.ptr<f32> -> {pointers}"));
                let place = self.make(3, &format!("tt.addptr {base}, {all} : {pointers}, {integers}"));
                self.make(3, &format!("tt.load {place} : {pointers}"))
            }
            Step::Transpose(v) => {
                let ValueKind::Half(r, c) = kinds[v] else { return name(self, v) };
                let (from, to) = (kinds[v].text(), ValueKind::Half(c, r).text());
                let value = name(self, v);
                self.make(3, &format!("tt.trans {value} {{order = array<i32: 1, 0>}} : {from} -> {to}"))
            }
            Step::Dot(a, b, sum) => {
                let (ValueKind::Half(r, _), ValueKind::Half(_, c)) = (kinds[a], kinds[b]) else { return name(self, a) };
                let to = ValueKind::Single(r, c);
                let sum = match sum {
                    Some(v) => name(self, v),
                    None => self.constant(3, 0.0, to),
                };
                let (left, right) = (name(self, a), name(self, b));
                let kinds = format!("{} * {} -> {}", kinds[a].text(), kinds[b].text(), to.text());
                self.make(3, &format!("tt.dot {left}, {right}, {sum}, inputPrecision = tf32 : {kinds}"))
            }
            Step::Combine(operation, a, b) => {
                let (left, right) = (name(self, a), name(self, b));
                self.make(3, &format!("{operation} {left}, {right} : {}", kinds[a].text()))
            }
            Step::Power(v) => {
                let value = name(self, v);
                let bounded = self.bounded(3, &value, 3.0, kinds[v]);
                self.make(3, &format!("math.exp2 {bounded} : {}", kinds[v].text()))
            }
            Step::Scale(v, factor) => {
                let factor = self.constant(3, factor, kinds[v]);
                let value = name(self, v);
                self.make(3, &format!("arith.mulf {value}, {factor} : {}", kinds[v].text()))
            }
            Step::WithRows(operation, a, b) => {
                let (left, right) = (name(self, a), name(self, b));
                let right = self.spread(3, &right, kinds[a]);
                self.make(3, &format!("{operation} {left}, {right} : {}", kinds[a].text()))
            }
            Step::Reduce(combine, v) => {
                let (value, from, to) = (name(self, v), kinds[v].text(), rows_of(rows, "f32"));
                self.next += 1;
                let n = self.next;
                self.line(3, &format!("%v{n} = \"tt.reduce\"({value}) <{{axis = 1 : i32}}> ({{"));
                self.line(3, &format!("^bb0(%l{n}: f32, %r{n}: f32):"));
                self.line(4, &format!("%m{n} = {combine} %l{n}, %r{n} : f32"));
                self.line(4, &format!("tt.reduce.return %m{n} : f32"));
                self.line(3, &format!("}}) : ({from}) -> {to}"));
                format!("%v{n}")
            }
            Step::Halve(v) => {
                let value = name(self, v);
                self.halve(3, &value, kinds[v])
            }
            Step::Store(v) | Step::Add(v) => {
                let ahead = self.ahead(3, i, rows.max(16));
                let row = self.make(3, &format!("arith.addi %own, {ahead} : i32"));
                let (value, tile, k) = (name(self, v), kinds[v].text(), *stored);
                *stored += 1;
                let operation = match step {
                    Step::Store(_) => "tt.descriptor_store",
                    _ => "tt.descriptor_reduce add,",
                };
                self.line(3, &format!("{operation} %stored{k}[{row}, %c0], {value} : !tt.tensordesc<{tile}>, {tile}"));
                value
            }
        }
    }

    fn halve(&mut self, depth: usize, value: &str, kind: ValueKind) -> String {
        let bounded = self.bounded(depth, value, 1024.0, kind);
        self.make(depth, &format!("arith.truncf {bounded} : {} to {}", kind.text(), half(kind).text()))
    }

    /// Stores what the loop has carried.
    fn results(&mut self, results: &[String]) {
        let recipe = self.recipe;
        let first = recipe.stored().len() - recipe.carried.len();
        let divisor =
            recipe.carried.iter().position(|c| matches!(c.kind, ValueKind::Rows(_))).filter(|_| recipe.divides);
        for (k, (carried, value)) in recipe.carried.iter().zip(results).enumerate() {
            let (number, kind, mut value) = (first + k, carried.kind, value.clone());
            if let ValueKind::Rows(rows) = kind {
                let (integers, pointers) = (rows_of(rows, "i32"), rows_of(rows, "!tt.ptr<f32>"));
                let start = self.make(2, &format!("tt.splat %own : i32 -> {integers}"));
                let all = self.make(2, &format!("arith.addi {start}, %range : {integers}"));
                let base = self.make(2, &format!("tt.splat %stored{number} : !tt.ptr<f32> -> {pointers}"));
                let place = self.make(2, &format!("tt.addptr {base}, {all} : {pointers}, {integers}"));
                self.line(2, &format!("tt.store {place}, {value} : {pointers}"));
                continue;
            }
            if let (Some(divisor), ValueKind::Single(..)) = (divisor, kind) {
                let spread = self.spread(2, &results[divisor].clone(), kind);
                value = self.make(2, &format!("arith.divf {value}, {spread} : {}", kind.text()));
            }
            if let ValueKind::Single(..) = kind {
                value = self.halve(2, &value, kind);
            }
            let tile = half(kind).text();
            self.line(
                2,
                &format!("tt.descriptor_store %stored{number}[%own, %c0], {value} : !tt.tensordesc<{tile}>, {tile}"),
            );
        }
    }
}

fn rows_of(count: u32, element: &str) -> String {
    format!("tensor<{count}x{element}>")
}

/// The same in `f16`.
pub(super) fn half(kind: ValueKind) -> ValueKind {
    match kind {
        ValueKind::Single(r, c) => ValueKind::Half(r, c),
        other => other,
    }
}
