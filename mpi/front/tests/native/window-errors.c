/* What goes wrong with windows: the class that the standard says, a text that names the window and the target, and the
 * handler of the window. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, called;

#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #what);                        \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                    \
        }                                                                                                    \
    } while (0)

/* Checks class and words of an error. */
static void expect(int line, int code, int wanted, const char *words)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    if (class != wanted || strstr(text, words) == NULL) {
        fprintf(stderr, "line %d: class %d instead of %d, or no '%s' in: %s\n", line, class, wanted, words, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

#define EXPECT(call, class, words) expect(__LINE__, call, class, words)

static void handler(MPI_Win *win, int *code, ...)
{
    (void)win;
    (void)code;
    called++;
}

static void no_operator(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static void accesses(MPI_Win win)
{
    int one = 1;
    double two = 2;
    MPI_Op own;
    MPI_Op_create(no_operator, 1, &own);
    EXPECT(MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC, "no access epoch to rank 0");
    EXPECT(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC, "not locked");
    EXPECT(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC, "no rank is locked");
    EXPECT(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC, "not locked");
    EXPECT(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC, "MPI_Win_lock_all");
    EXPECT(MPI_Win_complete(win), MPI_ERR_RMA_SYNC, "MPI_Win_start");
    EXPECT(MPI_Win_wait(win), MPI_ERR_RMA_SYNC, "MPI_Win_post");
    EXPECT(MPI_Win_lock(17, 0, 0, win), MPI_ERR_LOCKTYPE, "17");
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK, "not in it");
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, 0, 1 << 20, win), MPI_ERR_ASSERT, "assert");
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT, "MPI_Win_lock");
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC, "locked already");
    EXPECT(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC, "MPI_Win_unlock");
    EXPECT(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC, "MPI_Win_unlock");
    EXPECT(MPI_Win_free(&win), MPI_ERR_RMA_SYNC, "MPI_Win_unlock");
    EXPECT(MPI_Put(&one, 1, MPI_INT, 0, 10, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, "rank 0 as the target: 4 B from byte 40");
    EXPECT(MPI_Put(&one, 1, MPI_INT, 0, -1, 1, MPI_INT, win), MPI_ERR_RMA_RANGE, "byte -4");
    EXPECT(MPI_Put(&one, 1, MPI_INT, 0, 0, 2, MPI_INT, win), MPI_ERR_TYPE, "8 B there");
    EXPECT(MPI_Put(NULL, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_BUFFER, "NULL");
    EXPECT(MPI_Put(&one, -1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT, "origin_count");
    EXPECT(MPI_Put(&one, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win), MPI_ERR_TYPE, "NULL");
    EXPECT(MPI_Accumulate(&two, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP, "MPI_BAND");
    EXPECT(MPI_Accumulate(&two, 1, MPI_DOUBLE, 0, 0, 2, MPI_INT, MPI_SUM, win), MPI_ERR_TYPE, "MPI_INT");
    EXPECT(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, own, win), MPI_ERR_OP, "predefined operators");
    EXPECT(MPI_Compare_and_swap(&two, &two, &two, MPI_DOUBLE, 0, 0, win), MPI_ERR_TYPE, "integers");
    EXPECT(MPI_Win_unlock(0, win), MPI_SUCCESS, "");
    EXPECT(MPI_Win_attach(win, &one, 4), MPI_ERR_RMA_FLAVOR, "MPI_Win_create_dynamic");
    MPI_Op_free(&own);
}

static void others(MPI_Win win)
{
    MPI_Group all, none = MPI_GROUP_EMPTY;
    int one = 1;
    MPI_Win gone = win;
    MPI_Win_get_group(win, &all);
    MPI_Win_post(none, 0, win);
    EXPECT(MPI_Win_post(none, 0, win), MPI_ERR_RMA_SYNC, "MPI_Win_wait was not");
    EXPECT(MPI_Win_free(&win), MPI_ERR_RMA_SYNC, "MPI_Win_post");
    EXPECT(MPI_Win_wait(win), MPI_SUCCESS, "");
    MPI_Win_start(none, 0, win);
    EXPECT(MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC, "not in the group");
    EXPECT(MPI_Win_start(none, 0, win), MPI_ERR_RMA_SYNC, "MPI_Win_complete");
    EXPECT(MPI_Win_complete(win), MPI_SUCCESS, "");
    MPI_Group_free(&all);
    MPI_Errhandler own;
    MPI_Win_create_errhandler(handler, &own);
    MPI_Win_set_errhandler(win, own);
    MPI_Errhandler_free(&own);
    EXPECT(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC, "");
    CHECK(called == 1);
    MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    CHECK(called == 2);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    EXPECT(MPI_Win_free(&win), MPI_SUCCESS, "");
    EXPECT(MPI_Win_fence(0, gone), MPI_ERR_WIN, "no window");
    EXPECT(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN, "MPI_WIN_NULL");
}

static void unattached(void)
{
    MPI_Win win;
    long value = 3, *memory = malloc(4 * sizeof *memory);
    MPI_Aint address, peer;
    int other = 1 - rank;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_name(win, "heap");
    EXPECT(MPI_Win_attach(win, memory, -1), MPI_ERR_SIZE, "heap");
    EXPECT(MPI_Win_attach(win, memory, 2 * sizeof *memory), MPI_SUCCESS, "");
    EXPECT(MPI_Win_attach(win, memory + 1, sizeof *memory), MPI_ERR_RMA_ATTACH, "overlap");
    EXPECT(MPI_Win_detach(win, memory + 1), MPI_ERR_RMA_ATTACH, "attached at");
    MPI_Get_address(memory, &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, other, 0, &peer, 1, MPI_AINT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
    EXPECT(MPI_Put(&value, 1, MPI_LONG, other, peer + 8, 1, MPI_LONG, win), MPI_SUCCESS, "");
    EXPECT(MPI_Win_flush(other, win), MPI_SUCCESS, "");
    /* What is beyond is told when it is complete at the target. */
    EXPECT(MPI_Put(&value, 1, MPI_LONG, other, peer + 16, 1, MPI_LONG, win), MPI_SUCCESS, "");
    EXPECT(MPI_Win_flush(other, win), MPI_ERR_RMA_RANGE, "not attached");
    EXPECT(MPI_Get(&value, 1, MPI_LONG, other, peer + 16, 1, MPI_LONG, win), MPI_SUCCESS, "");
    EXPECT(MPI_Win_unlock(other, win), MPI_ERR_RMA_RANGE, "heap");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory[1] == 3);
    EXPECT(MPI_Win_detach(win, memory), MPI_SUCCESS, "");
    MPI_Win_free(&win);
    free(memory);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    int *memory;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win), MPI_ERR_SIZE, "-1");
    EXPECT(MPI_Win_allocate(8, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win), MPI_ERR_DISP, "0");
    EXPECT(MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE, "NULL");
    MPI_Win_allocate(10 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    accesses(win);
    others(win);
    unattached();
    MPI_Finalize();
    return 0;
}
