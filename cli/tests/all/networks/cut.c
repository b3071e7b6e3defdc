/* Ranks add until they lose each other; those that are left agree and add again. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    MPI_Comm comm, left;
    int rank, size, sum, code = MPI_SUCCESS, well = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    /* All have the communicator, whose errors return. */
    code = MPI_Barrier(comm);
    if (rank == 0) {
        printf("up\n");
        fflush(stdout);
    }
    double begin = MPI_Wtime();
    while (code == MPI_SUCCESS && MPI_Wtime() - begin < 60) {
        int one = 1;
        code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    }
    MPIX_Comm_revoke(comm);
    MPIX_Comm_shrink(comm, &left);
    MPIX_Comm_agree(left, &well);
    MPI_Comm_rank(left, &rank);
    MPI_Comm_size(left, &size);
    MPI_Allreduce(&well, &sum, 1, MPI_INT, MPI_SUM, left);
    if (rank == 0)
        printf("%s\n", sum == size && size < 4 ? "right" : "wrong");
    MPI_Comm_free(&comm);
    MPI_Comm_free(&left);
    MPI_Finalize();
    return 0;
}
