/* A program with a loop of its own: messages are one kind of event beside a pipe. Here a worker thread writes to
 * the pipe now and then, which stands for sockets, timers or devices; rank 0 sleeps in poll(2) until either has
 * something.
 *
 *     cc loop.c $(pkg-config --cflags --libs nmad) -pthread -o loop && mpiexec -n 3 ./loop
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <nmad.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NEWS 1
#define ROUNDS 50
#define EVENTS 20

static void check(int code) {
    if (code < 0) {
        fprintf(stderr, "%s\n", nmad_last_error());
        exit(1);
    }
}

static void *worker(void *end) {
    for (int i = 0; i < EVENTS; i++)
        if (write(*(int *)end, "x", 1) != 1) exit(1);
    return NULL;
}

/* Takes all messages that are there; one receive is posted at any time. */
static unsigned take_messages(nmad_session_t *session, nmad_request_t *request, uint64_t *news) {
    unsigned taken = 0;
    int code;
    while ((code = nmad_test(session, request, NULL)) == NMAD_OK) {
        taken++;
        check(nmad_irecv(session, NMAD_ANY_RANK, 0, NEWS, 0, news, sizeof *news, request));
    }
    check(code);
    return taken;
}

/* Sleeps until there is something on the pipe or for the library, or for as long as that allows. */
static int sleep_on(nmad_session_t *session, int fd, int pipe_end) {
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = pipe_end, .events = POLLIN}};
    uint64_t timeout_ns;
    int code = nmad_arm(session, &timeout_ns);

    check(code);
    if (code == NMAD_BUSY) return 0; /* something came meanwhile: look first */
    if (poll(fds, 2, (int)((timeout_ns + 999999) / 1000000)) < 0) return 0;
    return fds[1].revents & POLLIN;
}

static int loop(nmad_session_t *session, unsigned wanted) {
    unsigned messages = 0, events = 0;
    uint64_t news;
    nmad_request_t request;
    pthread_t thread;
    int ends[2], fd;

    if (pipe(ends) != 0 || pthread_create(&thread, NULL, worker, &ends[1]) != 0) return 0;
    check(nmad_fd(session, &fd));
    check(nmad_irecv(session, NMAD_ANY_RANK, 0, NEWS, 0, &news, sizeof news, &request));
    while (messages < wanted || events < EVENTS) {
        char bytes[64];
        messages += take_messages(session, &request, &news);
        if (sleep_on(session, fd, ends[0])) {
            ssize_t len = read(ends[0], bytes, sizeof bytes);
            if (len > 0) events += (unsigned)len;
        }
    }
    printf("%u messages and %u other events\n", messages, events);
    check(nmad_cancel(session, request, NULL));
    pthread_join(thread, NULL);
    return nmad_wait(session, &request, NULL) == NMAD_ERR_CANCELLED && messages == wanted;
}

int main(void) {
    nmad_session_t *session;
    uint32_t rank, size;
    int good = 1;

    check(nmad_open(&session));
    check(nmad_rank(session, &rank));
    check(nmad_size(session, &size));
    if (rank == 0) good = loop(session, ROUNDS * (size - 1));
    else
        for (uint64_t i = 0; i < ROUNDS; i++) check(nmad_send(session, 0, 0, NEWS, &i, sizeof i, NULL));
    check(nmad_close(session));
    return good ? 0 : 1;
}
