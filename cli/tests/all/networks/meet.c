/* Ranks compute a sum, pass 1 MiB around, connect by a port and spawn: all ways to open
 * links between processes. Rank 0 prints one line. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1 << 18 };
static int out[COUNT], in[COUNT];

static int sum(MPI_Comm comm, int value) {
    int all = 0;
    MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, comm);
    return all;
}

/* Returns whether what the left neighbour sent is right. */
static int passed(int rank, int size) {
    int right = 1, left = (rank + size - 1) % size;
    for (int i = 0; i < COUNT; i++)
        out[i] = i + rank;
    MPI_Sendrecv(out, COUNT, MPI_INT, (rank + 1) % size, 0, in, COUNT, MPI_INT, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++)
        right &= in[i] == i + left;
    return right;
}

/* The first rank accepts, the last connects; returns how many processes are on the other side. */
static int met(int rank, int size) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm both;
    int total;
    if (rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0 && rank != size - 1)
        return 0;
    if (rank == 0)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &both);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &both);
    total = sum(both, 1);
    MPI_Comm_disconnect(&both);
    return total;
}

int main(int argc, char **argv) {
    int rank, size, on_node;
    MPI_Comm parent, children, node;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        sum(parent, 1);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &on_node);
    int ranks = sum(MPI_COMM_WORLD, 1), right = sum(MPI_COMM_WORLD, passed(rank, size)), connected = met(rank, size);
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    int spawned = sum(children, 0);
    MPI_Comm_disconnect(&children);
    if (rank == 0)
        printf("%d ranks, %d on this node, %d right, %d connected, %d spawned\n", ranks, on_node, right, connected,
               spawned);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
