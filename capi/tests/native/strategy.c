/* Strategies in C that answer nonsense: each is asked once for a rank, and all messages arrive. */
#include "expect.h"

enum { LEN = 300000, FAULTS = 5 };

struct faulty {
    int fault;
    int fills, splits;
};

static size_t fill(void *state, uint32_t rank, const nmad_way_t *rail, const nmad_waiting_t *waiting, size_t count,
                   uint64_t room, size_t *chosen) {
    struct faulty *faulty = state;
    (void)rank, (void)rail, (void)waiting, (void)room;
    faulty->fills++;
    for (size_t place = 0; place < count; place++) chosen[place] = place;
    if (faulty->fault == 0) return count + 1;
    if (faulty->fault == 1 && count > 0) chosen[0] = count;
    if (faulty->fault == 2 && count > 1) chosen[1] = 0;
    return count;
}

static int split(void *state, uint32_t rank, uint64_t len, const nmad_way_t *ways, size_t count, uint64_t *shares) {
    struct faulty *faulty = state;
    uint64_t ns = 0;
    (void)rank;
    faulty->splits++;
    EXPECT(count > 0 && nmad_predict(ways, len, 1, &ns) == NMAD_OK && ns > 0);
    if (faulty->fault == 3) return -7;
    shares[0] = faulty->fault == 4 ? len + 1 : len;
    return NMAD_OK;
}

static void exchange(nmad_session_t *session, uint32_t rank, uint64_t tag, uint32_t strategy) {
    static unsigned char data[LEN], memory[LEN];
    nmad_hints_t hints = {0, 0, 0, 0};
    nmad_request_t requests[3];
    hints.strategy = strategy;
    memset(data, (int)tag + 1, sizeof data);
    if (rank == 0) {
        OK(nmad_isend(session, 1, 0, tag, data, 10, &hints, &requests[0]));
        OK(nmad_isend(session, 1, 0, tag, data, 10, &hints, &requests[1]));
        OK(nmad_isend(session, 1, 0, tag, data, LEN, &hints, &requests[2]));
        OK(nmad_wait_all(session, requests, 3, NULL, NULL));
    } else {
        for (int i = 0; i < 3; i++) OK(nmad_recv(session, 0, 0, tag, 0, memory, LEN, NULL));
        EXPECT(memcmp(data, memory, LEN) == 0);
    }
}

int main(void) {
    static struct faulty faulty[FAULTS];
    char name[FAULTS][16];
    nmad_session_t *session;
    uint32_t rank, number;

    for (int i = 0; i < FAULTS; i++) {
        nmad_strategy_t strategy = {sizeof strategy, name[i], &faulty[i], fill, split, NULL, NULL, NULL};
        snprintf(name[i], sizeof name[i], "faulty-%d", i);
        /* A program that was compiled before the table had its last function. */
        if (i == 1) strategy.size = offsetof(nmad_strategy_t, relearnt);
        faulty[i].fault = i;
        OK(nmad_register_strategy(&strategy));
    }
    OK(nmad_open(&session));
    OK(nmad_rank(session, &rank));
    OK(nmad_set_feed(session, "prepare"));
    OK(nmad_set_feed(session, "backlog:4096"));
    OK(nmad_set_feed(session, "accumulate"));
    OK(nmad_set_progress(session, "off"));
    OK(nmad_set_progress(session, "auto"));
    FAILS(nmad_set_progress(session, "always"), NMAD_ERR_SETTING, "dedicated:CORES");
    FAILS(nmad_set_progress(session, "dedicated:1023"), NMAD_ERR_SETTING, "may run on");
    FAILS(nmad_set_feed(session, "eagerly"), NMAD_ERR_SETTING, "backlog:BYTES");
    FAILS(nmad_strategy_number(session, "magic", &number), NMAD_ERR_SETTING, "faulty-4");
    for (int i = 0; i < FAULTS; i++) {
        OK(nmad_strategy_number(session, name[i], &number));
        for (int round = 0; round < 3; round++) exchange(session, rank, (uint64_t)i, number);
        if (rank == 0) {
            EXPECT(faulty[i].fills > 0);
            /* The rank is left to another strategy after the first answer that makes no sense. */
            if (i == 0 || i == 1) EXPECT(faulty[i].fills == 1 && faulty[i].splits == 0);
            if (i == 3 || i == 4) EXPECT(faulty[i].splits <= 1);
        }
    }
    OK(nmad_close(session));
    return 0;
}
