/* Several threads of each rank communicate at the same time (MPI_THREAD_MULTIPLE): thread i of rank 0 and thread i of
 * rank 1 play ping-pong, on a communicator of their own (`own2`, `own4`) or on one for all, told apart by tags (`tag2`,
 * `tag4`). */
#include "compare.h"
#include <pthread.h>
#include <string.h>

enum { THREADS_MAX = 8 };

static MPI_Comm communicators[THREADS_MAX];
static int thread_count;

struct share {
  int number, rounds, bytes;
};

static void *play(void *given) {
  const struct share *share = given;
  int other = 1 - rank, tag = share->number, bytes = share->bytes;
  MPI_Comm comm = communicators[share->number];
  char *out = out_buffer + (size_t)tag * (size_t)bytes, *in = in_buffer + (size_t)tag * (size_t)bytes;
  for (int i = 0; i < share->rounds; i++) {
    if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, other, tag, comm);
    MPI_Recv(in, bytes, MPI_BYTE, other, tag, comm, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, bytes, MPI_BYTE, other, tag, comm);
  }
  return NULL;
}

static double all_play(int rounds, const struct cell *cell) {
  pthread_t threads[THREADS_MAX];
  struct share shares[THREADS_MAX];
  double begun = MPI_Wtime();
  if (rank > 1) return 0;
  for (int i = 0; i < thread_count; i++) {
    shares[i] = (struct share){i, rounds, (int)cell->bytes};
    if (pthread_create(&threads[i], NULL, play, &shares[i])) refuse("a thread cannot be started");
  }
  for (int i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  return MPI_Wtime() - begun;
}

static void prepare(const struct cell *cell) {
  int is_own = cell->variant[0] == 'o';
  thread_count = number_in(cell->variant);
  if (thread_count < 1 || thread_count > THREADS_MAX) refuse("1 to 8 threads");
  for (int i = 0; i < thread_count; i++) {
    if (is_own) MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
    else communicators[i] = MPI_COMM_WORLD;
  }
}

static void finish(const struct cell *cell) {
  if (cell->variant[0] == 'o')
    for (int i = 0; i < thread_count; i++) MPI_Comm_free(&communicators[i]);
}

int thread_pattern(const struct cell *cell, struct pattern *found) {
  if (strcmp(cell->pattern, "threads")) return 0;
  found->prepare = prepare;
  found->finish = finish;
  found->run = all_play;
  /* Messages of all threads together. */
  found->things = 2 * number_in(cell->variant);
  return 1;
}
