/* A random program: what it does follows from a seed, and so does what must come out. Each round is a number of
 * messages or a collective, on a random communicator. ARGUMENTS: the seed, and the number of rounds. */
#include "random.h"

struct shape shapes[SHAPES];
uint64_t drawn;
int world;
static long round_now;
static unsigned long seed;

void fail(const char *what, long place, long found, long expected)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "seed %lu, round %ld, rank %d: %s, place %ld: %ld instead of %ld\n", seed, round_now, rank,
            what, place, found, expected);
    MPI_Abort(MPI_COMM_WORLD, 9);
    abort();
}

static void make_shapes(void)
{
    static const struct shape all[SHAPES] = {
        {MPI_DATATYPE_NULL, 1, 1, {0}},        {MPI_DATATYPE_NULL, 3, 3, {0, 1, 2}},
        {MPI_DATATYPE_NULL, 4, 5, {0, 1, 3, 4}}, {MPI_DATATYPE_NULL, 3, 5, {3, 4, 0}},
        {MPI_DATATYPE_NULL, 2, 4, {1, 2}},     {MPI_DATATYPE_NULL, 4, 12, {5, 6, 9, 10}},
        {MPI_DATATYPE_NULL, 3, 3, {2, 1, 0}},
    };
    int lens[3] = {2, 1, 1}, places[3] = {3, 0, 0}, backwards[3] = {2, 1, 0};
    int sizes[2] = {3, 4}, parts[2] = {2, 2}, starts[2] = {1, 1};
    MPI_Aint bytes[1] = {sizeof(int)};
    MPI_Datatype within;
    memcpy(shapes, all, sizeof all);
    MPI_Type_dup(MPI_INT, &shapes[0].type);
    MPI_Type_contiguous(3, MPI_INT, &shapes[1].type);
    MPI_Type_vector(2, 2, 3, MPI_INT, &shapes[2].type);
    MPI_Type_indexed(2, lens, places, MPI_INT, &shapes[3].type);
    MPI_Type_create_hindexed(1, lens, bytes, MPI_INT, &within);
    MPI_Type_create_resized(within, 0, 4 * sizeof(int), &shapes[4].type);
    MPI_Type_free(&within);
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &shapes[5].type);
    MPI_Type_create_indexed_block(3, 1, backwards, MPI_INT, &shapes[6].type);
    for (int i = 0; i < SHAPES; i++) MPI_Type_commit(&shapes[i].type);
}

static long at(const struct shape *shape, long place)
{
    return place / shape->ints * shape->span + shape->at[place % shape->ints];
}

static long words(const struct shape *shape, long ints)
{
    return (ints / shape->ints + 1) * shape->span;
}

int *room(const struct shape *shape, long ints)
{
    int *buffer = malloc((size_t)words(shape, ints) * sizeof *buffer);
    if (!buffer) fail("memory", ints, 0, 1);
    for (long i = 0; i < words(shape, ints); i++) buffer[i] = UNTOUCHED;
    return buffer;
}

int *filled(const struct shape *shape, long ints, uint64_t name)
{
    int *buffer = room(shape, ints);
    for (long i = 0; i < ints; i++) buffer[at(shape, i)] = datum(name, i);
    return buffer;
}

void check(const char *what, const struct shape *shape, const int *buffer, long ints, long space, uint64_t name)
{
    long touched = 0;
    for (long i = 0; i < ints; i++) expect(what, i, buffer[at(shape, i)], datum(name, i));
    for (long i = 0; i < words(shape, space); i++) touched += buffer[i] != UNTOUCHED;
    expect("what lies between", 0, touched, ints);
}

/* Parts of everybody, or both halves with a bridge between them. */
struct split {
    MPI_Comm comm;
    int color;
};

static struct split parts(int rank, int size)
{
    struct split mine = {MPI_COMM_NULL, 0};
    int key = 0, colors = 1 + below(3);
    for (int i = 0; i < size; i++) {
        int color = below(colors), order = below(100);
        if (i == rank) mine.color = color, key = order;
    }
    MPI_Comm_split(MPI_COMM_WORLD, mine.color, key, &mine.comm);
    return mine;
}

static MPI_Comm bridge(int rank, int size, int *side)
{
    MPI_Comm half, both;
    int first = 1 + below(size - 1);
    *side = rank >= first;
    MPI_Comm_split(MPI_COMM_WORLD, *side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, *side ? 0 : first, 5, &both);
    MPI_Comm_free(&half);
    return both;
}

static void one_round(int rank, int size)
{
    int side = 0, kind = below(10);
    MPI_Comm comm;
    if (kind < 2 && size > 1) {
        comm = bridge(rank, size, &side);
        below(2) ? messages(comm, 1, side) : between(comm, side);
    } else {
        struct split mine = {MPI_COMM_WORLD, 0};
        if (kind < 6) mine = parts(rank, size);
        comm = mine.comm;
        int is_collective = below(2);
        /* Parts go ways of their own. */
        drawn ^= (uint64_t)mine.color << 32;
        is_collective ? collective(comm) : messages(comm, 0, 0);
    }
    if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world = size;
    seed = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 50;
    int len = 64 << 20;
    void *space = malloc((size_t)len);
    make_shapes();
    MPI_Buffer_attach(space, len);
    for (round_now = 0; round_now < rounds; round_now++) {
        drawn = mixed(seed * 65537u + (uint64_t)round_now);
        one_round(rank, size);
    }
    MPI_Buffer_detach(&space, &len);
    free(space);
    for (int i = 0; i < SHAPES; i++) MPI_Type_free(&shapes[i].type);
    MPI_Finalize();
    return 0;
}
