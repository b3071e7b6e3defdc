/* Reads the cells of the job, measures them in order and prints what each took. Rank 0 prints, fields separated by
 * tabs:
 *
 *     library TEXT                              what MPI_Get_library_version says, its first line
 *     begin   NUMBER                            the cell that is measured from now on
 *     facts   NUMBER LINE STEP INVOLUNTARY VOLUNTARY FAULTS CORES
 *                                               the circumstances of the samples of a cell: half a round trip of a bare
 *                                               line in microseconds (0: not known), a step of arithmetic in
 *                                               nanoseconds, switches and page faults of all ranks, core of each rank
 *     cell    NUMBER MEDIAN LOWEST HIGHEST      microseconds an operation
 *     skip    NUMBER REASON
 *     end
 *
 * Warm-up: the number of rounds doubles until they take half of a sample, and until there were eight, since the first
 * ones open connections (fewer if they take ten samples); none of that counts. Then follow five samples, of which the
 * median is reported; three if one round is longer than a sample, and one if it takes more than a second. A sample's
 * time is that of the rank that took longest. */
#include "compare.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 5, FEW_SAMPLES = 3, CELLS = 4096, ROUNDS = 1 << 22, WARM = 8 };

char *out_buffer, *in_buffer;
size_t longest;
const char *const program = "compare";

static struct cell cells[CELLS];
static int cell_count;
/* Length of a sample in seconds. */
static double sample = 0.01;

int number_in(const char *variant) {
  while (*variant && (*variant < '0' || *variant > '9')) variant++;
  return atoi(variant);
}

/* Bytes of a buffer that a cell needs: every pattern stays below what its plan says here. */
static size_t need(const struct cell *cell) {
  size_t slots = 1;
  if (cell->variant[0] == 'w') slots = (size_t)number_in(cell->variant);
  if (!strcmp(cell->pattern, "rate") || !strcmp(cell->pattern, "pairs")) slots = 64;
  if (!strcmp(cell->pattern, "unexpected")) slots = 16;
  if (!strcmp(cell->pattern, "threads")) slots = 16;
  if (!strcmp(cell->pattern, "types")) slots = 9;
  if (!strcmp(cell->variant, "loop") || !strcmp(cell->variant, "apart") || !strcmp(cell->pattern, "overlap"))
    slots = (size_t)size;
  return slots * (cell->bytes + 8);
}

static void read_cells(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) refuse("the file of cells cannot be read");
  while (cell_count < CELLS) {
    struct cell *cell = &cells[cell_count];
    int fields = fscanf(file, "%d %31s %31s %zu", &cell->number, cell->pattern, cell->variant, &cell->bytes);
    if (fields == EOF) break;
    if (fields != 4) refuse("the file of cells is damaged");
    if (need(cell) > longest) longest = need(cell);
    cell_count++;
  }
  fclose(file);
}

static int find(const struct cell *cell, struct pattern *found) {
  memset(found, 0, sizeof *found);
  found->things = 1;
  return point_pattern(cell, found) || stream_pattern(cell, found) || type_pattern(cell, found) ||
         collective_pattern(cell, found) || overlap_pattern(cell, found) || one_sided_pattern(cell, found) ||
         thread_pattern(cell, found) || parts_pattern(cell, found);
}

/* Seconds for `rounds` rounds, the same number on all ranks. */
static double timed(const struct pattern *pattern, int rounds, const struct cell *cell) {
  double took, slowest;
  MPI_Barrier(MPI_COMM_WORLD);
  took = pattern->run(rounds, cell);
  MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/* Warms up and finds how many rounds a sample has; `once` is set to the seconds of one round. */
static int rounds_of_a_sample(const struct pattern *pattern, const struct cell *cell, double *once) {
  int most = pattern->most ? pattern->most : ROUNDS;
  for (int rounds = 1;; rounds *= 2) {
    double took = timed(pattern, rounds, cell);
    int is_warm = rounds >= WARM || took > 10 * sample;
    if ((took > sample / 2 && is_warm) || rounds >= most) {
      double wanted;
      *once = took / rounds;
      wanted = sample / (*once > 1e-9 ? *once : 1e-9);
      return wanted < 1 ? 1 : wanted > most ? most : (int)wanted;
    }
  }
}

static void measure(const struct pattern *pattern, const struct cell *cell) {
  double took[SAMPLES], once, scale;
  int rounds = rounds_of_a_sample(pattern, cell, &once);
  int samples = once > 1 ? 1 : once > sample ? FEW_SAMPLES : SAMPLES;
  begin_facts();
  for (int i = 0; i < samples; i++) took[i] = timed(pattern, rounds, cell);
  tell_facts(cell);
  qsort(took, (size_t)samples, sizeof *took, ascending);
  scale = 1e6 / rounds / pattern->things;
  if (rank == 0)
    printf("cell\t%d\t%.5f\t%.5f\t%.5f\n", cell->number, took[samples / 2] * scale, took[0] * scale,
           took[samples - 1] * scale);
}

/* The first messages of the job: nothing was sent before, and nothing but them is timed. `variant` says how many
 * messages have gone when this cell ends. */
static void measure_first(const struct cell *cell) {
  static int done;
  int count = number_in(cell->variant) - done;
  double took = MPI_Wtime();
  if (rank < 2)
    for (int i = 0; i < count; i++) {
      if (rank == 0) MPI_Send(out_buffer, (int)cell->bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(in_buffer, (int)cell->bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(out_buffer, (int)cell->bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
  took = (MPI_Wtime() - took) * 1e6 / 2 / count;
  done += count;
  if (rank == 0) printf("cell\t%d\t%.5f\t%.5f\t%.5f\n", cell->number, took, took, took);
}

static void measure_all(void) {
  for (int i = 0; i < cell_count; i++) {
    const struct cell *cell = &cells[i];
    struct pattern pattern;
    if (rank == 0) {
      printf("begin\t%d\n", cell->number);
      fflush(stdout);
    }
    if (!strcmp(cell->pattern, "first")) {
      measure_first(cell);
    } else if (find(cell, &pattern)) {
      if (pattern.prepare) pattern.prepare(cell);
      measure(&pattern, cell);
      if (pattern.finish) pattern.finish(cell);
    } else if (rank == 0) {
      printf("skip\t%d\tthe program has no such pattern\n", cell->number);
    }
    fflush(stdout);
  }
}

int main(int count, char **words) {
  const char *path = NULL;
  int level = MPI_THREAD_SINGLE, provided, is_pinned = 0;
  for (int i = 1; i < count; i++) {
    if (!strcmp(words[i], "--cells") && i + 1 < count) path = words[++i];
    else if (!strcmp(words[i], "--ms") && i + 1 < count) sample = atof(words[++i]) / 1e3;
    else if (!strcmp(words[i], "--threads")) level = MPI_THREAD_MULTIPLE;
    else if (!strcmp(words[i], "--pin")) is_pinned = 1;
  }
  if (is_pinned) pin();
  MPI_Init_thread(&count, &words, level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!path || size < 2) refuse("usage: --cells FILE [--ms N] [--threads] [--pin], with two ranks or more");
  if (provided < level) refuse("the library was built without MPI_THREAD_MULTIPLE");
  read_cells(path);
  out_buffer = malloc(longest + 1);
  in_buffer = malloc(longest + 1);
  if (!out_buffer || !in_buffer) refuse("there is not enough memory for the messages");
  memset(out_buffer, 1, longest + 1);
  memset(in_buffer, 2, longest + 1);
  introduce();
  /* First messages are those of the job: nothing may go before them. */
  if (cell_count == 0 || strcmp(cells[0].pattern, "first")) open_lines(path, is_pinned);
  measure_all();
  if (rank == 0) printf("end\n");
  fflush(stdout);
  free(out_buffer);
  free(in_buffer);
  MPI_Finalize();
  return 0;
}
