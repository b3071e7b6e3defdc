/* MPI_Win_lock_all beside MPI_LOCK_EXCLUSIVE, from a seed. Writers change all of a rank's memory in two steps under an
 * exclusive lock. Others access some ranks between lock_all and unlock_all, each in one of all ways, and see neither a
 * half of a change nor a change as long as they have not unlocked. What they change themselves, no writer sees change.
 *     window-locks SEED ROUNDS allocate|create|dynamic */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1500, HALF = BLOCK / 2, RANKS = 64, SOME = 3 };

typedef struct {
    /* Of equal elements, unless a writer is at it. */
    long long block[BLOCK];
    /* Only those change it that have locked all ranks. */
    long long sum;
    /* One for each origin, which alone writes it, with the lock of all. */
    long long mine[RANKS];
    /* Writers that were there. */
    long long writers;
} Memory;

static int rank, size;
static long long wrong, written[RANKS], added[RANKS];
static unsigned long long state;
static MPI_Win win;
static MPI_Aint bases[RANKS];

#define AT(target, field) (bases[target] + (MPI_Aint)offsetof(Memory, field))
#define OBJECT(what, ...)                                                                                    \
    do {                                                                                                     \
        if (wrong++ < 5) fprintf(stderr, "rank %d: " what "\n", rank, __VA_ARGS__);                         \
    } while (0)

static unsigned below(unsigned limit)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)((state >> 11) % limit);
}

static MPI_Win make(const char *flavor, Memory **memory)
{
    MPI_Win made;
    MPI_Aint base = 0;
    if (!strcmp(flavor, "allocate")) {
        MPI_Win_allocate(sizeof **memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &made);
    } else {
        MPI_Alloc_mem(sizeof **memory, MPI_INFO_NULL, memory);
        if (!strcmp(flavor, "create")) {
            MPI_Win_create(*memory, sizeof **memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &made);
            MPI_Win_attach(made, *memory, sizeof **memory);
            MPI_Get_address(*memory, &base);
        }
    }
    MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
    return made;
}

static void get(int target, MPI_Aint at, long long *into, int count)
{
    MPI_Get(into, count, MPI_LONG_LONG, target, at, count, MPI_LONG_LONG, win);
}

static void put(int target, MPI_Aint at, const long long *from, int count)
{
    MPI_Put(from, count, MPI_LONG_LONG, target, at, count, MPI_LONG_LONG, win);
}

/* Alone at a rank. */
static void write_alone(int target)
{
    static long long block[BLOCK];
    long long before, after, one = 1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    get(target, AT(target, block), block, BLOCK);
    get(target, AT(target, sum), &before, 1);
    MPI_Win_flush(target, win);
    for (int i = 1; i < BLOCK; i++)
        if (block[i] != block[0]) {
            OBJECT("a writer at %d finds %lld behind %lld", target, block[i], block[0]);
            break;
        }
    for (int i = 0; i < BLOCK; i++) block[i]++;
    put(target, AT(target, block), block, HALF);
    MPI_Win_flush(target, win);
    MPI_Accumulate(&one, 1, MPI_LONG_LONG, target, AT(target, writers), 1, MPI_LONG_LONG, MPI_SUM, win);
    get(target, AT(target, sum), &after, 1);
    put(target, AT(target, block) + 8 * HALF, block + HALF, BLOCK - HALF);
    MPI_Win_unlock(target, win);
    if (after != before) OBJECT("%lld was added at %d beside a writer", after - before, target);
    written[target]++;
}

/* The first access to a rank, in one of all ways; 1: what is there was read. */
static int first_access(int target, long long *block)
{
    MPI_Request request = MPI_REQUEST_NULL;
    long long one = 1, old, number = state >> 20, seen = 0;
    int reads = 0;
    switch (below(8)) {
    case 0:
        get(target, AT(target, block), block, BLOCK);
        reads = 1;
        break;
    case 1:
        put(target, AT(target, mine[rank]), &number, 1);
        break;
    case 2:
        MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, target, AT(target, sum), MPI_SUM, win);
        added[target]++;
        break;
    case 3:
        MPI_Accumulate(&one, 1, MPI_LONG_LONG, target, AT(target, sum), 1, MPI_LONG_LONG, MPI_SUM, win);
        added[target]++;
        break;
    case 4:
        MPI_Compare_and_swap(&one, &seen, &old, MPI_LONG_LONG, target, AT(target, mine[RANKS - 1]), win);
        break;
    case 5:
        MPI_Rget(block, BLOCK, MPI_LONG_LONG, target, AT(target, block), BLOCK, MPI_LONG_LONG, win, &request);
        reads = 1;
        break;
    case 6:
        MPI_Rput(&number, 1, MPI_LONG_LONG, target, AT(target, mine[rank]), 1, MPI_LONG_LONG, win, &request);
        break;
    default:
        MPI_Raccumulate(&one, 1, MPI_LONG_LONG, target, AT(target, sum), 1, MPI_LONG_LONG, MPI_SUM, win, &request);
        added[target]++;
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (below(2)) {
        MPI_Win_flush(target, win);
    } else {
        MPI_Win_flush_local_all(win);
    }
    return reads;
}

/* Some ranks, all of which are locked. */
static void access_some(void)
{
    static long long blocks[SOME][BLOCK], again[SOME][BLOCK];
    int targets[SOME], count = (int)below(SOME + 1);
    MPI_Win_lock_all(0, win);
    if (below(4) == 0) MPI_Win_flush_all(win);
    for (int i = 0; i < count; i++) {
        targets[i] = (int)below((unsigned)size);
        if (!first_access(targets[i], blocks[i])) {
            get(targets[i], AT(targets[i], block), blocks[i], BLOCK);
            /* One put more, by which nobody waits. */
            put(targets[i], AT(targets[i], mine[rank]), &blocks[i][0], 0);
        }
    }
    MPI_Win_flush_all(win);
    MPI_Win_sync(win);
    for (int i = 0; i < count; i++) get(targets[i], AT(targets[i], block), again[i], BLOCK);
    MPI_Win_unlock_all(win);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < BLOCK; k++)
            if (blocks[i][k] != blocks[i][0] || again[i][k] != blocks[i][0]) {
                OBJECT("element %d of %d is %lld and then %lld, the first %lld", k, targets[i], blocks[i][k],
                       again[i][k], blocks[i][0]);
                break;
            }
}

/* More at once than an origin sends to a rank that keeps it waiting. */
static void access_much(int target)
{
    enum { MANY = 300 };
    static long long values[MANY][64], one = 1;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < MANY; i++) {
        MPI_Accumulate(&one, 1, MPI_LONG_LONG, target, AT(target, sum), 1, MPI_LONG_LONG, MPI_SUM, win);
        get(target, AT(target, block), values[i], 64);
    }
    MPI_Win_unlock_all(win);
    added[target] += MANY;
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < 64; k++)
            if (values[i][k] != values[0][0]) {
                OBJECT("get %d brings %lld after %lld", i, values[i][k], values[0][0]);
                i = MANY - 1;
                break;
            }
}

int main(int argc, char **argv)
{
    Memory *memory;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 4 || size > RANKS - 1) {
        if (rank == 0) fprintf(stderr, "usage: window-locks SEED ROUNDS allocate|create|dynamic\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    state = (strtoull(argv[1], NULL, 10) * 1000003 + (unsigned long long)rank + 1) * 0x9e3779b97f4a7c15ULL;
    long rounds = atol(argv[2]);
    win = make(argv[3], &memory);
    memset(memory, 0, sizeof *memory);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long round = 0; round < rounds; round++) {
        unsigned what = below(20);
        if (what < 9) {
            write_alone((int)below((unsigned)size));
        } else if (what < 19) {
            access_some();
        } else {
            access_much((int)below((unsigned)size));
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, written, RANKS, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, added, RANKS, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    if (memory->block[0] != written[rank] || memory->writers != written[rank] || memory->sum != added[rank])
        OBJECT("%lld writers and %lld additions have left %lld, %lld and %lld", written[rank], added[rank],
               memory->block[0], memory->writers, memory->sum);
    MPI_Win_unlock(rank, win);
    if (!strcmp(argv[3], "dynamic")) MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
    if (strcmp(argv[3], "allocate")) MPI_Free_mem(memory);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong != 0;
}
