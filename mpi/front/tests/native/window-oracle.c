/* One-sided communication from a seed, judged by oracles that know nothing of the library: every update arrives once,
 * each element is atomic, the accumulates of one origin keep their order, and a lock is held by one writer or by readers.
 *     window-oracle SEED ROUNDS [SECONDS]: rounds go on until both are over */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 64, BLOCK = 3000, OPS = 200 };

/* What each rank shows to the others. */
typedef struct {
    long long sums[CELLS];
    long long tickets;
    long long swapped;
    /* One for each origin: the number that it wrote last. */
    long long steps[64];
    /* Version and writer in each element, written under an exclusive lock. */
    long long block[BLOCK];
} Memory;

static int rank, size;
static long long wrong, updates;
static unsigned long long state;
static MPI_Win window;
static Memory *memory;

#define AT(field) ((MPI_Aint)offsetof(Memory, field))
#define OBJECT(what, ...)                                                                                    \
    do {                                                                                                     \
        if (wrong++ < 5) {                                                                                   \
            fprintf(stderr, "rank %d: " what "\n", rank, __VA_ARGS__);                                      \
        }                                                                                                    \
    } while (0)

/* Equal for all ranks that use it equally (xorshift). */
static unsigned below(unsigned limit)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)((state >> 11) % limit);
}

/* Everybody adds to everybody; the sums are those of what was added, and nothing else. */
static void every_update_once(void)
{
    long long *added = calloc((size_t)size * CELLS, sizeof *added);
    memset(memory->sums, 0, sizeof memory->sums);
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    long long values[OPS][4];
    for (int i = 0; i < OPS; i++) {
        int target = (int)below((unsigned)size), cell = (int)below(CELLS - 4), count = 1 + (int)below(4);
        for (int k = 0; k < count; k++) {
            values[i][k] = 1 + below(1000);
            added[target * CELLS + cell + k] += values[i][k];
        }
        MPI_Accumulate(values[i], count, MPI_LONG_LONG, target, AT(sums) + 8 * cell, count, MPI_LONG_LONG, MPI_SUM,
                       window);
        if (below(40) == 0) MPI_Win_flush_local(target, window);
    }
    updates += OPS;
    MPI_Win_flush_all(window);
    MPI_Allreduce(MPI_IN_PLACE, added, size * CELLS, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_sync(window);
    for (int i = 0; i < CELLS; i++)
        if (memory->sums[i] != added[rank * CELLS + i])
            OBJECT("sum %d is %lld, and %lld was added", i, memory->sums[i], added[rank * CELLS + i]);
    MPI_Barrier(MPI_COMM_WORLD);
    free(added);
}

static int ascending(const void *a, const void *b)
{
    long long x = *(const long long *)a, y = *(const long long *)b;
    return (x > y) - (x < y);
}

/* Nobody draws a ticket that another one has, and none is left out; who swaps a number owns it alone. */
static void each_element_is_atomic(void)
{
    enum { DRAWS = 25 };
    int owner = (int)below((unsigned)size);
    long long one = 1, drawn[DRAWS], *all = malloc(sizeof *all * DRAWS * (size_t)size), owned = 0, sum, end = 0;
    if (rank == owner) memory->tickets = memory->swapped = 0;
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < DRAWS; i++) {
        MPI_Fetch_and_op(&one, &drawn[i], MPI_LONG_LONG, owner, AT(tickets), MPI_SUM, window);
        if (i % 3 == 0) MPI_Win_flush(owner, window);
    }
    for (int i = 0; i < DRAWS; i++) {
        long long seen = 0, next, found;
        do {
            next = seen + 1;
            MPI_Compare_and_swap(&next, &seen, &found, MPI_LONG_LONG, owner, AT(swapped), window);
            MPI_Win_flush(owner, window);
            if (found == seen) break;
            seen = found;
        } while (1);
        owned++;
    }
    updates += 2 * DRAWS;
    MPI_Win_flush_all(window);
    MPI_Allgather(drawn, DRAWS, MPI_LONG_LONG, all, DRAWS, MPI_LONG_LONG, MPI_COMM_WORLD);
    qsort(all, (size_t)(DRAWS * size), sizeof *all, ascending);
    for (int i = 0; i < DRAWS * size; i++)
        if (all[i] != i) {
            OBJECT("ticket %lld is at place %d", all[i], i);
            break;
        }
    MPI_Allreduce(&owned, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == owner) {
        MPI_Win_sync(window);
        end = memory->swapped;
    }
    MPI_Bcast(&end, 1, MPI_LONG_LONG, owner, MPI_COMM_WORLD);
    if (end != sum) OBJECT("%lld numbers were swapped, and %lld are there", sum, end);
    MPI_Barrier(MPI_COMM_WORLD);
    free(all);
}

/* The numbers that an origin writes come in their order, as the target and others see them. */
static void accumulates_keep_their_order(void)
{
    enum { STEPS = 60 };
    int target = (rank + 1) % size, before = (rank + size - 1) % size, from = (rank + size - 2) % size;
    long long numbers[STEPS], seen = 0, nothing = 0, got;
    memset(memory->steps, 0, sizeof memory->steps);
    MPI_Win_sync(window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < STEPS; i++) {
        numbers[i] = i + 1;
        MPI_Accumulate(&numbers[i], 1, MPI_LONG_LONG, target, AT(steps) + 8 * rank, 1, MPI_LONG_LONG, MPI_REPLACE,
                       window);
        if (i % 7 == 0) {
            /* What the rank before ours has from the one before it. */
            MPI_Get_accumulate(&nothing, 1, MPI_LONG_LONG, &got, 1, MPI_LONG_LONG, before, AT(steps) + 8 * from, 1,
                               MPI_LONG_LONG, MPI_NO_OP, window);
            MPI_Win_flush(before, window);
            if (got < seen) OBJECT("after %lld comes %lld", seen, got);
            seen = got;
        }
    }
    updates += STEPS;
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
    if (memory->steps[before] != STEPS) OBJECT("the last number is %lld", memory->steps[before]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Under an exclusive lock there is one writer, and what it writes is there for the next one. */
static void locks_keep_others_out(void)
{
    static long long mine[BLOCK];
    int target = (int)below((unsigned)size), version = 0;
    MPI_Win_unlock_all(window);
    if (rank == target) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
        memset(memory->block, 0, sizeof memory->block);
        MPI_Win_unlock(rank, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 6; i++) {
        int writes = (rank + i) % 2 == 0;
        MPI_Win_lock(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, window);
        MPI_Get(mine, BLOCK, MPI_LONG_LONG, target, AT(block), BLOCK, MPI_LONG_LONG, window);
        MPI_Win_flush(target, window);
        for (int k = 1; k < BLOCK; k++)
            if (mine[k] != mine[0]) {
                OBJECT("element %d is %llx, and the first %llx", k, mine[k], mine[0]);
                break;
            }
        if (writes) {
            version++;
            long long next = (mine[0] & ~0xffLL) + 0x100 + rank;
            for (int k = 0; k < BLOCK; k++) mine[k] = next;
            MPI_Put(mine, BLOCK, MPI_LONG_LONG, target, AT(block), BLOCK, MPI_LONG_LONG, window);
            updates++;
        }
        MPI_Win_unlock(target, window);
    }
    MPI_Allreduce(MPI_IN_PLACE, &version, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    if (rank == target) {
        MPI_Win_sync(window);
        if (memory->block[0] >> 8 != version)
            OBJECT("%d writers have left %lld versions", version, memory->block[0] >> 8);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 3) {
        if (rank == 0) fprintf(stderr, "usage: window-oracle SEED ROUNDS [SECONDS]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    unsigned long long seed = strtoull(argv[1], NULL, 10);
    long rounds = atol(argv[2]), round = 0;
    double begin = MPI_Wtime(), seconds = argc > 3 ? atof(argv[3]) : 0;
    MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    for (int more = 1; more; round++) {
        /* The same in all ranks where they have to agree, and of each rank's own where not. */
        state = (seed * 1000003 + (unsigned long long)round + 1) * 0x9e3779b97f4a7c15ULL;
        each_element_is_atomic();
        locks_keep_others_out();
        accumulates_keep_their_order();
        state += (unsigned long long)rank * 0x2545f4914f6cdd1dULL;
        every_update_once();
        more = round + 1 < rounds || MPI_Wtime() - begin < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &updates, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && seconds > 0)
        printf("seed %llu: %ld rounds, %lld updates, %lld objections\n", seed, round, updates, wrong);
    MPI_Finalize();
    return wrong != 0;
}
