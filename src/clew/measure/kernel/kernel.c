/* Statistics from one pass over a tensor's memory: moments, extremes, zeros, non-finite values.
 *
 * Plain C behind ctypes: no Python or torch headers, so one build serves every version of both.
 *
 * A tensor is read in blocks that stay in the first-level cache. A block is first read the fast
 * way, which assumes that every value is finite: float lanes, the mean of the block before it as
 * shift (so a large mean costs no accuracy), no masks. A non-finite value, or one whose square
 * leaves the range of float, shows in the block's sum of squares, and only such a block is read
 * again the careful way, in double and with masks. Blocks are merged in double (Chan et al. 1983).
 */
#include "python.h"

#include <stdlib.h>
#include <string.h>

#define PRAGMA(x) _Pragma(#x)
#define SIMD(clauses) PRAGMA(omp simd clauses)

enum { BLOCK = 4096, LANES = 16, WIDE = 8, SHIFT_SAMPLE = 128, BINS = 32 };
enum { HIST_EXACT = 4096, HIST_PIECE = 1024, HIST_SHARE = 8, HIST_PIECES = 128 };
#define SMALLEST_SUM 1e-24 /* of the squares of a block: below it floats lose too many digits */
static const int SIZES[] = {[FLOAT32] = 4, [FLOAT64] = 8, [BFLOAT16] = 2, [FLOAT16] = 2};
enum { STATS = 7 }; /* numbers that describe a tensor */

typedef struct {
    double count, mean, m2, min, max; /* of the finite values; m2 is the sum of squares about the mean */
    int64_t zeros, nonfinite, saturated;
} moments;

/* ---- one block -------------------------------------------------------------------------- */

static const moments NOTHING = {0, 0, 0, INFINITY, -INFINITY, 0, 0, 0};

/* Reads n floats, a multiple of LANES. False: not to be trusted, read the block carefully. */
INLINE int fast_block(const float *x, int n, float shift, int saturation, float lo, float hi, moments *m) {
    float sum[LANES] = {0}, sumsq[LANES] = {0}, min[LANES], max[LANES];
    int32_t zeros[LANES] = {0}, saturated[LANES] = {0};
    for (int j = 0; j < LANES; j++) min[j] = max[j] = x[j];
    for (int i = 0; i < n; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            float v = x[i + j], d = v - shift;
            sum[j] += d;
            sumsq[j] += d * d;
            min[j] = v < min[j] ? v : min[j];
            max[j] = v > max[j] ? v : max[j];
            zeros[j] += v == 0.0f;
            if (saturation) saturated[j] += (v <= lo) | (v >= hi);
        }
    }
    double s = 0, q = 0;
    *m = NOTHING;
    for (int j = 0; j < LANES; j++) {
        s += sum[j];
        q += sumsq[j];
        if (min[j] < m->min) m->min = min[j];
        if (max[j] > m->max) m->max = max[j];
        m->zeros += zeros[j];
        m->saturated += saturated[j];
    }
    m->count = n;
    m->mean = shift + s / n;
    m->m2 = q - s * s / n;
    if (m->m2 < 0) m->m2 = 0;
    /* Squares below 1e-30 have lost digits to underflow, unless all values equal the shift. */
    return q < 1e36 && (q > n * 1e-30 || (q == 0 && m->min == m->max));
}

/* Reads n doubles of any kind, and overwrites the non-finite ones: mean first, then squares about it.
 * Counts are doubles too, because compilers turn that into vectors. v - v is zero if v is finite, else NaN. */
INLINE void careful_body(double *x, int n, double lo, double hi, moments *m) {
    double zeros = 0, saturated = 0, finite = 0, sum = 0, min = INFINITY, max = -INFINITY, m2 = 0;
    SIMD(reduction(+ : zeros, saturated))
    for (int i = 0; i < n; i++) {
        double v = x[i];
        zeros += v == 0.0 ? 1.0 : 0.0;
        saturated += (v <= lo) | (v >= hi) ? 1.0 : 0.0;
        x[i] = v - v == 0.0 ? v : NAN;
    }
    SIMD(reduction(+ : sum, finite) reduction(min : min) reduction(max : max))
    for (int i = 0; i < n; i++) {
        double v = x[i];
        sum += v == v ? v : 0.0;
        finite += v == v ? 1.0 : 0.0;
        min = v < min ? v : min;
        max = v > max ? v : max;
    }
    double mean = finite > 0 ? sum / finite : 0;
    SIMD(reduction(+ : m2))
    for (int i = 0; i < n; i++) {
        double d = x[i] - mean;
        m2 += d == d ? d * d : 0.0;
    }
    *m = (moments){finite, mean, m2, min, max, (int64_t)zeros, n - (int64_t)finite, (int64_t)saturated};
}
typedef void careful_loop(double *, int, double, double, moments *);

static void merge(moments *a, const moments *b) {
    a->zeros += b->zeros;
    a->nonfinite += b->nonfinite;
    a->saturated += b->saturated;
    if (b->count == 0) return;
    double n = a->count + b->count, delta = b->mean - a->mean;
    a->m2 += b->m2 + delta * delta * (a->count * b->count / n);
    a->mean += delta * (b->count / n);
    a->count = n;
    if (b->min < a->min) a->min = b->min;
    if (b->max > a->max) a->max = b->max;
}

/* ---- element types ---------------------------------------------------------------------- */

INLINE float from_bits(uint32_t bits) {
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Half to float by scaling the exponent, which serves subnormals too (F. Giesen's method). */
INLINE float half_to_float(uint16_t h) {
    float v = from_bits((uint32_t)(h & 0x7fff) << 13) * 0x1p112f;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits |= (uint32_t)((h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0) | ((uint32_t)(h & 0x8000) << 16);
    return from_bits(bits);
}

/* The block as floats: in place, or converted into `buffer`. */
INLINE const float *as_floats(const void *data, int64_t start, int n, int dtype, float *buffer) {
    const uint16_t *h = (const uint16_t *)data + start;
    if (dtype == FLOAT32) return (const float *)data + start;
    if (dtype == BFLOAT16)
        for (int i = 0; i < n; i++) buffer[i] = from_bits((uint32_t)h[i] << 16);
    else
        for (int i = 0; i < n; i++) buffer[i] = half_to_float(h[i]);
    return buffer;
}

/* ---- log2 histogram --------------------------------------------------------------------- */

/* Bin k: 2^(k-24) <= |x| < 2^(k-23); what is smaller is in bin 0, what is larger in bin 31. */
INLINE void count_bins(const float *x, int n, uint32_t *bins) {
    uint8_t bin[SHIFT_SAMPLE];
    for (int start = 0; start < n; start += SHIFT_SAMPLE) {
        int m = n - start < SHIFT_SAMPLE ? n - start : SHIFT_SAMPLE;
        for (int i = 0; i < m; i++) {
            uint32_t bits;
            memcpy(&bits, x + start + i, sizeof bits);
            bits &= 0x7fffffffu;
            int32_t k = (int32_t)(bits >> 23) - 103;
            k = k < 0 ? 0 : k > BINS - 1 ? BINS - 1 : k;
            bin[i] = (uint8_t)(bits == 0 || bits >= 0x7f800000u ? BINS : k); /* row BINS is thrown away */
        }
        for (int i = 0; i < m; i++) bins[(i & 1) * (BINS + 1) + bin[i]]++;
    }
}

INLINE void count_bins64(const double *x, int n, uint32_t *bins) {
    float v[SHIFT_SAMPLE];
    for (int start = 0; start < n; start += SHIFT_SAMPLE) {
        int m = n - start < SHIFT_SAMPLE ? n - start : SHIFT_SAMPLE;
        for (int i = 0; i < m; i++) {
            double a = fabs(x[start + i]);
            /* Outside of float's range, and rounded up to a power of two, the bin would be wrong. */
            uint64_t bits;
            memcpy(&bits, &a, sizeof bits);
            bits &= 0xfffffff000000000u;
            memcpy(&a, &bits, sizeof a);
            if (isfinite(a) && a > 0x1p100) a = 0x1p100;
            if (x[start + i] != 0 && a < 0x1p-100) a = 0x1p-100;
            v[i] = (float)a;
        }
        count_bins(v, m, bins);
    }
}

static void scale_bins(const uint32_t *bins, uint8_t *hist) {
    double total = 0;
    for (int k = 0; k < BINS; k++) total += bins[k] + bins[BINS + 1 + k];
    for (int k = 0; k < BINS; k++) {
        double share = bins[k] + bins[BINS + 1 + k];
        uint8_t scaled = total > 0 ? (uint8_t)(share / total * 255 + 0.5) : 0;
        hist[k] = share > 0 && scaled == 0 ? 1 : scaled;
    }
}

/* ---- one tensor ------------------------------------------------------------------------- */

typedef struct {
    uint32_t *bins; /* NULL: no histogram */
    int64_t every;  /* one piece in this many is counted, 0 means every value */
    int64_t start;  /* how many values of the tensor come before this part: whole blocks */
} sampling;

/* Counts the n values of a block (floats, or doubles if wide); the first is value number i of this part.
 * In a large tensor, one eighth of a piece is counted at a time, at a different place in each. */
INLINE void sample_bins(const sampling *hist, const void *x, int wide, int64_t i, int n) {
    int64_t piece = (hist->start + i) / HIST_PIECE;
    for (int begin = 0; begin < n; begin += HIST_PIECE, piece++) {
        int from = begin, taken = HIST_PIECE;
        if (hist->every) {
            if (piece % hist->every) continue;
            taken = HIST_PIECE / HIST_SHARE;
            from += (int)(piece / hist->every % HIST_SHARE) * taken;
        }
        if (n - from < taken) taken = n - from;
        if (taken <= 0) continue;
        if (wide) count_bins64((const double *)x + from, taken, hist->bins);
        else count_bins((const float *)x + from, taken, hist->bins);
    }
}

INLINE float first_shift(const float *x, int n) {
    double sum = 0;
    int m = n < SHIFT_SAMPLE ? n : SHIFT_SAMPLE;
    for (int i = 0; i < m; i++) sum += x[i];
    return isfinite(sum) ? (float)(sum / m) : 0.0f;
}

INLINE void float_block(const float *x, int n, float *shift, int saturation, double lo, double hi,
                        careful_loop *careful, moments *total) {
    double wide[BLOCK];
    moments m;
    int whole = n - n % LANES;
    if (whole && !fast_block(x, whole, *shift, saturation, (float)lo, (float)hi, &m)) whole = 0;
    if (whole) {
        merge(total, &m);
        *shift = (float)m.mean; /* of the block just before: safe against drift (docs/decisions/001) */
    }
    if (whole == n) return;
    for (int i = whole; i < n; i++) wide[i - whole] = x[i];
    careful(wide, n - whole, lo, hi, &m);
    merge(total, &m);
}

INLINE void double_block(const double *x, int n, double lo, double hi, careful_loop *careful, moments *total) {
    double copy[BLOCK];
    moments m;
    memcpy(copy, x, (size_t)n * sizeof *x);
    careful(copy, n, lo, hi, &m);
    merge(total, &m);
}

INLINE void tensor_body(const void *data, int64_t count, int dtype, int saturation, double lo, double hi,
                        const sampling *hist, careful_loop *careful, moments *total) {
    float buffer[BLOCK], shift = 0;
    if (dtype != FLOAT64) lo = (float)lo, hi = (float)hi; /* the same bound in fast and careful blocks */
    for (int64_t i = 0; i < count; i += BLOCK) {
        int n = count - i < BLOCK ? (int)(count - i) : BLOCK;
        const void *x = (const double *)data + i;
        if (dtype == FLOAT64) double_block(x, n, lo, hi, careful, total);
        else {
            x = as_floats(data, i, n, dtype, buffer);
            if (i == 0) shift = first_shift(x, n);
            float_block(x, n, &shift, saturation, lo, hi, careful, total);
        }
        if (hist->bins) sample_bins(hist, x, dtype == FLOAT64, i, n);
    }
}

/* Sum of squares of n floats, in float: fast, and correct unless squares overflow or underflow. */
INLINE double sumsq_fast(const float *x, int n) {
    enum { WAYS = 4 * WIDE };
    float sum[WAYS] = {0};
    double part[WIDE] = {0}, total = 0; /* of a few lanes each: one long chain of additions would stall */
    int j = 0;
    for (; j + WAYS <= n; j += WAYS)
        for (int k = 0; k < WAYS; k++) sum[k] += x[j + k] * x[j + k];
    for (int i = 0; i < WAYS; i += WIDE)
        for (int k = 0; k < WIDE; k++) part[k] += sum[i + k];
    for (; j < n; j++) total += (double)x[j] * x[j];
    for (int k = 0; k < WIDE; k++) total += part[k];
    return total;
}

/* The same in double, of floats or of doubles. */
#define SUMSQ_IN_DOUBLE(NAME, TYPE)                                                                        \
    INLINE double NAME(const TYPE *x, int64_t n) {                                                         \
        double sum[LANES] = {0}, total = 0;                                                                \
        int64_t j = 0;                                                                                     \
        for (; j + LANES <= n; j += LANES)                                                                 \
            for (int k = 0; k < LANES; k++) sum[k] += (double)x[j + k] * x[j + k];                         \
        for (; j < n; j++) total += (double)x[j] * x[j];                                                   \
        for (int k = 0; k < LANES; k++) total += sum[k];                                                   \
        return total;                                                                                      \
    }
SUMSQ_IN_DOUBLE(sumsq_carefully, float)
SUMSQ_IN_DOUBLE(sumsq_double, double)

INLINE double sumsq_body(const void *data, int64_t count, int dtype) {
    if (dtype == FLOAT64) return sumsq_double(data, count);
    float buffer[BLOCK];
    double total = 0;
    int careful = 0; /* after a block of tiny values: their squares are slow in float, and the next is like it */
    for (int64_t i = 0; i < count; i += BLOCK) {
        int n = count - i < BLOCK ? (int)(count - i) : BLOCK;
        const float *x = as_floats(data, i, n, dtype, buffer);
        double block = careful ? 0 : sumsq_fast(x, n);
        if (!(block > SMALLEST_SUM && block < INFINITY)) {
            block = sumsq_carefully(x, n);
            careful = block < SMALLEST_SUM;
        }
        total += block;
    }
    return total;
}

/* ---- one copy of the loops per instruction set, chosen when the library is loaded --------- */

typedef void tensor_loop(const void *, int64_t, int, int, double, double, const sampling *, moments *);
typedef double sumsq_loop(const void *, int64_t, int);

#define LOOPS(NAME, ATTRIBUTE)                                                                             \
    ATTRIBUTE NOINLINE static void careful_##NAME(double *x, int n, double lo, double hi, moments *m) {    \
        careful_body(x, n, lo, hi, m);                                                                     \
    }                                                                                                      \
    ATTRIBUTE static void tensor_##NAME(const void *data, int64_t count, int dtype, int saturation,        \
                                        double lo, double hi, const sampling *hist, moments *total) {      \
        switch (dtype * 2 + saturation) {                                                                  \
        case FLOAT32 * 2: tensor_body(data, count, FLOAT32, 0, lo, hi, hist, careful_##NAME, total); break;  \
        case FLOAT32 * 2 + 1: tensor_body(data, count, FLOAT32, 1, lo, hi, hist, careful_##NAME, total); break; \
        case BFLOAT16 * 2: tensor_body(data, count, BFLOAT16, 0, lo, hi, hist, careful_##NAME, total); break; \
        case BFLOAT16 * 2 + 1: tensor_body(data, count, BFLOAT16, 1, lo, hi, hist, careful_##NAME, total); break; \
        case FLOAT16 * 2: tensor_body(data, count, FLOAT16, 0, lo, hi, hist, careful_##NAME, total); break; \
        case FLOAT16 * 2 + 1: tensor_body(data, count, FLOAT16, 1, lo, hi, hist, careful_##NAME, total); break; \
        default: tensor_body(data, count, FLOAT64, 1, lo, hi, hist, careful_##NAME, total);                \
        }                                                                                                  \
    }                                                                                                      \
    ATTRIBUTE static double sumsq_##NAME(const void *data, int64_t count, int dtype) {                     \
        switch (dtype) {                                                                                   \
        case FLOAT32: return sumsq_body(data, count, FLOAT32);                                             \
        case BFLOAT16: return sumsq_body(data, count, BFLOAT16);                                           \
        case FLOAT16: return sumsq_body(data, count, FLOAT16);                                             \
        default: return sumsq_body(data, count, FLOAT64);                                                  \
        }                                                                                                  \
    }

LOOPS(plain, )
static tensor_loop *tensor_best = tensor_plain;
static sumsq_loop *sumsq_best = sumsq_plain;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(CLEW_PLAIN)
LOOPS(avx2, __attribute__((target("avx2,fma"))))
LOOPS(avx512, __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,fma"))))
#define HAVE_VARIANTS 1
#endif

/* 0 plain, 1 avx2, 2 avx512: the best that this processor has, but at most `limit`. */
EXPORT int clew_choose(int limit) {
    int level = 0;
#if defined(HAVE_VARIANTS)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) level = 1;
    if (level && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        level = 2;
    if (level > limit) level = limit;
    tensor_best = level == 2 ? tensor_avx512 : level == 1 ? tensor_avx2 : tensor_plain;
    sumsq_best = level == 2 ? sumsq_avx512 : level == 1 ? sumsq_avx2 : sumsq_plain;
#else
    (void)limit;
#endif
    return level;
}

/* ---- a large tensor, by all of torch's threads ------------------------------------------
 *
 * Torch's own thread team does it (GOMP_parallel of the OpenMP library that it has loaded): its threads
 * exist, and are awake between two ops. Threads of our own would compete with them for the same cores.
 * It is always called as a whole: asked for fewer threads, it would end the others for good.
 */
enum { PARTS = 16, SHARE = 16 * BLOCK }; /* values that are worth waking a thread for */

typedef void team_call(void (*)(void *), void *, unsigned, unsigned);
typedef int number_call(void);
static team_call *team = NULL;
static number_call *own_number = NULL; /* its number in the team; NULL: not known */
static int members = 1;

typedef struct {
    const char *data;
    int64_t count, length; /* values, and those of one part */
    int dtype, saturation, parts;
    double lo, hi;
    int64_t every;
    int bins_wanted;
    char taken[PARTS];
    moments found[PARTS];
    uint32_t bins[PARTS][2 * (BINS + 1)];
} job;

static void one_part(job *j, int part) {
    uint32_t bins[2 * (BINS + 1)] = {0};
    int64_t start = part * j->length, count = j->count - start < j->length ? j->count - start : j->length;
    sampling hist = {j->bins_wanted ? bins : NULL, j->every, start};
    moments m = NOTHING;
    tensor_best(j->data + start * SIZES[j->dtype], count, j->dtype, j->saturation, j->lo, j->hi, &hist, &m);
    j->found[part] = m;
    memcpy(j->bins[part], bins, sizeof bins);
}

#if defined(__GNUC__)
/* Each thread begins with the part that it has most likely just written itself: torch divides tensors in the
 * same way, and reading from another core's cache is slow. Then it takes any parts that are left, since some
 * threads may start late or never. */
static void member(void *shared) {
    job *j = shared;
    int own = own_number ? (int)((int64_t)own_number() * j->parts / members) : 0;
    for (int k = 0; k < j->parts; k++) {
        int part = (own + k) % j->parts;
        if (!__atomic_exchange_n(&j->taken[part], 1, __ATOMIC_RELAXED)) one_part(j, part);
    }
}
#define HAVE_TEAM 1
#endif

static void whole_tensor(job *j, int alone) {
    int64_t parts = team && !alone ? j->count / SHARE : 1;
    int most = members < PARTS ? members : PARTS;
    j->parts = parts < 1 ? 1 : parts > most ? most : (int)parts;
    j->length = (j->count / j->parts + BLOCK) / BLOCK * BLOCK;
    memset(j->taken, 0, sizeof j->taken);
#if defined(HAVE_TEAM)
    if (j->parts > 1) team(member, j, (unsigned)members, 0);
    else
#endif
        one_part(j, 0);
    for (int part = 1; part < j->parts; part++) {
        merge(&j->found[0], &j->found[part]);
        for (int k = 0; k < 2 * (BINS + 1); k++) j->bins[0][k] += j->bins[part][k];
    }
}

/* ---- what Python calls ------------------------------------------------------------------ */

EXPORT int clew_abi(void) { return 8; } /* raise it with compiled_library.py's ABI when an argument changes */

/* GOMP_parallel (NULL: use one thread from now on), omp_get_thread_num (or NULL), and how many threads. */
EXPORT void clew_team(void *parallel, void *number, int threads) {
    team = threads > 1 ? (team_call *)(uintptr_t)parallel : NULL;
    own_number = (number_call *)(uintptr_t)number;
    members = threads;
}

static double describe(const void *data, int64_t count, int dtype, double *out, uint8_t *hist, double lo,
                       double hi, int alone) {
    int saturation = lo > -INFINITY || hi < INFINITY;
    int64_t pieces = (count + HIST_PIECE - 1) / HIST_PIECE;
    job j;
    j.data = data, j.count = count, j.dtype = dtype, j.saturation = saturation, j.lo = lo, j.hi = hi;
    j.every = count <= HIST_EXACT ? 0 : (pieces + HIST_PIECES - 1) / HIST_PIECES;
    j.bins_wanted = hist != NULL;
    whole_tensor(&j, alone);
    moments m = j.found[0];
    if (hist) scale_bins(j.bins[0], hist);
    int any = m.count > 0;
    out[0] = any ? m.mean : NAN;
    out[1] = any ? sqrt(m.m2 / m.count) : NAN;
    out[2] = any ? m.min : NAN;
    out[3] = any ? m.max : NAN;
    out[4] = any ? sqrt(m.m2 + m.count * m.mean * m.mean) : NAN;
    out[5] = count ? (double)m.zeros / (double)count : NAN;
    out[6] = count ? (double)m.nonfinite : NAN;
    return saturation && count ? (double)m.saturated / (double)count : NAN;
}

/* out: mean, std, min, max, norm, share of zeros, number of non-finite values; returns the share of
 * values at or beyond lo or hi (NaN if there is no bound). hist, if not NULL, takes 32 bins in 255ths. */
EXPORT double clew_stats(const void *data, int64_t count, int dtype, double *out, uint8_t *hist, double lo,
                         double hi) {
    return describe(data, count, dtype, out, hist, lo, hi, 0);
}

/* Many tensors, each read by one thread. Between small ones torch's team may sleep: then it is not woken. */
enum { MANY = 16 * SHARE };

typedef struct list_job {
    void (*one)(struct list_job *, int64_t);
    const uint64_t *pointers;
    const int64_t *counts;
    const uint8_t *dtypes;
    int64_t n, next;
    double *sums;
    const int64_t *rows;
    char *out;
    int64_t stride;
    uint8_t *hist;
} list_job;

static void each(list_job *j) {
#if defined(HAVE_TEAM)
    for (int64_t i; (i = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < j->n;) j->one(j, i);
#else
    for (int64_t i = 0; i < j->n; i++) j->one(j, i);
#endif
}

static void list_member(void *shared) { each(shared); }

static void whole_list(list_job *j) {
    int64_t values = 0;
    for (int64_t i = 0; i < j->n; i++) values += j->counts[i];
    if (team && j->n > 1 && values >= MANY) team(list_member, j, (unsigned)members, 0);
    else each(j);
}

static void one_sum(list_job *j, int64_t i) {
    j->sums[i] = sumsq_best((const void *)(uintptr_t)j->pointers[i], j->counts[i], j->dtypes[i]);
}

/* Sum of squares over many tensors, in double: NaN and infinity survive. The same with a team or without. */
EXPORT double clew_sumsq(const uint64_t *pointers, const int64_t *counts, const uint8_t *dtypes, int64_t n) {
    enum { FEW = 256 };
    double total = 0, few[FEW], *many = n > FEW ? malloc((size_t)n * sizeof *many) : NULL;
    double *sums = n > FEW ? many : few;
    if (!sums) { /* no memory: one half, then the other */
        return clew_sumsq(pointers, counts, dtypes, n / 2) +
               clew_sumsq(pointers + n / 2, counts + n / 2, dtypes + n / 2, n - n / 2);
    }
    list_job j = {.one = one_sum, .pointers = pointers, .counts = counts, .dtypes = dtypes, .n = n, .sums = sums};
    whole_list(&j);
    for (int64_t i = 0; i < n; i++) total += sums[i];
    free(many);
    return total;
}

enum { LARGE = 4 * SHARE }; /* values of a tensor that all threads share */

static void row_of(list_job *j, int64_t i, int alone) {
    describe((const void *)(uintptr_t)j->pointers[i], j->counts[i], j->dtypes[i],
             (double *)(void *)(j->out + j->rows[i] * j->stride), j->hist ? j->hist + j->rows[i] * BINS : NULL,
             -INFINITY, INFINITY, alone);
}

static void one_row(list_job *j, int64_t i) {
    if (j->counts[i] < LARGE) row_of(j, i, 1);
}

/* Statistics of many tensors: those of tensor i go to row rows[i] of out (and of hist, if not NULL). */
EXPORT void clew_stats_list(const uint64_t *pointers, const int64_t *counts, const uint8_t *dtypes, int64_t n,
                            const int64_t *rows, void *out, int64_t stride, uint8_t *hist) {
    list_job j = {.one = one_row, .pointers = pointers, .counts = counts, .dtypes = dtypes, .n = n,
                  .rows = rows, .out = out, .stride = stride, .hist = hist};
    for (int64_t i = 0; i < n; i++)
        if (counts[i] >= LARGE) row_of(&j, i, 0);
    whole_list(&j);
}

/* True if all n elements are zero, of either sign; stops at the first that is not. */
INLINE int all_zero(const unsigned char *p, int64_t n, int size) {
    for (int64_t i = 0; i < n; i++) {
        if (size == 4) {
            uint32_t v;
            memcpy(&v, p + 4 * i, 4);
            if (v << 1) return 0;
        } else if (size == 2) {
            uint16_t v;
            memcpy(&v, p + 2 * i, 2);
            if ((uint16_t)(v << 1)) return 0;
        } else {
            uint64_t v;
            memcpy(&v, p + 8 * i, 8);
            if (v << 1) return 0;
        }
    }
    return 1;
}

/* Number of units (the middle axis) that are zero everywhere, or -1 without memory. Units that have been
 * seen alive are dropped from the list, so a healthy layer costs a few rows and not the whole tensor. */
EXPORT int64_t clew_units_dead(const void *data, int64_t outer, int64_t units, int64_t inner, int size) {
    const unsigned char *base = data;
    int64_t silent = units;
    int64_t *list = malloc((size_t)(units > 0 ? units : 1) * sizeof *list);
    if (!list) return -1;
    for (int64_t u = 0; u < units; u++) list[u] = u;
    for (int64_t o = 0; o < outer && silent; o++) {
        int64_t kept = 0;
        for (int64_t k = 0; k < silent; k++) {
            const unsigned char *p = base + (o * units + list[k]) * inner * size;
            int zero = size == 4 ? all_zero(p, inner, 4) : size == 2 ? all_zero(p, inner, 2) : all_zero(p, inner, 8);
            list[kept] = list[k];
            kept += zero;
        }
        silent = kept;
    }
    free(list);
    return silent;
}

/* ---- functions for Python (see python.h) --------------------------------------------------
 *
 * They take themselves, a capsule around a request, and an argument, if any. NULL means that an error is
 * set. */

interpreter python;

EXPORT void clew_interpreter(const interpreter *given) { python = *given; }

/* find() -> bool */
EXPORT void *clew_find(void *self, void *nothing) {
    (void)nothing;
    const request *r = python.pointer(self, "clew");
    int found = r ? find(r) : 0;
    return python.error() ? NULL : kept(found ? python.yes : python.no);
}

/* find_norm() -> their 2-norm, at once; -1.0 where `find` says False */
EXPORT void *clew_find_norm(void *self, void *nothing) {
    (void)nothing;
    const request *r = python.pointer(self, "clew");
    int found = r ? find(r) : 0;
    if (python.error()) return NULL;
    return python.number(found ? sqrt(clew_sumsq(r->pointers, r->counts, r->dtypes, r->n)) : -1);
}

/* number(tensor) -> its single number; None if it has several, another dtype, or is on a device */
EXPORT void *clew_number(void *self, void *tensor) {
    (void)self;
    double value;
    return read_number(tensor, &value) ? python.number(value) : kept(python.none);
}

/* ---- the row of a layer ------------------------------------------------------------------- */

/* Same layout as `Matrix` and `_Layer` in stats.py. */
typedef struct {
    char *out; /* a row for each layer */
    int64_t stride;
    uint8_t *hist; /* a row for each, too; NULL: no histograms this time */
} matrix;

typedef struct {
    const matrix *in;
    int64_t slot;
    double lo, hi;   /* beyond which a value is saturated */
    int32_t unit, dims; /* the axis of its units, and the number of axes; -1: units are not counted */
    int32_t shares;  /* whether the row has room for the shares of dead units and of saturated values */
} layer;

/* Whether the elements fill their memory without gap or overlap, in whatever order; how many there are. */
INLINE int is_dense(const dl_tensor *t, int64_t *count) {
    enum { MOST = 16 };
    int64_t total = 1, dense = 1;
    if (t->ndim > MOST) return 0;
    for (int32_t d = 0; d < t->ndim; d++) total *= t->shape[d];
    *count = total;
    if (!t->strides) return 1;
    for (int32_t left = t->ndim; left > 0; left--) { /* an axis that continues where those found so far end */
        int32_t d = 0;
        while (d < t->ndim && !(t->shape[d] > 1 && t->strides[d] == dense)) d++;
        if (d == t->ndim) break;
        dense *= t->shape[d];
    }
    return dense == total;
}

static double dead_share(const dl_tensor *t, const layer *l, int64_t count, int dtype, const void *data) {
    int64_t units = t->shape[l->unit], inner = units > 1 ? 1 : count;
    /* In memory, everything that moves faster than the unit's own axis is inside it. */
    if (units > 1 && t->strides) inner = t->strides[l->unit];
    else if (units > 1)
        for (int32_t d = l->unit + 1; d < t->ndim; d++) inner *= t->shape[d];
    int64_t dead = clew_units_dead(data, count / (units * inner), units, inner, SIZES[dtype]);
    return dead < 0 ? NAN : (double)dead / (double)units;
}

/* measure(tensor) -> True; False if it is not plain, dense and here: then nothing is written.
 * Reading a small tensor takes less time than releasing the lock and taking it again. */
EXPORT void *clew_measure(void *self, void *tensor) {
    enum { AT_ONCE = 1 << 20 };
    const layer *l = python.pointer(self, "clew");
    dl_tensor t = {0};
    int64_t count = 0;
    if (!l) return NULL;
    if (!look_at(tensor, python.tensor, &t)) return kept(python.no);
    int dtype = kind_of(&t);
    if (dtype < 0 || !is_dense(&t, &count) || !count || (l->unit >= 0 && t.ndim != l->dims)) return kept(python.no);
    const char *data = (const char *)t.data + t.offset;
    double *out = (double *)(void *)(l->in->out + l->slot * l->in->stride);
    uint8_t *hist = l->in->hist ? l->in->hist + l->slot * BINS : NULL;
    void *state = count > AT_ONCE ? python.let_go() : NULL;
    double saturated = describe(data, count, dtype, out, hist, l->lo, l->hi, 0);
    if (l->shares) {
        out[STATS] = l->unit < 0 ? NAN : dead_share(&t, l, count, dtype, data);
        out[STATS + 1] = saturated;
    }
    if (state) python.take_back(state);
    return kept(python.yes);
}
