/* Two ranks, or more: windows whose memory the network reaches. Checks what has arrived.
 *   windows ways         puts and gets of all lengths in each kind of epoch; targets that call nothing
 *   windows atomics      words that the network changes, of a rank that calls nothing
 *   windows stream MIB   puts and gets of that many MiB, while queue pairs may fail
 * With count.c before libibverbs it checks that the network did it. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEGA = 1 << 20, WORDS = MEGA / 8, BYTES = 4 * MEGA };

/* What count.c counts, in its order. */
enum { DOORBELLS, OPERATIONS, SIGNALED, COMPLETIONS, REGISTRATIONS, BUFFERED, DIRECT, FAILURES, READABLE, KINDS };

void verbs_counts(long *out) __attribute__((weak));

static int rank, size, failed;

static void expect(int is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "rank %d: FAILED: %s\n", rank, what);
    failed = 1;
}

static long count(int kind)
{
    long counts[KINDS] = { 0 };
    if (verbs_counts)
        verbs_counts(counts);
    return counts[kind];
}

/* A window of `len` bytes, of the program's memory or of MPI's. */
static MPI_Win make(int allocates, size_t len, char **memory)
{
    MPI_Win win;
    if (allocates) {
        MPI_Win_allocate(len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win);
    } else {
        *memory = malloc(len);
        MPI_Win_create(*memory, len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    memset(*memory, 0, len);
    MPI_Barrier(MPI_COMM_WORLD);
    return win;
}

static void fill(char *memory, size_t len, int seed)
{
    for (size_t at = 0; at < len; at++)
        memory[at] = at * 31 + (at >> 9) * 7 + seed;
}

static int is_filled(const char *memory, size_t len, int seed)
{
    for (size_t at = 0; at < len; at++)
        if (memory[at] != (char)(at * 31 + (at >> 9) * 7 + seed))
            return 0;
    return 1;
}

/* Each rank puts to the next one and gets it back, in epochs of this kind. */
static void lengths(MPI_Win win, char *memory, int epoch)
{
    static const int lens[] = { 1, 8, 100, 4096, 5000, 16384, 16385, 300000, MEGA + 3, 3 * MEGA };
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    char *out = malloc(BYTES), *back = malloc(BYTES);
    MPI_Group all, to, from;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &next, &to);
    MPI_Group_incl(all, 1, &before, &from);
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        int len = lens[i], place = 777;
        fill(out, len, rank + i);
        memset(back, 0, len);
        if (epoch == 0) {
            MPI_Win_fence(0, win);
            MPI_Put(out, len, MPI_BYTE, next, place, len, MPI_BYTE, win);
            MPI_Win_fence(0, win);
            expect(is_filled(memory + place, len, before + i), "a put is there after a fence");
            MPI_Get(back, len, MPI_BYTE, next, place, len, MPI_BYTE, win);
            MPI_Win_fence(0, win);
        } else if (epoch == 1) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
            MPI_Put(out, len, MPI_BYTE, next, place, len, MPI_BYTE, win);
            MPI_Win_flush(next, win);
            MPI_Get(back, len, MPI_BYTE, next, place, len, MPI_BYTE, win);
            MPI_Win_unlock(next, win);
            MPI_Barrier(MPI_COMM_WORLD);
            expect(is_filled(memory + place, len, before + i), "a put is there after an unlock");
        } else {
            MPI_Win_post(from, 0, win);
            MPI_Win_start(to, 0, win);
            MPI_Put(out, len, MPI_BYTE, next, place, len, MPI_BYTE, win);
            MPI_Win_complete(win);
            MPI_Win_wait(win);
            expect(is_filled(memory + place, len, before + i), "a put is there after a wait");
            MPI_Win_lock_all(0, win);
            MPI_Get(back, len, MPI_BYTE, next, place, len, MPI_BYTE, win);
            MPI_Win_unlock_all(win);
        }
        expect(is_filled(back, len, rank + i), "a get brings what was put");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Group_free(&all);
    free(out);
    free(back);
}

/* Data with gaps, accumulates between puts, and locks that several ranks want. */
static void others(MPI_Win win, char *memory)
{
    int next = (rank + 1) % size;
    MPI_Datatype every_other;
    MPI_Type_vector(1000, 2, 4, MPI_INT, &every_other);
    MPI_Type_commit(&every_other);
    int values[4000], sum = 0;
    for (int i = 0; i < 4000; i++)
        values[i] = 3 * i + rank;
    MPI_Win_fence(0, win);
    memset(memory, 0, BYTES);
    MPI_Win_fence(0, win);
    MPI_Put(values, 2000, MPI_INT, next, 0, 1, every_other, win);
    MPI_Put(values, 1, every_other, next, 32000, 2000, MPI_INT, win);
    MPI_Win_fence(0, win);
    const int *got = (int *)memory;
    int before = (rank + size - 1) % size, right = 1;
    for (int i = 0; i < 2000; i++)
        right = right && got[i / 2 * 4 + i % 2] == 3 * i + before;
    expect(right, "data with gaps at the target");
    MPI_Type_free(&every_other);
    /* A counter that is read, then written, by whoever has the lock. */
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    memset(memory, 0, 64);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 50; i++) {
        int value, one = 1;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
        value++;
        MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Accumulate(&one, 1, MPI_INT, 0, 8, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Get(&values, 1, MPI_INT, 0, 8, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    expect(sum == 50 * size && values[0] == 50 * size, "what a lock protects is counted");
}

/* The target looks at its memory and calls nothing; with NMAD_PROGRESS=off nobody else helps. */
static void silent(MPI_Win win, char *memory)
{
    volatile int64_t *word = (volatile int64_t *)memory;
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    memset(memory, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        while (word[0] == 0 || word[WORDS] == 0)
            ;
        expect(is_filled(memory + 64, 5000, 5), "what was flushed before is there");
        word[1] = 77;
        while (word[2] != 78)
            ;
        MPI_Win_unlock(1, win);
    } else if (rank == 0) {
        char data[5000];
        int64_t one = 1, answer = 0;
        fill(data, 5000, 5);
        MPI_Win_lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, win);
        MPI_Put(data, 5000, MPI_BYTE, 1, 64, 5000, MPI_BYTE, win);
        MPI_Win_flush(1, win);
        MPI_Put(&one, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
        MPI_Put(&one, 8, MPI_BYTE, 1, MEGA, 8, MPI_BYTE, win);
        while (answer != 77) {
            MPI_Get(&answer, 8, MPI_BYTE, 1, 8, 8, MPI_BYTE, win);
            MPI_Win_flush(1, win);
        }
        answer++;
        MPI_Put(&answer, 8, MPI_BYTE, 1, 16, 8, MPI_BYTE, win);
        MPI_Win_unlock(1, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void ways(void)
{
    for (int allocates = 0; allocates < 2; allocates++) {
        char *memory;
        MPI_Win win = make(allocates, BYTES, &memory);
        for (int epoch = 0; epoch < 3; epoch++) {
            long direct = count(DIRECT);
            lengths(win, memory, epoch);
            expect(!verbs_counts || count(DIRECT) - direct > 4 * MEGA, "the network has done it");
        }
        others(win, memory);
        silent(win, memory);
        MPI_Win_free(&win);
        if (!allocates)
            free(memory);
    }
    if (rank == 0)
        printf("puts and gets in every kind of epoch: as they should be\n");
}

/* Rank 0 looks at its memory and calls nothing, while the others add to words of it. */
static void atomics(void)
{
    enum { ROUNDS = 200 };
    static char seen[ROUNDS * 16];
    char *memory;
    MPI_Win win = make(1, BYTES, &memory);
    int others = size - 1;
    if (rank == 0) {
        volatile int64_t *words = (volatile int64_t *)memory;
        while (words[5] != others)
            ;
        expect(words[0] == (int64_t)others * ROUNDS, "what was fetched and added");
        expect(words[1] == -3 * (int64_t)others * ROUNDS, "what was accumulated");
        expect(words[2] == (int64_t)others * ROUNDS, "what was swapped in");
        expect(words[3] == 0 && words[4] == 0, "what lies beside it");
    } else {
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
        for (int i = 0; i < ROUNDS; i++) {
            int64_t one = 1, less = -3, old = -1, read = -1;
            MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
            MPI_Accumulate(&less, 1, MPI_INT64_T, 0, 8, 1, MPI_INT64_T, MPI_SUM, win);
            MPI_Win_flush(0, win);
            MPI_Fetch_and_op(NULL, &read, MPI_INT64_T, 0, 0, MPI_NO_OP, win);
            MPI_Win_flush(0, win);
            expect(old >= 0 && old < others * ROUNDS && read > old, "what was there before");
            if (old >= 0 && old < others * ROUNDS)
                seen[old]++;
            for (int64_t known = 0, found; ; known = found) {
                int64_t more = known + 1;
                MPI_Compare_and_swap(&more, &known, &found, MPI_INT64_T, 0, 16, win);
                MPI_Win_flush(0, win);
                if (found == known)
                    break;
            }
        }
        int64_t one = 1;
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 40, 1, MPI_INT64_T, MPI_SUM, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, sizeof seen, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < others * ROUNDS; i++)
        if (seen[i] != 1)
            expect(0, "each number was there before one addition");
    /* What the network has no operation for, and what is no word. */
    MPI_Win_fence(0, win);
    int64_t most = rank, mine = rank;
    double half = 0.5;
    MPI_Accumulate(&most, 1, MPI_INT64_T, 0, 48, 1, MPI_INT64_T, MPI_MAX, win);
    MPI_Accumulate(&half, 1, MPI_DOUBLE, 0, 56, 1, MPI_DOUBLE, MPI_SUM, win);
    MPI_Accumulate(&mine, 1, MPI_INT64_T, 0, 68, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_fence(0, win);
    if (rank == 0) {
        memcpy(&mine, memory + 68, 8);
        expect(*(int64_t *)(memory + 48) == size - 1 && *(double *)(memory + 56) == 0.5 * size &&
                   mine == size * (size - 1) / 2,
               "other accumulates");
        printf("%d fetched numbers: each once\n", others * ROUNDS);
    }
    MPI_Win_free(&win);
}

static void stream(long mib)
{
    char *memory, *out = malloc(MEGA), *back = malloc(MEGA);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Win win = make(1, 8 * MEGA, &memory);
    MPI_Win_lock_all(0, win);
    for (long at = 0; at < mib; at++) {
        /* From the last place of the round before that nobody uses any more. */
        int place = at % 8 * MEGA, len = at % 3 ? MEGA : 9000;
        fill(out, len, at + rank);
        memset(back, 0, len);
        MPI_Put(out, len, MPI_BYTE, next, place, len, MPI_BYTE, win);
        MPI_Win_flush(next, win);
        MPI_Get(back, len, MPI_BYTE, next, place, len, MPI_BYTE, win);
        MPI_Win_flush(next, win);
        expect(is_filled(back, len, at + rank), "a get brings what was put");
        MPI_Barrier(MPI_COMM_WORLD);
        expect(is_filled(memory + place, len, at + before), "a put is there");
        /* What comes too late from a link that has failed would be seen here. */
        memset(memory + place, 0, MEGA);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int each = 0; each < MEGA; each += 512)
            if (memory[place + each] != 0)
                expect(0, "nothing comes after a flush");
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    printf("rank %d: %ld MiB to and fro as they were put, %ld queue pairs were made to fail\n", rank, mib,
           count(FAILURES));
    expect(!getenv("VERBS_FAIL_EVERY") || count(FAILURES) > 0, "queue pairs have failed");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc == 2 && strcmp(argv[1], "ways") == 0) {
        ways();
    } else if (argc == 2 && strcmp(argv[1], "atomics") == 0) {
        atomics();
    } else if (argc == 3 && strcmp(argv[1], "stream") == 0) {
        stream(atol(argv[2]));
    } else {
        fprintf(stderr, "windows: what? ways, atomics, or stream MIB\n");
        failed = 2;
    }
    MPI_Finalize();
    return failed;
}
