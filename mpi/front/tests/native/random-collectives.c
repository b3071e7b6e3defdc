/* Collectives in all three forms, against what a loop over the ranks says. */
#include "random.h"

#define RANKS 256

static MPI_Comm comm;
static MPI_Request request;
static int me, ranks, form, in_place, root;
/* Names the data of this round. */
static uint64_t name;

/* Blocking, nonblocking, or persistent. */
#define RUN(blocking, nonblocking, ...)                                            \
    do {                                                                           \
        if (form == 0) {                                                           \
            MPI_##blocking(__VA_ARGS__, comm);                                     \
        } else if (form == 1) {                                                    \
            MPI_##nonblocking(__VA_ARGS__, comm, &request);                        \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                 \
        } else {                                                                   \
            MPI_##blocking##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request);     \
            MPI_Start(&request);                                                   \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                 \
            MPI_Request_free(&request);                                            \
        }                                                                          \
    } while (0)

/* The name of what one rank has for another. */
static uint64_t part(int from, int to)
{
    return name + (uint64_t)(from * 1000 + to);
}

/* Blocks of different lengths with gaps between them. */
struct blocks {
    int counts[RANKS], places[RANKS], total;
};

static struct blocks drawn_blocks(int longest)
{
    struct blocks blocks = {.total = 0};
    for (int i = 0; i < ranks; i++) {
        blocks.counts[i] = below(longest + 1);
        blocks.places[i] = blocks.total + below(3);
        blocks.total = blocks.places[i] + blocks.counts[i];
    }
    return blocks;
}

static int drawn_len(void)
{
    static const int lens[5] = {1, 8, 300, 5000, 40000};
    int limit = lens[below(5)];
    /* The memory of all ranks together stays the same. */
    if (world > 64) limit = 1 + limit * 64 / world * 64 / world;
    return below(limit + 1);
}

static int *plain_room(long ints)
{
    return room(&shapes[0], ints);
}

static void put(int *at, int from, int to, int count)
{
    for (int i = 0; i < count; i++) at[i] = datum(part(from, to), i);
}

static void same(const char *what, const int *at, int from, int to, int count)
{
    for (int i = 0; i < count; i++) expect(what, i, at[i], datum(part(from, to), i));
}

static void bcast(void)
{
    const struct shape *mine = &shapes[below(SHAPES)], *theirs = &shapes[below(SHAPES)];
    int count = 1 + drawn_len();
    long ints = (long)count * 12;
    /* Twelve ints are whole elements of each. */
    const struct shape *shape = me % 2 ? mine : theirs;
    int *buffer = me == root ? filled(shape, ints, name) : room(shape, ints);
    RUN(Bcast, Ibcast, buffer, (int)(ints / shape->ints), shape->type, root);
    check("bcast", shape, buffer, ints, ints, name);
    free(buffer);
}

static void gather(void)
{
    struct blocks blocks = drawn_blocks(drawn_len());
    int *mine = plain_room(blocks.counts[me]), *all = plain_room(blocks.total);
    int even = below(2), count = even ? blocks.counts[0] : blocks.counts[me];
    for (int i = 0; even && i < ranks; i++) blocks.counts[i] = count, blocks.places[i] = i * count;
    mine = realloc(mine, sizeof(int) * (size_t)(count + 1));
    all = realloc(all, sizeof(int) * (size_t)(blocks.total + ranks * count + 1));
    put(mine, me, 0, count);
    int is_own = in_place && me == root;
    if (is_own) put(all + blocks.places[me], me, 0, count);
    void *from = is_own ? MPI_IN_PLACE : (void *)mine;
    if (even) RUN(Gather, Igather, from, count, MPI_INT, all, count, MPI_INT, root);
    else RUN(Gatherv, Igatherv, from, count, MPI_INT, all, blocks.counts, blocks.places, MPI_INT, root);
    for (int i = 0; me == root && i < ranks; i++) same("gather", all + blocks.places[i], i, 0, blocks.counts[i]);
    free(mine), free(all);
}

static void scatter(void)
{
    struct blocks blocks = drawn_blocks(drawn_len());
    int even = below(2), count = even ? blocks.counts[0] : blocks.counts[me];
    int *mine = plain_room(count), *all = plain_room(blocks.total + ranks * count);
    for (int i = 0; even && i < ranks; i++) blocks.counts[i] = count, blocks.places[i] = i * count;
    for (int i = 0; i < ranks; i++) put(all + blocks.places[i], root, i, blocks.counts[i]);
    int is_own = in_place && me == root;
    void *into = is_own ? MPI_IN_PLACE : (void *)mine;
    if (even) RUN(Scatter, Iscatter, all, count, MPI_INT, into, count, MPI_INT, root);
    else RUN(Scatterv, Iscatterv, all, blocks.counts, blocks.places, MPI_INT, into, count, MPI_INT, root);
    same("scatter", is_own ? all + blocks.places[me] : mine, root, me, count);
    free(mine), free(all);
}

static void allgather(void)
{
    const struct shape *shape = &shapes[below(SHAPES)];
    int count = drawn_len() / 4;
    long ints = (long)count * shape->ints;
    int *mine = plain_room(ints), *all = room(shape, ints * ranks);
    put(mine, me, 0, (int)ints);
    for (long i = 0; in_place && i < ints; i++)
        all[(me * (long)count + i / shape->ints) * shape->span + shape->at[i % shape->ints]] = mine[i];
    void *from = in_place ? MPI_IN_PLACE : (void *)mine;
    RUN(Allgather, Iallgather, from, (int)ints, MPI_INT, all, count, shape->type);
    for (int i = 0; i < ranks; i++)
        check("allgather", shape, all + (long)i * count * shape->span, ints, ints - 1, part(i, 0));
    free(mine), free(all);
}

static void allgatherv(void)
{
    struct blocks blocks = drawn_blocks(drawn_len());
    int count = blocks.counts[me];
    int *mine = plain_room(count), *all = plain_room(blocks.total);
    put(in_place ? all + blocks.places[me] : mine, me, 0, count);
    void *from = in_place ? MPI_IN_PLACE : (void *)mine;
    RUN(Allgatherv, Iallgatherv, from, count, MPI_INT, all, blocks.counts, blocks.places, MPI_INT);
    for (int i = 0; i < ranks; i++) same("allgatherv", all + blocks.places[i], i, 0, blocks.counts[i]);
    free(mine), free(all);
}

static void alltoall(void)
{
    int count = drawn_len() / 2;
    int *from = plain_room((long)count * ranks), *into = plain_room((long)count * ranks);
    for (int i = 0; i < ranks; i++) put((in_place ? into : from) + i * count, me, i, count);
    void *send = in_place ? MPI_IN_PLACE : (void *)from;
    RUN(Alltoall, Ialltoall, send, count, MPI_INT, into, count, MPI_INT);
    for (int i = 0; i < ranks; i++) same("alltoall", into + i * count, i, me, count);
    free(from), free(into);
}

/* How much one rank has for another, with and without MPI_IN_PLACE, which wants it symmetric. */
static int uneven(int one, int other, int longest)
{
    if (in_place && one > other) return uneven(other, one, longest);
    return (int)(mixed(name + (uint64_t)(one * RANKS + other)) % (unsigned)(longest + 1));
}

static void alltoallv(void)
{
    int longest = drawn_len() / 2, is_mixed = below(2);
    int sends[RANKS], receives[RANKS], from[RANKS], into[RANKS], bytes_from[RANKS], bytes_into[RANKS];
    MPI_Datatype types[RANKS];
    for (int i = 0; i < ranks; i++) {
        sends[i] = uneven(me, i, longest), receives[i] = uneven(i, me, longest);
        from[i] = into[i] = i * (longest + 1), types[i] = MPI_INT;
        bytes_from[i] = bytes_into[i] = from[i] * (int)sizeof(int);
    }
    int *out = plain_room((long)ranks * (longest + 1)), *in = plain_room((long)ranks * (longest + 1));
    for (int i = 0; i < ranks; i++) put((in_place ? in : out) + from[i], me, i, sends[i]);
    void *send = in_place ? MPI_IN_PLACE : (void *)out;
    if (is_mixed) RUN(Alltoallw, Ialltoallw, send, sends, bytes_from, types, in, receives, bytes_into, types);
    else RUN(Alltoallv, Ialltoallv, send, sends, from, MPI_INT, in, receives, into, MPI_INT);
    for (int i = 0; i < ranks; i++) {
        same("alltoallv", in + into[i], i, me, receives[i]);
        expect("behind a block", i, in[into[i] + receives[i]], UNTOUCHED);
    }
    free(out), free(in);
}

/* x -> a x + b: applied one after the other, the order matters. */
struct map {
    unsigned a, b;
};

static void after(void *in, void *inout, int *count, MPI_Datatype *type)
{
    struct map *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *count; i++) {
        struct map both = {left[i].a * right[i].a, left[i].b * right[i].a + right[i].b};
        right[i] = both;
    }
}

/* Numbers of a rank, combined by an operator; `kind` says which: maximum, sum, sum of doubles, maps. */
enum { MAXIMUM, SUM, REAL_SUM, MAPS, KINDS };

union value {
    int i;
    double d;
    struct map m;
};

static size_t bytes_of(int kind)
{
    return kind < REAL_SUM ? sizeof(int) : kind == REAL_SUM ? sizeof(double) : sizeof(struct map);
}

static union value value(int kind, int from, int place)
{
    union value value = {0};
    int number = datum(part(from, 0), place);
    if (kind < REAL_SUM) value.i = number % 100000;
    else if (kind == REAL_SUM) value.d = number % 100000;
    else value.m.a = (unsigned)number | 1, value.m.b = (unsigned)number >> 3;
    return value;
}

/* Of several ranks in a row. */
static union value combined(int kind, int first, int last, int place)
{
    union value all = value(kind, first, place);
    for (int i = first + 1; i <= last; i++) {
        union value next = value(kind, i, place);
        int one = 1;
        if (kind == MAXIMUM) all.i = next.i > all.i ? next.i : all.i;
        else if (kind == SUM) all.i += next.i;
        else if (kind == REAL_SUM) all.d += next.d;
        else after(&all.m, &next.m, &one, NULL), all = next;
    }
    return all;
}

static void same_as(const char *what, int kind, const char *found, int first, int last, int skip, int count)
{
    for (int i = 0; i < count; i++) {
        union value wanted = combined(kind, first, last, skip + i);
        if (memcmp(found + (size_t)i * bytes_of(kind), &wanted, bytes_of(kind)))
            fail(what, skip + i, ((const int *)found)[(size_t)i * bytes_of(kind) / sizeof(int)], wanted.i);
    }
}

static void reductions(int which)
{
    int kind = below(KINDS), count = drawn_len() / 2, each[RANKS], skipped = 0, total = 0;
    MPI_Datatype type, types[KINDS] = {MPI_INT, MPI_INT, MPI_DOUBLE, MPI_DATATYPE_NULL};
    MPI_Op op, ops[KINDS] = {MPI_MAX, MPI_SUM, MPI_SUM, MPI_OP_NULL};
    MPI_Type_contiguous(2, MPI_UNSIGNED, &types[MAPS]);
    MPI_Type_commit(&types[MAPS]);
    MPI_Op_create(after, 0, &ops[MAPS]);
    type = types[kind], op = ops[kind];
    for (int i = 0; i < ranks; i++) {
        each[i] = which == 5 ? count : below(count + 1);
        if (i < me) skipped += each[i];
        total += each[i];
    }
    int words = which >= 4 ? total : count, own = in_place && (which || me == root);
    char *from = calloc((size_t)words + 1, bytes_of(kind)), *into = calloc((size_t)words + 1, bytes_of(kind));
    for (int i = 0; i < words; i++) {
        union value mine = value(kind, me, i);
        memcpy((own ? into : from) + (size_t)i * bytes_of(kind), &mine, bytes_of(kind));
    }
    void *send = own ? MPI_IN_PLACE : (void *)from;
    switch (which) {
    case 0:
        RUN(Reduce, Ireduce, send, into, count, type, op, root);
        if (me == root) same_as("reduce", kind, into, 0, ranks - 1, 0, count);
        break;
    case 1:
        RUN(Allreduce, Iallreduce, send, into, count, type, op);
        same_as("allreduce", kind, into, 0, ranks - 1, 0, count);
        break;
    case 2:
        RUN(Scan, Iscan, send, into, count, type, op);
        same_as("scan", kind, into, 0, me, 0, count);
        break;
    case 3:
        RUN(Exscan, Iexscan, send, into, count, type, op);
        if (me > 0) same_as("exscan", kind, into, 0, me - 1, 0, count);
        break;
    case 4:
        RUN(Reduce_scatter, Ireduce_scatter, send, into, each, type, op);
        same_as("reduce_scatter", kind, into, 0, ranks - 1, skipped, each[me]);
        break;
    default:
        RUN(Reduce_scatter_block, Ireduce_scatter_block, send, into, count, type, op);
        same_as("reduce_scatter_block", kind, into, 0, ranks - 1, skipped, count);
    }
    free(from), free(into);
    MPI_Op_free(&ops[MAPS]);
    MPI_Type_free(&types[MAPS]);
}

void collective(MPI_Comm on)
{
    comm = on;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    for (int many = 1 + below(6); many > 0; many--) {
        int which = below(13);
        form = below(3), in_place = below(3) == 0, root = below(ranks), name = drawn;
        switch (which) {
        case 0: bcast(); break;
        case 1: gather(); break;
        case 2: scatter(); break;
        case 3: allgather(); break;
        case 4: allgatherv(); break;
        case 5: alltoall(); break;
        case 6: alltoallv(); break;
        default: reductions(which - 7);
        }
    }
}

void between(MPI_Comm on, int side)
{
    int others, mine = side * 32;
    comm = on, form = below(3), name = drawn;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_remote_size(comm, &others);
    int count = drawn_len() / 2, theirs = 32 - mine, from = below(2);
    int *out = plain_room((long)count * others), *in = plain_room((long)count * others), sum[1] = {0};
    put(out, mine + me, 0, count);
    RUN(Allgather, Iallgather, out, count, MPI_INT, in, count, MPI_INT);
    for (int i = 0; i < others; i++) same("allgather between", in + i * count, theirs + i, 0, count);
    for (int i = 0; i < others; i++) put(out + i * count, mine + me, theirs + i, count);
    RUN(Alltoall, Ialltoall, out, count, MPI_INT, in, count, MPI_INT);
    for (int i = 0; i < others; i++) same("alltoall between", in + i * count, theirs + i, mine + me, count);
    put(out, mine, 99, count);
    root = side != from ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL;
    RUN(Bcast, Ibcast, side == from ? out : in, count, MPI_INT, root);
    if (side != from) same("bcast between", in, theirs, 99, count);
    RUN(Allreduce, Iallreduce, &me, sum, 1, MPI_INT, MPI_SUM);
    expect("allreduce between", 0, sum[0], (long)others * (others - 1) / 2);
    free(out), free(in);
}
