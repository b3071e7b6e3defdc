/* A derived datatype of small and large blocks in turn, 64 B and 256 KiB: the small ones travel with the
 * request, the large ones go straight into place. Prints bandwidth, and that of the same bytes in one piece.
 *   mpicc indexed.c -o indexed && mpiexec -n 2 ./indexed [ROUNDS] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 64
#define LARGE (256 * 1024)
#define PAIRS 4
#define GAP 128

static double exchange(char *buffer, int count, MPI_Datatype type, int rank, int rounds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int round = 0; round < rounds && rank < 2; round++) {
        if (rank == 0)
            MPI_Send(buffer, count, type, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, count, type, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(buffer, count, type, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begin) / rounds / 2;
}

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, rounds = argc > 1 ? atoi(argv[1]) : 20;
    int lengths[2 * PAIRS], places[2 * PAIRS], at = 0, len = PAIRS * (SMALL + LARGE);
    MPI_Datatype type;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2 * PAIRS; i++) {
        lengths[i] = i % 2 ? LARGE : SMALL;
        places[i] = at;
        at += lengths[i] + GAP;
    }
    MPI_Type_indexed(2 * PAIRS, lengths, places, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    char *buffer = malloc(at);
    memset(buffer, rank ? 'x' : '.', at);
    for (int i = 0; i < 2 * PAIRS && rank == 0; i++)
        memset(buffer + places[i], 'a' + i, lengths[i]);
    double pieces = exchange(buffer, 1, type, rank, rounds);
    for (int i = 0; i < 2 * PAIRS; i++)
        wrong += buffer[places[i]] != 'a' + i || buffer[places[i] + lengths[i] - 1] != 'a' + i ||
                 buffer[places[i] + lengths[i]] != (rank ? 'x' : '.');
    wrong = rank < 2 && (wrong || size != len);
    double whole = exchange(buffer, len, MPI_CHAR, rank, rounds);
    if (rank == 0)
        printf("indexed: %.0f MB/s, contiguous %.0f MB/s, %s\n", len / pieces / 1e6, len / whole / 1e6,
               wrong ? "WRONG" : "right");
    free(buffer);
    MPI_Type_free(&type);
    MPI_Finalize();
    return wrong;
}
