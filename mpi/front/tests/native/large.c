/* A message of more than 4 GiB arrives, and no process has a second buffer for it: both buffers show the same 16 MiB
 * over and over, and the processes may have half a GiB of other memory. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const MPI_Count PIECE = 16 << 20, LEN = ((MPI_Count)1 << 32) + 12288;

static void fail(const char *what)
{
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned char *buffer(void)
{
    int file = memfd_create("piece", 0);
    MPI_Count len = (LEN + PIECE - 1) / PIECE * PIECE;
    unsigned char *start = mmap(NULL, (size_t)len, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file < 0 || ftruncate(file, PIECE) || start == MAP_FAILED)
        fail("a buffer");
    for (MPI_Count at = 0; at < len; at += PIECE)
        if (mmap(start + at, (size_t)PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
            fail("a piece of the buffer");
    close(file);
    return start;
}

static unsigned char byte(MPI_Count at)
{
    return (unsigned char)(at % 251);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Count count = -1;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned char *data = buffer();
    struct rlimit limit = {512 << 20, 512 << 20};
    if (setrlimit(RLIMIT_DATA, &limit))
        fail("setrlimit");
    if (rank == 0) {
        for (MPI_Count i = 0; i < PIECE; i++) data[i] = byte(i);
        MPI_Send_c(data, LEN, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    } else {
        MPI_Recv_c(data, LEN, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status);
        MPI_Get_count_c(&status, MPI_BYTE, &count);
        for (MPI_Count i = 0; i < PIECE; i++)
            if (data[i] != byte(i)) count = -2;
        if (count != LEN) {
            fprintf(stderr, "%lld bytes instead of %lld\n", (long long)count, (long long)LEN);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    MPI_Finalize();
    return 0;
}
