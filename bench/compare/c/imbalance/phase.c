/* The communication phase: receives are posted, messages sent, and the receives awaited. A message that is longer than
 * a fragment goes as several, which have the same tag and keep their order. In the variant `parallel` several threads
 * send (P5 figure 12); the fragments of one message are sent by one thread, so that they keep their order.
 *
 * A flood sends everything before any receive is posted. Its receives block, the last message of each sender first, so
 * that all but that one are unexpected, whenever the library looks. */
#include "imbalance.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static int pieces(const struct exchange *exchange, const struct message *message) {
  return (int)((message->bytes + exchange->fragment - 1) / exchange->fragment);
}

void exchange_begin(struct exchange *exchange, const struct cell *cell) {
  int is_cut = !strcmp(cell->variant, "fragments") || !strcmp(cell->variant, "both");
  int is_parallel = !strcmp(cell->variant, "parallel") || !strcmp(cell->variant, "both");
  exchange->fragment = is_cut ? settings.fragment : (size_t)1 << 30;
  exchange->threads = is_parallel ? settings.threads : 1;
  const int is_flood = !strcmp(cell->program, "flood");
  const struct message *list = is_flood ? exchange->out : exchange->in;
  exchange->request_count = 0;
  for (int i = 0; i < (is_flood ? exchange->out_count : exchange->in_count); i++)
    exchange->request_count += pieces(exchange, &list[i]);
  exchange->requests = memory((size_t)exchange->request_count * sizeof(MPI_Request));
  /* It is the program's own memory, so it is resident before that of the library is measured. */
  memset(exchange->requests, 0, (size_t)exchange->request_count * sizeof(MPI_Request));
}

void exchange_end(struct exchange *exchange) { free(exchange->requests); }

void exchange_count(const struct exchange *exchange, struct times *times) {
  times->messages = times->bytes = 0;
  for (int i = 0; i < exchange->out_count; i++) {
    times->messages += pieces(exchange, &exchange->out[i]);
    times->bytes += (double)exchange->out[i].bytes;
  }
}

static size_t piece_bytes(const struct exchange *exchange, const struct message *message, size_t offset) {
  size_t left = message->bytes - offset;
  return left < exchange->fragment ? left : exchange->fragment;
}

void exchange_receive(struct exchange *exchange) {
  int next = 0;
  for (int i = 0; i < exchange->in_count; i++) {
    const struct message *from = &exchange->in[i];
    for (size_t offset = 0; offset < from->bytes; offset += exchange->fragment)
      MPI_Irecv(from->at + offset, (int)piece_bytes(exchange, from, offset), MPI_BYTE, from->peer, from->tag,
                MPI_COMM_WORLD, &exchange->requests[next++]);
  }
}

static void send_one(const struct exchange *exchange, const struct message *to) {
  for (size_t offset = 0; offset < to->bytes; offset += exchange->fragment)
    MPI_Send(to->at + offset, (int)piece_bytes(exchange, to, offset), MPI_BYTE, to->peer, to->tag, MPI_COMM_WORLD);
}

void exchange_send(struct exchange *exchange) {
  if (exchange->threads == 1) {
    for (int i = 0; i < exchange->out_count; i++) send_one(exchange, &exchange->out[i]);
    return;
  }
#pragma omp parallel for schedule(dynamic) num_threads(exchange->threads)
  for (int i = 0; i < exchange->out_count; i++) send_one(exchange, &exchange->out[i]);
}

void exchange_wait(struct exchange *exchange) {
  MPI_Waitall(exchange->request_count, exchange->requests, MPI_STATUSES_IGNORE);
}

void exchange_flood(struct exchange *exchange) {
  for (int i = 0; i < exchange->out_count; i++) {
    const struct message *to = &exchange->out[i];
    MPI_Isend(to->at, (int)to->bytes, MPI_BYTE, to->peer, to->tag, MPI_COMM_WORLD, &exchange->requests[i]);
  }
}

void exchange_drain(struct exchange *exchange) {
  for (int i = exchange->in_count; i-- > 0;) {
    const struct message *from = &exchange->in[i];
    MPI_Recv(from->at, (int)from->bytes, MPI_BYTE, from->peer, from->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  exchange_wait(exchange);
}
