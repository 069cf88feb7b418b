@builtin
def scalar(value, dtype, _semantic=None):
    """A number of a type."""
    return _semantic.scalar_constant(core._unwrap_if_constexpr(value), core._unwrap_if_constexpr(dtype))


@builtin
def splat(x, shape, layout, _semantic=None):
    """A tile of one number."""
    shape = [core._unwrap_if_constexpr(extent) for extent in core._unwrap_if_constexpr(shape)]
    return _semantic.splat(x, shape, core._unwrap_if_constexpr(layout))


@builtin
def broadcast_to(x, shape, _semantic=None):
    """Dimensions of extent 1 repeated."""
    shape = [core._unwrap_if_constexpr(extent) for extent in core._unwrap_if_constexpr(shape)]
    return _semantic.broadcast_impl_shape(x, shape)


@builtin
def unsplat(x, _semantic=None):
    """The only element of a tile."""
    return _semantic.unsplat(x)


@builtin
def elementwise(name, dtype, *operands, _semantic=None):
    """An operation of MLIR on each element, by the name of Triton's builder; dtype: that of its result."""
    name, dtype = core._unwrap_if_constexpr(name), core._unwrap_if_constexpr(dtype)
    handle = getattr(_semantic.builder, "create_" + name)(*[x.handle for x in operands])
    kind = operands[0].type
    if kind.is_block():
        return gl.tensor(handle, gl.distributed_type(dtype, kind.get_block_shapes(), kind.layout))
    return gl.tensor(handle, dtype)


@builtin
def bitcast(x, dtype, _semantic=None):
    """The same bits as another type."""
    dtype = core._unwrap_if_constexpr(dtype)
    kind = x.type.with_element_ty(dtype) if x.type.is_block() else dtype
    return gl.tensor(_semantic.builder.create_bitcast(x.handle, kind.to_ir(_semantic.builder)), kind)


@gluon.jit
def absolute(x):
    """Without its sign. ptxas 12 loses a wgmma of whose result each number is taken bit by bit, as LLVM has it for tiles."""
    x = gl.to_tensor(x)
    if x.dtype == gl.float32:
        return gl.inline_asm_elementwise("abs.f32 $0, $1;", "=f,f", [x], dtype=gl.float32, is_pure=True, pack=1)
    else:
        return gl.abs(x)


@builtin
def load_or(pointers, mask, other, cache_modifier="", eviction_policy="", volatile=False, _semantic=None):
    """A masked load of narrow integers; a negative `other` in a load is another number in Triton before 3.9."""
    hints = {"cache_modifier": cache_modifier, "eviction_policy": eviction_policy, "volatile": volatile}
    loaded = gl.load(pointers, mask, 0, **hints, _semantic=_semantic)
    return gl.where(mask, loaded, other, _semantic=_semantic)


@builtin
def clamp_nan(x, low, high, _semantic=None):
    """Between two bounds; what is not a number stays so."""
    handle = _semantic.builder.create_clampf(x.handle, low.handle, high.handle, ir.PROPAGATE_NAN.ALL)
    return gl.tensor(handle, x.type)


@builtin
def atomic(kind, pointers, value, mask, sem, scope, _semantic=None):
    """An atomic operation by its name in MLIR; what memory held before."""
    kind, sem, scope = (core._unwrap_if_constexpr(x) for x in (kind, sem, scope))
    handle = _semantic.builder.create_atomic_rmw(
        getattr(ir.ATOMIC_OP, kind.upper()), pointers.handle, value.handle, mask.handle,
        _semantic._str_to_sem(sem), _semantic._str_to_scope(scope),
    )
    return gl.tensor(handle, value.type)


@builtin
def compare_and_swap(pointers, expected, value, sem, scope, _semantic=None):
    """An atomic comparison and exchange; what memory held before."""
    sem, scope = (core._unwrap_if_constexpr(x) for x in (sem, scope))
    handle = _semantic.builder.create_atomic_cas(
        pointers.handle, expected.handle, value.handle, _semantic._str_to_sem(sem), _semantic._str_to_scope(scope)
    )
    return gl.tensor(handle, value.type)


@builtin
def print_values(prefix, hexadecimal, *values, _semantic=None):
    """tt.print."""
    prefix, hexadecimal = (core._unwrap_if_constexpr(x) for x in (prefix, hexadecimal))
    _semantic.builder.create_print(prefix, hexadecimal, [x.handle for x in values], [True] * len(values))


@builtin
def assert_all(condition, message, _semantic=None):
    """tt.assert."""
    _semantic.builder.create_assert(condition.handle, core._unwrap_if_constexpr(message))


@builtin
def tma_reduce(kind, tensor_desc, coord, src, _semantic=None):
    """Start combining a tile in shared memory with global memory."""
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    kind = getattr(ir.DESCRIPTOR_REDUCE_KIND, core._unwrap_if_constexpr(kind).upper())
    _semantic.builder.create_async_tma_reduce(kind, tensor_desc.handle, coord, src.handle)


@gluon.jit
def tma_load(desc, coord, BYTES: gl.constexpr, LAYOUT: gl.constexpr):
    """A tile by TMA, waited for."""
    buffer = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, BYTES)
    async_load(desc, coord, bar, buffer)
    mbarrier.wait(bar, 0)
    # LLVM may load ahead of PTX that does not say this.
    gl.inline_asm_elementwise("mov.u32 $0, 0;", "=r,~{memory}", [], dtype=gl.int32, is_pure=False, pack=1)
    mbarrier.invalidate(bar)
    return buffer.load(LAYOUT)


@gluon.jit
def tma_store(desc, coord, value):
    """Write a tile by TMA, and wait for it."""
    buffer = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout, gl.reshape(value, desc.block_shape))
    fence_async_shared()
    async_store(desc, coord, buffer)
    tma.store_wait(0)


@gluon.jit
def tma_reduce_tile(KIND: gl.constexpr, desc, coord, value):
    """Combine a tile with global memory by TMA, and wait for it."""
    buffer = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout, gl.reshape(value, desc.block_shape))
    fence_async_shared()
    tma_reduce(KIND, desc, coord, buffer)
    tma.store_wait(0)


@builtin
def start_wgmma(left, right, acc, precision, imprecise, _semantic=None):
    """Start a wgmma."""
    precision, imprecise = core._unwrap_if_constexpr(precision), core._unwrap_if_constexpr(imprecise)
    return warpgroup_mma(
        left, right, acc, precision=precision, max_num_imprecise_acc=imprecise, is_async=True, _semantic=_semantic
    )


@gluon.jit
def put(x, LAYOUT: gl.constexpr):
    """A tile in shared memory."""
    return gl.allocate_shared_memory(x.dtype, x.shape, LAYOUT, x)


@builtin
def view_layout(layout, shape, how, extents, _semantic=None):
    """The layout in which the elements of a tile stay where they are when it is seen in another shape."""
    layout, how = core._unwrap_if_constexpr(layout), core._unwrap_if_constexpr(how)
    shape, extents = ([int(core._unwrap_if_constexpr(n)) for n in core._unwrap_if_constexpr(all)] for all in (shape, extents))
    linear = _semantic.builder.to_linear_layout(layout._to_ir(_semantic.builder), shape)

    def seen(at):
        if how == "joined":
            return [*at, 0]
        if how == "permuted":
            return [at[d] for d in extents]
        place = 0
        for extent, index in zip(shape, at):
            place = place * extent + index
        other = []
        for extent in reversed(extents):
            other.insert(0, place % extent)
            place //= extent
        return other

    reg, lane, warp, block = (
        [seen(at) for at in bases] for bases in (linear.reg_bases, linear.lane_bases, linear.warp_bases, linear.block_bases)
    )
    if how == "joined":
        reg, new = [[*[0] * len(shape), 1], *reg], [*shape, 2]
    else:
        new = [shape[d] for d in extents] if how == "permuted" else extents
    return gl.constexpr(gl.DistributedLinearLayout(reg, lane, warp, block, new))


@gluon.jit
def dot_mma(a, b, acc, PRECISION: gl.constexpr):
    """A multiplication by mma.sync."""
    layout: gl.constexpr = acc.type.layout
    width: gl.constexpr = 32 // a.dtype.primitive_bitwidth
    left = gl.convert_layout(a, gl.DotOperandLayout(0, layout, width))
    right = gl.convert_layout(b, gl.DotOperandLayout(1, layout, width))
    return mma_v2(left, right, acc, input_precision=PRECISION)


@gluon.jit
def dot_fma(a, b, acc):
    """A multiplication without the tensor core."""
    layout: gl.constexpr = acc.type.layout
    left = gl.convert_layout(a.to(acc.dtype), gl.DotOperandLayout(0, layout, 0))
    right = gl.convert_layout(b.to(acc.dtype), gl.DotOperandLayout(1, layout, 0))
    return gl.dot_fma(left, right, acc)


@gluon.jit
def in_columns(tile):
    """A tile in shared memory, column after column."""
    return gl.allocate_shared_memory(tile.dtype, tile.shape, gl.SwizzledSharedLayout(1, 1, 1, [0, 1]), tile)


@gluon.jit
def in_rows(tile):
    """A tile in shared memory, row after row."""
    return gl.allocate_shared_memory(tile.dtype, tile.shape, gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), tile)


@gluon.jit
def dot_fma_shared(a, b, acc, DEPTH: gl.constexpr, AT_A_TIME: gl.constexpr):
    """A multiplication without the tensor core of tiles in shared memory, a part of their depth at a time."""
    layout: gl.constexpr = acc.type.layout
    for k in gl.static_range(0, DEPTH, AT_A_TIME):
        left = a.slice(k, AT_A_TIME, dim=1).load(gl.DotOperandLayout(0, layout, 0))
        right = b.slice(k, AT_A_TIME, dim=0).load(gl.DotOperandLayout(1, layout, 0))
        acc = gl.dot_fma(left.to(acc.dtype), right.to(acc.dtype), acc)
    return acc


@gluon.jit
def dot_mma_shared(a, b, acc, DEPTH: gl.constexpr, AT_A_TIME: gl.constexpr, PRECISION: gl.constexpr):
    """A multiplication by mma.sync of tiles of 32 bits in shared memory, a part of their depth at a time."""
    layout: gl.constexpr = acc.type.layout
    for k in gl.static_range(0, DEPTH, AT_A_TIME):
        left = a.slice(k, AT_A_TIME, dim=1).load(gl.DotOperandLayout(0, layout, 1))
        right = b.slice(k, AT_A_TIME, dim=0).load(gl.DotOperandLayout(1, layout, 1))
        acc = mma_v2(left, right, acc, input_precision=PRECISION)
    return acc


@gluon.jit
def unknown_zero():
    """0, which the compiler does not know: what is computed with it is not computed before a loop, and held there."""
    return gl.inline_asm_elementwise("mov.u32 $0, 0;", "=r", [], dtype=gl.int32, is_pure=False, pack=1)
