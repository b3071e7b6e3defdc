/* Many messages in flight: one way, both ways, in several pairs, and over several communicators. A round is one
 * window of nonblocking messages and an empty answer. */
#include "compare.h"
#include <string.h>

enum { WINDOW = 64, WINDOWS_MAX = 256, COMMUNICATORS = 16, DATA = 1, ANSWER = 2 };

static MPI_Comm communicators[COMMUNICATORS];
static int communicator_count;

/* One window from `out_buffer` to `in_buffer` of the other rank; communicators take turns. */
static int send_window(int other, int window, int bytes, MPI_Request *requests) {
  for (int i = 0; i < window; i++)
    MPI_Isend(out_buffer + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, other, DATA,
              communicators[i % communicator_count], &requests[i]);
  return window;
}

static int receive_window(int other, int window, int bytes, MPI_Request *requests) {
  for (int i = 0; i < window; i++)
    MPI_Irecv(in_buffer + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, other, DATA,
              communicators[i % communicator_count], &requests[i]);
  return window;
}

static void one_window(int other, int is_sender, int window, int bytes) {
  MPI_Request requests[WINDOWS_MAX];
  if (is_sender) send_window(other, window, bytes, requests);
  else receive_window(other, window, bytes, requests);
  MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
  if (is_sender) MPI_Recv(NULL, 0, MPI_BYTE, other, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else MPI_Send(NULL, 0, MPI_BYTE, other, ANSWER, MPI_COMM_WORLD);
}

static double one_way(int rounds, const struct cell *cell) {
  int window = cell->variant[0] == 'w' ? number_in(cell->variant) : WINDOW;
  double begun = MPI_Wtime();
  if (rank > 1) return 0;
  while (rounds-- > 0) one_window(1 - rank, rank == 0, window, (int)cell->bytes);
  return MPI_Wtime() - begun;
}

static double two_way(int rounds, const struct cell *cell) {
  MPI_Request requests[2 * WINDOWS_MAX];
  int window = number_in(cell->variant), bytes = (int)cell->bytes, other = 1 - rank;
  double begun = MPI_Wtime();
  if (rank > 1) return 0;
  while (rounds-- > 0) {
    int count = receive_window(other, window, bytes, requests);
    count += send_window(other, window, bytes, requests + count);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  }
  return MPI_Wtime() - begun;
}

/* Every rank of the first half has a partner in the second. */
static int partner(void) { return (rank + size / 2) % size; }

static double pairs_stream(int rounds, const struct cell *cell) {
  double begun = MPI_Wtime();
  while (rounds-- > 0) one_window(partner(), rank < size / 2, WINDOW, (int)cell->bytes);
  return MPI_Wtime() - begun;
}

static double pairs_ping_pong(int rounds, const struct cell *cell) {
  int bytes = (int)cell->bytes, other = partner(), is_first = rank < size / 2;
  double begun = MPI_Wtime();
  while (rounds-- > 0) {
    if (is_first) MPI_Send(out_buffer, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD);
    MPI_Recv(in_buffer, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!is_first) MPI_Send(out_buffer, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - begun;
}

static void prepare(const struct cell *cell) {
  communicator_count = cell->variant[0] == 'c' ? number_in(cell->variant) : 1;
  if (communicator_count < 1 || communicator_count > COMMUNICATORS) refuse("1 to 16 communicators");
  communicators[0] = MPI_COMM_WORLD;
  for (int i = 1; i < communicator_count; i++) MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
}

static void finish(const struct cell *cell) {
  (void)cell;
  for (int i = 1; i < communicator_count; i++) MPI_Comm_free(&communicators[i]);
}

int stream_pattern(const struct cell *cell, struct pattern *found) {
  int window = number_in(cell->variant);
  found->prepare = prepare;
  found->finish = finish;
  if (!strcmp(cell->pattern, "oneway") || !strcmp(cell->pattern, "twoway")) {
    if (window < 1 || window > WINDOWS_MAX) refuse("windows have 1 to 256 messages");
    found->run = cell->pattern[0] == 'o' ? one_way : two_way;
    found->things = window;
  } else if (!strcmp(cell->pattern, "rate")) {
    found->run = one_way;
    found->things = WINDOW;
  } else if (!strcmp(cell->pattern, "pairs")) {
    int is_stream = !strcmp(cell->variant, "stream");
    if (size % 2) refuse("pairs need an even number of ranks");
    found->run = is_stream ? pairs_stream : pairs_ping_pong;
    found->things = is_stream ? WINDOW : 2;
  } else {
    found->prepare = found->finish = NULL;
    return 0;
  }
  return 1;
}
