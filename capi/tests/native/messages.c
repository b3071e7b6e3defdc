/* Two ranks: every way to send, to receive and to wait. */
#include "expect.h"

#define LARGE (3 << 20)

static nmad_session_t *session;
static uint32_t rank;

static unsigned char *pattern(size_t len, int seed) {
    unsigned char *data = malloc(len);
    EXPECT(data != NULL);
    for (size_t i = 0; i < len; i++) data[i] = (unsigned char)(i * 31 + i / 251 + (size_t)seed * 7);
    return data;
}

static void ready(void) {
    /* Rank 1 tells rank 0 that it has posted what it wants to post. */
    if (rank == 1) OK(nmad_send(session, 0, 9, 0, NULL, 0, NULL));
    else OK(nmad_recv(session, 1, 9, 0, 0, NULL, 0, NULL));
}

static void vectors(void) {
    unsigned char *data = pattern(LARGE, 1);
    if (rank == 0) {
        struct iovec places[3] = {{data, 100}, {NULL, 0}, {data + 100, LARGE - 100}};
        nmad_request_t request;
        OK(nmad_isendv(session, 1, 0, 2, places, 3, NULL, &request));
        OK(nmad_sendv(session, 1, 0, 1, places, 3, NULL));
        OK(nmad_wait(session, &request, NULL));
        EXPECT(request == NMAD_REQUEST_NULL);
    } else {
        unsigned char *into = calloc(1, LARGE);
        struct iovec places[2] = {{into, LARGE / 2}, {into + LARGE / 2, LARGE / 2}};
        nmad_message_t message;
        nmad_request_t request;
        EXPECT(into != NULL);
        OK(nmad_irecvv(session, 0, 0, 2, 0, places, 2, &request));
        OK(nmad_wait(session, &request, &message));
        EXPECT(message.rank == 0 && message.tag == 2 && message.context == 0);
        EXPECT(message.len == LARGE && message.received == LARGE && memcmp(data, into, LARGE) == 0);
        memset(into, 0, LARGE);
        OK(nmad_recvv(session, 0, 0, 0, NMAD_ANY_TAG, places, 2, &message));
        EXPECT(message.tag == 1 && memcmp(data, into, LARGE) == 0);
        free(into);
    }
    free(data);
}

static void truncated(void) {
    const char text[] = "longer than the buffer";
    if (rank == 0) {
        OK(nmad_send(session, 1, 4, 77, text, sizeof text, NULL));
        OK(nmad_send(session, 1, 4, 78, text, sizeof text, NULL));
        OK(nmad_send(session, 1, 4, 79, text, sizeof text, NULL));
    } else {
        char buffer[32] = {0};
        nmad_message_t message;
        nmad_request_t request;
        FAILS(nmad_recv(session, 0, 4, 77, 0, buffer, 6, &message), NMAD_ERR_TRUNCATED, "does not fit");
        EXPECT(message.rank == 0 && message.context == 4 && message.tag == 77);
        EXPECT(message.len == sizeof text && message.received == 6 && strcmp(buffer, "longer") == 0);
        OK(nmad_irecv(session, 0, 4, 78, 0, buffer, 3, &request));
        EXPECT(nmad_wait(session, &request, &message) == NMAD_ERR_TRUNCATED && request == NMAD_REQUEST_NULL);
        EXPECT(message.len == sizeof text && message.received == 3);
        OK(nmad_recv(session, 0, 4, 79, 0, buffer, sizeof buffer, &message));
        EXPECT(strcmp(buffer, text) == 0);
    }
}

static void any_of_several(void) {
    uint32_t word = 5, into[3] = {0};
    if (rank == 0) {
        ready();
        OK(nmad_send(session, 1, 5, 2, &word, sizeof word, NULL));
        ready();
        OK(nmad_send(session, 1, 5, 0, &word, sizeof word, NULL));
        OK(nmad_send(session, 1, 5, 3, &word, sizeof word, NULL));
    } else {
        nmad_request_t requests[5] = {0};
        nmad_message_t messages[5];
        size_t index = 99;
        int codes[5] = {9, 9, 9, 9, 9};
        for (unsigned i = 0; i < 3; i++) /* places 1, 2 and 3; 0 and 4 stay empty */
            OK(nmad_irecv(session, 0, 5, i == 1 ? 2 : i == 0 ? 0 : 3, 0, &into[i], sizeof word, &requests[1 + i]));
        EXPECT(nmad_test_any(session, requests, 5, &index, NULL) == NMAD_PENDING && index == 5);
        EXPECT(nmad_wait_any_for(session, requests, 5, 2000000, &index, NULL) == NMAD_PENDING);
        EXPECT(nmad_wait_for(session, &requests[1], 2000000, NULL) == NMAD_PENDING && requests[1] != 0);
        ready();
        OK(nmad_wait_any(session, requests, 5, &index, &messages[0]));
        EXPECT(index == 2 && requests[2] == NMAD_REQUEST_NULL && messages[0].tag == 2 && into[1] == 5);
        EXPECT(nmad_test_all(session, requests, 5, NULL, NULL) == NMAD_PENDING);
        EXPECT(nmad_wait_all_for(session, requests, 5, 1000000, messages, codes) == NMAD_PENDING);
        ready();
        OK(nmad_wait_all_for(session, requests, 5, NMAD_FOREVER, messages, codes));
        EXPECT(messages[1].tag == 0 && messages[3].tag == 3 && into[0] == 5 && into[2] == 5);
        for (int i = 0; i < 5; i++) EXPECT(codes[i] == NMAD_OK && requests[i] == NMAD_REQUEST_NULL);
        OK(nmad_wait_all(session, requests, 5, NULL, NULL));
        FAILS(nmad_wait_any(session, requests, 5, &index, NULL), NMAD_ERR_REQUEST, "no request");
    }
}

static void ends_of_all(void) {
    char text[8] = "1234567", into[2][4];
    if (rank == 0) {
        OK(nmad_send(session, 1, 6, 0, text, 2, NULL));
        OK(nmad_send(session, 1, 6, 1, text, 8, NULL));
    } else {
        nmad_request_t requests[3], copy[3];
        nmad_message_t messages[3];
        int codes[3], accepted = -1;
        for (unsigned i = 0; i < 3; i++) OK(nmad_irecv(session, 0, 6, i, 0, into[i % 2], 4, &requests[i]));
        OK(nmad_cancel(session, requests[2], &accepted));
        EXPECT(accepted == 1);
        memcpy(copy, requests, sizeof copy);
        EXPECT(nmad_wait_all(session, requests, 3, messages, codes) == NMAD_ERR_TRUNCATED);
        EXPECT(codes[0] == NMAD_OK && codes[1] == NMAD_ERR_TRUNCATED && codes[2] == NMAD_ERR_CANCELLED);
        EXPECT(messages[0].len == 2 && messages[1].len == 8 && messages[1].received == 4);
        FAILS(nmad_wait(session, &copy[1], NULL), NMAD_ERR_REQUEST, "returned already");
        FAILS(nmad_cancel(session, copy[2], NULL), NMAD_ERR_REQUEST, "never existed");
    }
}

static void probes(void) {
    uint64_t word = 3;
    nmad_message_t message;
    if (rank == 0) {
        nmad_hints_t synchronous = {NMAD_SYNCHRONOUS, 0, 0, 0};
        nmad_request_t request;
        OK(nmad_isend(session, 1, 7, 1, &word, sizeof word, &synchronous, &request));
        EXPECT(nmad_wait_for(session, &request, 5000000, NULL) == NMAD_PENDING);
        OK(nmad_send(session, 1, 9, 1, NULL, 0, NULL));
        OK(nmad_wait(session, &request, &message));
        EXPECT(message.rank == 1 && message.len == sizeof word);
    } else {
        int code;
        while ((code = nmad_probe(session, NMAD_ANY_RANK, 7, 0, NMAD_ANY_TAG, &message)) == NMAD_PENDING) continue;
        EXPECT(code == NMAD_OK && message.rank == 0 && message.tag == 1 && message.len == sizeof word);
        EXPECT(message.received == 0 && message.context == 7);
        EXPECT(nmad_probe(session, 0, 7, 2, 0, NULL) == NMAD_PENDING);
        /* It is matched only after rank 0 has seen that its send does not end. */
        OK(nmad_recv(session, 0, 9, 1, 0, NULL, 0, NULL));
        OK(nmad_recv(session, 0, 7, 1, 0, &word, sizeof word, NULL));
    }
}

static void pieces(void) {
    unsigned char *data = pattern(200000, 4);
    uint32_t service = 42;
    if (rank == 0) {
        nmad_hints_t hints = {NMAD_UNORDERED | NMAD_RAIL, 3, 0, 0};
        nmad_packing_t packing;
        nmad_request_t piece;
        OK(nmad_begin_packing(session, 1, 8, 1, &packing));
        OK(nmad_pack(session, packing, &service, sizeof service, &hints, &piece));
        OK(nmad_pack(session, packing, data, 200000, NULL, NULL));
        OK(nmad_pack(session, packing, data, 10, NULL, NULL));
        OK(nmad_wait(session, &piece, NULL));
        OK(nmad_end_packing(session, packing));
        FAILS(nmad_end_packing(session, packing), NMAD_ERR_MESSAGE, "is ended");
        FAILS(nmad_pack(session, packing, data, 1, NULL, NULL), NMAD_ERR_MESSAGE, "never begun");
    } else {
        unsigned char *into = calloc(1, 200000);
        nmad_unpacking_t unpacking;
        nmad_request_t piece[2];
        nmad_message_t message;
        EXPECT(into != NULL);
        OK(nmad_begin_unpacking(session, NMAD_ANY_RANK, 8, 0, NMAD_ANY_TAG, &unpacking));
        OK(nmad_unpack(session, unpacking, &service, sizeof service, &piece[0]));
        OK(nmad_wait(session, &piece[0], &message));
        EXPECT(service == 42 && message.rank == 0 && message.tag == 1 && message.context == 8);
        OK(nmad_unpack(session, unpacking, into, 200000, &piece[1]));
        OK(nmad_unpack(session, unpacking, into, 5, NULL));
        OK(nmad_wait(session, &piece[1], &message));
        EXPECT(message.tag == 1 && message.len == 200000 && message.context == 8);
        EXPECT(memcmp(into, data, 200000) == 0);
        FAILS(nmad_end_unpacking(session, unpacking), NMAD_ERR_TRUNCATED, "does not fit");
        FAILS(nmad_unpack(session, unpacking, into, 5, NULL), NMAD_ERR_MESSAGE, "is ended");
        free(into);
    }
    free(data);
}

static void figures(void) {
    uint32_t count, chosen = UINT32_MAX;
    nmad_rail_info_t info;
    uint64_t bytes = 0;
    OK(nmad_rail_count(session, &count));
    EXPECT(count >= 2);
    for (uint32_t rail = 0; rail < count; rail++) {
        OK(nmad_rail_info(session, rail, &info, sizeof info));
        EXPECT(strlen(info.name) > 0 && info.peers <= 2);
        if (info.packets > 0 && info.packets_in > 0) chosen = rail;
        bytes += info.packet_bytes + info.chunk_bytes;
    }
    EXPECT(chosen != UINT32_MAX && bytes > (rank == 0 ? 2 * LARGE : 0));
    FAILS(nmad_rail_info(session, count, &info, sizeof info), NMAD_ERR_ARGUMENT, "no rail");
    /* A shorter structure of an older version is not written beyond its end; a longer one ends in zeroes. */
    memset(&info, 7, sizeof info);
    OK(nmad_rail_info(session, chosen, &info, 64));
    EXPECT(info.name[63] == 0 && info.address[0] == 7);
    struct {
        nmad_rail_info_t known;
        uint64_t later;
    } longer;
    memset(&longer, 7, sizeof longer);
    OK(nmad_rail_info(session, chosen, &longer.known, sizeof longer));
    EXPECT(longer.later == 0 && longer.known.packets > 0);
}

int main(void) {
    uint32_t size;
    OK(nmad_open(&session));
    OK(nmad_rank(session, &rank));
    OK(nmad_size(session, &size));
    EXPECT(size == 2);
    vectors();
    truncated();
    any_of_several();
    ends_of_all();
    probes();
    pieces();
    figures();
    OK(nmad_close(session));
    return 0;
}
