/* Derived datatypes: a ping-pong with the same type at both ends. A cell's bytes are the data, without gaps. */
#include "compare.h"
#include <string.h>

enum { PAGE = 4096, SMALL = 64, MIXED = 16384, MIXED_MAX = 4096 };

static MPI_Datatype type;
static int count;

/* A column of a matrix of doubles with two columns. */
static void column(int bytes) {
  MPI_Type_vector(bytes / 8, 1, 2, MPI_DOUBLE, &type);
  count = 1;
}

/* Blocks of 4 KiB, each followed by a gap of the same length. */
static void blocks(int bytes) {
  int block = bytes < PAGE ? bytes : PAGE;
  MPI_Type_vector(bytes / block, block, 2 * block, MPI_BYTE, &type);
  count = 1;
}

/* Blocks of 64 B and of nearly 16 KiB in turns, with gaps of 64 B. */
static void mixed(int bytes) {
  int lengths[MIXED_MAX], number = 0;
  MPI_Aint places[MIXED_MAX], at = 0;
  for (int left = bytes; left > 0 && number < MIXED_MAX; number++) {
    int block = number % 2 ? MIXED - SMALL : SMALL;
    if (block > left) block = left;
    lengths[number] = block;
    places[number] = at;
    at += block + SMALL;
    left -= block;
  }
  MPI_Type_create_hindexed(number, lengths, places, MPI_BYTE, &type);
  count = 1;
}

/* Records {int; double; int}: 16 B of data in 24. */
static void record(int bytes) {
  int lengths[] = {1, 1, 1};
  MPI_Aint places[] = {0, 8, 16};
  MPI_Datatype parts[] = {MPI_INT, MPI_DOUBLE, MPI_INT}, packed;
  MPI_Type_create_struct(3, lengths, places, parts, &packed);
  MPI_Type_create_resized(packed, 0, 24, &type);
  MPI_Type_free(&packed);
  count = bytes / 16;
}

/* A box of n by n/2 by n/4 doubles within a cube of n: n times n times n bytes of data. */
static void box(int bytes) {
  int n = 4, whole[3], part[3], from[3];
  while (n * n * n < bytes) n += 4;
  for (int i = 0; i < 3; i++) {
    whole[i] = n;
    part[i] = n >> i;
    from[i] = 0;
  }
  MPI_Type_create_subarray(3, whole, part, from, MPI_ORDER_C, MPI_DOUBLE, &type);
  count = 1;
}

static void prepare(const struct cell *cell) {
  int bytes = (int)cell->bytes;
  if (!strcmp(cell->variant, "column")) column(bytes);
  else if (!strcmp(cell->variant, "blocks")) blocks(bytes);
  else if (!strcmp(cell->variant, "mixed")) mixed(bytes);
  else if (!strcmp(cell->variant, "record")) record(bytes);
  else if (!strcmp(cell->variant, "box")) box(bytes);
  else refuse("there is no such shape");
  MPI_Type_commit(&type);
}

static void finish(const struct cell *cell) {
  (void)cell;
  MPI_Type_free(&type);
}

static double ping_pong(int rounds, const struct cell *cell) {
  int other = 1 - rank;
  double begun = MPI_Wtime();
  (void)cell;
  if (rank > 1) return 0;
  while (rounds-- > 0) {
    if (rank == 0) MPI_Send(out_buffer, count, type, other, 0, MPI_COMM_WORLD);
    MPI_Recv(in_buffer, count, type, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out_buffer, count, type, other, 0, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - begun;
}

int type_pattern(const struct cell *cell, struct pattern *found) {
  if (strcmp(cell->pattern, "types")) return 0;
  found->run = ping_pong;
  found->things = 2;
  found->prepare = prepare;
  found->finish = finish;
  return 1;
}
