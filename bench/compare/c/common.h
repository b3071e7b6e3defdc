/* What the programs that are compiled with each library's mpicc share: how a job begins, ends before its time, and
 * computes. */
#ifndef COMMON_H
#define COMMON_H

#include <mpi.h>

extern int rank, size;

/* The name of the program, before what it has to say. */
extern const char *const program;

/* Ends the job: it cannot be measured as it was asked for. */
void refuse(const char *why);

/* Binds this process to one of the cores that it may use, in turns by rank: before MPI_Init, so that what the library
 * allocates and starts is placed accordingly. The launchers' own variables tell the rank. */
void pin(void);

/* Prints the line `library`. */
void introduce(void);

/* Orders numbers for qsort. */
int ascending(const void *a, const void *b);

/* Pieces of arithmetic in a microsecond, the same number on all ranks; measured at the first call, which all ranks make
 * together. */
double pieces_a_us(void);

/* Computes that many pieces. */
void compute(double pieces);

#endif
