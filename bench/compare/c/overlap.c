/* Communication beside computing: a round starts a message or a reduction, computes, and waits. The computing is a
 * fixed amount of arithmetic, about as long as a good transfer of that size over a rail of 10 Gbit/s, so that a
 * library that progresses meanwhile hides one behind the other. The figure is the whole round. */
#include "compare.h"
#include <string.h>

static double pieces(const struct cell *cell) { return pieces_a_us() * (20 + (double)cell->bytes * 8 / 1e4); }

static double message(int rounds, const struct cell *cell) {
  int bytes = (int)cell->bytes;
  double begun = MPI_Wtime();
  if (rank > 1) return 0;
  for (int i = 0; i < rounds; i++) {
    MPI_Request request;
    if (i % 2 == rank) MPI_Isend(out_buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
    else MPI_Irecv(in_buffer, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &request);
    compute(pieces(cell));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return MPI_Wtime() - begun;
}

static double reduction(int rounds, const struct cell *cell) {
  double begun = MPI_Wtime();
  while (rounds-- > 0) {
    MPI_Request request;
    MPI_Iallreduce(out_buffer, in_buffer, (int)(cell->bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    compute(pieces(cell));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return MPI_Wtime() - begun;
}

static void prepare(const struct cell *cell) {
  pieces_a_us();
  memset(out_buffer, 0, cell->bytes);
}

int overlap_pattern(const struct cell *cell, struct pattern *found) {
  if (strcmp(cell->pattern, "overlap")) return 0;
  found->prepare = prepare;
  found->run = !strcmp(cell->variant, "iallreduce") ? reduction : message;
  return 1;
}
