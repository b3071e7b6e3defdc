/* Plug-ins of all kinds, one for each value of CASE. */
#include <nmad.h>
#include <string.h>

#define RIGHT 0
#define NULL_TABLE 1
#define OTHER_VERSION 2
#define NO_STRATEGY 3
#define LACKS_SPLIT 4

/* All that fits, on the rail with the lowest latency. */
static size_t fill(void *state, uint32_t rank, const nmad_way_t *rail, const nmad_waiting_t *waiting, size_t count,
                   uint64_t room, size_t *chosen) {
    size_t taken = 0;
    (void)state, (void)rank;
    if (!(rail->flags & NMAD_WAY_FASTEST))
        return 0;
    for (size_t place = 0; place < count; place++)
        if (taken == 0 || waiting[place].size <= room) {
            room -= waiting[place].size < room ? waiting[place].size : room;
            chosen[taken++] = place;
        }
    return taken;
}

static size_t fill_too_much(void *state, uint32_t rank, const nmad_way_t *rail, const nmad_waiting_t *waiting,
                            size_t count, uint64_t room, size_t *chosen) {
    (void)state, (void)rank, (void)rail, (void)waiting, (void)room, (void)chosen;
    return count + 1;
}

static size_t fill_forever(void *state, uint32_t rank, const nmad_way_t *rail, const nmad_waiting_t *waiting,
                           size_t count, uint64_t room, size_t *chosen) {
    volatile size_t turns = 1;
    (void)state, (void)rank, (void)rail, (void)waiting, (void)room, (void)chosen;
    while (turns > 0)
        turns = turns == 1 ? 2 : 1;
    return count;
}

/* The second rail gets an eighth. */
static int split_eighth(void *state, uint32_t rank, uint64_t len, const nmad_way_t *ways, size_t count,
                        uint64_t *shares) {
    (void)state, (void)rank;
    if (count < 2)
        return NMAD_PENDING;
    memset(shares, 0, count * sizeof *shares);
    shares[ways[0].rail < ways[1].rail ? 1 : 0] = len / 8;
    shares[ways[0].rail < ways[1].rail ? 0 : 1] = len - len / 8;
    return NMAD_OK;
}

static int split_too_much(void *state, uint32_t rank, uint64_t len, const nmad_way_t *ways, size_t count,
                          uint64_t *shares) {
    (void)state, (void)rank, (void)ways, (void)count;
    memset(shares, 0, count * sizeof *shares);
    shares[0] = len + 1;
    return NMAD_OK;
}

static int split_fails(void *state, uint32_t rank, uint64_t len, const nmad_way_t *ways, size_t count,
                       uint64_t *shares) {
    (void)state, (void)rank, (void)len, (void)ways, (void)count, (void)shares;
    return NMAD_ERR_SYSTEM;
}

#if CASE == LACKS_SPLIT
#define SPLIT NULL
#else
#define SPLIT split_eighth
#endif

static const nmad_strategy_t strategies[] = {
    {sizeof(nmad_strategy_t), "eighth", NULL, fill, SPLIT, NULL, NULL, NULL},
    {sizeof(nmad_strategy_t), "splits-too-much", NULL, fill, split_too_much, NULL, NULL, NULL},
    {sizeof(nmad_strategy_t), "fails", NULL, fill, split_fails, NULL, NULL, NULL},
    {sizeof(nmad_strategy_t), "fills-too-much", NULL, fill_too_much, split_eighth, NULL, NULL, NULL},
    {sizeof(nmad_strategy_t), "loops", NULL, fill_forever, split_eighth, NULL, NULL, NULL},
};

static const nmad_plugin_t plugin = {
    CASE == OTHER_VERSION ? NMAD_PLUGIN_ABI + 1 : NMAD_PLUGIN_ABI,
    CASE == NO_STRATEGY ? 0 : sizeof strategies / sizeof *strategies,
    "2.5",
    strategies,
};

const nmad_plugin_t *nmad_strategies(void) {
    return CASE == NULL_TABLE ? NULL : &plugin;
}
