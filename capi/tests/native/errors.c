/* One rank: whatever a caller can get wrong is a code and a text, never a crash or a hang. */
#include "expect.h"
#include <limits.h>

static nmad_session_t *session;

static void settings(void) {
    nmad_session_t *other = NULL;
    nmad_option_t option = {"strategy", "magic"};
    FAILS(nmad_open_with(&option, 1, &other), NMAD_ERR_SETTING, "iso_split");
    option.key = "colour";
    FAILS(nmad_open_with(&option, 1, &other), NMAD_ERR_SETTING, "colour");
    option.value = NULL;
    FAILS(nmad_open_with(&option, 1, &other), NMAD_ERR_ARGUMENT, "value");
    FAILS(nmad_open_with(NULL, 1, &other), NMAD_ERR_ARGUMENT, "options");
    FAILS(nmad_open(NULL), NMAD_ERR_ARGUMENT, "nmad_open: session");
    EXPECT(other == NULL);
    option.key = "eager_max";
    option.value = "4096";
    OK(nmad_open_with(&option, 1, &other));
    OK(nmad_close(other));
}

static void sessions(void) {
    uint32_t rank;
    nmad_session_t *closed, *garbage = (nmad_session_t *)(void *)&rank;
    FAILS(nmad_rank(NULL, &rank), NMAD_ERR_ARGUMENT, "session is NULL");
    FAILS(nmad_rank(garbage, &rank), NMAD_ERR_SESSION, "no open session");
    FAILS(nmad_close(garbage), NMAD_ERR_SESSION, "no open session");
    FAILS(nmad_close(NULL), NMAD_ERR_ARGUMENT, "NULL");
    OK(nmad_open(&closed));
    OK(nmad_close(closed));
    FAILS(nmad_close(closed), NMAD_ERR_SESSION, "closed already");
    FAILS(nmad_progress(closed), NMAD_ERR_SESSION, "nmad_progress");
    FAILS(nmad_abort(closed, 3, NULL), NMAD_ERR_SESSION, "no open session");
}

static void arguments(void) {
    char byte = 0;
    nmad_request_t request = 0;
    nmad_hints_t hints = {0, 128, 0, 0};
    nmad_strategy_t strategy = {1, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    uint64_t ns;
    struct iovec place = {NULL, 8}, huge[2] = {{&byte, SIZE_MAX}, {&byte, SIZE_MAX}};
    int fd;

    FAILS(nmad_rank(session, NULL), NMAD_ERR_ARGUMENT, "rank");
    FAILS(nmad_send(session, 1, 0, 0, &byte, 1, NULL), NMAD_ERR_RANK, "no rank 1");
    FAILS(nmad_isend(session, NMAD_ANY_RANK, 0, 0, &byte, 1, NULL, &request), NMAD_ERR_RANK, "no rank");
    FAILS(nmad_recv(session, 7, 0, 0, 0, &byte, 1, NULL), NMAD_ERR_RANK, "no rank 7");
    FAILS(nmad_probe(session, 7, 0, 0, 0, NULL), NMAD_ERR_RANK, "no rank 7");
    FAILS(nmad_begin_packing(session, 7, 0, 0, &request), NMAD_ERR_RANK, "no rank 7");
    FAILS(nmad_begin_unpacking(session, 7, 0, 0, 0, &request), NMAD_ERR_RANK, "no rank 7");
    FAILS(nmad_send(session, 0, NMAD_CONTEXT_LIMIT, 0, &byte, 1, NULL), NMAD_ERR_CONTEXT, "out of range");
    FAILS(nmad_send(session, 0, 0, 0, NULL, 1, NULL), NMAD_ERR_ARGUMENT, "data is NULL");
    FAILS(nmad_recv(session, 0, 0, 0, 0, NULL, 1, NULL), NMAD_ERR_ARGUMENT, "buffer is NULL");
    FAILS(nmad_sendv(session, 0, 0, 0, NULL, 1, NULL), NMAD_ERR_ARGUMENT, "NULL");
    FAILS(nmad_sendv(session, 0, 0, 0, &place, 1, NULL), NMAD_ERR_ARGUMENT, "place 0");
    FAILS(nmad_sendv(session, 0, 0, 0, huge, 2, NULL), NMAD_ERR_ARGUMENT, "2^63");
    FAILS(nmad_sendv(session, 0, 0, 0, huge, SIZE_MAX, NULL), NMAD_ERR_ARGUMENT, "more than memory");
    FAILS(nmad_send(session, 0, 0, 0, &byte, SIZE_MAX, NULL), NMAD_ERR_ARGUMENT, "2^63");
    FAILS(nmad_isend(session, 0, 0, 0, &byte, 1, NULL, NULL), NMAD_ERR_ARGUMENT, "request");
    FAILS(nmad_send(session, 0, 0, 0, &byte, 1, &hints), NMAD_ERR_ARGUMENT, "priority 128");
    hints.priority = 0;
    hints.flags = 64;
    FAILS(nmad_send(session, 0, 0, 0, &byte, 1, &hints), NMAD_ERR_ARGUMENT, "flags");
    hints.flags = NMAD_RAIL;
    hints.rail = 200;
    FAILS(nmad_send(session, 0, 0, 0, &byte, 1, &hints), NMAD_ERR_ARGUMENT, "no rail 200");
    hints.flags = NMAD_LATENCY | NMAD_BANDWIDTH;
    FAILS(nmad_send(session, 0, 0, 0, &byte, 1, &hints), NMAD_ERR_ARGUMENT, "latency and bandwidth");
    hints.flags = 0;
    hints.strategy = 77;
    FAILS(nmad_send(session, 0, 0, 0, &byte, 1, &hints), NMAD_ERR_ARGUMENT, "no strategy 77");
    FAILS(nmad_register_strategy(NULL), NMAD_ERR_ARGUMENT, "NULL");
    FAILS(nmad_register_strategy(&strategy), NMAD_ERR_ARGUMENT, "no version");
    strategy.size = sizeof strategy;
    FAILS(nmad_register_strategy(&strategy), NMAD_ERR_ARGUMENT, "name of the strategy is NULL");
    strategy.name = "two words";
    FAILS(nmad_register_strategy(&strategy), NMAD_ERR_ARGUMENT, "no spaces");
    strategy.name = "bare";
    FAILS(nmad_register_strategy(&strategy), NMAD_ERR_ARGUMENT, "fill and split");
    EXPECT(nmad_predict(NULL, 1, 0, &ns) == NMAD_ERR_ARGUMENT);
    FAILS(nmad_recv(session, 0, 0, 0, 6, &byte, 1, NULL), NMAD_ERR_ARGUMENT, "flags");
    FAILS(nmad_set_strategy(session, NMAD_ANY_RANK, "magic"), NMAD_ERR_SETTING, "magic");
    FAILS(nmad_set_strategy(session, 9, "fifo"), NMAD_ERR_RANK, "no rank 9");
    FAILS(nmad_set_strategy(session, 0, NULL), NMAD_ERR_ARGUMENT, "name is NULL");
    FAILS(nmad_fd(session, NULL), NMAD_ERR_ARGUMENT, "fd");
    FAILS(nmad_arm(session, NULL), NMAD_ERR_ARGUMENT, "timeout_ns");
    OK(nmad_fd(session, &fd));
    OK(nmad_set_strategy(session, NMAD_ANY_RANK, "fifo"));
    OK(nmad_set_strategy(session, 0, "aggregate"));
    EXPECT(request == 0);
}

static void requests(void) {
    nmad_request_t none = NMAD_REQUEST_NULL, forged = UINT64_C(0x123456789), list[2];
    size_t index = 7;
    uint64_t word = 1;
    FAILS(nmad_wait(session, &none, NULL), NMAD_ERR_REQUEST, "NMAD_REQUEST_NULL");
    FAILS(nmad_wait(session, &forged, NULL), NMAD_ERR_REQUEST, "0x123456789");
    FAILS(nmad_test(session, &forged, NULL), NMAD_ERR_REQUEST, "never existed");
    FAILS(nmad_wait(session, NULL, NULL), NMAD_ERR_ARGUMENT, "request is NULL");
    FAILS(nmad_wait_any(session, NULL, 2, &index, NULL), NMAD_ERR_ARGUMENT, "requests is NULL");
    FAILS(nmad_wait_any(session, &forged, 1, NULL, NULL), NMAD_ERR_ARGUMENT, "index");
    FAILS(nmad_wait_any(session, &forged, 1, &index, NULL), NMAD_ERR_REQUEST, "never existed");
    EXPECT(index == 1 && forged != 0);
    FAILS(nmad_cancel(session, forged, NULL), NMAD_ERR_REQUEST, "never existed");
    OK(nmad_irecv(session, 0, 0, 5, 0, &word, sizeof word, &list[0]));
    list[1] = list[0];
    OK(nmad_cancel(session, list[0], NULL));
    FAILS(nmad_wait_all(session, list, 2, NULL, NULL), NMAD_ERR_REQUEST, "places 0 and 1");
    FAILS(nmad_end_packing(session, 5), NMAD_ERR_MESSAGE, "message 5");
    FAILS(nmad_end_unpacking(session, 0), NMAD_ERR_MESSAGE, "message 0");
    /* To oneself, while both requests are open. */
    OK(nmad_isend(session, 0, 0, 5, &word, sizeof word, NULL, &list[0]));
    OK(nmad_irecv(session, 0, 0, 5, 0, &word, sizeof word, &list[1]));
    OK(nmad_wait_all(session, list, 2, NULL, NULL));
}

/* Requests that go on, in a list with one that is wrong or there twice: an answer at once, and nothing is lost. */
static void lists(void) {
    uint64_t words[2] = {1, 2};
    nmad_request_t list[3], forged = UINT64_C(0x123456789);
    int codes[3] = {7, 7, 7};
    OK(nmad_irecv(session, 0, 0, 6, 0, &words[0], sizeof words[0], &list[0]));
    OK(nmad_irecv(session, 0, 0, 7, 0, &words[1], sizeof words[1], &list[1]));
    list[2] = forged;
    FAILS(nmad_wait_all(session, list, 3, NULL, codes), NMAD_ERR_REQUEST, "(place 2) never existed");
    FAILS(nmad_wait_all_for(session, list, 3, 1000, NULL, codes), NMAD_ERR_REQUEST, "never existed");
    FAILS(nmad_test_all(session, list, 3, NULL, codes), NMAD_ERR_REQUEST, "never existed");
    list[2] = list[1];
    FAILS(nmad_wait_all(session, list, 3, NULL, codes), NMAD_ERR_REQUEST, "twice (places 1 and 2)");
    FAILS(nmad_test_all(session, list, 3, NULL, codes), NMAD_ERR_REQUEST, "twice (places 1 and 2)");
    OK(nmad_send(session, 0, 0, 6, &words[0], sizeof words[0], NULL));
    OK(nmad_send(session, 0, 0, 7, &words[1], sizeof words[1], NULL));
    FAILS(nmad_wait_all(session, list, 3, NULL, codes), NMAD_ERR_REQUEST, "twice (places 1 and 2)");
    EXPECT(codes[0] == 7 && codes[1] == 7 && list[0] != 0 && list[1] != 0);
    OK(nmad_wait_all(session, list, 2, NULL, codes));
    EXPECT(codes[0] == NMAD_OK && codes[1] == NMAD_OK && codes[2] == 7);
}

static void texts(void) {
    int major, minor, patch;
    OK(nmad_version(&major, &minor, &patch));
    EXPECT(major == NMAD_VERSION_MAJOR && minor == NMAD_VERSION_MINOR && patch == NMAD_VERSION_PATCH);
    OK(nmad_version(NULL, NULL, NULL));
    for (int code = NMAD_ERR_INTERNAL; code <= NMAD_BUSY; code++)
        EXPECT(strcmp(nmad_strerror(code), nmad_strerror(INT_MAX)) != 0);
    EXPECT(strcmp(nmad_strategy_name(0), "fifo") == 0);
    size_t count = 0;
    while (nmad_strategy_name(count) != NULL) count++;
    EXPECT(count >= 6);
}

int main(void) {
    EXPECT(strcmp(nmad_last_error(), "") == 0);
    settings();
    sessions();
    OK(nmad_open(&session));
    arguments();
    requests();
    lists();
    texts();
    OK(nmad_close(session));
    return 0;
}
