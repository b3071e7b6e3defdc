/* Two ranks. "kill": rank 1 dies, and rank 0 is told by codes; no signal, no hang. "abort": rank 1 ends the job. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"
#include <signal.h>

#define LARGE (4 << 20)

int main(int count, char **words) {
    nmad_session_t *session;
    nmad_request_t requests[3];
    nmad_message_t message;
    uint32_t rank;
    char byte, *data = calloc(1, LARGE);
    int codes[3];

    EXPECT(count == 2 && data != NULL);
    OK(nmad_open(&session));
    OK(nmad_rank(session, &rank));
    if (rank == 1) {
        OK(nmad_send(session, 0, 0, 1, "x", 1, NULL));
        if (strcmp(words[1], "abort") == 0) nmad_abort(session, 7, "it was asked for");
        raise(SIGKILL);
    }
    /* The launcher ends the rest of a job when a rank dies; this rank wants to see it first. */
    if (strcmp(words[1], "kill") == 0) signal(SIGTERM, SIG_IGN);
    OK(nmad_recv(session, 1, 0, 1, 0, &byte, 1, NULL));
    OK(nmad_irecv(session, 1, 0, 2, 0, &byte, 1, &requests[0]));
    OK(nmad_isend(session, 1, 0, 3, data, LARGE, NULL, &requests[1]));
    OK(nmad_isend(session, 0, 0, 5, "y", 1, NULL, &requests[2]));
    EXPECT(nmad_wait_all(session, requests, 3, NULL, codes) == NMAD_ERR_PEER);
    EXPECT(codes[0] == NMAD_ERR_PEER && codes[1] == NMAD_ERR_PEER && codes[2] == NMAD_OK);
    EXPECT(strstr(nmad_last_error(), "rank 1 is gone") != NULL);
    /* Further ones fail at once; others go on. */
    EXPECT(nmad_send(session, 1, 0, 4, &byte, 1, NULL) == NMAD_ERR_PEER);
    EXPECT(nmad_recv(session, 1, 0, 4, 0, &byte, 1, NULL) == NMAD_ERR_PEER);
    OK(nmad_recv(session, NMAD_ANY_RANK, 0, 5, 0, &byte, 1, &message));
    EXPECT(message.rank == 0 && byte == 'y');
    OK(nmad_close(session));
    free(data);
    return 0;
}
