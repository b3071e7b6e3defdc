/* The target makes no call of MPI until it sees that the origin has written, read, added and locked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    enum { LARGE = 50000, BOUND = 30 };
    int rank;
    long *memory, one = 1, old, seen = 0;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate((LARGE + 8) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < LARGE + 8; i++)
        memory[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        long *data = malloc(LARGE * sizeof *data);
        for (int i = 0; i < LARGE; i++)
            data[i] = i;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
        MPI_Put(data, LARGE, MPI_LONG, 1, 8, LARGE, MPI_LONG, win);
        MPI_Win_flush(1, win);
        for (int i = 0; i < 10; i++) {
            MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, win);
            MPI_Win_flush(1, win);
            if (old != i)
                fail("a sum is wrong");
        }
        MPI_Get(&seen, 1, MPI_LONG, 1, 8 + LARGE - 1, 1, MPI_LONG, win);
        MPI_Win_unlock(1, win);
        if (seen != LARGE - 1)
            fail("what was put is not got");
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        MPI_Put(&one, 1, MPI_LONG, 1, 1, 1, MPI_LONG, win);
        MPI_Win_unlock(1, win);
        free(data);
    } else {
        /* Without a call of MPI. */
        time_t end = time(NULL) + BOUND;
        while (*(volatile long *)&memory[1] == 0)
            if (time(NULL) > end)
                fail("nobody has written");
        if (memory[0] != 10 || memory[8 + LARGE - 1] != LARGE - 1)
            fail("what was written before is missing");
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
