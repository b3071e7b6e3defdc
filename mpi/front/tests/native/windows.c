/* Windows of every flavor, accessed in every kind of epoch; the first argument names the flavor. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #what);                        \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                    \
        }                                                                                                    \
    } while (0)

/* Longs of each rank's window. */
enum { LONGS = 40000 };

static int rank, size;
static long *memory;
static MPI_Win win;
/* Where the memory of each rank begins, in units of displacements. */
static MPI_Aint *begin;
static MPI_Aint unit;

static void make(const char *flavor)
{
    MPI_Aint bytes = LONGS * sizeof(long), own = 0;
    unit = sizeof(long);
    if (strcmp(flavor, "create") == 0) {
        memory = malloc(bytes);
        MPI_Win_create(memory, bytes, (int)unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else if (strcmp(flavor, "allocate") == 0) {
        MPI_Win_allocate(bytes, (int)unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else if (strcmp(flavor, "shared") == 0) {
        MPI_Win_allocate_shared(bytes, (int)unit, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    } else {
        memory = malloc(bytes);
        unit = 1;
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_attach(win, memory, bytes);
        MPI_Get_address(memory, &own);
    }
    begin = malloc(size * sizeof *begin);
    MPI_Allgather(&own, 1, MPI_AINT, begin, 1, MPI_AINT, MPI_COMM_WORLD);
}

static MPI_Aint at(int target, long index)
{
    return begin[target] + index * (MPI_Aint)sizeof(long) / unit;
}

static void fill(long value)
{
    for (int i = 0; i < LONGS; i++)
        memory[i] = value;
}

static void fences(void)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    long *data = malloc(LONGS * sizeof *data);
    for (int count = 1; count < LONGS; count *= 7) {
        fill(-1);
        for (int i = 0; i < count; i++)
            data[i] = rank * 1000L + i;
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
        MPI_Put(data, count, MPI_LONG, next, at(next, 1), count, MPI_LONG, win);
        MPI_Win_fence(0, win);
        CHECK(memory[0] == -1 && memory[1] == last * 1000L && memory[count] == last * 1000L + count - 1);
        MPI_Get(data, count, MPI_LONG, last, at(last, 1), count, MPI_LONG, win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        CHECK(data[count - 1] == (last + size - 1) % size * 1000L + count - 1);
    }
    /* Every other long of the target, from every third one of ours. */
    MPI_Datatype two, three;
    MPI_Type_vector(300, 1, 2, MPI_LONG, &two);
    MPI_Type_vector(300, 1, 3, MPI_LONG, &three);
    MPI_Type_commit(&two);
    MPI_Type_commit(&three);
    fill(-1);
    for (int i = 0; i < 900; i++)
        data[i] = i;
    MPI_Win_fence(0, win);
    MPI_Put(data, 1, three, next, at(next, 5), 1, two, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 300; i++)
        CHECK(memory[5 + 2 * i] == 3L * i && memory[6 + 2 * i] == -1);
    memset(data, 0, 900 * sizeof *data);
    MPI_Get(data, 1, three, last, at(last, 5), 1, two, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 300; i++)
        CHECK(data[3 * i] == 3L * i);
    for (int i = 0; i < 900; i++)
        data[i] = 1;
    MPI_Win_fence(0, win);
    MPI_Accumulate(data, 1, three, next, at(next, 5), 1, two, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 300; i++)
        CHECK(memory[5 + 2 * i] == 3L * i + 1 && memory[6 + 2 * i] == -1);
    MPI_Type_free(&two);
    MPI_Type_free(&three);
    free(data);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static void accumulates(void)
{
    enum { COUNT = 5000, ROUNDS = 3 };
    long *ones = malloc(COUNT * sizeof *ones), *old = malloc(COUNT * sizeof *old);
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    fill(0);
    MPI_Win_fence(0, win);
    for (int round = 0; round < ROUNDS; round++)
        for (int target = 0; target < size; target++)
            MPI_Accumulate(ones, COUNT, MPI_LONG, target, at(target, 3), COUNT, MPI_LONG, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < COUNT; i++)
        CHECK(memory[3 + i] == (long)ROUNDS * size);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    /* Accumulates of one origin to one place are in order. */
    if (rank == 0) {
        int target = size - 1;
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        for (int i = 0; i < COUNT; i++)
            ones[i] = i;
        MPI_Accumulate(ones, COUNT, MPI_LONG, target, at(target, 3), COUNT, MPI_LONG, MPI_REPLACE, win);
        for (int i = 0; i < COUNT; i++)
            ones[i] = 2;
        MPI_Accumulate(ones, COUNT, MPI_LONG, target, at(target, 3), COUNT, MPI_LONG, MPI_PROD, win);
        MPI_Get_accumulate(NULL, 0, MPI_LONG, old, COUNT, MPI_LONG, target, at(target, 3), COUNT, MPI_LONG,
                           MPI_NO_OP, win);
        MPI_Win_unlock(target, win);
        for (int i = 0; i < COUNT; i++)
            CHECK(old[i] == 2L * i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(ones);
    free(old);
}

/* One element of each length: the first access of a type is another one than all later ones. */
#define ELEMENT(ctype, type, place)                                                                          \
    for (int round = 0; round < 3; round++) {                                                                \
        ctype seven = 7, one = 1, got = 0, other = 100;                                                      \
        MPI_Put(&seven, sizeof seven, MPI_BYTE, target, place, 1, type, win);                                \
        MPI_Win_flush(target, win);                                                                          \
        MPI_Fetch_and_op(&one, &got, type, target, place, MPI_SUM, win);                                     \
        MPI_Win_flush(target, win);                                                                          \
        CHECK(got == 7);                                                                                     \
        MPI_Fetch_and_op(NULL, &got, type, target, place, MPI_NO_OP, win);                                   \
        MPI_Win_flush(target, win);                                                                          \
        CHECK(got == 8);                                                                                     \
        MPI_Accumulate(&other, 1, type, target, place, 1, type, MPI_MAX, win);                               \
        MPI_Fetch_and_op(&one, &got, type, target, place, MPI_REPLACE, win);                                 \
        MPI_Win_flush(target, win);                                                                          \
        CHECK(got == 100);                                                                                   \
        MPI_Get(&got, 1, type, target, place, sizeof got, MPI_BYTE, win);                                    \
        MPI_Win_flush(target, win);                                                                          \
        CHECK(got == 1);                                                                                     \
    }

#define SWAPS(ctype, type, place)                                                                            \
    for (int round = 0; round < 3; round++) {                                                                \
        ctype five = 5, next = 6, wrong = 9, got = 0;                                                        \
        MPI_Accumulate(&five, 1, type, target, place, 1, type, MPI_REPLACE, win);                            \
        MPI_Compare_and_swap(&next, &wrong, &got, type, target, place, win);                                 \
        MPI_Win_flush(target, win);                                                                          \
        CHECK(got == 5);                                                                                     \
        MPI_Compare_and_swap(&next, &five, &got, type, target, place, win);                                  \
        MPI_Win_flush(target, win);                                                                          \
        CHECK(got == 5);                                                                                     \
        MPI_Fetch_and_op(NULL, &got, type, target, place, MPI_NO_OP, win);                                   \
        MPI_Win_flush(target, win);                                                                          \
        CHECK(got == 6);                                                                                     \
    }

static void elements(void)
{
    int target = size - 1;
    fill(-1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        ELEMENT(signed char, MPI_INT8_T, at(target, 2))
        ELEMENT(short, MPI_SHORT, at(target, 4))
        ELEMENT(int, MPI_INT, at(target, 6))
        ELEMENT(long, MPI_LONG, at(target, 8))
        ELEMENT(float, MPI_FLOAT, at(target, 10))
        ELEMENT(double, MPI_DOUBLE, at(target, 12))
        ELEMENT(long double, MPI_LONG_DOUBLE, at(target, 14))
        SWAPS(signed char, MPI_INT8_T, at(target, 18))
        SWAPS(int, MPI_INT, at(target, 20))
        SWAPS(long, MPI_LONG, at(target, 22))
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 1; i < 24 && rank == target; i += 2)
        CHECK(memory[i] == -1 || i == 15);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void counters(void)
{
    enum { ROUNDS = 200 };
    long one = 1, old, last = -1, zero = 0, seen;
    fill(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, at(0, 7), MPI_SUM, win);
        MPI_Win_flush(0, win);
        CHECK(old > last && old < (long)size * ROUNDS);
        last = old;
    }
    /* A lock made of compare and swap. */
    for (int round = 0; round < ROUNDS / 10; round++) {
        long me = rank + 1, got;
        do {
            MPI_Compare_and_swap(&me, &zero, &got, MPI_LONG, 0, at(0, 8), win);
            MPI_Win_flush(0, win);
        } while (got != 0);
        MPI_Get(&seen, 1, MPI_LONG, 0, at(0, 9), 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
        seen++;
        MPI_Put(&seen, 1, MPI_LONG, 0, at(0, 9), 1, MPI_LONG, win);
        MPI_Win_flush(0, win);
        MPI_Compare_and_swap(&zero, &me, &got, MPI_LONG, 0, at(0, 8), win);
        MPI_Win_flush(0, win);
        CHECK(got == me);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        CHECK(memory[7] == (long)size * ROUNDS && memory[9] == (long)size * (ROUNDS / 10));
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void locks(void)
{
    enum { ROUNDS = 50 };
    long seen;
    fill(0);
    MPI_Barrier(MPI_COMM_WORLD);
    /* What is read and written under an exclusive lock is not changed by others meanwhile. */
    for (int round = 0; round < ROUNDS; round++) {
        int target = round % size;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Get(&seen, 1, MPI_LONG, target, at(target, 2), 1, MPI_LONG, win);
        MPI_Win_flush(target, win);
        seen += 1;
        MPI_Put(&seen, 1, MPI_LONG, target, at(target, 2), 1, MPI_LONG, win);
        MPI_Win_unlock(target, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    long mine = 0;
    for (int round = 0; round < ROUNDS; round++)
        mine += round % size == rank ? size : 0;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK(memory[2] == mine);
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void groups(void)
{
    MPI_Group all, before, behind;
    int next = (rank + 1) % size, last = (rank + size - 1) % size, flag;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &last, &before);
    MPI_Group_incl(all, 1, &next, &behind);
    for (long round = 0; round < 20; round++) {
        long value = 100 * round + rank;
        MPI_Win_post(before, 0, win);
        MPI_Win_start(behind, 0, win);
        MPI_Put(&value, 1, MPI_LONG, next, at(next, round), 1, MPI_LONG, win);
        MPI_Win_complete(win);
        if (round % 2) {
            MPI_Win_wait(win);
        } else {
            do
                MPI_Win_test(win, &flag);
            while (!flag);
        }
        CHECK(memory[round] == 100 * round + last);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&before);
    MPI_Group_free(&behind);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void requests(void)
{
    enum { COUNT = 20000 };
    int next = (rank + 1) % size;
    long *data = malloc(COUNT * sizeof *data), *back = malloc(COUNT * sizeof *back), one = 1, old = -1;
    MPI_Request list[3];
    fill(5);
    for (int i = 0; i < COUNT; i++)
        data[i] = i;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    MPI_Rput(data, COUNT, MPI_LONG, next, at(next, 10), COUNT, MPI_LONG, win, &list[0]);
    MPI_Raccumulate(&one, 1, MPI_LONG, next, at(next, 0), 1, MPI_LONG, MPI_SUM, win, &list[1]);
    MPI_Rget_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, next, at(next, 0), 1, MPI_LONG, MPI_SUM, win,
                        &list[2]);
    MPI_Waitall(3, list, MPI_STATUSES_IGNORE);
    CHECK(old == 6);
    memset(data, 0, COUNT * sizeof *data);
    MPI_Win_flush(next, win);
    MPI_Rget(back, COUNT, MPI_LONG, next, at(next, 10), COUNT, MPI_LONG, win, &list[0]);
    MPI_Wait(&list[0], MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++)
        CHECK(back[i] == i);
    MPI_Rget(back, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win, &list[0]);
    MPI_Wait(&list[0], MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory[0] == 7);
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
    free(back);
}

static void pairs(void)
{
    struct { double value; int index; } mine = { rank, rank }, *there = (void *)memory, seen;
    fill(0);
    there[2].value = -1;
    MPI_Win_fence(0, win);
    for (int target = 0; target < size; target++)
        MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, target, at(target, 4), 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
    MPI_Win_fence(0, win);
    CHECK(there[2].value == size - 1 && there[2].index == size - 1);
    MPI_Get(&seen, 1, MPI_DOUBLE_INT, 0, at(0, 4), 1, MPI_DOUBLE_INT, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK(seen.index == size - 1);
}

/* Memory that one rank has, or all but one have: no bytes are at NULL, wherever they are asked for. */
static void nothing(const char *flavor)
{
    for (int way = 0; way < 4; way++) {
        int odd = rank == size - 1, bytes = odd == way % 2 ? 64 : 0, found, disp = -1;
        MPI_Aint len = -1;
        void *base = &len, *mine = &len, **attribute;
        MPI_Info info;
        MPI_Win own;
        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", way < 2 ? "true" : "false");
        if (strcmp(flavor, "shared") == 0)
            MPI_Win_allocate_shared(bytes, 4, info, MPI_COMM_WORLD, &mine, &own);
        else
            MPI_Win_allocate(bytes, 4, info, MPI_COMM_WORLD, &mine, &own);
        CHECK((mine == NULL) == (bytes == 0));
        MPI_Win_get_attr(own, MPI_WIN_BASE, &attribute, &found);
        CHECK(found && *(void **)&attribute == mine);
        for (int other = 0; other < size; other++) {
            int has = (other == size - 1) == way % 2;
            MPI_Win_shared_query(own, other, &len, &disp, &base);
            /* What is not reached here has no bytes either. */
            CHECK(len == (has ? 64 : 0) || (len == 0 && strcmp(flavor, "shared") != 0));
            CHECK((base == NULL) == (len == 0) && (len == 0 || disp == 4));
        }
        MPI_Win_fence(0, own);
        MPI_Put(&rank, 0, MPI_INT, size - 1, 0, 0, MPI_INT, own);
        MPI_Win_fence(0, own);
        MPI_Win_free(&own);
        MPI_Info_free(&info);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *flavor = argc > 1 ? argv[1] : "allocate";
    nothing(flavor);
    make(flavor);
    fences();
    accumulates();
    elements();
    counters();
    locks();
    groups();
    requests();
    pairs();
    if (strcmp(flavor, "dynamic") == 0)
        MPI_Win_detach(win, memory);
    int is_ours = strcmp(flavor, "create") == 0 || strcmp(flavor, "dynamic") == 0;
    MPI_Win_free(&win);
    CHECK(win == MPI_WIN_NULL);
    if (is_ours)
        free(memory);
    free(begin);
    MPI_Finalize();
    return 0;
}
