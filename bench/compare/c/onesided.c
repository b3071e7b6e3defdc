/* Accesses to a window of rank 1 by rank 0, which alone is timed; rank 1 waits in a collective meanwhile. A round is
 * as many accesses as the variant says and one flush. `a` in the variant: memory that MPI allocated, `c`: memory of
 * the program. */
#include "compare.h"
#include <stdlib.h>
#include <string.h>

enum { WINDOW_MAX = 4096, BUSY_ROUNDS = 5 };

/* What rank 1 computes in a round with a busy target, and what rank 0 does before it begins. */
enum { BUSY_US = 10000, LATER_US = 1000 };

static MPI_Win window;
static char *memory;
static int is_created;

static void put(const struct cell *cell, int i) {
  int bytes = (int)cell->bytes;
  MPI_Put(out_buffer, bytes, MPI_BYTE, 1, (MPI_Aint)i * bytes, bytes, MPI_BYTE, window);
}

static void get(const struct cell *cell, int i) {
  int bytes = (int)cell->bytes;
  MPI_Get(in_buffer, bytes, MPI_BYTE, 1, (MPI_Aint)i * bytes, bytes, MPI_BYTE, window);
}

static void fetch(const struct cell *cell, int i) {
  (void)cell;
  MPI_Fetch_and_op(out_buffer, in_buffer, MPI_LONG, 1, (MPI_Aint)i * (MPI_Aint)sizeof(long), MPI_SUM, window);
}

static void accumulate(const struct cell *cell, int i) {
  int bytes = (int)cell->bytes, count = bytes / (int)sizeof(double);
  MPI_Accumulate(out_buffer, count, MPI_DOUBLE, 1, (MPI_Aint)i * bytes, count, MPI_DOUBLE, MPI_SUM, window);
}

static const struct {
  const char *name;
  void (*access)(const struct cell *cell, int i);
} table[] = {{"put", put}, {"get", get}, {"fetch_and_op", fetch}, {"accumulate", accumulate}};

static void (*chosen)(const struct cell *cell, int i);

static double accesses(int rounds, const struct cell *cell) {
  int count = number_in(cell->variant);
  double begun = MPI_Wtime();
  if (rank != 0) return 0;
  while (rounds-- > 0) {
    for (int i = 0; i < count; i++) chosen(cell, i);
    MPI_Win_flush(1, window);
  }
  return MPI_Wtime() - begun;
}

static double accesses_of_busy(int rounds, const struct cell *cell) {
  double took = 0, pieces = pieces_a_us() * (rank == 0 ? LATER_US : BUSY_US);
  while (rounds-- > 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    compute(pieces);
    took += accesses(1, cell);
  }
  return took;
}

static void prepare(const struct cell *cell) {
  MPI_Aint bytes = (MPI_Aint)cell->bytes * number_in(cell->variant) + 64;
  is_created = cell->variant[0] == 'c';
  if (is_created) {
    memory = malloc((size_t)bytes);
    if (!memory) refuse("there is not enough memory for the window");
    MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  } else {
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  }
  /* Zeros: sums of any number of them stay what they are, and pages are there. */
  memset(memory, 0, (size_t)bytes);
  memset(out_buffer, 0, cell->bytes);
  MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void finish(const struct cell *cell) {
  (void)cell;
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  if (is_created) free(memory);
}

int one_sided_pattern(const struct cell *cell, struct pattern *found) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(cell->pattern, table[i].name)) {
      int count = number_in(cell->variant);
      if (count < 1 || count > WINDOW_MAX) refuse("1 to 4096 accesses for a flush");
      chosen = table[i].access;
      *found = (struct pattern){.run = accesses, .things = count, .prepare = prepare, .finish = finish};
      if (cell->variant[0] == 'b') {
        found->run = accesses_of_busy;
        found->most = BUSY_ROUNDS;
      }
      return 1;
    }
  return 0;
}
