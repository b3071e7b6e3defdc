/* Sixteen collectives, blocking and nonblocking (`i` before the name). In a `loop` nothing keeps a rank from running
 * ahead; `apart`, a barrier stands before each call and is not timed. A cell's bytes are what one rank has for
 * another: the whole vector of bcast and of reductions, one block of the others. Root is rank 0. */
#include "compare.h"
#include <string.h>

enum { RANKS_MAX = 64 };

static int counts[RANKS_MAX], places[RANKS_MAX], doubles[RANKS_MAX];
/* Bytes of the cell, and as doubles. */
static int bytes, numbers;

#define WORLD MPI_COMM_WORLD
#define IN in_buffer
#define OUT out_buffer

/* Every collective twice, from one list of arguments. */
#define COLLECTIVES(each)                                                                                    \
  each(bcast, Bcast, (OUT, bytes, MPI_BYTE, 0, WORLD))                                                       \
  each(gather, Gather, (OUT, bytes, MPI_BYTE, IN, bytes, MPI_BYTE, 0, WORLD))                                \
  each(gatherv, Gatherv, (OUT, bytes, MPI_BYTE, IN, counts, places, MPI_BYTE, 0, WORLD))                     \
  each(scatter, Scatter, (OUT, bytes, MPI_BYTE, IN, bytes, MPI_BYTE, 0, WORLD))                              \
  each(scatterv, Scatterv, (OUT, counts, places, MPI_BYTE, IN, bytes, MPI_BYTE, 0, WORLD))                   \
  each(allgather, Allgather, (OUT, bytes, MPI_BYTE, IN, bytes, MPI_BYTE, WORLD))                             \
  each(allgatherv, Allgatherv, (OUT, bytes, MPI_BYTE, IN, counts, places, MPI_BYTE, WORLD))                  \
  each(alltoall, Alltoall, (OUT, bytes, MPI_BYTE, IN, bytes, MPI_BYTE, WORLD))                               \
  each(alltoallv, Alltoallv, (OUT, counts, places, MPI_BYTE, IN, counts, places, MPI_BYTE, WORLD))           \
  each(reduce, Reduce, (OUT, IN, numbers, MPI_DOUBLE, MPI_SUM, 0, WORLD))                                    \
  each(allreduce, Allreduce, (OUT, IN, numbers, MPI_DOUBLE, MPI_SUM, WORLD))                                 \
  each(reduce_scatter, Reduce_scatter, (OUT, IN, doubles, MPI_DOUBLE, MPI_SUM, WORLD))                       \
  each(reduce_scatter_block, Reduce_scatter_block, (OUT, IN, numbers, MPI_DOUBLE, MPI_SUM, WORLD))           \
  each(scan, Scan, (OUT, IN, numbers, MPI_DOUBLE, MPI_SUM, WORLD))                                           \
  each(exscan, Exscan, (OUT, IN, numbers, MPI_DOUBLE, MPI_SUM, WORLD))

#define ARGUMENTS(...) __VA_ARGS__
#define FUNCTIONS(name, function, arguments)                                                                 \
  static void name(void) { MPI_##function(ARGUMENTS arguments); }                                            \
  static void i##name(void) {                                                                                \
    MPI_Request request;                                                                                     \
    MPI_I##name(ARGUMENTS arguments, &request);                                                              \
    MPI_Wait(&request, MPI_STATUS_IGNORE);                                                                   \
  }
COLLECTIVES(FUNCTIONS)

static void barrier(void) { MPI_Barrier(WORLD); }

static void ibarrier(void) {
  MPI_Request request;
  MPI_Ibarrier(WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

#define ENTRY(name, function, arguments) {#name, name}, {"i" #name, i##name},
static const struct {
  const char *name;
  void (*call)(void);
} table[] = {{"barrier", barrier}, {"ibarrier", ibarrier}, COLLECTIVES(ENTRY)};

static void (*chosen)(void);

static double loop(int rounds, const struct cell *cell) {
  double begun = MPI_Wtime();
  (void)cell;
  while (rounds-- > 0) chosen();
  return MPI_Wtime() - begun;
}

static double apart(int rounds, const struct cell *cell) {
  double took = 0;
  (void)cell;
  while (rounds-- > 0) {
    double begun;
    MPI_Barrier(WORLD);
    begun = MPI_Wtime();
    chosen();
    took += MPI_Wtime() - begun;
  }
  return took;
}

static void prepare(const struct cell *cell) {
  if (size > RANKS_MAX) refuse("collectives are measured with 64 ranks at most");
  bytes = (int)cell->bytes;
  numbers = bytes / 8;
  for (int i = 0; i < size; i++) {
    counts[i] = bytes;
    places[i] = i * bytes;
    doubles[i] = numbers;
  }
  /* Zeros: sums of any number of them stay what they are. */
  memset(out_buffer, 0, (size_t)bytes * (size_t)size);
}

int collective_pattern(const struct cell *cell, struct pattern *found) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(cell->pattern, table[i].name)) {
      chosen = table[i].call;
      found->prepare = prepare;
      found->run = !strcmp(cell->variant, "apart") ? apart : loop;
      return 1;
    }
  return 0;
}
