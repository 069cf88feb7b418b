//! Loads and stores through pointers that read or write a tile of a matrix, as a tensor descriptor would.
//!
//! The rule. A `tt.load` of two dimensions in a loop is such a load if, read as polynomials in the element's indices `x₀`
//! and `x₁`, the iteration's number and scalars,
//!
//! - its pointers are `base + Σ batch · batch stride + row · stride + column`, with `row = x₀ + r`, `column = x₁ + c` (or, for
//!   a tile that is read transposed, `row = x₁ + r`, `column = x₀ + c`), and no index in `r`, `c`, the batches and strides;
//! - its mask is `row < rows ∧ column < columns` and nothing else, in any order and form (`depth < K - k` says
//!   `k + depth < K`), where `rows` and `columns` are arguments of the kernel or constants. Where it says nothing of row or
//!   column, or there is none, the matrix has no end there ([`ENDLESS`]);
//! - `row % rows` in the pointers instead of `row < rows` in the mask is as good, if no store writes what is computed from rows
//!   beyond the matrix ([`super::wrapped`]); so for columns, and so are `where(row < rows, row, other)` and
//!   `minimum(row, rows - 1)`. Where the mask says the same condition, nothing is read elsewhere;
//! - `r`, `c` and the batches cannot be negative: they are sums, with positive coefficients, of products of program numbers,
//!   iterations and what is computed of these, of constants and of arguments, or `tl.assume` says so; the launcher sees to it
//!   that those arguments are not negative, nor what is left in any program where one of them is subtracted from
//!   ([`super::natural`]). What goes down from an iteration to the next is no less than in the last of them. A descriptor reads
//!   zeros at negative coordinates, pointers read what stands there;
//! - `r` may be any number, such as one that the loop loads, if the mask says nothing of rows, the stride is a constant, and
//!   addresses are of 32 bits: the matrix then begins [so many rows](Matrix::rows_before) before `base` that they are in it;
//! - what is masked off reads as zero, or is not specified;
//! - `base` and the strides are arguments of the kernel (strides perhaps constants), and multiples of 16 bytes: the caller
//!   promises so by `tt.divisibility`;
//! - the kernel writes nothing through `base`, and the load is not volatile.
//!
//! A `tt.store` outside of loops is such a store if the same holds of its pointers and mask, it is not transposed, and nothing
//! else is written through its `base`, and rows of the matrix end at multiples of 16 bytes. Then a descriptor writes nothing at
//! negative coordinates or beyond the matrix.
//!
//! The masks say which numbers row and column are, and the pointers must agree. Where they say nothing, any way to split the
//! address gives the same one. All is equal as long as neither the kernel's own arithmetic nor a coordinate, which have 32 bits,
//! overflows, where it would read elsewhere.

mod coordinates;

use crate::mlir::{Definition, ForLoop, Module, OperationId, Type, ValueId};

use crate::operations::{Memory, memory};
use crate::polynomial::{Polynomial, Symbol};
use crate::tile::{Amount, ENDLESS, Matrix, MatrixTile, WholeTile};

use super::affine::Reader;
use super::strides::{number_of, offset_of, order, quotient, stride};
use super::wrapped::{self, Wrap};

/// Bytes that TMA moves at least, and of which addresses and strides are multiples.
const GRANULE: u64 = 16;
/// Dimensions along which there may be several matrices: a tensor map has five, of which CUDA's primitives here know four.
const MOST_BATCHES: usize = 2;
/// Elements, at least, by which a constant multiple of scalars counts matrices and not columns of one.
const FAR: i128 = 1 << 16;

/// The tile of a matrix that a `tt.load` of a loop's body reads; `None` where that is not proved.
pub(super) fn tile(
    module: &Module,
    function: OperationId,
    parts: &ForLoop<'_>,
    load: OperationId,
) -> Option<MatrixTile> {
    let access = read(module, load)?;
    let others = module.operation(load).operands.get(2..).unwrap_or_default();
    let is_zero = |v: &ValueId| module.float_constant(*v) == Some(0.0) || module.integer_constant(*v) == Some(0);
    if !others.iter().all(is_zero) {
        return None;
    }
    let reader = Reader::new(module, function, Some(parts)).under_mask().with_scalars_of_iterations();
    Recognizer { module, function, reader }.tile(access)
}

/// What a `tt.load` of a loop's body reads in most iterations: a tile of a matrix that lies there as a whole, whatever bounds
/// it, and whatever number of the launch or of memory says where it begins; `None` where it is none.
pub(super) fn whole(
    module: &Module,
    function: OperationId,
    parts: &ForLoop<'_>,
    load: OperationId,
) -> Option<WholeTile> {
    let reader = Reader::new(module, function, Some(parts)).under_mask().with_scalars_of_iterations();
    Recognizer { module, function, reader }.whole(read(module, load)?)
}

/// The memory that a `tt.load` reads.
fn read(module: &Module, load: OperationId) -> Option<Access> {
    let operation = module.operation(load);
    if operation.name != "tt.load" || operation.attributes.get("isVolatile").is_some() {
        return None;
    }
    let loaded = *operation.results.first()?;
    let kind = module.type_of(loaded);
    let bytes = element_bytes(kind.element())?;
    let shape = <[u64; 2]>::try_from(kind.known_shape()?).ok()?;
    let (pointers, mask) = (*operation.operands.first()?, operation.operands.get(1).copied());
    Some(Access { pointers, mask, shape, bytes, store: None, loaded: Some(loaded) })
}

/// The tile of a matrix that a `tt.store` outside of loops writes; `None` where that is not proved.
pub(super) fn stored(module: &Module, function: OperationId, store: OperationId) -> Option<MatrixTile> {
    let operation = module.operation(store);
    let (pointers, value, mask) = match operation.operands.as_slice() {
        [pointers, value] => (*pointers, *value, None),
        [pointers, value, mask] => (*pointers, *value, Some(*mask)),
        _ => return None,
    };
    if operation.name != "tt.store" {
        return None;
    }
    let kind = module.type_of(value);
    let bytes = element_bytes(kind.element())?;
    let shape = <[u64; 2]>::try_from(kind.known_shape()?).ok()?;
    let recognizer = Recognizer { module, function, reader: Reader::new(module, function, None).under_mask() };
    let access = Access { pointers, mask, shape, bytes, store: Some(store), loaded: None };
    recognizer.tile(access).filter(|tile| !tile.transposed && recognizer.ends_at_granule(&tile.matrix, bytes))
}

/// The memory that is read or written.
struct Access {
    pointers: ValueId,
    mask: Option<ValueId>,
    shape: [u64; 2],
    /// The size of an element.
    bytes: u64,
    /// The operation, if it writes.
    store: Option<OperationId>,
    /// What is read, if it reads.
    loaded: Option<ValueId>,
}

impl Recognizer<'_> {
    fn tile(&self, Access { pointers, mask, shape, bytes, store, loaded }: Access) -> Option<MatrixTile> {
        let along = [Some(0), Some(1)];
        let (base, offset) = self.reader.pointer(pointers, &along)?;
        let (mut wraps, assumed, widened) =
            (self.reader.take_wraps(), self.reader.take_assumed(), self.reader.take_widened());
        let mut conditions = match mask {
            Some(mask) => self.reader.conditions(mask, &along)?,
            None => Vec::new(),
        };
        // A mask that begins again says nothing of what lies beyond the end.
        if !self.reader.take_wraps().is_empty() || !self.reader.take_assumed().is_empty() {
            return None;
        }
        // What the mask does not say may not matter.
        for condition in assumed.into_iter().filter(|condition| !conditions.contains(condition)) {
            let mut along = [0, 1].into_iter().filter(|d| condition.mentions(Symbol::Index(*d)));
            let (Some(dimension), None) = (along.next(), along.next()) else { return None };
            let wrap = Wrap { dimension, before_end: condition, number: None };
            if !wraps.contains(&wrap) {
                wraps.push(wrap);
            }
        }
        let is_hidden = |value, wrap: &Wrap| wrapped::is_hidden(self.module, self.function, value, wrap);
        if !wraps.iter().all(|wrap| loaded.is_some_and(|value| is_hidden(value, wrap))) {
            return None;
        }
        conditions.extend(wraps.into_iter().map(|wrap| wrap.before_end));
        if !self.is_multiple_of_16(base) || self.is_written(base, store) {
            return None;
        }
        if conditions.iter().any(|c| !c.mentions(Symbol::Index(0)) && !c.mentions(Symbol::Index(1))) {
            return None;
        }
        let bounds = [self.bounds(&conditions, 0)?, self.bounds(&conditions, 1)?];
        [false, true].into_iter().find_map(|transposed| {
            let [row, column] = order(transposed);
            let (stride, rest) = self.rows(&offset, shape, bytes, transposed)?;
            let pairs = bounds[row].iter().flat_map(|r| bounds[column].iter().map(move |c| (r, c)));
            pairs.into_iter().find_map(|(rows, columns)| {
                let place = self.place(&rest, [rows, columns], stride, bytes)?;
                // What the masks do not say is a number of the address, which may be too large for a coordinate.
                let [row, column] = &place.origin;
                let mut of_address: Vec<&Polynomial> = place.batches.iter().map(|batch| &batch.1).collect();
                of_address.extend(rows.start.is_none().then_some(row));
                of_address.extend(columns.start.is_none().then_some(column));
                if widened && !of_address.iter().all(|start| self.fits(start)) {
                    return None;
                }
                let natural = self.natural_place(&place);
                let may_be_before = natural.is_none() && store.is_none() && !widened && rows.start.is_none();
                let rows_before = may_be_before.then(|| self.rows_before(&place.origin[0], stride)).flatten();
                let natural = match (natural, rows_before) {
                    (Some(natural), _) => natural,
                    (None, Some(_)) => {
                        let (origin, batches) = ([Polynomial::default(), column.clone()], place.batches.clone());
                        self.natural_place(&Place { origin, batches })?
                    }
                    (None, None) => return None,
                };
                let rows_before = rows_before.unwrap_or(0);
                let (batches, batch) = place.batches.into_iter().unzip();
                let matrix = Matrix { base, batches, extents: [rows.extent, columns.extent], stride, rows_before };
                let natural = natural.into_iter().collect();
                Some(MatrixTile { matrix, batch, tile_origin: place.origin, transposed, natural })
            })
        })
    }

    /// The same without bounds.
    fn whole(&self, Access { pointers, mask, shape, bytes, .. }: Access) -> Option<WholeTile> {
        let along = [Some(0), Some(1)];
        let (base, offset) = self.reader.pointer(pointers, &along)?;
        let mut positive = match mask {
            Some(mask) => self.reader.conditions(mask, &along)?,
            None => Vec::new(),
        };
        positive.extend(self.reader.take_assumed());
        for Wrap { before_end, number, .. } in self.reader.take_wraps() {
            positive.push(before_end);
            // The remainder of what is negative is another number.
            positive.extend(number.and_then(|number| number.plus(&Polynomial::constant(1))));
        }
        let wide = self.reader.take_widened();
        if !self.is_multiple_of_16(base) || self.is_written(base, None) || !positive.iter().all(is_plain_in_indices) {
            return None;
        }
        let everywhere = Bound { extent: Amount::Constant(ENDLESS), start: None };
        [false, true].into_iter().find_map(|transposed| {
            let (stride, rest) = self.rows(&offset, shape, bytes, transposed)?;
            let place = self.place(&rest, [&everywhere, &everywhere], stride, bytes)?;
            // Where a launch would have to show it, every tile does.
            let is_natural = self.natural_place(&place).is_some_and(|natural| natural.is_empty());
            let (batches, batch) = place.batches.into_iter().unzip();
            let extents = [everywhere.extent, everywhere.extent];
            let matrix = Matrix { base, batches, extents, stride, rows_before: 0 };
            let tile = MatrixTile { matrix, batch, tile_origin: place.origin, transposed, natural: Vec::new() };
            let positive = positive.iter().filter(|number| !self.is_positive(number)).cloned().collect();
            Some(WholeTile { tile, positive, is_natural, wide })
        })
    }

    /// The stride of a tile's rows, transposed or not, and how many elements after the base the tile begins.
    fn rows(&self, offset: &Polynomial, shape: [u64; 2], bytes: u64, transposed: bool) -> Option<(Amount, Polynomial)> {
        let order = order(transposed);
        let [row, column] = order;
        if shape[column].checked_mul(bytes)? % GRANULE != 0 {
            return None;
        }
        let stride = stride(offset, row).filter(|stride| self.is_aligned(*stride, bytes))?;
        // Without the element's own row and column.
        let rest = offset.minus(&offset_of(&[Polynomial::default(), Polynomial::default()], stride, order)?)?;
        let is_index = |symbol: &Symbol| matches!(symbol, Symbol::Index(_));
        let begins = rest.terms().all(|(product, _)| !product.iter().any(is_index));
        begins.then_some((stride, rest))
    }

    /// Where a tile begins that lies `rest` elements after the base: bounds of its rows and columns say what they can, and
    /// what is left counts rows, matrices or columns.
    fn place(&self, rest: &Polynomial, bounds: [&Bound; 2], stride: Amount, bytes: u64) -> Option<Place> {
        let mut rest = rest.clone();
        if let Some(start) = &bounds[1].start {
            rest = rest.minus(start)?;
        }
        let row = match &bounds[0].start {
            Some(start) => start.clone(),
            None => quotient(&rest, stride)?,
        };
        rest = rest.minus(&row.times(&number_of(stride))?)?;
        let mut column = bounds[1].start.clone().unwrap_or_default();
        let mut batches: Vec<(Amount, Polynomial)> = Vec::new();
        for (product, coefficient) in rest.terms() {
            match self.batch(product, coefficient, stride, bytes, bounds[1].start.is_none()) {
                Some((by, number)) => match batches.iter_mut().find(|(known, _)| *known == by) {
                    Some((_, known)) => *known = known.plus(&number)?,
                    None => batches.push((by, number)),
                },
                None if bounds[1].start.is_none() => {
                    column = column.plus(&Polynomial::product(product.to_vec(), coefficient))?;
                }
                None => return None,
            }
        }
        (batches.len() <= MOST_BATCHES).then_some(Place { batches, origin: [row, column] })
    }

    /// A term of an address as a number of matrices, and the elements from one to the next. may_be_columns: it may
    /// count columns instead, if they are few.
    fn batch(
        &self,
        product: &[Symbol],
        coefficient: i128,
        stride: Amount,
        bytes: u64,
        may_be_columns: bool,
    ) -> Option<(Amount, Polynomial)> {
        let is_stride = |symbol: &Symbol| match symbol {
            Symbol::Scalar(value) => self.is_argument(*value) && self.is_multiple_of_16(*value),
            _ => false,
        };
        // Of several arguments the last is the stride: those before it are sizes.
        if product.len() > 1
            && let Some(at) = product.iter().rposition(is_stride)
        {
            let Symbol::Scalar(value) = product[at] else { return None };
            let others = product.iter().enumerate().filter(|(k, _)| *k != at).map(|(_, symbol)| *symbol).collect();
            return Some((Amount::Argument(value), Polynomial::product(others, coefficient)));
        }
        let far = match stride {
            Amount::Constant(elements) => i128::from(elements),
            Amount::Argument(_) => FAR,
        };
        let elements = u64::try_from(coefficient).ok()?;
        let is_column = may_be_columns && coefficient < far || product.is_empty();
        let aligned = elements.checked_mul(bytes).is_some_and(|bytes| bytes % GRANULE == 0);
        (!is_column && aligned).then(|| (Amount::Constant(elements), Polynomial::product(product.to_vec(), 1)))
    }
}

/// Whether an element's indices are only added to what a number is, each as often as a constant says.
fn is_plain_in_indices(number: &Polynomial) -> bool {
    let is_index = |symbol: &Symbol| matches!(symbol, Symbol::Index(_));
    number.terms().all(|(product, _)| product.len() == 1 || !product.iter().any(is_index))
}

/// Where a tile begins.
struct Place {
    /// Elements from a matrix to the next, and the number of them.
    batches: Vec<(Amount, Polynomial)>,
    /// Row and column.
    origin: [Polynomial; 2],
}

/// The statements that a mask may make about an index.
struct Bound {
    /// The extent of the matrix.
    extent: Amount,
    /// Where the tile begins, if it says so.
    start: Option<Polynomial>,
}

/// Bytes of an element, if TMA moves such.
fn element_bytes(element: &Type) -> Option<u64> {
    match element.scalar_bits()? {
        bits @ (8 | 16 | 32) => Some(u64::from(bits / 8)),
        _ => None,
    }
}

struct Recognizer<'m> {
    module: &'m Module,
    function: OperationId,
    reader: Reader<'m>,
}

impl Recognizer<'_> {
    /// The statements that a condition may make about an index.
    fn bounds(&self, conditions: &[Polynomial], dimension: usize) -> Option<Vec<Bound>> {
        let index = Symbol::Index(dimension);
        let mut about = conditions.iter().filter(|c| c.mentions(index));
        let Some(condition) = about.next() else {
            return Some(vec![Bound { extent: Amount::Constant(ENDLESS), start: None }]);
        };
        if about.any(|other| other != condition) {
            return None;
        }
        // extent - (index + start) > 0
        let rest = condition.plus(&Polynomial::symbol(index))?;
        let is_index = |symbol: &Symbol| matches!(symbol, Symbol::Index(_));
        if rest.terms().any(|(product, _)| product.iter().any(is_index)) {
            return None;
        }
        let mut extents = Vec::new();
        for (product, coefficient) in rest.terms() {
            match (product, coefficient) {
                ([Symbol::Scalar(value)], 1) if self.is_argument(*value) => extents.push(Amount::Argument(*value)),
                ([], constant) => extents.extend(u64::try_from(constant).ok().map(Amount::Constant)),
                _ => {}
            }
        }
        let bound = |extent: Amount| {
            let start = number_of(extent).minus(&rest)?;
            self.natural_if(&start)?;
            Some(Bound { extent, start: Some(start) })
        };
        Some(extents.into_iter().filter_map(bound).collect())
    }

    fn is_argument(&self, value: ValueId) -> bool {
        self.module.arguments(self.function).contains(&value)
    }

    /// Returns whether the caller promises an argument that is a multiple of 16 (bytes, if it is a pointer).
    fn is_multiple_of_16(&self, value: ValueId) -> bool {
        let index = self.module.arguments(self.function).iter().position(|v| *v == value);
        let attributes = index.and_then(|index| self.module.argument_attributes(self.function, index));
        let divisor = attributes.and_then(|a| a.integer("tt.divisibility"));
        divisor.is_some_and(|divisor| divisor > 0 && divisor % 16 == 0)
    }

    fn is_aligned(&self, stride: Amount, bytes: u64) -> bool {
        match stride {
            Amount::Argument(value) => self.is_multiple_of_16(value),
            Amount::Constant(elements) => elements.checked_mul(bytes).is_some_and(|b| b > 0 && b % GRANULE == 0),
        }
    }

    /// Returns whether each row ends at a multiple of [`GRANULE`] bytes. TMA reads zeros beyond any end, but what it writes ends
    /// at such multiples alone: on an H100 a row of 69 elements of `f16` overwrites the three after it (`bench.random_programs`).
    fn ends_at_granule(&self, matrix: &Matrix, bytes: u64) -> bool {
        let columns = matrix.extents[1];
        // Rows without gaps end where the next one begins.
        columns == Amount::Constant(ENDLESS) || columns == matrix.stride || self.is_aligned(columns, bytes)
    }

    /// Returns whether an address at which the kernel writes, but for one store, is made of this argument.
    fn is_written(&self, base: ValueId, but: Option<OperationId>) -> bool {
        let module = self.module;
        let mut seen = vec![false; module.value_count()];
        let is_induction = |value| module.for_loops(self.function).any(|parts| parts.induction == value);
        // Where numbers are made addresses, what numbers are made of counts as well.
        let has_casts = module.walk(self.function).any(|id| module.operation(id).name == "tt.int_to_ptr");
        let may_be_address =
            |value: &ValueId| has_casts || matches!(module.type_of(*value).element(), Type::Pointer { .. });
        let mut next: Vec<ValueId> = Vec::new();
        for id in module.walk(self.function).filter(|id| Some(*id) != but) {
            let operation = module.operation(id);
            if let Some(Memory::Store { .. } | Memory::Atomic { .. }) = memory(&operation.name) {
                next.extend(operation.operands.first());
            }
        }
        while let Some(value) = next.pop() {
            if value == base {
                return true;
            }
            if !may_be_address(&value) || std::mem::replace(&mut seen[value.index()], true) {
                continue;
            }
            match module.definition(value) {
                // Nested operations may make its result.
                Definition::Result { operation, .. } => {
                    next.extend(module.walk(operation).flat_map(|id| &module.operation(id).operands));
                }
                Definition::Argument { .. } if self.is_argument(value) => {}
                Definition::Argument { .. } if is_induction(value) => {}
                Definition::Argument { .. } => {
                    let carried = |l: &ForLoop<'_>| l.carried.iter().position(|v| *v == value);
                    let of_loop = module.for_loops(self.function).find_map(|l| Some((l, carried(&l)?)));
                    let Some((l, k)) = of_loop else { return true };
                    next.extend([l.initial[k], l.yielded[k]]);
                }
            }
        }
        false
    }
}
