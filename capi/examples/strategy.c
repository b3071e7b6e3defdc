/* A strategy of the program's own, in C: small messages never wait behind large ones.
 *
 * "express" keeps the rail with the lowest latency for small messages: they go first there, several in a packet. A
 * large message is shared out among the other rails, in proportion to what each is predicted to carry in a
 * millisecond. It is registered before the session opens and chosen by its name.
 *
 *     cc strategy.c $(pkg-config --cflags --libs nmad) -o strategy && mpiexec -n 2 ./strategy
 */
#include <inttypes.h>
#include <nmad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 1024, LARGE = 3 << 20, COUNT = 6 };

/* What the strategy has done: its state. */
struct tally {
    unsigned packets, together, shared;
};

static void check(int code) {
    if (code < 0) {
        fprintf(stderr, "%s\n", nmad_last_error());
        exit(1);
    }
}

static size_t fill(void *state, uint32_t rank, const nmad_way_t *rail, const nmad_waiting_t *waiting, size_t count,
                   uint64_t room, size_t *chosen) {
    struct tally *tally = state;
    int fastest = (rail->flags & NMAD_WAY_FASTEST) != 0;
    size_t taken = 0;
    (void)rank;

    for (size_t place = 0; place < count; place++) {
        int small = waiting[place].size <= SMALL;
        if (small == fastest && (taken == 0 || waiting[place].size <= room)) {
            room -= waiting[place].size < room ? waiting[place].size : room;
            chosen[taken++] = place;
        }
    }
    /* Other rails may be down, and this one cannot know: what nobody takes would wait for ever. */
    if (taken == 0 && fastest && count > 0)
        chosen[taken++] = 0;
    tally->packets += taken > 0;
    tally->together += taken > 1;
    return taken;
}

static int split(void *state, uint32_t rank, uint64_t len, const nmad_way_t *ways, size_t count, uint64_t *shares) {
    struct tally *tally = state;
    double rates[64], sum = 0;
    size_t last = count;
    uint64_t left = len, ns;
    (void)rank;

    for (size_t way = 0; way < count; way++) {
        rates[way] = 0;
        if (ways[way].flags & NMAD_WAY_FASTEST)
            continue;
        if (nmad_predict(&ways[way], len, 1, &ns) != NMAD_OK)
            return NMAD_PENDING;
        rates[way] = 1.0 / (double)(ns + 1);
        sum += rates[way];
        last = way;
    }
    if (last == count)
        return NMAD_PENDING; /* there is no other rail: the one that is idle */
    for (size_t way = 0; way < count; way++) {
        shares[way] = way == last ? 0 : (uint64_t)((double)len * (rates[way] / sum));
        left -= shares[way];
    }
    shares[last] = left; /* rounding must not lose a byte */
    tally->shared++;
    return NMAD_OK;
}

int main(void) {
    static unsigned char large[LARGE], memory[LARGE];
    struct tally tally = {0, 0, 0};
    nmad_strategy_t express = {sizeof express, "express", &tally, fill, split, NULL, NULL, NULL};
    nmad_option_t choose = {"strategy", "express"};
    nmad_hints_t hints = {0, 0, 0, 0};
    nmad_request_t requests[COUNT + 2];
    nmad_session_t *session;
    unsigned char small[200] = {1};
    uint32_t rank, size;

    check(nmad_register_strategy(&express));
    check(nmad_open_with(&choose, 1, &session));
    check(nmad_rank(session, &rank));
    check(nmad_size(session, &size));
    memset(large, 7, sizeof large);
    if (rank == 0 && size > 1) {
        check(nmad_isend(session, 1, 0, 0, large, sizeof large, NULL, &requests[0]));
        for (uint64_t tag = 1; tag <= COUNT; tag++)
            check(nmad_isend(session, 1, 0, tag, small, sizeof small, NULL, &requests[tag]));
        /* One message may have another strategy than the rest, and hints: it depends on the one before it. */
        check(nmad_strategy_number(session, "auto", &hints.strategy));
        hints.flags = NMAD_DEPENDS | NMAD_LATENCY;
        check(nmad_isend(session, 1, 0, COUNT + 1, small, sizeof small, &hints, &requests[COUNT + 1]));
        check(nmad_wait_all(session, requests, COUNT + 2, NULL, NULL));
        if (tally.packets == 0) {
            fprintf(stderr, "nobody has asked the strategy\n");
            return 1;
        }
        printf("%u packets, %u of them with several messages; %u messages shared out\n", tally.packets,
               tally.together, tally.shared);
    } else if (rank == 1) {
        check(nmad_recv(session, 0, 0, 0, 0, memory, sizeof memory, NULL));
        if (memcmp(memory, large, sizeof large) != 0)
            return 1;
        for (uint64_t tag = 1; tag <= COUNT + 1; tag++)
            check(nmad_recv(session, 0, 0, tag, 0, memory, sizeof small, NULL));
    }
    check(nmad_close(session));
    return 0;
}
