/* Rank 0 sends messages of 4 MiB and short ones to rank 1, which checks them. With an argument the strategy of that
 * name is chosen for the communicator by its info. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEN = 4 << 20, COUNT = 8 };

int main(int argc, char **argv) {
    static unsigned char data[LEN];
    int rank;
    MPI_Comm comm;
    MPI_Info info;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    if (argc > 1)
        MPI_Info_set(info, "nmad_strategy", argv[1]);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    for (int round = 0; round < COUNT; round++) {
        if (rank == 0) {
            memset(data, round + 1, sizeof data);
            MPI_Send(data, 100, MPI_BYTE, 1, 0, comm);
            MPI_Send(data, LEN, MPI_BYTE, 1, 0, comm);
        } else if (rank == 1) {
            MPI_Recv(data, 100, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
            MPI_Recv(data, LEN, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
            for (int at = 0; at < LEN; at++)
                if (data[at] != round + 1)
                    MPI_Abort(MPI_COMM_WORLD, 9);
        }
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    if (rank == 0)
        puts("all right");
    return 0;
}
