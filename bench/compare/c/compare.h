/* The program that `nmad bench compare` compiles with each library's mpicc: one source for all of them.
 *
 * A cell is one figure of the report: a pattern, a variant of it, and a number of bytes. `main.c` reads the cells of
 * the job, repeats each one and prints a line for it; the other files have the patterns. */
#ifndef COMPARE_H
#define COMPARE_H

#include "common.h"
#include <stddef.h>

/* What one job measures, in this order. `number` counts from zero in the file of cells. */
struct cell {
  int number;
  char pattern[32];
  char variant[32];
  size_t bytes;
};

/* Does `rounds` rounds of the cell and returns the seconds that they took on this rank. */
typedef double work(int rounds, const struct cell *cell);

/* How a cell is measured. A round counts as `things` operations; `prepare` and `finish` may be null, and `most` limits
 * the rounds of a sample, if it is not zero. */
struct pattern {
  work *run;
  int things;
  int most;
  void (*prepare)(const struct cell *cell);
  void (*finish)(const struct cell *cell);
};

/* The pattern of a cell; 0 if this file has none of that name. */
int point_pattern(const struct cell *cell, struct pattern *found);
int stream_pattern(const struct cell *cell, struct pattern *found);
int type_pattern(const struct cell *cell, struct pattern *found);
int collective_pattern(const struct cell *cell, struct pattern *found);
int overlap_pattern(const struct cell *cell, struct pattern *found);
int one_sided_pattern(const struct cell *cell, struct pattern *found);
int thread_pattern(const struct cell *cell, struct pattern *found);
int parts_pattern(const struct cell *cell, struct pattern *found);

/* Memory to send from and to receive into: `longest` bytes each, written once. */
extern char *out_buffer, *in_buffer;
extern size_t longest;

/* Makes what the facts of cells need; `cells` is the path of the list of cells. Ranks without a core of their own share
 * no line: they would wait for each other's time slices. */
void open_lines(const char *cells, int is_pinned);

/* Called by all ranks before and after the samples of a cell; the second one prints the line `facts`. */
void begin_facts(void);
void tell_facts(const struct cell *cell);

/* The number behind a letter in a variant, as in `w64`. */
int number_in(const char *variant);

#endif
