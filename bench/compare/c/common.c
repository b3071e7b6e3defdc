#define _GNU_SOURCE
#include "common.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1000 };

int rank, size;

static volatile double result = 1;

void refuse(const char *why) {
  fprintf(stderr, "%s: %s\n", program, why);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

void pin(void) {
  const char *names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
  cpu_set_t allowed, one;
  int wanted = 0, core;
  for (int i = 0; i < 3; i++)
    if (getenv(names[i])) {
      wanted = atoi(getenv(names[i]));
      break;
    }
  if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) == 0) return;
  wanted %= CPU_COUNT(&allowed);
  for (core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &allowed) && wanted-- == 0) break;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

void introduce(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(text, &length);
  text[strcspn(text, "\n\t")] = 0;
  if (rank == 0) printf("library\t%s\n", text);
  fflush(stdout);
}

int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void compute(double pieces) {
  double value = result;
  for (; pieces > 0; pieces--)
    for (int i = 0; i < PIECE; i++) value = value * 0.999999 + 1e-6;
  result = value;
}

/* The fastest of some tries, so that one interruption does not change the amount. */
static double calibrated(void) {
  double best = 1, pieces;
  for (int i = 0; i < 20; i++) {
    double took = MPI_Wtime();
    compute(10);
    took = MPI_Wtime() - took;
    if (took < best) best = took;
  }
  pieces = 10 / (best * 1e6);
  MPI_Bcast(&pieces, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return pieces;
}

double pieces_a_us(void) {
  static double known;
  if (known == 0) known = calibrated();
  return known;
}
