// One step of gradient descent, as `relax/` and `descent/adam.rs` of twill-gaus have it on processors: the same formulas,
// operation by operation. Sums over operations go into integers, or block by block in order, so that they do not depend on
// which thread is first.
//
// Compiled by NVRTC without headers. Layouts of `Arrays` and `Step` are those of `layout.rs`.

typedef unsigned long long u64;
typedef long long i64;
typedef unsigned int u32;

// Means of the gradients by mean and by width, and of their squares.
struct __align__(16) Moments { double x, y, z, w; };

struct Arrays {
    u32 count, levels, tracks, resources;
    // Steps of profiles, slots that they are folded to, numbers in all grids of a track.
    u32 length, slots, layout, has_storage;
    // Slots that means are taken over; 2^-k of the unit of `laid`.
    double mean_slots, unit;
    // By level: where its grid begins; levels + 1 numbers.
    const u32* first;
    // By track: 1 where what begins and what ends are laid.
    const u32* ends;
    // By resource and for storage after them: two tracks, or -1; limit, or below 0; weight of the peak in the objective.
    const int* tracks_of;
    const double* limit;
    const double* peak;
    // By operation: where its uses begin. By use: track, offset, end (its steps later; 0 for one step), amount.
    const u32* first_use;
    const int* use_track;
    const double* use_offset;
    const double* use_end;
    const double* use_amount;
    // By operation.
    const double* stored;
    const double* later;
    const double* earliest;
    const double* latest;
    // By operation, where its dependences begin; by dependence, its reader, lag, and shift on the producer's clock.
    const u32* first_out;
    const u32* out_to;
    const double* out_lag;
    const double* out_shift;
    // The same from the readers' side, with the dependence's place in `out_`.
    const u32* first_in;
    const u32* in_from;
    const double* in_lag;
    const u32* in_edge;
    // What a step works on.
    Moments* moments;
    double2* gradient;
    double2* reads;
    double2* by_read;
    float* share;
    i64* laid;
    double* grids;
    double* steps;
    double* folded;
    // By resource: its part of the objective, and of what is above limits; of two steps.
    double* losses;
    // By block of operations: broken dependences; of two steps.
    double* broken;
    // Weights of the objective, of dependences and of limits.
    double* weights;
};

struct Step {
    const double2* at;
    double2* next;
    // Which of the two losses is this step's; how many blocks of operations there are; whether weights follow losses.
    u32 parity, blocks, follows, applies;
    double temperature, ceiling, floor, rate;
    // 1 / (1 - beta^t) of Adam's two means.
    double first_bias, second_bias;
    // For dependences and limits: unit * (lambda + rho * loss / scale); where weights do not follow losses: them, in lambda.
    double unit[2], lambda[2], rho[2], scale[2];
    double objective;
    u32 probability, pad;
};

static_assert(sizeof(Arrays) == 320 && sizeof(Step) == 160, "layout.rs knows these");

#define PAD 3

__device__ __forceinline__ double two_to(int power) { return __longlong_as_double((i64)(1023 + power) << 52); }

// Kernels of a variance: spread.rs.
struct Spread { int level; double share, by_variance; };

__device__ double kernel_variance(int level) {
    double quarters = two_to(2 * level);
    return quarters / 4.0 + (quarters - 1.0) / 3.0;
}

__device__ Spread spread(double variance, int levels) {
    Spread made = {0, 0.0, 0.0};
    double quarters = (12.0 * variance + 4.0) * (1.0 / 7.0);
    if (quarters <= 1.0) return made;
    int exponent = (int)(__double_as_longlong(quarters) >> 52) - 1023;
    made.level = min(exponent / 2, levels - 2);
    made.by_variance = (1.0 / 1.75) * two_to(-2 * made.level);
    made.share = (variance - kernel_variance(made.level)) * made.by_variance;
    if (made.share >= 1.0) { made.share = 1.0; made.by_variance = 0.0; }
    return made;
}

// Quadratic spline weights around the nearest cell: pyramid.rs.
struct Weights { u32 cell; double values[3], slopes[3]; };

__device__ Weights weigh(const Arrays& a, int level, double at) {
    double scale = two_to(-level);
    double cells = (double)(a.first[level + 1] - a.first[level]);
    at = fmin(fmax(at * scale + PAD, 1.0), cells - 2.0);
    u32 cell = (u32)(at + 0.5);
    double t = at - cell, low = 0.5 - t, high = 0.5 + t;
    Weights w;
    w.cell = a.first[level] + cell - 1;
    w.values[0] = 0.5 * low * low * scale;
    w.values[1] = (0.75 - t * t) * scale;
    w.values[2] = 0.5 * high * high * scale;
    w.slopes[0] = -low * scale * scale;
    w.slopes[1] = -2.0 * t * scale * scale;
    w.slopes[2] = high * scale * scale;
    return w;
}

__device__ void lay_one(const Arrays& a, i64* grid, Spread how, double at, double amount) {
    for (int k = 0; k < 2; k++) {
        double part = amount * (k ? how.share : 1.0 - how.share);
        if (part == 0.0) continue;
        Weights w = weigh(a, how.level + k, at);
        for (int c = 0; c < 3; c++) {
            i64 whole = __double2ll_rn(part * w.values[c] * a.unit);
            if (whole) atomicAdd((u64*)&grid[w.cell + c], (u64)whole);
        }
    }
}

__device__ double2 slopes(const Arrays& a, const double* grid, Spread how, double at) {
    double value[2], slope[2];
    int both = !(how.share == 0.0 && how.by_variance == 0.0);
    for (int k = 0; k <= both; k++) {
        Weights w = weigh(a, how.level + k, at);
        const double* cells = grid + w.cell;
        value[k] = cells[0] * w.values[0] + cells[1] * w.values[1] + cells[2] * w.values[2];
        slope[k] = cells[0] * w.slopes[0] + cells[1] * w.slopes[1] + cells[2] * w.slopes[2];
    }
    if (!both) return make_double2(slope[0], 0.0);
    return make_double2(slope[0] + how.share * (slope[1] - slope[0]), (value[1] - value[0]) * how.by_variance);
}

// last_read.rs
extern "C" __global__ void last_reads(Arrays a, Step s) {
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= a.count) return;
    u32 begin = a.first_out[v], end = a.first_out[v + 1];
    if (begin == end) return;
    if (end == begin + 1) {
        double2 at = s.at[a.out_to[begin]];
        a.share[begin] = 1.0f;
        a.reads[v] = make_double2(at.x + a.out_shift[begin], at.y * at.y);
        return;
    }
    double last = -1e300, widest = 0.0;
    for (u32 e = begin; e < end; e++) {
        double2 at = s.at[a.out_to[e]];
        last = fmax(last, at.x + a.out_shift[e]);
        widest = fmax(widest, at.y);
    }
    double temperature = 0.5 * fmax(widest, 1e-3), sum = 0.0, variance = 0.0;
    for (u32 e = begin; e < end; e++) {
        double2 at = s.at[a.out_to[e]];
        double below = (at.x + a.out_shift[e] - last) / temperature;
        double weight = below < -16.0 ? 0.0 : exp(below);
        a.share[e] = (float)weight;
        sum += weight;
        variance += weight * at.y * at.y;
    }
    for (u32 e = begin; e < end; e++) a.share[e] = (float)((double)a.share[e] / sum);
    a.reads[v] = make_double2(last + temperature * log(sum), variance / sum);
}

__device__ bool is_stored(const Arrays& a, u32 v) {
    return a.has_storage && a.stored[v] > 0.0 && a.first_out[v] != a.first_out[v + 1];
}

extern "C" __global__ void lay(Arrays a, Step s) {
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= a.count) return;
    double2 at = s.at[v];
    Spread how = spread(at.y * at.y, a.levels);
    for (u32 u = a.first_use[v]; u < a.first_use[v + 1]; u++) {
        if (a.use_track[u] < 0) continue;
        i64* grid = a.laid + (u64)a.use_track[u] * a.layout;
        lay_one(a, grid, how, at.x + a.use_offset[u], a.use_amount[u]);
        if (a.use_end[u] != 0.0) lay_one(a, grid, how, at.x + a.use_end[u], -a.use_amount[u]);
    }
    if (is_stored(a, v)) {
        i64* grid = a.laid + (u64)(a.tracks - 1) * a.layout;
        double2 read = a.reads[v];
        lay_one(a, grid, how, at.x, a.stored[v]);
        lay_one(a, grid, spread(read.y, a.levels), fmax(read.x, at.x), -a.stored[v]);
    }
}

#define THREADS 1024

// The sum, or the greatest, of a number of each thread of a block, in the same order each time.
template <bool MOST> __device__ double reduce(double value, double* room) {
    u32 t = threadIdx.x;
    room[t] = value;
    __syncthreads();
    for (u32 half = THREADS / 2; half; half /= 2) {
        if (t < half) room[t] = MOST ? fmax(room[t], room[t + half]) : room[t] + room[t + half];
        __syncthreads();
    }
    double all = room[0];
    __syncthreads();
    return all;
}

// Running sums of `steps`, from the front or from the back.
__device__ void accumulate(double* steps, u32 length, bool backwards, double* room) {
    u32 t = threadIdx.x, each = (length + THREADS - 1) / THREADS;
    u32 begin = min(t * each, length), end = min(begin + each, length);
    double sum = 0.0;
    for (u32 k = begin; k < end; k++) {
        double* one = &steps[backwards ? length - 1 - k : k];
        sum += *one;
        *one = sum;
    }
    room[t] = sum;
    __syncthreads();
    for (u32 apart = 1; apart < THREADS; apart *= 2) {
        double before = t >= apart ? room[t - apart] : 0.0;
        __syncthreads();
        room[t] += before;
        __syncthreads();
    }
    double before = t ? room[t - 1] : 0.0;
    for (u32 k = begin; k < end; k++) steps[backwards ? length - 1 - k : k] += before;
    __syncthreads();
}

__device__ const double REFINED[5] = {0.125, 0.5, 0.75, 0.5, 0.125};

// The fine cell that a coarse one's k-th part goes to.
__device__ int finer(int coarse, int k, int last) { return min(max(2 * coarse - PAD + k - 2, 0), last); }

// Profiles of a resource, or of storage, what they cost, and the derivatives on the grids: `pull` of relax/mod.rs. A block each.
extern "C" __global__ void __launch_bounds__(THREADS) pull(Arrays a, Step s) {
    __shared__ double room[THREADS];
    u32 t = threadIdx.x, of = blockIdx.x, all = a.resources + a.has_storage;
    double weights[3] = {s.objective, s.lambda[0], s.lambda[1]};
    if (s.follows) {
        const double* broken = a.broken + (1 - s.parity) * s.blocks;
        const double* before = a.losses + 2 * (1 - s.parity) * all;
        double sum = 0.0, over = 0.0;
        for (u32 b = t; b < s.blocks; b += THREADS) sum += broken[b];
        for (u32 r = t; r < all; r += THREADS) over += before[2 * r + 1];
        double losses[2] = {reduce<false>(sum, room), reduce<false>(over, room)};
        for (int k = 0; k < 2; k++) weights[k + 1] = s.unit[k] * (s.lambda[k] + s.rho[k] * losses[k] / s.scale[k]);
    }
    if (of == 0 && t < 3) a.weights[t] = weights[t];
    if (of >= all) return;

    double* folded = a.folded + (u64)of * a.slots;
    for (u32 k = t; k < a.slots; k += THREADS) folded[k] = 0.0;
    double* losses = a.losses + 2 * s.parity * all + 2 * of;
    bool any = false;
    for (int which = 0; which < 2; which++) {
        int track = a.tracks_of[2 * of + which];
        if (track < 0) continue;
        any = true;
        i64* laid = a.laid + (u64)track * a.layout;
        double* grid = a.grids + (u64)track * a.layout;
        double* steps = a.steps + (u64)track * a.length;
        for (u32 k = t; k < a.layout; k += THREADS) {
            grid[k] = (double)laid[k] / a.unit;
            laid[k] = 0;
        }
        __syncthreads();
        for (int level = (int)a.levels - 1; level > 0; level--) {
            double* fine = grid + a.first[level - 1];
            const double* coarse = grid + a.first[level];
            int cells = (int)(a.first[level + 1] - a.first[level]), last = (int)(a.first[level] - a.first[level - 1]) - 1;
            for (int f = t; f <= last; f += THREADS) {
                // Coarse cells that have a part here; at either end, those beyond it too.
                int low = f == 0 ? 0 : max((f + PAD - 2) / 2, 0);
                int high = f == last ? cells - 1 : min((f + PAD + 2) / 2, cells - 1);
                double sum = fine[f];
                for (int c = low; c <= high; c++)
                    for (int k = 0; k < 5; k++)
                        if (finer(c, k, last) == f) sum += REFINED[k] * coarse[c];
                fine[f] = sum;
            }
            __syncthreads();
        }
        int cells = (int)a.first[1];
        for (u32 step = t; step < a.length; step += THREADS) {
            int low = step == 0 ? 0 : (int)step + PAD, high = step + 1 == a.length ? cells - 1 : (int)step + PAD;
            double sum = 0.0;
            for (int c = low; c <= high; c++) sum += grid[c];
            steps[step] = sum;
        }
        __syncthreads();
        if (a.ends[track]) accumulate(steps, a.length, false, room);
        for (u32 slot = t; slot < a.slots; slot += THREADS)
            for (u32 step = slot; step < a.length; step += a.slots) folded[slot] += steps[step];
        __syncthreads();
    }
    if (!any) {
        if (t < 2) losses[t] = 0.0;
        return;
    }

    double sum = 0.0, most = -1e300, over = 0.0;
    double limit = a.limit[of], peak = a.peak[of];
    for (u32 k = t; k < a.slots; k += THREADS) {
        sum += folded[k];
        most = fmax(most, folded[k]);
        if (limit >= 0.0) over += fmax(folded[k] - limit, 0.0);
    }
    sum = reduce<false>(sum, room);
    most = reduce<true>(most, room);
    over = reduce<false>(over, room);
    double temperature = s.temperature * fmax(sum / a.mean_slots, 1e-3), total = 0.0;
    for (u32 k = t; k < a.slots; k += THREADS) total += exp((folded[k] - most) / temperature);
    total = reduce<false>(total, room);
    if (t == 0) {
        losses[0] = peak * (most + temperature * log(total));
        losses[1] = over;
    }
    for (u32 k = t; k < a.slots; k += THREADS) {
        double by = peak > 0.0 ? weights[0] * peak * (exp((folded[k] - most) / temperature) / total) : 0.0;
        if (limit >= 0.0 && folded[k] > limit) by += weights[2];
        folded[k] = by;
    }
    __syncthreads();
    for (int which = 0; which < 2; which++) {
        int track = a.tracks_of[2 * of + which];
        if (track < 0) continue;
        double* grid = a.grids + (u64)track * a.layout;
        double* steps = a.steps + (u64)track * a.length;
        for (u32 step = t; step < a.length; step += THREADS) steps[step] = folded[step % a.slots];
        __syncthreads();
        if (a.ends[track]) accumulate(steps, a.length, true, room);
        for (int cell = t; cell < (int)a.first[1]; cell += THREADS)
            grid[cell] = steps[min(max(cell - PAD, 0), (int)a.length - 1)];
        __syncthreads();
        for (int level = 1; level < (int)a.levels; level++) {
            const double* fine = grid + a.first[level - 1];
            double* coarse = grid + a.first[level];
            int cells = (int)(a.first[level + 1] - a.first[level]), last = (int)(a.first[level] - a.first[level - 1]) - 1;
            for (int c = t; c < cells; c += THREADS) {
                double sum = 0.0;
                for (int k = 0; k < 5; k++) sum += REFINED[k] * fine[finer(c, k, last)];
                coarse[c] = sum;
            }
            __syncthreads();
        }
    }
}

// The part of the gradient that comes through profiles: `trace` of relax/mod.rs.
extern "C" __global__ void trace(Arrays a, Step s) {
    u32 v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= a.count) return;
    double2 at = s.at[v];
    Spread how = spread(at.y * at.y, a.levels);
    double by_mu = 0.0, by_variance = 0.0;
    for (u32 u = a.first_use[v]; u < a.first_use[v + 1]; u++) {
        if (a.use_track[u] < 0) continue;
        const double* grid = a.grids + (u64)a.use_track[u] * a.layout;
        double2 by = slopes(a, grid, how, at.x + a.use_offset[u]);
        by_mu += a.use_amount[u] * by.x;
        by_variance += a.use_amount[u] * by.y;
        if (a.use_end[u] != 0.0) {
            by = slopes(a, grid, how, at.x + a.use_end[u]);
            by_mu -= a.use_amount[u] * by.x;
            by_variance -= a.use_amount[u] * by.y;
        }
    }
    if (a.has_storage) {
        double2 by_read = make_double2(0.0, 0.0);
        if (is_stored(a, v)) {
            const double* grid = a.grids + (u64)(a.tracks - 1) * a.layout;
            double2 read = a.reads[v], by = slopes(a, grid, how, at.x);
            by_mu += a.stored[v] * by.x;
            by_variance += a.stored[v] * by.y;
            by = slopes(a, grid, spread(read.y, a.levels), fmax(read.x, at.x));
            // Read before it is there, for now: it ends where it begins.
            if (read.x < at.x) by_mu -= a.stored[v] * by.x;
            else by_read = make_double2(-a.stored[v] * by.x, -a.stored[v] * by.y);
        }
        a.by_read[v] = by_read;
    }
    by_mu += a.weights[0] * a.later[v];
    a.gradient[v] = make_double2(by_mu, by_variance * 2.0 * at.y);
}

// dependence.rs
struct Loss { double value, by_short, by_variance; };

__device__ Loss loss_of(double shortfall, double variance, u32 probability) {
    Loss loss = {0.0, 0.0, 0.0};
    double square = 3.0 * variance;
    if (shortfall <= 0.0 && shortfall * shortfall >= square) return loss;
    double reach = sqrt(square);
    bool inside = shortfall < reach;
    if (probability) {
        loss.value = inside ? (shortfall + reach) / (2.0 * reach) : 1.0;
        if (inside) {
            loss.by_short = 0.5 / reach;
            loss.by_variance = -0.75 * shortfall / (reach * reach * reach);
        }
    } else if (inside) {
        double part = (shortfall + reach) / (2.0 * reach);
        loss.value = part * part * reach;
        loss.by_short = part;
        loss.by_variance = 1.5 * part * (1.0 - part) / reach;
    } else {
        loss.value = shortfall;
        loss.by_short = 1.0;
    }
    return loss;
}

#define BLOCK 256

// The part that comes along dependences, the loss of broken ones, and a step of Adam: `follow_one` of relax/mod.rs, adam.rs.
extern "C" __global__ void __launch_bounds__(BLOCK) follow(Arrays a, Step s) {
    __shared__ double room[BLOCK];
    u32 v = blockIdx.x * BLOCK + threadIdx.x;
    double broken = 0.0;
    if (v < a.count) {
        double weight = a.weights[1];
        double2 at = s.at[v];
        double variance = at.y * at.y, by_short = 0.0, by_variance = 0.0;
        for (u32 e = a.first_out[v]; e < a.first_out[v + 1]; e++) {
            double2 to = s.at[a.out_to[e]];
            Loss loss = loss_of(at.x + a.out_lag[e] - 0.5 - to.x, variance + to.y * to.y, s.probability);
            broken += loss.value;
            by_short += loss.by_short;
            by_variance += loss.by_variance;
        }
        double2 read = make_double2(0.0, 0.0);
        for (u32 e = a.first_in[v]; e < a.first_in[v + 1]; e++) {
            u32 p = a.in_from[e];
            double2 from = s.at[p];
            Loss loss = loss_of(from.x + a.in_lag[e] - 0.5 - at.x, variance + from.y * from.y, s.probability);
            by_short -= loss.by_short;
            by_variance += loss.by_variance;
            if (a.has_storage) {
                double share = a.share[a.in_edge[e]];
                read.x += share * a.by_read[p].x;
                read.y += share * a.by_read[p].y;
            }
        }
        double2 by = a.gradient[v];
        by.x += weight * by_short + read.x;
        by.y += 2.0 * at.y * (weight * by_variance + read.y);
        a.gradient[v] = by;
        if (s.applies) {
            Moments m = a.moments[v];
            m.x = 0.9 * m.x + (1.0 - 0.9) * by.x;
            m.y = 0.9 * m.y + (1.0 - 0.9) * by.y;
            m.z = 0.99 * m.z + (1.0 - 0.99) * by.x * by.x;
            m.w = 0.99 * m.w + (1.0 - 0.99) * by.y * by.y;
            a.moments[v] = m;
            double first = s.rate * s.first_bias;
            double by_mu = -first * m.x / (sqrt(m.z * s.second_bias) + 1e-12);
            double by_sigma = -first * m.y / (sqrt(m.w * s.second_bias) + 1e-12);
            double earliest = a.earliest[v], latest = a.latest[v];
            double mu = at.x + by_mu * (latest - earliest);
            double sigma = at.y * (1.0 + by_sigma);
            s.next[v] = make_double2(fmin(fmax(mu, earliest), latest), fmax(fmin(sigma, s.ceiling), s.floor));
        }
    }
    room[threadIdx.x] = broken;
    __syncthreads();
    for (u32 half = BLOCK / 2; half; half /= 2) {
        if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) a.broken[s.parity * s.blocks + blockIdx.x] = room[0];
}
