/* noOverlapToy and overlapToy (P5 section 3.1), and the flood. Rank r sends to r+1 .. r+degree; the length of each
 * message is drawn from the seed, up to a maximum, and stays the same in all iterations. The calculation is a fixed
 * amount of arithmetic; overlapToy does half of it before it waits for its messages, the flood all of it before it
 * posts a receive.
 *
 * The first and the last bytes of a message carry the number of the iteration, and are checked in each; all others are
 * checked after the last one. */
#include "imbalance.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP = 20, WARM_UP_FLOOD = 2 };

static size_t length(const struct cell *cell, int from, int to, int number) {
  unsigned long long drawn = mixed(settings.seed, (unsigned long long)from << 32 | (unsigned)to, (unsigned)number);
  size_t most = cell->size < 16 ? 16 : cell->size;
  return 16 + (size_t)(drawn % (most - 15));
}

static unsigned char content(int from, int to, int number, size_t at) {
  return (unsigned char)((size_t)(from * 31 + to * 17 + number * 7) + at + at / 253);
}

/* Bytes from the beginning of a message to that of the next one: long ones begin with a line of the cache. */
static size_t room(size_t bytes) {
  size_t unit = bytes < 64 ? sizeof(double) : 64;
  return (bytes + unit - 1) / unit * unit;
}

/* Lists the messages to or from all peers, in one piece of memory: there may be millions of them. */
static void list(struct message *messages, const struct cell *cell, int is_out) {
  int next = 0;
  size_t all = 0;
  for (int step = 1; step <= cell->degree; step++)
    for (int number = 0; number < cell->messages; number++) {
      int peer = (is_out ? rank + step : rank + size - step) % size;
      size_t bytes = is_out ? length(cell, rank, peer, number) : length(cell, peer, rank, number);
      messages[next++] = (struct message){peer, number, bytes, NULL};
      all += room(bytes);
    }
  for (int i = 0; i < next; i++) {
    struct message *message = &messages[i];
    message->at = i ? messages[i - 1].at + room(messages[i - 1].bytes) : memory(all);
    if (is_out)
      for (size_t at = 0; at < message->bytes; at++)
        message->at[at] = (char)content(rank, message->peer, message->tag, at);
    else
      memset(message->at, 0, message->bytes);
  }
}

static void stamp(struct message *messages, int count, int iteration) {
  for (int i = 0; i < count; i++) {
    memcpy(messages[i].at, &iteration, sizeof iteration);
    memcpy(messages[i].at + messages[i].bytes - sizeof iteration, &iteration, sizeof iteration);
  }
}

/* Bytes of this process from its status: VmRSS is its resident memory, VmHWM its peak. */
static double status_bytes(const char *name) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  double kilobytes = 0;
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, name, strlen(name))) kilobytes = atof(line + strlen(name));
  if (file) fclose(file);
  return kilobytes * 1024;
}

/* The resident memory before the first message; the peak begins anew. */
static double memory_before(void) {
  FILE *file = fopen("/proc/self/clear_refs", "w");
  if (file) {
    fputs("5", file);
    fclose(file);
  }
  return status_bytes("VmRSS:");
}

static int is_stamped(const struct message *messages, int count, int iteration) {
  for (int i = 0; i < count; i++)
    if (memcmp(messages[i].at, &iteration, sizeof iteration) ||
        memcmp(messages[i].at + messages[i].bytes - sizeof iteration, &iteration, sizeof iteration))
      return 0;
  return 1;
}

static int is_whole(const struct message *messages, int count) {
  for (int i = 0; i < count; i++) {
    const struct message *in = &messages[i];
    for (size_t at = sizeof(int); at < in->bytes - sizeof(int); at++)
      if ((unsigned char)in->at[at] != content(in->peer, rank, in->tag, at)) return 0;
  }
  return 1;
}

const char *toy(const struct cell *cell, struct times *times) {
  struct exchange exchange = {.out_count = cell->degree * cell->messages, .in_count = cell->degree * cell->messages};
  int is_flood = !strcmp(cell->program, "flood"), is_right = 1, first = is_flood ? -WARM_UP_FLOOD : -WARM_UP;
  size_t table = (size_t)exchange.out_count * sizeof(struct message);
  double pieces = settings.calculation_us * pieces_a_us(), before, resident;
  exchange.out = memory(table);
  exchange.in = memory(table);
  list(exchange.out, cell, 1);
  list(exchange.in, cell, 0);
  exchange_begin(&exchange, cell);
  before = is_flood ? pieces : strcmp(cell->program, "overlap") ? 0 : pieces / 2;
  resident = memory_before();
  /* A few iterations before: links open, and a library learns what it learns. */
  for (int i = first; i < settings.iterations; i++) {
    double begun, sent, waited, done, calculated, sum, part = 1;
    stamp(exchange.out, exchange.out_count, i);
    if (i == first) MPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
    if (is_flood) exchange_flood(&exchange);
    else {
      exchange_receive(&exchange);
      exchange_send(&exchange);
    }
    sent = MPI_Wtime();
    compute(before);
    waited = MPI_Wtime();
    if (is_flood) exchange_drain(&exchange);
    else exchange_wait(&exchange);
    done = MPI_Wtime();
    compute(pieces - before);
    calculated = MPI_Wtime();
    MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    is_right = is_right && sum == size && is_stamped(exchange.in, exchange.in_count, i);
    if (i < 0) continue;
    times->synchronization[i] = MPI_Wtime() - calculated;
    times->communication[i] = sent - begun + done - waited;
    times->calculation[i] = waited - sent + calculated - done;
  }
  times->count = settings.iterations;
  times->memory = status_bytes("VmHWM:") - resident;
  times->operations = 0;
  is_right = is_right && is_whole(exchange.in, exchange.in_count);
  exchange_count(&exchange, times);
  exchange_end(&exchange);
  free(exchange.out[0].at);
  free(exchange.in[0].at);
  free(exchange.out);
  free(exchange.in);
  return is_right ? NULL : "bytes that arrived are not those that were sent";
}
