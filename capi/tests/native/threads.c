/* Two ranks, several threads on each: all use one session at once, and each has a last error of its own. */
#define _POSIX_C_SOURCE 200809L
#include "expect.h"
#include <pthread.h>

#define THREADS 4
#define ROUNDS 300
#define WINDOW 8
#define LEN 3000

static nmad_session_t *session;
static uint32_t rank;
static pthread_barrier_t barrier;

/* Pairs of threads exchange windows of messages on a context of their own. */
static void exchange(uint32_t own) {
    static const size_t lens[3] = {8, LEN, 100};
    unsigned char out[WINDOW][LEN], in[WINDOW][LEN];
    for (int round = 0; round < ROUNDS; round++) {
        nmad_request_t requests[2 * WINDOW];
        size_t len = lens[round % 3];
        for (unsigned i = 0; i < WINDOW; i++) {
            memset(out[i], (int)(own * 50 + i + (unsigned)round), len);
            OK(nmad_irecv(session, 1 - rank, own, i, 0, in[i], LEN, &requests[i]));
        }
        for (unsigned i = 0; i < WINDOW; i++)
            OK(nmad_isend(session, 1 - rank, own, i, out[i], len, NULL, &requests[WINDOW + i]));
        if (round % 2 == 0) {
            OK(nmad_wait_all(session, requests, 2 * WINDOW, NULL, NULL));
        } else {
            size_t index;
            for (int ended = 0; ended < 2 * WINDOW; ended++)
                OK(nmad_wait_any(session, requests, 2 * WINDOW, &index, NULL));
        }
        for (unsigned i = 0; i < WINDOW; i++) EXPECT(memcmp(in[i], out[i], len) == 0);
    }
}

static void *work(void *number) {
    uint32_t own = *(uint32_t *)number;
    char text[64];
    FAILS(nmad_send(session, 100 + own, 0, 0, NULL, 0, NULL), NMAD_ERR_RANK, "no rank 10");
    pthread_barrier_wait(&barrier);
    sprintf(text, "no rank %u", 100 + own);
    EXPECT(strstr(nmad_last_error(), text) != NULL);
    exchange(own);
    return NULL;
}

/* How a request of both threads has ended for this one. */
struct end {
    nmad_request_t request;
    int code;
};

static void *wait_for_it(void *end) {
    struct end *own = end;
    own->code = nmad_wait(session, &own->request, NULL);
    return NULL;
}

/* Two threads wait for a request that a third one cancels: one is told its end, the other that it is over. */
static void shared_request(void) {
    pthread_t threads[2];
    struct end ends[2];
    char byte;
    /* From oneself: the other rank may have left already. */
    OK(nmad_irecv(session, rank, 90, 0, 0, &byte, 1, &ends[0].request));
    nmad_request_t request = ends[1].request = ends[0].request;
    for (int i = 0; i < 2; i++) EXPECT(pthread_create(&threads[i], NULL, wait_for_it, &ends[i]) == 0);
    OK(nmad_cancel(session, request, NULL));
    for (int i = 0; i < 2; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
    int first = ends[0].code == NMAD_ERR_CANCELLED ? 0 : 1;
    EXPECT(ends[first].code == NMAD_ERR_CANCELLED && ends[first].request == NMAD_REQUEST_NULL);
    EXPECT(ends[1 - first].code == NMAD_ERR_REQUEST);
}

int main(void) {
    pthread_t threads[THREADS];
    uint32_t numbers[THREADS];

    OK(nmad_open(&session));
    OK(nmad_rank(session, &rank));
    EXPECT(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        EXPECT(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) EXPECT(pthread_join(threads[i], NULL) == 0);

    for (int i = 0; i < 20; i++) shared_request();
    OK(nmad_close(session));
    return 0;
}
