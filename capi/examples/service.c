/* Remote procedure calls. A request is a message in two pieces: the number of the service with the length of the
 * arguments, and the arguments. The number travels with a high priority: it leaves before other data that waits,
 * so that the server prepares the service (here: makes room for the arguments) while the rest is still on its way.
 * This is the example of P1 (RR-6085), section 2.
 *
 *     cc service.c $(pkg-config --cflags --libs nmad) -o service && mpiexec -n 3 ./service
 */
#include <inttypes.h>
#include <nmad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 1, ANSWERS = 2 };            /* contexts */
enum { STOP = 0, SUM = 1, LONGEST_RUN = 2 }; /* services */

struct header {
    uint32_t service;
    uint32_t answer_tag;
    uint64_t len;
};

static void check(int code) {
    if (code < 0) {
        fprintf(stderr, "%s\n", nmad_last_error());
        exit(1);
    }
}

/* Calls a service and waits for its answer. */
static uint64_t call(nmad_session_t *session, uint32_t service, const void *arguments, uint64_t len) {
    static uint32_t calls;
    struct header header = {service, calls++, len};
    nmad_hints_t first = {0};
    nmad_packing_t message;
    nmad_request_t request;
    uint64_t answer = 0;

    /* The receive goes first: the answer then finds it waiting. */
    check(nmad_irecv(session, 0, ANSWERS, header.answer_tag, 0, &answer, sizeof answer, &request));
    first.priority = 10;
    check(nmad_begin_packing(session, 0, CALLS, 0, &message));
    check(nmad_pack(session, message, &header, sizeof header, &first, NULL));
    check(nmad_pack(session, message, arguments, len, NULL, NULL));
    check(nmad_end_packing(session, message));
    check(nmad_wait(session, &request, NULL));
    return answer;
}

static uint64_t serve(uint32_t service, const unsigned char *bytes, uint64_t len) {
    uint64_t answer = 0, run = 0;
    for (uint64_t i = 0; i < len; i++) {
        if (service == SUM) {
            answer += bytes[i];
        } else {
            run = i > 0 && bytes[i] == bytes[i - 1] ? run + 1 : 1;
            if (run > answer) answer = run;
        }
    }
    return answer;
}

/* Serves until everybody has said stop. */
static void server(nmad_session_t *session, uint32_t clients) {
    while (clients > 0) {
        struct header header;
        nmad_unpacking_t message;
        nmad_request_t first;
        nmad_message_t from;

        check(nmad_begin_unpacking(session, NMAD_ANY_RANK, CALLS, 0, 0, &message));
        check(nmad_unpack(session, message, &header, sizeof header, &first));
        check(nmad_wait(session, &first, &from));
        unsigned char *arguments = malloc(header.len + 1);
        if (arguments == NULL) exit(1);
        check(nmad_unpack(session, message, arguments, header.len, NULL));
        check(nmad_end_unpacking(session, message));
        clients -= header.service == STOP;
        uint64_t answer = serve(header.service, arguments, header.len);
        check(nmad_send(session, from.rank, ANSWERS, header.answer_tag, &answer, sizeof answer, NULL));
        free(arguments);
    }
}

static int client(nmad_session_t *session, uint32_t rank) {
    static unsigned char bytes[1000000];
    memset(bytes, (int)rank, sizeof bytes);
    bytes[400000] = 0;
    uint64_t sum = call(session, SUM, bytes, sizeof bytes);
    uint64_t run = call(session, LONGEST_RUN, bytes, sizeof bytes);
    call(session, STOP, NULL, 0);
    printf("rank %" PRIu32 ": sum %" PRIu64 ", longest run %" PRIu64 "\n", rank, sum, run);
    return sum == (sizeof bytes - 1) * rank && run == 599999;
}

int main(void) {
    nmad_session_t *session;
    uint32_t rank, size;
    int good = 1;

    check(nmad_open(&session));
    check(nmad_rank(session, &rank));
    check(nmad_size(session, &size));
    if (rank == 0) server(session, size - 1);
    else good = client(session, rank);
    check(nmad_close(session));
    return good ? 0 : 1;
}
