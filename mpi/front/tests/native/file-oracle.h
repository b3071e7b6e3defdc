/* Random accesses of a file, and what both halves of the oracle share. */
#include <mpi.h>

enum { LENGTH = 40000, MANY = 200, EPOCHS = 6, ACCESSES = 9, MAX_THREADS = 2, MAX_ACTORS = 16, ATOMIC_EPOCHS = 4 };

/* Blocks of bytes of the file at equal distances. */
struct access {
    long start;
    int len, stride, count;
    int writes, is_deferred;
    int value;
};

extern int rank, size, seed, epoch;

void failed(int line, const char *what, long where, long found);
void check(int code, int line);
unsigned drawn(unsigned *state, unsigned below);
void draw(struct access *access, unsigned *state);
/* The byte of the file of the index-th byte of an access. */
long place(const struct access *access, int index);
MPI_Info drawn_hints(unsigned *state);
void run_view(MPI_File on, const struct access *access, char *data, int together);

/* A random program in atomic mode, for which an order of whole accesses must exist. */
void atomic_epoch(const char *folder);
