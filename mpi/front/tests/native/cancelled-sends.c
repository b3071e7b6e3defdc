/* A wait for a send that was cancelled is local (MPI 5.0, 3.8.4): it ends although the other rank receives the message only after
   it was told that the wait is over. Whether it was cancelled its status says; if not, the message arrives, and is what was sent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 1 << 20, TAG = 5, SENT = 6, ROUNDS = 3 };

static int wrong;

static void expect(const char *what, int count, int found, int expected)
{
    if (found != expected) fprintf(stderr, "%s, %d integers: %d instead of %d\n", what, count, found, expected), wrong++;
}

/* The modes of sending, as calls that begin and as requests that are started. */
static MPI_Request begin(int mode, const int *data, int count)
{
    MPI_Request request;
    switch (mode) {
    case 0: MPI_Isend(data, count, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request); break;
    case 1: MPI_Issend(data, count, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request); break;
    default:
        MPI_Send_init(data, count, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
    }
    return request;
}

static void send(int mode, int *data, int count)
{
    MPI_Status status;
    MPI_Request request;
    int is_cancelled = -1;
    for (int i = 0; i < count; i++) data[i] = i + mode;
    request = begin(mode, data, count);
    expect("cancel", count, MPI_Cancel(&request), MPI_SUCCESS);
    if (mode == 1) {
        /* Nobody has received it: it has ended only if it was cancelled. */
        int is_over = -1;
        MPI_Request_get_status(request, &is_over, &status);
        MPI_Test_cancelled(&status, &is_cancelled);
        expect("over without being cancelled", count, is_over && !is_cancelled, 0);
    }
    expect("wait", count, MPI_Wait(&request, &status), MPI_SUCCESS);
    MPI_Test_cancelled(&status, &is_cancelled);
    if (mode == 2) MPI_Request_free(&request);
    /* The memory is the program's again. */
    for (int i = 0; i < count; i++) data[i] = -1;
    MPI_Send(&is_cancelled, 1, MPI_INT, 1, SENT, MPI_COMM_WORLD);
}

static void receive(int mode, int *data, int count)
{
    int is_cancelled = -1, differs = 0;
    MPI_Recv(&is_cancelled, 1, MPI_INT, 0, SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("whether it was cancelled", count, is_cancelled == 0 || is_cancelled == 1, 1);
    if (is_cancelled) return;
    MPI_Recv(data, count, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) differs += data[i] != i + mode;
    expect("integers that differ", count, differs, 0);
}

int main(int argc, char **argv)
{
    const int counts[] = {1, 5000, 30000, MOST};
    int rank, *data = calloc(MOST, sizeof *data);
    MPI_Request never;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < ROUNDS; round++)
        for (int mode = 0; mode < 3; mode++)
            for (int which = 0; which < 4; which++) (rank == 0 ? send : receive)(mode, data, counts[which]);
    if (rank == 0) {
        /* Nobody receives this one, which is no reason to stay. */
        MPI_Isend(data, MOST, MPI_INT, 1, TAG + 2, MPI_COMM_WORLD, &never);
        MPI_Cancel(&never);
        MPI_Wait(&never, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    free(data);
    return wrong != 0;
}
