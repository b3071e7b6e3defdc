/* Rank 1 dies with the lock of rank 2 in its hands, and inside an epoch of rank 0 to it: what waits for it gets an error
 * and does not hang, be it a lock or an access after lock_all. The launcher ends the job; rank 0 does not heed SIGTERM,
 * and writes what it saw to the file that the first argument names. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *report;

/* A line with the class and the text. */
static void say(const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class, len;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &len);
    fprintf(report, "%s: %s: %s\n", call, class == MPI_ERR_PROC_ABORTED ? "aborted" : "another class", text);
    fflush(report);
}

/* Nobody needs the ranks that are not accessed; the lock of rank 2 never comes. */
static void lock_all(MPI_Win window)
{
    int value = 0;
    MPI_Request request;
    MPI_Win_lock_all(0, window);
    int code = MPI_Win_unlock_all(window);
    if (code != MPI_SUCCESS) say("nothing", code);
    MPI_Win_lock_all(0, window);
    MPI_Rget(&value, 1, MPI_INT, 2, 0, 1, MPI_INT, window, &request);
    say("wait", MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Put(&value, 1, MPI_INT, 2, 0, 1, MPI_INT, window);
    say("flush_all", MPI_Win_flush_all(window));
    say("unlock_all", MPI_Win_unlock_all(window));
    MPI_Win_lock_all(0, window);
    MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
    say("dead", MPI_Win_unlock_all(window));
}

int main(int argc, char **argv)
{
    int rank, *memory, code = MPI_SUCCESS;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    signal(SIGTERM, SIG_IGN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window);
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
        raise(SIGKILL);
    }
    if (rank == 0) {
        report = fopen(argv[1], "w");
        MPI_Win_lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, window);
        MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        say("lock", MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, window));
        /* Memory that all ranks of a node see outlives a rank; messages to it do not. */
        for (int i = 0; i < 100 && code == MPI_SUCCESS && argc > 2; i++) {
            code = MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
            if (code == MPI_SUCCESS) code = MPI_Win_flush(1, window);
        }
        if (argc > 2) {
            say("flush", code);
            MPI_Win_unlock(1, window);
            lock_all(window);
        }
        fclose(report);
    }
    for (;;) pause();
}
