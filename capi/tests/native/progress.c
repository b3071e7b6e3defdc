/* Two ranks: large messages arrive while rank 1 computes, forks, and gets signals, under each setting. */
#define _XOPEN_SOURCE 700
#include "expect.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE (2 << 20)

static pthread_t program;
static volatile sig_atomic_t alarms, strangers;

static void on_alarm(int number) {
    (void)number;
    alarms++;
    if (!pthread_equal(pthread_self(), program)) strangers++;
}

static void compute_until(int count) {
    while (alarms < count) {
    }
}

int main(void) {
    static const char *settings[] = {"auto", "idle", "off", "auto"};
    nmad_session_t *session;
    nmad_request_t request;
    uint32_t rank;
    int status;
    char *data = malloc(LARGE);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval period = {{0, 2000}, {0, 2000}};

    EXPECT(data != NULL);
    program = pthread_self();
    OK(nmad_open(&session));
    OK(nmad_rank(session, &rank));
    for (int i = 0; i < 4; i++) {
        OK(nmad_set_progress(session, settings[i]));
        memset(data, rank == 0 ? i + 1 : 0, LARGE);
        if (rank == 0) {
            OK(nmad_send(session, 1, 0, 1, data, LARGE, NULL));
            continue;
        }
        OK(nmad_irecv(session, 0, 0, 1, 0, data, LARGE, &request));
        pid_t child = fork();
        if (child == 0) exit(3);
        EXPECT(child > 0 && waitpid(child, &status, 0) == child);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        alarms = 0;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &period, NULL);
        compute_until(5);
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
        OK(nmad_wait(session, &request, NULL));
        for (int k = 0; k < LARGE; k += 4096) EXPECT(data[k] == i + 1);
    }
    EXPECT(strangers == 0);
    /* It ends while something is in flight that nobody sends. */
    OK(nmad_irecv(session, 1 - rank, 0, 2, 0, data, LARGE, &request));
    OK(nmad_close(session));
    free(data);
    return 0;
}
