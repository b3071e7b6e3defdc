/* The program that `nmad bench io` compiles with each library's mpicc: one source for all of them.
 *
 * A cell is a pattern and the length of its records. Each rank has `count` records of a file; a record contains its rank
 * and its number, so that the data written and the data read can be checked. `main.c` reads the cells, times them and
 * prints; `records.c` makes and checks records. */
#ifndef IO_H
#define IO_H

#include "common.h"
#include <stddef.h>

/* The order of the ranks' records in the file. */
enum order {
  /* All records of rank 0, then all of rank 1, ... */
  BY_RANK,
  /* The first record of each rank, then the second of each, ... */
  INTERLEAVED,
  /* Any order: each record once. */
  ANY
};

struct records {
  enum order order;
  size_t bytes;
  int count;
};

/* Returns the offset of a record of a rank in the file. */
MPI_Offset place(const struct records *records, int of_rank, int number);

/* Makes this rank's records, one behind the other. */
char *made(const struct records *records);

/* Writes the file with the records of all ranks. */
void write_file(const struct records *records, const char *path);

/* Returns whether the file contains every record. */
int is_written(const struct records *records, const char *path);

/* Returns whether memory contains this rank's records, or with ANY different records of all ranks. */
int is_read(const struct records *records, const char *memory);

#endif
