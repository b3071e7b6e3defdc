/* A program that loses ranks and replaces them. Each rank has a part of a sum and a copy of its neighbour's; now and
 * then a rank dies (with `restart SECONDS kill`), the others spawn another one, and its neighbour gives it the state of
 * the dead. The answer is that of a run without failures.
 *
 *     mpicc restart.c -o restart && mpiexec --ft -n 4 ./restart 10 kill */

#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 2000 };

/* What a rank has computed after some rounds. */
struct state {
    int round;
    double sum;
};

static MPI_Comm comm;
static int me, size;
static struct state mine, copy; /* ours, and that of the rank before us */

static void name(MPI_Comm new) {
    comm = new;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
}

/* Stands for a computation that ends at this time; as a sleep it leaves the core to other ranks. */
static void work_until(double end) {
    double left = end - MPI_Wtime();
    if (left > 0) {
        struct timespec time = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&time, NULL);
    }
}

static double term(int rank, int round) { return 1.0 / (1.0 + rank * ROUNDS + round); }

/* One round: compute, and give the neighbour a copy. Nothing counts before all have theirs. */
static int compute(void) {
    struct state next = {mine.round + 1, mine.sum + term(me, mine.round)}, got;
    int code = MPI_Sendrecv(&next, sizeof next, MPI_BYTE, (me + 1) % size, 1, &got, sizeof got, MPI_BYTE,
                            (me + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
    int well = code == MPI_SUCCESS;
    if (!well) {
        MPIX_Comm_revoke(comm);
    }
    /* The same answer for all survivors. */
    if (MPIX_Comm_agree(comm, &well) != MPI_SUCCESS || !well) {
        return 0;
    }
    mine = next;
    copy = got;
    return 1;
}

/* The survivors and new ranks in the places of the dead. `dead` are their ranks, by which they know each other. */
static void replace(char *program, char **words) {
    MPI_Comm survivors, inter, merged, ordered;
    MPI_Group all, left;
    MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &survivors);
    int count, lost = 0, dead[64], place[64], rank[64];
    MPI_Comm_size(survivors, &count);
    MPI_Comm_group(comm, &all);
    MPI_Comm_group(survivors, &left);
    for (int i = 0; i < size; i++) {
        rank[i] = i;
    }
    MPI_Group_translate_ranks(all, size, rank, left, place);
    for (int i = 0; i < size; i++) {
        if (place[i] == MPI_UNDEFINED) {
            dead[lost++] = i;
        }
    }
    MPI_Group_free(&all);
    MPI_Group_free(&left);
    for (int i = 0; i < lost; i++) {
        if (place[(dead[i] + 1) % size] == MPI_UNDEFINED) {
            fprintf(stderr, "restart: rank %d died together with the rank that has its copy\n", dead[i]);
            MPI_Abort(comm, 3);
        }
    }
    if (lost > 0) {
        MPI_Comm_spawn(program, words, lost, MPI_INFO_NULL, 0, survivors, &inter, MPI_ERRCODES_IGNORE);
        MPI_Intercomm_merge(inter, 0, &merged);
        /* New ranks come behind the survivors; all go back to the places of before. */
        MPI_Bcast(&lost, 1, MPI_INT, 0, merged);
        MPI_Bcast(dead, lost, MPI_INT, 0, merged);
        MPI_Comm_split(merged, 0, me, &ordered);
        MPI_Comm_free(&merged);
        MPI_Comm_disconnect(&inter);
        MPI_Comm_free(&survivors);
    } else {
        ordered = survivors;
    }
    MPI_Comm_free(&comm);
    name(ordered);
    for (int i = 0; i < lost; i++) {
        if (me == (dead[i] + 1) % size) {
            MPI_Send(&copy, sizeof copy, MPI_BYTE, dead[i], 2, comm);
        }
        if (me == (dead[i] + size - 1) % size) {
            MPI_Send(&mine, sizeof mine, MPI_BYTE, dead[i], 3, comm);
        }
    }
}

/* A new rank finds its place and its state. */
static void join(MPI_Comm parent) {
    MPI_Comm merged, ordered;
    int lost, dead[64], rank, others;
    MPI_Comm_remote_size(parent, &others);
    MPI_Intercomm_merge(parent, 1, &merged);
    MPI_Comm_rank(merged, &rank);
    MPI_Bcast(&lost, 1, MPI_INT, 0, merged);
    MPI_Bcast(dead, lost, MPI_INT, 0, merged);
    MPI_Comm_split(merged, 0, dead[rank - others], &ordered);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&parent);
    name(ordered);
    MPI_Recv(&mine, sizeof mine, MPI_BYTE, (me + 1) % size, 2, comm, MPI_STATUS_IGNORE);
    MPI_Recv(&copy, sizeof copy, MPI_BYTE, (me + size - 1) % size, 3, comm, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    int flag = 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPIX_Comm_agree(MPI_COMM_WORLD, &flag) != MPI_SUCCESS) {
        fprintf(stderr, "restart: start it with mpiexec --ft\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double seconds = argc > 1 ? atof(argv[1]) : 0;
    int kills = argc > 2 && !strcmp(argv[2], "kill"), mends = 0;
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        join(parent);
    } else {
        MPI_Comm first;
        MPI_Comm_dup(MPI_COMM_WORLD, &first);
        name(first);
        /* All have the new communicator before the first rank may die. */
        MPI_Barrier(comm);
        if (me == 0) {
            fprintf(stderr, "restart: %d ranks compute\n", size);
        }
    }
    double begin = MPI_Wtime(), pace = seconds / ROUNDS;
    int started = mine.round;
    while (mine.round < ROUNDS) {
        /* Each second's rounds end with the death of a rank, one after the other. */
        int each = pace > 0 ? (int)(1 / pace) : ROUNDS;
        if (kills && mine.round > started && mine.round % each == 0 && mine.round / each % size == me) {
            raise(SIGKILL);
        }
        work_until(begin + pace * (mine.round - started));
        if (!compute()) {
            replace(argv[0], argv + 1);
            mends++;
        }
    }
    double total = 0;
    MPI_Reduce(&mine.sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, comm);
    if (me == 0) {
        printf("sum %.12f after %d rounds of %d ranks\n", total, mine.round, size);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
