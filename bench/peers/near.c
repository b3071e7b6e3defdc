/* near PATTERN [SIZE...]: what an MPI reaches inside one node, by the same patterns as `nmad bench`.
 *
 *   latency, bandwidth   blocking messages there and back between two ranks: us for half a round trip, MB/s
 *   rate                 windows of 64 messages, an empty answer after each: millions a second
 *   pairs                every rank with a partner, there and back: us for half a round trip
 *   all                  everybody with everybody at once: us for one exchange
 *
 * Prints a line for each size: pattern, size, and one figure for each of SAMPLES turns. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 5, WINDOW = 64, RANKS_MAX = 256 };

static int rank, size;
static char *out, *in;

static int least(int a, int b) { return a < b ? a : b; }

/* As many round trips as `nmad bench` makes for one sample. */
static int rounds_of(const char *pattern, size_t len)
{
    if (!strcmp(pattern, "latency")) return 500;
    if (!strcmp(pattern, "rate")) return 300;
    if (!strcmp(pattern, "bandwidth")) {
        int rounds = (int)((16 << 20) / (len ? len : 1));
        return rounds < 1 ? 1 : least(rounds, 100);
    }
    return len >= 1 << 20 ? 4 : len >= 1 << 16 ? 20 : 100;
}

static void back_and_forth(size_t len, int rounds, int partner)
{
    for (int i = 0; i < rounds; i++) {
        if (rank < partner) {
            MPI_Send(out, (int)len, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
            MPI_Recv(out, (int)len, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(out, (int)len, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, (int)len, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
        }
    }
}

static void windows(size_t len, int rounds)
{
    MPI_Request requests[WINDOW];
    for (int i = 0; i < rounds; i++) {
        for (int j = 0; j < WINDOW; j++) {
            if (rank == 0)
                MPI_Isend(out + j * len, (int)len, MPI_BYTE, 1, 0, MPI_COMM_WORLD, requests + j);
            else
                MPI_Irecv(in + j * len, (int)len, MPI_BYTE, 0, 0, MPI_COMM_WORLD, requests + j);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) MPI_Recv(in, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else MPI_Send(out, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

static void exchanges(size_t len, int rounds)
{
    MPI_Request requests[2 * RANKS_MAX];
    for (int i = 0; i < rounds; i++) {
        int count = 0;
        for (int step = 1; step < size; step++) {
            int from = (rank + size - step) % size, to = (rank + step) % size;
            MPI_Irecv(in + from * len, (int)len, MPI_BYTE, from, 0, MPI_COMM_WORLD, requests + count++);
            MPI_Isend(out + to * len, (int)len, MPI_BYTE, to, 0, MPI_COMM_WORLD, requests + count++);
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
}

static void turn(const char *pattern, size_t len, int rounds)
{
    if (!strcmp(pattern, "rate")) windows(len, rounds);
    else if (!strcmp(pattern, "all")) exchanges(len, rounds);
    else back_and_forth(len, rounds, !strcmp(pattern, "pairs") ? rank ^ 1 : 1 - rank);
}

static double figure(const char *pattern, size_t len, int rounds, double seconds)
{
    if (!strcmp(pattern, "rate")) return 1e-6 * WINDOW * rounds / seconds;
    if (!strcmp(pattern, "bandwidth")) return 2e-6 * (double)len * rounds / seconds;
    return 1e6 * seconds / rounds / (!strcmp(pattern, "all") ? 1 : 2);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *pattern = argc > 1 ? argv[1] : "latency";
    int crowd = !strcmp(pattern, "pairs") || !strcmp(pattern, "all");
    if (size > RANKS_MAX || size % 2 || (!crowd && size != 2)) {
        if (rank == 0) fprintf(stderr, "near: wants 2 ranks, or an even number for pairs and all\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int arg = 2; arg < argc; arg++) {
        size_t len = strtoull(argv[arg], NULL, 10), room = (len + 1) * (size_t)(crowd ? size : WINDOW);
        if (strcmp(pattern, "rate") && !crowd) room = len + 1;
        out = malloc(room);
        in = malloc(room);
        memset(out, 1, room);
        memset(in, 2, room);
        int rounds = rounds_of(pattern, len);
        if (rank == 0) printf("%s %zu", pattern, len);
        for (int sample = 0; sample < SAMPLES; sample++) {
            turn(pattern, len, rounds);
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            turn(pattern, len, rounds);
            if (crowd) MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) printf(" %.4f", figure(pattern, len, rounds, MPI_Wtime() - begun));
        }
        if (rank == 0) {
            printf("\n");
            fflush(stdout);
        }
        free(out);
        free(in);
    }
    MPI_Finalize();
    return 0;
}
