/* Everybody says hello to rank 0: blocking calls, any sender.
 *
 *     cc hello.c $(pkg-config --cflags --libs nmad) -o hello && mpiexec -n 4 ./hello
 */
#include <inttypes.h>
#include <nmad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT 0
#define HELLO 7

static void check(int code) {
    if (code < 0) {
        fprintf(stderr, "%s (%s)\n", nmad_last_error(), nmad_strerror(code));
        exit(1);
    }
}

int main(void) {
    nmad_session_t *session;
    uint32_t rank, size;

    check(nmad_open(&session)); /* rank 0 of 1 without a launcher */
    check(nmad_rank(session, &rank));
    check(nmad_size(session, &size));
    if (rank > 0) {
        const char *text = "hello over every rail";
        check(nmad_send(session, 0, CONTEXT, HELLO, text, strlen(text), NULL));
    } else {
        for (uint32_t i = 1; i < size; i++) {
            char text[64];
            nmad_message_t message;
            check(nmad_recv(session, NMAD_ANY_RANK, CONTEXT, HELLO, 0, text, sizeof text, &message));
            printf("rank %" PRIu32 " says %.*s\n", message.rank, (int)message.received, text);
        }
        printf("%" PRIu32 " ranks\n", size);
    }
    check(nmad_close(session));
    return 0;
}
