/* The program that `nmad bench io` compiles with each library's mpicc: one source for all of them.
 *
 * A cell is a pattern and the bytes of its records. Each rank has `count` records of a file; a record bears its rank and
 * its number, so that what a file holds, and what was read, can be checked. `main.c` reads the cells, times them and
 * prints; `records.c` makes and checks records. */
#ifndef IO_H
#define IO_H

#include "common.h"
#include <stddef.h>

/* Which rank's record lies where in the file. */
enum order {
  /* All records of rank 0, then all of rank 1, ... */
  BY_RANK,
  /* The first record of each rank, then the second of each, ... */
  INTERLEAVED,
  /* Any: each record once. */
  ANY
};

struct records {
  enum order order;
  size_t bytes;
  int count;
};

/* Where a record of a rank lies in the file. */
MPI_Offset place(const struct records *records, int of_rank, int number);

/* This rank's records, one behind the other. */
char *made(const struct records *records);

/* Writes the file as all ranks would. */
void write_file(const struct records *records, const char *path);

/* Whether the file holds every record. */
int is_written(const struct records *records, const char *path);

/* Whether memory holds records of this rank, or, in any order, of anybody. */
int is_read(const struct records *records, const char *memory);

#endif
