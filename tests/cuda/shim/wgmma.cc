/* The asynchronous instructions of Hopper (wgmma_host.cuh). Their accesses to shared memory are not
 * watched like other accesses: a tile is correct because of the barriers here, which watch.cc does
 * not know. Reads of tiles in the tensor are watched when the tiles are requested. */
#include "cuda.h"

#include "internal.h"
#include "wgmma.cuh"

#include <deque>
#include <vector>

int wgmma_host_fault;

enum { CHUNK = 16, CHUNKS = TILE_ROW / CHUNK, THREADS_MOST = 1024, PRODUCER = 256 };

/* ---- barriers */
struct barrier {
    uint64_t *at;
    int count, left;
    int64_t bytes;
    uint32_t phase;
    bool announced;
};

struct tile_copy {
    unsigned char *to;
    tensor_map map;
    int64_t k, row;
    uint64_t *barrier;
};

static struct under_way { /* of the running block */
    int64_t block = -1;
    std::vector<barrier> barriers;
    std::vector<tile_copy> copies;
} all;

static under_way &of_block(void)
{
    if (all.block != shim_block_serial()) {
        all.block = shim_block_serial();
        all.barriers.clear();
        all.copies.clear();
    }
    return all;
}

static barrier *find(uint64_t *at)
{
    for (barrier &b : of_block().barriers)
        if (b.at == at) return &b;
    shim_fail("a barrier that was not initialised");
    return NULL;
}

static void settle(barrier &b)
{
    if (b.left || b.bytes) return;
    b.phase++;
    b.left = b.count;
    shim_wake(b.at);
}

void barrier_init(uint64_t *at, int count)
{
    of_block().barriers.push_back({at, count, count, 0, 0, false});
}

void barriers_announce(void)
{
    if (wgmma_host_fault == WGMMA_NO_ANNOUNCE) return;
    for (barrier &b : of_block().barriers) b.announced = true;
}

static void arrive(uint64_t *at, int bytes)
{
    barrier *b = find(at);
    if (!b) return;
    if (!b->left) {
        shim_fail("more threads arrive in a phase than the barrier counts");
        return;
    }
    b->bytes += bytes;
    b->left--;
    settle(*b);
}

void barrier_arrive(uint64_t *at)
{
    arrive(at, 0);
}

void barrier_expect(uint64_t *at, int bytes)
{
    arrive(at, wgmma_host_fault == WGMMA_BYTES ? bytes - TILE_ROW : bytes);
}

void barrier_wait(uint64_t *at, uint32_t parity)
{
    const barrier *b = find(at);
    if (!b || wgmma_host_fault == (shim_thread() < PRODUCER ? WGMMA_NO_FULL : WGMMA_NO_EMPTY)) return;
    if (b->phase && wgmma_host_fault == WGMMA_LATER && shim_thread() < PRODUCER) return;
    while (b && (b->phase & 1) == parity) {
        shim_sleep(at);
        b = find(at);
    }
}

/* ---- copies */

/* Hardware permutes the 16-byte chunks of 128 bytes by the address bits above them. */
static uint32_t swizzled(uint32_t address)
{
    return address ^ (address >> 7 & 7) << 4;
}

uint32_t shared_address(const void *p)
{
    return (uint32_t)((const unsigned char *)p - (const unsigned char *)shim_dynamic_shared());
}

static const unsigned char *source(const tile_copy &c, int r, int chunk)
{
    const int64_t row = c.row + r, k = c.k + chunk * CHUNK / 2;
    return row < c.map.rows && k < c.map.k ? c.map.base + (row * c.map.k + k) * 2 : NULL;
}

static void make(const tile_copy &c)
{
    unsigned char *shared = (unsigned char *)shim_dynamic_shared();
    for (int r = 0; r < c.map.box_rows; r++)
        for (int i = 0; i < CHUNKS; i++) {
            const uint32_t at = shared_address(c.to) + (uint32_t)(r * TILE_ROW + i * CHUNK);
            const unsigned char *from = source(c, r, i);
            unsigned char *to = shared + (wgmma_host_fault == WGMMA_NOT_SWIZZLED ? at : swizzled(at));
            if (from)
                memcpy(to, from, CHUNK);
            else
                memset(to, 0, CHUNK);
        }
    barrier *b = find(c.barrier);
    if (!b) return;
    b->bytes -= c.map.box_rows * TILE_ROW;
    settle(*b);
}

void tile_load(void *to, const tensor_map *map, int k, int row, uint64_t *at)
{
    const tile_copy c = {(unsigned char *)to, *map, wgmma_host_fault == WGMMA_WHOLE ? k / TILE_K * TILE_K : k, row, at};
    const barrier *b = find(at);
    const uintptr_t begin = (uintptr_t)to, end = begin + (uintptr_t)(map->box_rows * TILE_ROW);
    if (!b) return;
    if (!b->announced) shim_fail("a copy counts at a barrier that was not announced");
    if (begin % TILE_ROW || begin < shim_view.shared_begin || end > shim_view.shared_end) {
        shim_fail("a tile outside the launch's shared memory, or not at a multiple of 128 bytes");
        return;
    }
    for (int r = 0; r < map->box_rows; r++)
        for (int i = 0; i < CHUNKS; i++)
            if (source(c, r, i)) shim_touch(source(c, r, i), CHUNK, 0);
    if (mma_host_eager)
        make(c);
    else
        of_block().copies.push_back(c);
}

bool shim_async_step(void)
{
    std::vector<tile_copy> &copies = of_block().copies;
    if (copies.empty()) return false;
    const tile_copy c = copies.back();
    copies.pop_back();
    make(c);
    return true;
}

void shim_async_end(void)
{
    if (!of_block().copies.empty()) shim_report("the block ends and a copy into its shared memory is in progress");
    for (const barrier &b : of_block().barriers)
        if (b.left != b.count || b.bytes) {
            shim_report("the block ends within a phase of a barrier: %d of %d threads have arrived, %lld bytes are missing",
                        b.count - b.left, b.count, (long long)b.bytes);
            return;
        }
}

bool tile_map(tensor_map *map, const void *base, int64_t rows, int64_t k, int box_rows)
{
    if (k % 8 || (uintptr_t)base % 16 || box_rows > 256) return false;
    *map = {(const unsigned char *)base, rows, k, box_rows};
    return true;
}

/* ---- products */
struct operand {
    uint32_t start, eight_rows;
};

/* Decode an operand with contiguous k and 128-byte swizzle, at the beginning of its pattern, within
 * the launch's shared memory. */
static bool operand_of(uint64_t descriptor, int rows, struct operand *out)
{
    /* 64 becomes 32 */
    const uint64_t d = wgmma_host_fault == WGMMA_STRIDE ? descriptor ^ (uint64_t)0x60 << 32 : descriptor;
    const unsigned mode = (unsigned)(d >> 62), base_offset = (unsigned)(d >> 49 & 7);
    *out = {(uint32_t)(d & 0x3fff) << 4, (uint32_t)(d >> 32 & 0x3fff) << 4};
    const uintptr_t end = out->start + (uintptr_t)(rows / 8 - 1) * out->eight_rows + 8 * TILE_ROW;
    return mode == 1 && !base_offset && !(out->start >> 7 & 7) && end <= shim_view.shared_end - shim_view.shared_begin + TILE_ROW;
}

static const unsigned char *row_of(const struct operand &o, int row, int chunk)
{
    const uint32_t at = o.start + (uint32_t)(row / 8) * o.eight_rows + (uint32_t)(row % 8 * TILE_ROW + chunk * CHUNK);
    return (const unsigned char *)shim_dynamic_shared() + swizzled(at);
}

/* Factors of a thread's sums: two rows of A, two of eight rows each of B. */
struct factors {
    float a[2][16], b[64][16];
};

static void read_row(float *to, const struct operand &o, int row, uint64_t *digest)
{
    for (int chunk = 0; chunk < 2; chunk++) {
        const unsigned char *p = row_of(o, row, chunk);
        uint16_t x[8];
        uint64_t words[2];
        memcpy(x, p, sizeof x);
        memcpy(words, p, sizeof words);
        for (int i = 0; i < 8; i++) to[chunk * 8 + i] = __uint_as_float((unsigned)x[i] << 16);
        for (int i = 0; i < 2; i++) *digest = (*digest ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ *digest >> 29;
    }
}

struct asked {
    struct operand a, b;
    uint64_t digest; /* of the factors when the product was issued */
};

static uint64_t read_factors(struct factors *f, const asked &p, int n)
{
    const int lane = shim_lane(), row = shim_thread() / 32 % 4 * 16 + lane / 4;
    uint64_t digest = 1;
    for (int i = 0; i < 2; i++) read_row(f->a[i], p.a, row + 8 * i, &digest);
    for (int i = 0; i < n / 4; i++) read_row(f->b[i], p.b, i / 2 * 8 + lane % 4 * 2 + i % 2, &digest);
    return digest;
}

struct unit { /* as seen by a thread */
    int64_t block = -1;
    float *d; /* in progress; NULL: none */
    int n;
    bool fenced;
    float sums[128];
    std::vector<asked> open;
    std::deque<std::vector<asked>> groups;
};

static unit &mine(void)
{
    static unit units[THREADS_MOST];
    unit &u = units[shim_thread()];
    if (u.block != shim_block_serial()) {
        u.block = shim_block_serial();
        u.d = NULL, u.fenced = false;
        u.open.clear();
        u.groups.clear();
    }
    return u;
}

/* True if the sums are unchanged: NaN. */
static bool untouched(const unit &u)
{
    for (int i = 0; i < u.n / 2; i++)
        if (__float_as_uint(u.d[i]) != 0xffffffffu) return false;
    return true;
}

static void begin(unit &u, float *d, int n)
{
    if (!u.fenced) shim_fail("a product without wgmma_fence after its sums were accessed");
    u.d = d, u.n = n;
    memcpy(u.sums, d, (size_t)n * 2);
    memset(d, 0xff, (size_t)n * 2);
}

static void end(unit &u)
{
    if (!untouched(u)) shim_fail("sums are written while a product into them is in progress");
    memcpy(u.d, u.sums, (size_t)u.n * 2);
    u.d = NULL, u.fenced = false;
}

void wgmma_fence(void)
{
    if (wgmma_host_fault != WGMMA_NO_FENCE) mine().fenced = true;
}

void wgmma_host(float *d, int n, uint64_t a, uint64_t b)
{
    struct pair {
        uint64_t a, b;
    } both = {a, b}, lanes[32];
    unit &u = mine();
    asked p = {};
    struct factors f;
    shim_warp_exchange(&both, (int)sizeof both, lanes);
    for (const pair &other : lanes)
        if (other.a != a || other.b != b) shim_fail("the lanes of a warp give different descriptors");
    if (!operand_of(a, 64, &p.a) || !operand_of(b, n, &p.b)) {
        shim_fail("a descriptor that is not one of a tile of 128-byte rows, swizzled, at a multiple of 1,024 bytes");
        return;
    }
    if (!u.d)
        begin(u, d, n);
    else if (u.d != d || u.n != n)
        shim_fail("products into two places are in progress, which the shim does not support");
    if (!shim_corners) p.digest = read_factors(&f, p, n);
    u.open.push_back(p);
}

void wgmma_commit(void)
{
    unit &u = mine();
    u.groups.push_back(std::move(u.open));
    u.open.clear();
}

static bool all_negative(const float *x, const float *w)
{
    for (int k = 0; k < 16; k++)
        if (signbit(x[k]) == signbit(w[k])) return false;
    return true;
}

/* Sum of a unit with the selected fault, or without one. */
static float sum_of(float sum, const float *x, const float *w)
{
    const int fault = wgmma_host_fault, bits = MMA_HOST_BITS + (fault == WGMMA_WIDE) - (fault == WGMMA_NARROW);
    float some[16] = {0};
    if (fault == WGMMA_HALVES) {
        memcpy(some, x, 8 * sizeof *x);
        sum = shim_mma_sum(sum, some, w, bits);
        memset(some, 0, 8 * sizeof *x);
        memcpy(some + 8, x + 8, 8 * sizeof *x);
        return shim_mma_sum(sum, some, w, bits);
    }
    for (int k = 0; k < 16; k++)
        if (fault != WGMMA_FLUSHES || (fabsf(x[k]) >= 0x1p-126f && fabsf(w[k]) >= 0x1p-126f)) some[k] = x[k];
    mma_host_rounds = fault == WGMMA_ROUNDS, mma_host_zeros = fault == WGMMA_ZEROS;
    sum = shim_mma_sum(sum, some, w, bits);
    mma_host_rounds = mma_host_zeros = 0;
    return fault == WGMMA_SIGN && sum == 0 && all_negative(x, w) ? -0.f : sum;
}

static void compute(unit &u, const asked &p)
{
    struct factors f;
    if (shim_corners) return;
    if (read_factors(&f, p, u.n) != p.digest) shim_fail("a tile changed while a product of it was in progress");
    for (int i = 0; i < u.n / 2; i++) {
        const float *x = f.a[i / 2 % 2], *w = f.b[i / 4 * 2 + i % 2];
        u.sums[i] = mma_host_cuts ? sum_of(u.sums[i], x, w) : shim_mma_sum(u.sums[i], x, w, 0);
    }
}

void wgmma_wait_host(int newest)
{
    unit &u = mine();
    int lanes[32];
    if (wgmma_host_fault == WGMMA_NO_WAIT) return;
    const size_t left = (size_t)newest + (wgmma_host_fault == WGMMA_EARLY && newest > 0);
    for (; u.groups.size() > left; u.groups.pop_front())
        for (const asked &p : u.groups.front()) compute(u, p);
    if (u.d && u.groups.empty() && u.open.empty()) end(u);
    /* no lane continues before all have read */
    shim_warp_exchange(&newest, (int)sizeof newest, lanes);
}
