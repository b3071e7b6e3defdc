/* A token goes around the ring, each rank adds its own number. Prints the sum at rank 0.
 *   mpicc ring.c -o ring && mpiexec -n 4 ./ring */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, token = 0, rounds = 100;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            MPI_Send(&token, 1, MPI_INT, next, round, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, before, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Status status;
            MPI_Recv(&token, 1, MPI_INT, before, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_SOURCE != before || status.MPI_TAG != round) {
                fprintf(stderr, "rank %d: round %d has source %d, tag %d\n", rank, round, status.MPI_SOURCE,
                        status.MPI_TAG);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            token += rank;
            MPI_Send(&token, 1, MPI_INT, next, round, MPI_COMM_WORLD);
        }
    }
    int expected = rounds * size * (size - 1) / 2;
    if (rank == 0)
        printf("ring of %d: token %d, expected %d\n", size, token, expected);
    MPI_Finalize();
    return rank == 0 && token != expected;
}
