/* Eight threads of rank 0 fill the parts of a message, each after some computing: `parts8`, each thread says when its
 * part is ready (MPI_Pready); `single8`, one MPI_Send after the last part. The computing takes 25 us, or with `long`
 * 1 ns for each byte of the part, as of data that are computed at 1 GB/s. A round ends when rank 1 has answered. */
#define _POSIX_C_SOURCE 200809L
#include "compare.h"
#include <pthread.h>
#include <string.h>

enum { PARTS = 8, COMPUTE_US = 25, BYTES_A_US = 1000, MESSAGE = 1, ANSWER = 2 };

static pthread_barrier_t begin, filled;
static MPI_Request request;
static int is_partitioned;
static double pieces;

struct share {
  int number, rounds;
  size_t bytes;
};

static void *fill(void *given) {
  const struct share *share = given;
  for (int round = 0; round < share->rounds; round++) {
    pthread_barrier_wait(&begin);
    compute(pieces);
    memset(out_buffer + (size_t)share->number * share->bytes, round, share->bytes);
    if (is_partitioned) MPI_Pready(share->number, request);
    pthread_barrier_wait(&filled);
  }
  return NULL;
}

static void send_rounds(int rounds, const struct cell *cell) {
  pthread_t threads[PARTS];
  struct share shares[PARTS];
  for (int i = 0; i < PARTS; i++) {
    shares[i] = (struct share){i, rounds, cell->bytes / PARTS};
    if (pthread_create(&threads[i], NULL, fill, &shares[i])) refuse("a thread cannot be started");
  }
  for (int round = 0; round < rounds; round++) {
    if (is_partitioned) MPI_Start(&request);
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&filled);
    if (is_partitioned) MPI_Wait(&request, MPI_STATUS_IGNORE);
    else MPI_Send(out_buffer, (int)cell->bytes, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < PARTS; i++) pthread_join(threads[i], NULL);
}

static double rounds_of_parts(int rounds, const struct cell *cell) {
  double begun = MPI_Wtime();
  if (rank == 0) send_rounds(rounds, cell);
  for (int round = 0; rank == 1 && round < rounds; round++) {
    if (is_partitioned) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in_buffer, (int)cell->bytes, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Send(NULL, 0, MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - begun;
}

static void prepare(const struct cell *cell) {
  MPI_Count len = (MPI_Count)(cell->bytes / PARTS);
  is_partitioned = cell->variant[0] == 'p';
  double compute_us = strstr(cell->variant, "long") ? (double)len / BYTES_A_US : COMPUTE_US;
  pieces = compute_us * pieces_a_us();
  pthread_barrier_init(&begin, NULL, PARTS + 1);
  pthread_barrier_init(&filled, NULL, PARTS + 1);
  request = MPI_REQUEST_NULL;
  if (is_partitioned && rank == 0)
    MPI_Psend_init(out_buffer, PARTS, len, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (is_partitioned && rank == 1)
    MPI_Precv_init(in_buffer, PARTS, len, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
}

static void finish(const struct cell *cell) {
  (void)cell;
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  pthread_barrier_destroy(&begin);
  pthread_barrier_destroy(&filled);
}

int parts_pattern(const struct cell *cell, struct pattern *found) {
  if (strcmp(cell->pattern, "partitioned")) return 0;
  if (number_in(cell->variant) != PARTS || cell->bytes % PARTS) refuse("eight parts of the same length");
  *found = (struct pattern){.run = rounds_of_parts, .things = 1, .prepare = prepare, .finish = finish};
  return 1;
}
