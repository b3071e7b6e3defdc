/* One thread cancels a receive for which another one waits: the wait ends, and the message that comes later is
   for the next receive. Each rank does so, with another one and alone; the wait has just begun, spins, or sleeps. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { CANCELLED = 7, RECEIVED = 8, ROUNDS = 32, LONG = 100000 };

struct wait {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int code;
};

static int wrong;

static void expect(const char *what, int round, int found, int expected)
{
    if (found != expected) fprintf(stderr, "%s, round %d: %d instead of %d\n", what, round, found, expected), wrong++;
}

static void *wait_for_both(void *argument)
{
    struct wait *wait = argument;
    wait->code = MPI_Waitall(2, wait->requests, wait->statuses);
    return NULL;
}

/* Up to some milliseconds, so that the other thread is further in its wait from round to round. */
static void pass(int round)
{
    double end = MPI_Wtime() + 1e-7 * (1 << round / 2);
    while (MPI_Wtime() < end) {
    }
}

static void play(int round, int peer, int *out, int *cancelled, int *received)
{
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Request request, sent;
    pthread_t thread;
    struct wait wait = {.code = -1};
    /* Every other pair of rounds, a message that is not sent in a packet. */
    int count = round / 2 % 2 ? LONG : 1, flag = -1, len = -1;

    out[0] = round, cancelled[0] = received[0] = -1;
    MPI_Irecv(cancelled, count, MPI_INT, peer, CANCELLED, all, &request);
    wait.requests[0] = request;
    MPI_Irecv(received, count, MPI_INT, peer, RECEIVED, all, &wait.requests[1]);
    if (pthread_create(&thread, NULL, wait_for_both, &wait)) exit(2);
    pass(round);
    /* What the wait is left with, or what it ends with: the message or the cancelled receive. */
    if (round % 2) MPI_Isend(out, count, MPI_INT, peer, RECEIVED, all, &sent);
    expect("cancel", round, MPI_Cancel(&request), MPI_SUCCESS);
    if (round % 2 == 0) MPI_Isend(out, count, MPI_INT, peer, RECEIVED, all, &sent);
    pthread_join(thread, NULL);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    expect("wait", round, wait.code, MPI_SUCCESS);
    for (int which = 0; which < 2; which++) {
        expect("request", round, wait.requests[which] == MPI_REQUEST_NULL, 1);
        MPI_Test_cancelled(&wait.statuses[which], &flag);
        expect(which ? "the other is cancelled" : "it is cancelled", round, flag, which == 0);
    }
    MPI_Get_count(&wait.statuses[1], MPI_INT, &len);
    expect("length", round, len, count);
    expect("the other's data", round, received[0], round);
    /* Both ranks have cancelled: now it is sent. */
    MPI_Barrier(all);
    MPI_Sendrecv(out, count, MPI_INT, peer, CANCELLED, received + count, count, MPI_INT, peer, CANCELLED, all,
                 MPI_STATUS_IGNORE);
    expect("sent later", round, received[count], round);
    expect("memory of what was cancelled", round, cancelled[0], -1);
}

int main(int argc, char **argv)
{
    int provided, rank, size;
    int *out = calloc(4 * LONG, sizeof *out);

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    expect("thread level", -1, provided, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; round++)
        play(round, size - 1 - rank, out, out + LONG, out + 2 * LONG);
    MPI_Finalize();
    free(out);
    return wrong != 0;
}
