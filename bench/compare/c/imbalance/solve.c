/* The conjugate gradient of miniFE (P5 section 3.2), without preconditioner. Each iteration exchanges the halo of the
 * search direction, multiplies by the matrix, and adds up two scalar products over all ranks. It ends when the residual
 * is small. Then the result is compared with the solution, and its residual, which the iterations only update, is
 * computed anew from the matrix. */
#include "brick.h"
#include <math.h>
#include <stdlib.h>

/* Squares of residuals, in parts of the first one. */
static const double SMALL = 1e-20;
/* What the square of the residual of the result may be: iterations that only update it lose some digits. */
static const double RESIDUAL = 1e-16;
/* What the result may be off. */
static const double OFF = 1e-6;
/* Floating-point operations of an iteration besides the matrix, for each row: two products, three additions. */
enum { OPERATIONS = 10 };

struct vectors {
  /* Own rows. */
  double *result, *residual, *image;
  /* The whole halo. */
  double *direction;
};

static void multiply(const struct brick *brick, const struct vectors *vectors, int from, int until) {
  for (int i = from; i < until; i++) {
    int row = brick->order[i];
    double sum = 0;
    for (int at = brick->row_from[row]; at < brick->row_from[row + 1]; at++)
      sum += brick->value[at] * vectors->direction[brick->column[at]];
    vectors->image[row] = sum;
  }
}

static void pack(const struct brick *brick, const double *direction) {
  const struct exchange *exchange = &brick->exchange;
  for (int i = 0; i < exchange->out_count; i++) {
    double *to = (double *)(void *)exchange->out[i].at;
    for (size_t at = 0; at < exchange->out[i].bytes / sizeof(double); at++)
      to[at] = direction[brick->out_places[i][at]];
  }
}

static void unpack(const struct brick *brick, double *direction) {
  const struct exchange *exchange = &brick->exchange;
  for (int i = 0; i < exchange->in_count; i++) {
    const double *from = (const double *)(const void *)exchange->in[i].at;
    for (size_t at = 0; at < exchange->in[i].bytes / sizeof(double); at++)
      direction[brick->in_places[i][at]] = from[at];
  }
}

/* Adds up over all ranks; the seconds that it takes are added to `waited`. */
static double everywhere(double part, double *waited) {
  double sum, begun = MPI_Wtime();
  MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  *waited += MPI_Wtime() - begun;
  return sum;
}

/* The image of the direction; returns the seconds of communication. */
static double apply(struct brick *brick, const struct vectors *vectors, int is_overlapped) {
  double begun = MPI_Wtime(), sent, waited, done;
  exchange_receive(&brick->exchange);
  pack(brick, vectors->direction);
  exchange_send(&brick->exchange);
  sent = MPI_Wtime();
  if (is_overlapped) multiply(brick, vectors, 0, brick->inner_count);
  waited = MPI_Wtime();
  exchange_wait(&brick->exchange);
  unpack(brick, vectors->direction);
  done = MPI_Wtime();
  multiply(brick, vectors, is_overlapped ? brick->inner_count : 0, brick->rows);
  return sent - begun + done - waited;
}

/* One iteration; returns the new square of the residual. */
static double iterate(struct brick *brick, struct vectors *vectors, double square, int overlapped, double took[2]) {
  double product = 0, next = 0, step;
  took[1] = 0;
  took[0] = apply(brick, vectors, overlapped);
  for (int i = 0; i < brick->rows; i++) product += vectors->direction[brick->place[i]] * vectors->image[i];
  step = square / everywhere(product, &took[1]);
  for (int i = 0; i < brick->rows; i++) {
    vectors->result[i] += step * vectors->direction[brick->place[i]];
    vectors->residual[i] -= step * vectors->image[i];
    next += vectors->residual[i] * vectors->residual[i];
  }
  next = everywhere(next, &took[1]);
  for (int i = 0; i < brick->rows; i++) {
    double *direction = &vectors->direction[brick->place[i]];
    *direction = vectors->residual[i] + next / square * *direction;
  }
  return next;
}

/* The square of the norm of right-hand side less matrix times result. Overwrites direction and image. */
static double residual_of(struct brick *brick, const struct vectors *vectors) {
  double square = 0, ignored = 0;
  for (int i = 0; i < brick->rows; i++) vectors->direction[brick->place[i]] = vectors->result[i];
  apply(brick, vectors, 0);
  for (int i = 0; i < brick->rows; i++) {
    double left = brick->right[i] - vectors->image[i];
    square += left * left;
  }
  return everywhere(square, &ignored);
}

static int is_solved(const struct brick *brick, const double *result) {
  double off = 0, most;
  for (int i = 0; i < brick->rows; i++) {
    int node[3];
    node_of(&brick->own, i, node);
    off = fmax(off, fabs(result[i] - solution(node)));
  }
  MPI_Allreduce(&off, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most < OFF;
}

const char *minife(const struct cell *cell, struct times *times) {
  struct brick brick;
  struct vectors vectors;
  const char *why = NULL;
  int is_overlapped = cell->program[6] == '-';
  double square = 0, first, ignored = 0;
  brick_begin(&brick, cell);
  vectors.result = memory((size_t)brick.rows * sizeof(double));
  vectors.residual = memory((size_t)brick.rows * sizeof(double));
  vectors.image = memory((size_t)brick.rows * sizeof(double));
  vectors.direction = memory((size_t)brick.halo_count * sizeof(double));
  for (int i = 0; i < brick.halo_count; i++) vectors.direction[i] = 0;
  for (int i = 0; i < brick.rows; i++) {
    vectors.result[i] = 0;
    vectors.direction[brick.place[i]] = vectors.residual[i] = brick.right[i];
    square += brick.right[i] * brick.right[i];
  }
  first = square = everywhere(square, &ignored);
  times->count = 0;
  times->memory = 0;
  while (square > SMALL * first && times->count < ITERATIONS_MAX) {
    double took[2], begun = MPI_Wtime();
    square = iterate(&brick, &vectors, square, is_overlapped, took);
    times->communication[times->count] = took[0];
    times->synchronization[times->count] = took[1];
    times->calculation[times->count++] = MPI_Wtime() - begun - took[0] - took[1];
  }
  times->operations = everywhere(2.0 * brick.row_from[brick.rows] + OPERATIONS * (double)brick.rows, &ignored);
  if (!is_solved(&brick, vectors.result)) why = "the conjugate gradient has not found the solution";
  if (!(residual_of(&brick, &vectors) <= RESIDUAL * first)) why = "matrix times result is not the right-hand side";
  exchange_count(&brick.exchange, times);
  brick_end(&brick);
  free(vectors.result);
  free(vectors.residual);
  free(vectors.image);
  free(vectors.direction);
  return why;
}
