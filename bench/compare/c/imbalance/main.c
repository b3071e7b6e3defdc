/* Reads the cells of the job, runs each one and prints its times. Rank 0 prints, fields separated by tabs:
 *
 *     library TEXT                                     what MPI_Get_library_version says, its first line
 *     begin   NUMBER                                   the cell that is measured from now on
 *     rank    NUMBER RANK COMMUNICATION CALCULATION SYNCHRONIZATION MESSAGES BYTES MEMORY
 *                                                      microseconds, messages and bytes sent, of one iteration; bytes
 *                                                      by which resident memory grew
 *     phase   NUMBER COMMUNICATION ITERATION GFLOPS    microseconds and rate of an iteration
 *     cell    NUMBER MEDIAN LOWEST HIGHEST             microseconds of communication in an iteration
 *     skip    NUMBER REASON
 *     end
 *
 * The times of a rank are means over the iterations. Those of a phase are medians over the iterations, of the rank that
 * took longest in each. */
#include "imbalance.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 1024 };

const char *const program = "imbalance";
struct settings settings = {4000, 100, 64 << 10, 1, 1, 0};

static struct cell cells[CELLS];
static int cell_count;
static struct times times;

void *memory(size_t bytes) {
  void *at = malloc(bytes > 0 ? bytes : 1);
  if (!at) refuse("there is not enough memory for the messages");
  return at;
}

unsigned long long mixed(unsigned long long a, unsigned long long b, unsigned long long c) {
  unsigned long long x = a * 0x9e3779b97f4a7c15ull + b * 0xc2b2ae3d27d4eb4full + c * 0x165667b19e3779f9ull;
  for (int i = 0; i < 2; i++) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    x ^= x >> 31;
  }
  return x;
}

static void read_cells(const char *path) {
  FILE *file = fopen(path, "r");
  if (!file) refuse("the file of cells cannot be read");
  while (cell_count < CELLS) {
    struct cell *cell = &cells[cell_count];
    int fields = fscanf(file, "%d %31s %31s %d %d %zu", &cell->number, cell->program, cell->variant, &cell->degree,
                        &cell->messages, &cell->size);
    if (fields == EOF) break;
    if (fields != 6) refuse("the file of cells is damaged");
    cell_count++;
  }
  fclose(file);
}

/* Of each iteration the rank that took longest, sorted, at rank 0. */
static void slowest(const double *mine, double *all) {
  MPI_Reduce(mine, all, times.count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  qsort(all, (size_t)times.count, sizeof *all, ascending);
}

static double mean_us(const double *seconds) {
  double sum = 0;
  for (int i = 0; i < times.count; i++) sum += seconds[i];
  return sum / times.count * 1e6;
}

static void print_ranks(const struct cell *cell) {
  enum { FIGURES = 6 };
  double mine[FIGURES] = {mean_us(times.communication), mean_us(times.calculation), mean_us(times.synchronization),
                          times.messages, times.bytes, times.memory > 0 ? times.memory : 0};
  double *all = memory((size_t)size * sizeof mine);
  MPI_Gather(mine, FIGURES, MPI_DOUBLE, all, FIGURES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < size; i++) {
    const double *of = all + FIGURES * i;
    printf("rank\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.0f\t%.0f\t%.0f\n", cell->number, i, of[0], of[1], of[2], of[3], of[4],
           of[5]);
  }
  free(all);
}

static void print(const struct cell *cell) {
  static double whole[ITERATIONS_MAX], communication[ITERATIONS_MAX], iteration[ITERATIONS_MAX];
  double half, gflops;
  int last = times.count - 1;
  for (int i = 0; i < times.count; i++)
    whole[i] = times.communication[i] + times.calculation[i] + times.synchronization[i];
  print_ranks(cell);
  slowest(times.communication, communication);
  slowest(whole, iteration);
  if (rank != 0) return;
  half = iteration[times.count / 2];
  gflops = times.operations / (half > 1e-9 ? half : 1e-9) / 1e9;
  printf("phase\t%d\t%.3f\t%.3f\t%.5f\n", cell->number, communication[times.count / 2] * 1e6, half * 1e6, gflops);
  printf("cell\t%d\t%.3f\t%.3f\t%.3f\n", cell->number, communication[times.count / 2] * 1e6, communication[0] * 1e6,
         communication[last] * 1e6);
}

static void measure(const struct cell *cell) {
  const char *why;
  int wrong, anywhere;
  if (rank == 0) printf("begin\t%d\n", cell->number);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  why = !strncmp(cell->program, "minife", 6) ? minife(cell, &times) : toy(cell, &times);
  wrong = why != NULL;
  MPI_Allreduce(&wrong, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (wrong) fprintf(stderr, "imbalance: rank %d, %s %s: %s\n", rank, cell->program, cell->variant, why);
  if (!anywhere) print(cell);
  else if (rank == 0) printf("skip\t%d\tthe result is wrong\n", cell->number);
  fflush(stdout);
}

static const char *read_words(int count, char **words) {
  const char *path = NULL;
  for (int i = 1; i < count; i++) {
    const char *next = i + 1 < count ? words[i + 1] : "";
    if (!strcmp(words[i], "--cells")) path = next;
    else if (!strcmp(words[i], "--calculation")) settings.calculation_us = atof(next);
    else if (!strcmp(words[i], "--iterations")) settings.iterations = atoi(next);
    else if (!strcmp(words[i], "--fragment")) settings.fragment = strtoull(next, NULL, 10);
    else if (!strcmp(words[i], "--threads")) settings.threads = atoi(next);
    else if (!strcmp(words[i], "--seed")) settings.seed = strtoull(next, NULL, 10);
    else if (!strcmp(words[i], "--imbalance")) settings.imbalance = atoi(next);
    else if (!strcmp(words[i], "--pin")) pin();
  }
  return path;
}

int main(int count, char **words) {
  int level, provided;
  const char *path = read_words(count, words);
  level = settings.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&count, &words, level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!path || size < 2) refuse("usage: --cells FILE [--calculation US] [--iterations N] [--fragment BYTES] "
                                "[--threads N] [--seed N] [--imbalance PERCENT] [--pin], with two ranks or more");
  if (provided < level) refuse("the library was built without MPI_THREAD_MULTIPLE");
  if (settings.iterations < 1 || settings.iterations > ITERATIONS_MAX) refuse("1 to 4096 iterations are measured");
  if (settings.fragment == 0 || settings.threads < 1) refuse("a fragment has a byte, and one thread sends, at least");
  if (settings.imbalance < 0 || settings.imbalance > IMBALANCE_MAX) refuse("rows are uneven by 0 to 90 percent");
  read_cells(path);
  introduce();
  for (int i = 0; i < cell_count; i++) measure(&cells[i]);
  if (rank == 0) printf("end\n");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
