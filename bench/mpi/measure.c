/* What MPI costs a program: one source for any MPI library. Each case prints a line `CASE <tab> MICROSECONDS`,
 * the median of repetitions after a warm-up; how it varies is for the caller to find out by running it again.
 *
 *     mpicc -O2 measure.c -o measure && mpiexec -n 2 ./measure latency indexed
 *
 * Messages are between ranks 0 and 1. Times of collectives are those of the rank that took longest; the root of
 * bcast goes round, so that no rank runs ahead. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPETITIONS = 5, WINDOW = 64, SEVERAL = 16, LONGEST = 16 << 20 };
/* The indexed datatype. */
enum { PAIRS = 4, SMALL = 64, LARGE = 256 << 10, GAP = 4096 };

/* Each repetition takes about so long, in seconds. */
static double each = 0.03;
static int rank, size;
static char *out, *in;

/* What a case repeats: `rounds` times something. */
typedef void Work(int rounds, int bytes);

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* How long `rounds` rounds take, in seconds: the same number on all ranks. */
static double timed(Work *work, int rounds, int bytes) {
  double took, longest;
  MPI_Barrier(MPI_COMM_WORLD);
  took = MPI_Wtime();
  work(rounds, bytes);
  took = MPI_Wtime() - took;
  MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return longest;
}

/* As many rounds as fit into `each`, found by doubling, which is the warm-up too. */
static int rounds_for(Work *work, int bytes) {
  int rounds = 1;
  for (;;) {
    double took = timed(work, rounds, bytes);
    if (took > each / 2 || rounds >= 1 << 22) {
      double wanted = rounds * each / (took > 1e-9 ? took : 1e-9);
      return wanted < 1 ? 1 : wanted > 1 << 22 ? 1 << 22 : (int)wanted;
    }
    rounds *= 2;
  }
}

/* `WHAT SIZE`, until the next call. */
static const char *named(const char *what, int bytes) {
  static char name[64];
  if (bytes >= 1 << 20) snprintf(name, sizeof name, "%s %d MiB", what, bytes >> 20);
  else if (bytes >= 1 << 10) snprintf(name, sizeof name, "%s %d KiB", what, bytes >> 10);
  else snprintf(name, sizeof name, "%s %d B", what, bytes);
  return name;
}

/* Prints what a round takes, divided by the number of things in it that are counted. */
static void measure(const char *name, Work *work, int bytes, int things) {
  double took[REPETITIONS];
  int rounds = rounds_for(work, bytes), i;
  for (i = 0; i < REPETITIONS; i++) took[i] = timed(work, rounds, bytes) / rounds / things;
  qsort(took, REPETITIONS, sizeof *took, ascending);
  if (rank == 0) printf("%s\t%.4f\n", name, took[REPETITIONS / 2] * 1e6);
  fflush(stdout);
}

static void turns(int rounds, int count, MPI_Datatype type) {
  int other = 1 - rank;
  if (rank > 1) return;
  while (rounds-- > 0) {
    if (rank == 0) MPI_Send(out, count, type, other, 0, MPI_COMM_WORLD);
    MPI_Recv(in, count, type, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, count, type, other, 0, MPI_COMM_WORLD);
  }
}

static void ping_pong(int rounds, int bytes) { turns(rounds, bytes, MPI_BYTE); }

/* What came goes back: the data is always in the other core's cache. */
static void sent_back(int rounds, int bytes) {
  int other = 1 - rank, turn;
  if (rank > 1) return;
  for (turn = 0; turn < 2 * rounds; turn++) {
    if (turn % 2 == rank) MPI_Send(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    else MPI_Recv(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void exchange(int rounds, int bytes) {
  int other = 1 - rank;
  if (rank > 1) return;
  while (rounds-- > 0)
    MPI_Sendrecv(out, bytes, MPI_BYTE, other, 0, in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void window(int rounds, int bytes) {
  MPI_Request requests[WINDOW];
  int i;
  if (rank > 1) return;
  while (rounds-- > 0) {
    for (i = 0; i < WINDOW; i++) {
      if (rank == 0) MPI_Isend(out + i * bytes, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
      else MPI_Irecv(in + i * bytes, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(in, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(out, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  }
}

static MPI_Comm several[SEVERAL];

static void several_ways(int rounds, int bytes) {
  MPI_Request requests[SEVERAL];
  int i, sends, turn;
  if (rank > 1) return;
  for (turn = 0; turn < 2 * rounds; turn++) {
    sends = turn % 2 == rank;
    for (i = 0; i < SEVERAL; i++) {
      if (sends) MPI_Isend(out + i * bytes, bytes, MPI_BYTE, 1 - rank, 0, several[i], &requests[i]);
      else MPI_Irecv(in + i * bytes, bytes, MPI_BYTE, 1 - rank, 0, several[i], &requests[i]);
    }
    MPI_Waitall(SEVERAL, requests, MPI_STATUSES_IGNORE);
  }
}

static MPI_Datatype blocks;

static void indexed(int rounds, int bytes) {
  (void)bytes;
  turns(rounds, 1, blocks);
}

static void barrier(int rounds, int bytes) {
  (void)bytes;
  while (rounds-- > 0) MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int rounds, int bytes) {
  while (rounds-- > 0) MPI_Bcast(out, bytes, MPI_BYTE, rounds % size, MPI_COMM_WORLD);
}

static void allreduce(int rounds, int bytes) {
  while (rounds-- > 0) MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(int rounds, int bytes) {
  while (rounds-- > 0) MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void case_latency(void) { measure(named("ping-pong", 8), ping_pong, 8, 2); }

static void case_rate(void) { measure("8 B, window of 64", window, 8, WINDOW); }

static void case_sizes(void) {
  int bytes;
  for (bytes = 64 << 10; bytes <= LONGEST; bytes *= 4)
    measure(named("ping-pong", bytes), ping_pong, bytes, 2);
}

static void case_middle(void) {
  int bytes;
  for (bytes = 1 << 10; bytes < 64 << 10; bytes *= 4) measure(named("ping-pong", bytes), ping_pong, bytes, 2);
}

static void case_returned(void) {
  int bytes;
  for (bytes = 16 << 10; bytes <= 4 << 20; bytes *= 16) measure(named("sent back", bytes), sent_back, bytes, 2);
}

static void case_exchange(void) {
  int bytes;
  for (bytes = 16 << 10; bytes <= 1 << 20; bytes *= 8) measure(named("exchange", bytes), exchange, bytes, 1);
}

static void case_several(void) {
  int i;
  for (i = 0; i < SEVERAL; i++) MPI_Comm_dup(MPI_COMM_WORLD, &several[i]);
  measure("16 x 64 B, 16 communicators", several_ways, 64, 2);
  for (i = 0; i < SEVERAL; i++) MPI_Comm_free(&several[i]);
}

/* P1 section 5.3: a small and a large block, `pairs` times, with gaps; and as many bytes without gaps. */
static void case_indexed(void) {
  int lengths[2 * PAIRS], pairs, i;
  MPI_Aint places[2 * PAIRS], end = 0;
  char name[64];
  for (i = 0; i < 2 * PAIRS; i++) {
    lengths[i] = i % 2 ? LARGE : SMALL;
    places[i] = end;
    end += lengths[i] + GAP;
  }
  for (pairs = 1; pairs <= PAIRS; pairs *= PAIRS) {
    MPI_Type_create_hindexed(2 * pairs, lengths, places, MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    snprintf(name, sizeof name, "%d x (64 B + 256 KiB), contiguous", pairs);
    measure(name, ping_pong, pairs * (SMALL + LARGE), 2);
    snprintf(name, sizeof name, "%d x (64 B + 256 KiB), indexed", pairs);
    measure(name, indexed, 0, 2);
    MPI_Type_free(&blocks);
  }
}

static void case_barrier(void) { measure("barrier", barrier, 0, 1); }

static void case_short(void) {
  measure(named("allreduce", 8), allreduce, 8, 1);
  measure(named("bcast", 8), bcast, 8, 1);
  measure(named("alltoall", 8), alltoall, 8, 1);
}

static void case_long(void) {
  measure(named("allreduce", 1 << 20), allreduce, 1 << 20, 1);
  measure(named("bcast", 1 << 20), bcast, 1 << 20, 1);
  measure(named("alltoall", 1 << 20), alltoall, 1 << 20, 1);
}

static const struct {
  const char *name;
  void (*run)(void);
  const char *what;
} cases[] = {
    {"latency", case_latency, "half the round trip of 8 B"},
    {"rate", case_rate, "a message of 8 B, 64 of them in flight"},
    {"middle", case_middle, "half the round trip of 1 to 16 KiB"},
    {"sizes", case_sizes, "the same of 64 KiB to 16 MiB"},
    {"returned", case_returned, "the same of 16 KiB to 4 MiB, if what came is sent back"},
    {"exchange", case_exchange, "MPI_Sendrecv of 16 KiB to 1 MiB, to and from the other rank"},
    {"several", case_several, "half the round trip of 16 messages of 64 B on 16 communicators"},
    {"indexed", case_indexed, "the same of an indexed datatype, and of contiguous bytes"},
    {"barrier", case_barrier, "a barrier"},
    {"short", case_short, "allreduce, bcast, alltoall of 8 B (from each rank to each for alltoall)"},
    {"long", case_long, "the same of 1 MiB"},
};

enum { CASES = sizeof cases / sizeof *cases };

static int usage(FILE *to) {
  int i;
  fprintf(to, "usage: mpiexec -n N measure CASE...\n");
  fprintf(to, "A repetition takes about MEASURE_MS milliseconds, 30 if that is not set.\n");
  for (i = 0; i < CASES; i++) fprintf(to, "  %-10s %s\n", cases[i].name, cases[i].what);
  return to == stderr ? 2 : 0;
}

static int find(const char *name) {
  int i;
  for (i = 0; i < CASES; i++)
    if (strcmp(name, cases[i].name) == 0) return i;
  return -1;
}

static char *memory(void) {
  size_t bytes = (size_t)LONGEST + (size_t)size * (1 << 20) + 2 * PAIRS * GAP;
  char *at = malloc(bytes);
  if (at == NULL) {
    fprintf(stderr, "measure: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  memset(at, rank, bytes);
  return at;
}

int main(int count, char **words) {
  const char *text = getenv("MEASURE_MS");
  int i;
  for (i = 1; i < count; i++) {
    if (strcmp(words[i], "--help") == 0) return usage(stdout);
    if (find(words[i]) < 0) return usage(stderr);
  }
  if (count < 2) return usage(stderr);
  if (text != NULL) each = atof(text) / 1e3;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) {
    fprintf(stderr, "measure: start it with two ranks or more (mpiexec -n 2)\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  out = memory();
  in = memory();
  for (i = 1; i < count; i++) cases[find(words[i])].run();
  MPI_Finalize();
  return 0;
}
