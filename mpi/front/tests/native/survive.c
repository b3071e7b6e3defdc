/* Ranks die at random moments of a program that checks itself: the survivors shrink their communicator and go on.
 * survive SECONDS DEATHS SEED: so many ranks die, never all; ends with 0 if all results of the survivors were right. */

#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { LEN = 40000, BLOCK = 30 };

static MPI_Comm comm;
static int me, size, name;
static int out[LEN], in[LEN];

static void wrong(const char *what, int round) {
    fprintf(stderr, "process %d (rank %d of %d), round %d: %s\n", name, me, size, round, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

#define RIGHT(what)             \
    do {                        \
        if (!(what)) {          \
            wrong(#what, round); \
        }                       \
    } while (0)

#define TRY(call)                        \
    do {                                 \
        int code_ = (call);              \
        if (code_ != MPI_SUCCESS) {      \
            return code_;                \
        }                                \
    } while (0)

static int ring(int round, int len) {
    int next = (me + 1) % size, before = (me + size - 1) % size;
    for (int i = 0; i < len; i++) {
        out[i] = me * 1000 + round + i;
    }
    memset(in, 0, sizeof in);
    TRY(MPI_Sendrecv(out, len, MPI_INT, next, round, in, len, MPI_INT, before, round, comm, MPI_STATUS_IGNORE));
    RIGHT(in[0] == before * 1000 + round && in[len - 1] == before * 1000 + round + len - 1);
    return MPI_SUCCESS;
}

static int sum(int round) {
    int mine[3] = {1, me, round}, all[3];
    TRY(MPI_Allreduce(mine, all, 3, MPI_INT, MPI_SUM, comm));
    RIGHT(all[0] == size && all[1] == size * (size - 1) / 2 && all[2] == size * round);
    return MPI_SUCCESS;
}

static int broadcast(int round) {
    int root = round % size;
    for (int i = 0; i < LEN; i++) {
        in[i] = me == root ? i ^ round : 0;
    }
    TRY(MPI_Bcast(in, LEN, MPI_INT, root, comm));
    RIGHT(in[1] == (1 ^ round) && in[LEN - 1] == ((LEN - 1) ^ round));
    return MPI_SUCCESS;
}

static int any(int round) {
    if (me > 0) {
        return MPI_Send(&round, 1, MPI_INT, 0, 7, comm);
    }
    for (int i = 1; i < size; i++) {
        int got;
        TRY(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 7, comm, MPI_STATUS_IGNORE));
        RIGHT(got == round);
    }
    return MPI_SUCCESS;
}

static int nonblocking(int round) {
    MPI_Request requests[2];
    int total = -1, mine = me + round, first = me == 0 ? round : -1;
    TRY(MPI_Iallreduce(&mine, &total, 1, MPI_INT, MPI_SUM, comm, &requests[0]));
    int code = MPI_Ibcast(&first, 1, MPI_INT, 0, comm, &requests[1]);
    if (code != MPI_SUCCESS) {
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        return code;
    }
    MPI_Status statuses[2];
    if (MPI_Waitall(2, requests, statuses) != MPI_SUCCESS) {
        return statuses[0].MPI_ERROR ? statuses[0].MPI_ERROR : statuses[1].MPI_ERROR;
    }
    RIGHT(total == size * (size - 1) / 2 + size * round && first == round);
    return MPI_SUCCESS;
}

static int window(int round) {
    int *base;
    MPI_Win win;
    TRY(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &base, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    int next = (me + 1) % size, value = me + round, code;
    code = MPI_Win_fence(0, win);
    code = code ? code : MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win);
    code = code ? code : MPI_Win_fence(0, win);
    if (code == MPI_SUCCESS) {
        RIGHT(*base == (me + size - 1) % size + round);
        code = MPI_Win_free(&win);
    }
    return code;
}

static int work(int round) {
    switch (round % 6) {
    case 0: return ring(round, 8);
    case 1: return sum(round);
    case 2: return broadcast(round);
    case 3: return any(round);
    case 4: return nonblocking(round);
    default: return round % 60 == 5 ? window(round) : ring(round, LEN);
    }
}

/* Some rounds. One that fails is revoked, so that it fails for all. */
static int block(int number) {
    for (int round = number * BLOCK; round < (number + 1) * BLOCK; round++) {
        if (work(round) != MPI_SUCCESS) {
            MPIX_Comm_revoke(comm);
            return 0;
        }
    }
    return 1;
}

/* Makes a communicator of the survivors. */
static void mend(int round) {
    MPI_Comm new;
    MPIX_Comm_revoke(comm);
    RIGHT(MPIX_Comm_shrink(comm, &new) == MPI_SUCCESS);
    MPI_Comm_free(&comm);
    comm = new;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double seconds = atof(argv[1]);
    int deaths = atoi(argv[2]), mends = 0, number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &name);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    int first = size;
    srand(atoi(argv[3]) * 7919 + 1);
    /* Any ranks, also the first; each at a moment of its own. */
    for (int i = 0, chosen = 0; i < first && chosen < deaths; i++) {
        int left = first - i, dies = rand() % left < deaths - chosen;
        double at = (0.05 + 0.8 * (rand() % 1000) / 1000.0) * seconds;
        if (dies) {
            chosen++;
            if (i == name) {
                struct itimerval when = {.it_value = {(long)at, (long)(at * 1e6) % 1000000}};
                setitimer(ITIMER_REAL, &when, NULL);
            }
        }
    }
    double begin = MPI_Wtime();
    for (int goes_on = 1; goes_on; number++) {
        int well = block(number), flags = well | (MPI_Wtime() - begin < seconds) << 1;
        /* The same for all survivors, whatever each has seen. */
        if (MPIX_Comm_agree(comm, &flags) != MPI_SUCCESS || !(flags & 1)) {
            mend(number);
            mends++;
        } else {
            goes_on = flags >> 1 & 1;
        }
    }
    if (me == 0) {
        printf("%d of %d survive, %d mends, %d blocks\n", size, first, mends, number);
    }
    if (size != first - deaths) {
        wrong("the dead are gone, and nobody else", number);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
