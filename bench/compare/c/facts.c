/* What a job can tell about the circumstances of a cell: with these, jobs of one library that took different times can
 * be told apart. Nothing here uses a library of messages while a cell is timed. */
#define _GNU_SOURCE
#include "compare.h"
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
  BATCHES = 5,
  /* Half round trips of a batch: some 10 us. */
  TURNS = 32,
  /* A rank that looks this often in vain gives the measurement up: it takes less than a second. */
  LOOKS = 1 << 25,
  STEPS = 1000,
  PATH = 4096
};

/* Two lines, each written by one rank. */
struct lines {
  _Alignas(256) atomic_uint ping;
  _Alignas(256) atomic_uint pong;
};

/* Per rank: core, involuntary and voluntary switches, page faults, nanoseconds of a step of arithmetic. */
enum { CORE, INVOLUNTARY, VOLUNTARY, FAULTS, STEP, FACTS };

static struct lines *lines;
static struct rusage before;
static double line_us, *all;

void open_lines(const char *cells, int is_pinned) {
  char path[PATH];
  int file;
  int is_made = 0, is_everywhere;
  all = calloc((size_t)size * FACTS, sizeof *all);
  snprintf(path, sizeof path, "%s.lines", cells);
  if (rank == 0) unlink(path);
  MPI_Barrier(MPI_COMM_WORLD);
  file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) {
    if (!ftruncate(file, sizeof *lines)) {
      lines = mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (lines == MAP_FAILED) lines = NULL;
    }
    close(file);
  }
  is_made = lines != NULL && is_pinned;
  MPI_Allreduce(&is_made, &is_everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!is_everywhere) lines = NULL;
}

/* Waits until a line has the value; false if it does not come. */
static int awaited(atomic_uint *line, unsigned value) {
  for (int looks = 0; looks < LOOKS; looks++)
    if (atomic_load_explicit(line, memory_order_acquire) == value) return 1;
  return 0;
}

/* Half a round trip of a line between the first two ranks, in microseconds: the best of some batches. Zero if a rank
 * does not answer. */
static double line_time(void) {
  static unsigned last;
  double best = 0;
  for (int batch = 0; batch < BATCHES && rank < 2; batch++) {
    double took = MPI_Wtime();
    for (int turn = 0; turn < TURNS; turn++) {
      unsigned value = ++last;
      int is_there = 1;
      if (rank == 0) atomic_store_explicit(&lines->ping, value, memory_order_release);
      is_there = rank == 0 ? awaited(&lines->pong, value) : awaited(&lines->ping, value);
      if (rank == 1) atomic_store_explicit(&lines->pong, value, memory_order_release);
      if (!is_there) {
        lines = NULL;
        return 0;
      }
    }
    took = (MPI_Wtime() - took) * 1e6 / TURNS / 2;
    if (batch == 0 || took < best) best = took;
  }
  return best;
}

/* Nanoseconds of a step of arithmetic that has to wait for the step before: a fixed number of cycles, so it tells the
 * frequency of the core. The best of three tries. */
static double step_time(void) {
  static volatile double kept = 1;
  double best = 0;
  for (int try = 0; try < 3; try++) {
    double value = kept, took = MPI_Wtime();
    for (int i = 0; i < STEPS; i++) value = value * 0.999999 + 1e-6;
    kept = value;
    took = (MPI_Wtime() - took) * 1e9 / STEPS;
    if (try == 0 || took < best) best = took;
  }
  return best;
}

void begin_facts(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  line_us = lines ? line_time() : 0;
  getrusage(RUSAGE_SELF, &before);
}

void tell_facts(const struct cell *cell) {
  struct rusage after;
  double own[FACTS];
  getrusage(RUSAGE_SELF, &after);
  own[CORE] = sched_getcpu();
  own[INVOLUNTARY] = (double)(after.ru_nivcsw - before.ru_nivcsw);
  own[VOLUNTARY] = (double)(after.ru_nvcsw - before.ru_nvcsw);
  own[FAULTS] = (double)(after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt);
  own[STEP] = step_time();
  MPI_Gather(own, FACTS, MPI_DOUBLE, all, FACTS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  for (int other = 1; other < size; other++) {
    const double *its = all + other * FACTS;
    for (int i = INVOLUNTARY; i <= FAULTS; i++) own[i] += its[i];
    if (its[STEP] > own[STEP]) own[STEP] = its[STEP];
  }
  printf("facts\t%d\t%.4f\t%.4f\t%.0f\t%.0f\t%.0f\t", cell->number, line_us, own[STEP], own[INVOLUNTARY],
         own[VOLUNTARY], own[FAULTS]);
  for (int other = 0; other < size; other++) printf("%s%.0f", other ? "," : "", all[other * FACTS + CORE]);
  printf("\n");
}
