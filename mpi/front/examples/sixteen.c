/* The ping-pong of many small messages: both ranks send one on each of 16 communicators, and wait for all
 * (NewMadeleine gathers them in packets). Prints the time of one exchange of 16.
 *   mpicc sixteen.c -o sixteen && mpiexec -n 2 ./sixteen [ROUNDS] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMS 16
#define LEN 8

int main(int argc, char **argv)
{
    int rank, wrong = 0, rounds = argc > 1 ? atoi(argv[1]) : 1000;
    char out[COMMS][LEN], in[COMMS][LEN];
    MPI_Comm comms[COMMS];
    MPI_Request requests[2 * COMMS];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    double begin = MPI_Wtime();
    for (int round = 0; round < rounds && rank < 2; round++) {
        for (int i = 0; i < COMMS; i++)
            MPI_Irecv(in[i], LEN, MPI_CHAR, 1 - rank, 0, comms[i], &requests[i]);
        for (int i = 0; i < COMMS; i++) {
            memset(out[i], rank * 64 + i + round % 8, LEN);
            MPI_Isend(out[i], LEN, MPI_CHAR, 1 - rank, 0, comms[i], &requests[COMMS + i]);
        }
        MPI_Waitall(2 * COMMS, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < COMMS; i++)
            wrong += in[i][LEN - 1] != (1 - rank) * 64 + i + round % 8;
    }
    double us = (MPI_Wtime() - begin) / rounds * 1e6;
    for (int i = 0; i < COMMS; i++)
        MPI_Comm_free(&comms[i]);
    if (rank == 0)
        printf("16 messages on 16 communicators: %.2f us, %d wrong\n", us, wrong);
    MPI_Finalize();
    return wrong != 0;
}
