/* The program that `nmad bench imbalance` compiles with each library's mpicc: the programs of P5 (communication
 * imbalance), one source for all MPIs.
 *
 *     nooverlap        noOverlapToy, figure 4: Irecv, Send, Waitall, calculation, Allreduce
 *     overlap          overlapToy, figure 5: Irecv, Send, calculation, Waitall, calculation, Allreduce
 *     minife           a conjugate gradient as in miniFE, section 3.2
 *     minife-overlap   the same, rows that need no other rank's values computed before Waitall
 *     flood            Isend of many messages, calculation, Recv of the last one first, Waitall, Allreduce
 *
 * Each but the flood in the variants `plain`, `parallel` (figure 12), `fragments` (section 5.2) and `both`. `main.c`
 * reads the cells of the job, `phase.c` has the communication phase that all programs share, `toy.c`, `brick.c` and
 * `solve.c` the programs. */
#ifndef IMBALANCE_H
#define IMBALANCE_H

#include "common.h"
#include <stddef.h>

enum { ITERATIONS_MAX = 4096, IMBALANCE_MAX = 90 };

/* What one job measures, in this order. */
struct cell {
  int number;
  char program[32];
  char variant[32];
  /* Toys: number of targets. */
  int degree;
  /* Toys: messages to each of them. */
  int messages;
  /* Toys: longest message in bytes. miniFE: elements along each edge of the brick. */
  size_t size;
};

/* What the command line says. */
struct settings {
  /* Microseconds of calculation in an iteration of a toy. */
  double calculation_us;
  int iterations;
  /* Longest fragment in bytes. */
  size_t fragment;
  /* OpenMP threads that send in the variant `parallel`. */
  int threads;
  unsigned long long seed;
  /* By how many percent the rank with the most rows of miniFE's matrix has more than the mean. */
  int imbalance;
};

/* A message between this rank and another one; its memory holds whole doubles. */
struct message {
  int peer, tag;
  size_t bytes;
  char *at;
};

/* What is exchanged in each iteration. */
struct exchange {
  struct message *out, *in;
  int out_count, in_count;
  /* Longest piece; no less than the longest message: nothing is cut. */
  size_t fragment;
  /* Threads that send. */
  int threads;
  MPI_Request *requests;
  int request_count;
};

/* Seconds of each iteration on this rank. */
struct times {
  double communication[ITERATIONS_MAX], calculation[ITERATIONS_MAX], synchronization[ITERATIONS_MAX];
  int count;
  /* Messages and bytes that this rank sends in an iteration, fragments counted. */
  double messages, bytes;
  /* Bytes by which the peak of this rank's resident memory exceeded what it had, its own messages included, before the
   * first one was sent; zero where that is not measured. */
  double memory;
  /* Floating-point operations of an iteration on all ranks; zero where they are not counted. */
  double operations;
};

extern struct settings settings;

/* phase.c */
/* Reads the variant and allocates requests, once the messages are listed. */
void exchange_begin(struct exchange *exchange, const struct cell *cell);
void exchange_receive(struct exchange *exchange);
void exchange_send(struct exchange *exchange);
void exchange_wait(struct exchange *exchange);
/* Instead of receive, send and wait: sends everything, and receives everything late. */
void exchange_flood(struct exchange *exchange);
void exchange_drain(struct exchange *exchange);
void exchange_end(struct exchange *exchange);
/* Notes how many messages and bytes this rank sends. */
void exchange_count(const struct exchange *exchange, struct times *times);

/* The programs: the reason why the result is wrong, or null. */
const char *toy(const struct cell *cell, struct times *times);
const char *minife(const struct cell *cell, struct times *times);

/* A number that depends on all arguments and looks random. */
unsigned long long mixed(unsigned long long a, unsigned long long b, unsigned long long c);

void *memory(size_t bytes);

#endif
