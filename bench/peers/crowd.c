/* crowd PATTERN [SIZE...]: more ranks than cores, by the interface in C.
 *
 *   pairs   every rank with a partner, there and back: us for half a round trip
 *   all     everybody with everybody at once: us for one exchange
 *
 * The same patterns as in near.c; prints the same lines. */
#include <inttypes.h>
#include <nmad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 5, RANKS_MAX = 256 };

static nmad_session_t *session;
static uint32_t rank, size;
static char *out, *in;

static void check(int code)
{
    if (code < 0) {
        fprintf(stderr, "crowd: %s\n", nmad_last_error());
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void receive(uint32_t from, uint64_t tag, void *buffer, size_t len)
{
    nmad_message_t message;
    check(nmad_recv(session, from, 0, tag, 0, buffer, len, &message));
}

/* Everybody has come here: rank 0 hears of all and tells all. */
static void barrier(void)
{
    if (rank > 0) {
        check(nmad_send(session, 0, 0, 1, NULL, 0, NULL));
        receive(0, 2, NULL, 0);
        return;
    }
    for (uint32_t other = 1; other < size; other++) receive(other, 1, NULL, 0);
    for (uint32_t other = 1; other < size; other++) check(nmad_send(session, other, 0, 2, NULL, 0, NULL));
}

static void back_and_forth(size_t len, int rounds, uint32_t partner)
{
    for (int i = 0; i < rounds; i++) {
        if (rank < partner) {
            check(nmad_send(session, partner, 0, 0, out, len, NULL));
            receive(partner, 0, out, len);
        } else {
            receive(partner, 0, out, len);
            check(nmad_send(session, partner, 0, 0, out, len, NULL));
        }
    }
}

static void exchanges(size_t len, int rounds)
{
    nmad_request_t requests[2 * RANKS_MAX];
    for (int i = 0; i < rounds; i++) {
        size_t count = 0;
        for (uint32_t step = 1; step < size; step++) {
            uint32_t from = (rank + size - step) % size, to = (rank + step) % size;
            check(nmad_irecv(session, from, 0, 0, 0, in + from * len, len, requests + count++));
            check(nmad_isend(session, to, 0, 0, out + to * len, len, NULL, requests + count++));
        }
        check(nmad_wait_all(session, requests, count, NULL, NULL));
    }
}

static void turn(int pairs, size_t len, int rounds)
{
    if (pairs) back_and_forth(len, rounds, rank ^ 1);
    else exchanges(len, rounds);
}

int main(int argc, char **argv)
{
    check(nmad_open(&session));
    check(nmad_rank(session, &rank));
    check(nmad_size(session, &size));
    const char *pattern = argc > 1 ? argv[1] : "pairs";
    int pairs = !strcmp(pattern, "pairs");
    if (size > RANKS_MAX || size % 2) check(nmad_abort(session, 2, "crowd wants an even number of ranks"));
    for (int arg = 2; arg < argc; arg++) {
        size_t len = strtoull(argv[arg], NULL, 10), room = (len + 1) * size;
        int rounds = len >= 1 << 20 ? 4 : len >= 1 << 16 ? 20 : 100;
        out = malloc(room);
        in = malloc(room);
        memset(out, 1, room);
        memset(in, 2, room);
        if (rank == 0) printf("%s %zu", pattern, len);
        for (int sample = 0; sample < SAMPLES; sample++) {
            turn(pairs, len, rounds);
            barrier();
            double begun = now();
            turn(pairs, len, rounds);
            barrier();
            if (rank == 0) printf(" %.4f", 1e6 * (now() - begun) / rounds / (pairs ? 2 : 1));
        }
        if (rank == 0) {
            printf("\n");
            fflush(stdout);
        }
        free(out);
        free(in);
    }
    check(nmad_close(session));
    return 0;
}
