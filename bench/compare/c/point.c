/* Messages one at a time: ping-pong, and receives that are posted early or late. */
#include "compare.h"
#include <string.h>

enum { LATE = 16, DATA = 1, TOKEN = 2 };

static double ping_pong(int rounds, const struct cell *cell) {
  int bytes = (int)cell->bytes, other = 1 - rank;
  double begun = MPI_Wtime();
  if (rank > 1) return 0;
  while (rounds-- > 0) {
    if (rank == 0) MPI_Send(out_buffer, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD);
    MPI_Recv(in_buffer, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out_buffer, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - begun;
}

static void token(int from) {
  if (rank == from) MPI_Send(NULL, 0, MPI_BYTE, 1 - rank, TOKEN, MPI_COMM_WORLD);
  else MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void post(int is_sender, int bytes, MPI_Request *requests) {
  for (int i = 0; i < LATE; i++) {
    char *place = (is_sender ? out_buffer : in_buffer) + (size_t)i * (size_t)bytes;
    if (is_sender) MPI_Isend(place, bytes, MPI_BYTE, 1 - rank, DATA, MPI_COMM_WORLD, &requests[i]);
    else MPI_Irecv(place, bytes, MPI_BYTE, 1 - rank, DATA, MPI_COMM_WORLD, &requests[i]);
  }
}

/* The receiver posts sixteen receives and says so; then the messages leave. */
static double posted(int rounds, const struct cell *cell) {
  MPI_Request requests[LATE];
  int bytes = (int)cell->bytes;
  double begun = MPI_Wtime();
  if (rank > 1) return 0;
  while (rounds-- > 0) {
    if (rank == 1) post(0, bytes, requests);
    token(1);
    if (rank == 0) post(1, bytes, requests);
    MPI_Waitall(LATE, requests, MPI_STATUSES_IGNORE);
  }
  return MPI_Wtime() - begun;
}

/* Sixteen messages leave, then a token behind them; the receiver posts nothing before the token is there. A token
 * back keeps the sender from running ahead, as in the posted case. */
static double unexpected(int rounds, const struct cell *cell) {
  MPI_Request requests[LATE];
  int bytes = (int)cell->bytes;
  double begun = MPI_Wtime();
  if (rank > 1) return 0;
  while (rounds-- > 0) {
    if (rank == 0) post(1, bytes, requests);
    token(0);
    if (rank == 1) post(0, bytes, requests);
    MPI_Waitall(LATE, requests, MPI_STATUSES_IGNORE);
    token(1);
  }
  return MPI_Wtime() - begun;
}

int point_pattern(const struct cell *cell, struct pattern *found) {
  if (!strcmp(cell->pattern, "pingpong")) {
    found->run = ping_pong;
    found->things = 2;
  } else if (!strcmp(cell->pattern, "unexpected")) {
    found->run = !strcmp(cell->variant, "posted") ? posted : unexpected;
    found->things = LATE;
  } else {
    return 0;
  }
  return 1;
}
