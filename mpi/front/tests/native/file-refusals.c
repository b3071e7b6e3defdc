/* What the system or the standard refuses while a file is in use: views that overlap or have negative places, a closed
 * handle, representations that differ, no descriptor left, a signal at each moment, a file that is removed or shortened by
 * a program without MPI while its ranks access it. Each error has its class, path and reason; no data of another rank
 * are damaged, and the file is used on. The argument is a folder. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

enum { RECORD = 300, RECORDS = 400 };

static int rank, size;
static char path[512];

#define EXPECT(is, wanted) expect((long)(is), (long)(wanted), __LINE__)
#define CHECK(code) FAILS(code, MPI_SUCCESS)
#define FAILS(code, wanted) fails(code, wanted, NULL, __LINE__)
#define SAYS(code, wanted, words) fails(code, wanted, words, __LINE__)

static void expect(long is, long wanted, int line)
{
    if (is == wanted) return;
    fprintf(stderr, "file-refusals.c:%d: rank %d: %ld instead of %ld\n", line, rank, is, wanted);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void fails(int code, int wanted, const char *words, int line)
{
    int class, len;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &len);
    if (class == wanted && (!words || strstr(text, words))) return;
    fprintf(stderr, "file-refusals.c:%d: rank %d: class %d instead of %d: %s\n", line, rank, class, wanted, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static MPI_File opened(int amode)
{
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file));
    return file;
}

static MPI_Offset place(int of, int n) { return ((MPI_Offset)n * size + of) * RECORD; }

static char byte(int of, int n, int pass) { return (char)(of * 37 + n * 11 + pass * 5 + 1); }

static void write_records(MPI_File file, int pass)
{
    char record[RECORD];
    for (int n = 0; n < RECORDS; n++) {
        memset(record, byte(rank, n, pass), RECORD);
        CHECK(MPI_File_write_at(file, place(rank, n), record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
    }
}

/* Reads the records of a rank: how many are there and right. */
static int read_records(MPI_File file, int of, int pass)
{
    char record[RECORD];
    int right = 0, count;
    MPI_Status status;
    for (int n = 0; n < RECORDS; n++) {
        memset(record, 0, RECORD);
        CHECK(MPI_File_read_at(file, place(of, n), record, RECORD, MPI_BYTE, &status));
        MPI_Get_count(&status, MPI_BYTE, &count);
        int same = count == RECORD;
        for (int i = 0; i < count; i++) same &= record[i] == byte(of, n, pass);
        right += same;
    }
    return right;
}

/* Has what one rank has written be seen by all. */
static void meet(MPI_File file)
{
    CHECK(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_sync(file));
}

static void views(void)
{
    MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE), closed;
    MPI_Datatype below, twice, back, steps;
    int lens[2] = {1, 1}, overlap[2] = {0, 0}, descending[2] = {4, 0}, value = 0;
    MPI_Type_create_hindexed(1, lens, (MPI_Aint[]){-4}, MPI_INT, &below);
    MPI_Type_indexed(2, lens, overlap, MPI_INT, &twice);
    MPI_Type_indexed(2, lens, descending, MPI_INT, &back);
    MPI_Type_vector(2, 1, 2, MPI_INT, &steps);
    MPI_Datatype types[] = {below, twice, back};
    for (int i = 0; i < 3; i++) {
        MPI_Type_commit(&types[i]);
        SAYS(MPI_File_set_view(file, 0, MPI_INT, types[i], "native", MPI_INFO_NULL), MPI_ERR_TYPE, "must not");
        MPI_Type_free(&types[i]);
    }
    MPI_Type_commit(&steps);
    FAILS(MPI_File_set_view(file, -1, MPI_INT, steps, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    if (size > 1) {
        const char *name = rank == 0 ? "external32" : "native";
        FAILS(MPI_File_set_view(file, 0, MPI_INT, steps, name, MPI_INFO_NULL), MPI_ERR_NOT_SAME);
    }
    /* The view before is in force. */
    CHECK(MPI_File_write_at(file, 4 * rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    MPI_Type_free(&steps);
    closed = file;
    CHECK(MPI_File_close(&file));
    EXPECT(file == MPI_FILE_NULL, 1);
    FAILS(MPI_File_write_at(closed, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_FILE);
    FAILS(MPI_File_write_at_all(closed, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_FILE);
    FAILS(MPI_File_sync(closed), MPI_ERR_FILE);
    FAILS(MPI_File_close(&closed), MPI_ERR_FILE);
}

/* One rank has no descriptor left: all are told, and open the file when it has again. */
static void descriptors(void)
{
    struct rlimit before, none;
    MPI_File file;
    int code, next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = (rlim_t)next;
    if (rank == size - 1) setrlimit(RLIMIT_NOFILE, &none);
    code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    setrlimit(RLIMIT_NOFILE, &before);
    SAYS(code, MPI_ERR_IO, "ulimit -n");
    SAYS(code, MPI_ERR_IO, path);
    file = opened(MPI_MODE_RDWR);
    CHECK(MPI_File_close(&file));
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

/* A timer interrupts every call of the system again and again. */
static void signals(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    enum { LONG = 8 << 20 };
    char *data = malloc(LONG), *back = malloc(LONG);
    MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Status status;
    int count;
    memset(data, rank + 1, LONG);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int pass = 0; pass < 3; pass++) {
        write_records(file, pass);
        meet(file);
        for (int of = 0; of < size; of++) EXPECT(read_records(file, of, pass), RECORDS);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(MPI_File_write_at_all(file, (MPI_Offset)rank * LONG, data, LONG, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(MPI_File_read_at(file, (MPI_Offset)rank * LONG, back, LONG, MPI_BYTE, &status));
    MPI_Get_count(&status, MPI_BYTE, &count);
    setitimer(ITIMER_REAL, &never, NULL);
    EXPECT(count, LONG);
    EXPECT(memcmp(data, back, LONG), 0);
    EXPECT(alarms > 0, 1);
    free(data);
    free(back);
    CHECK(MPI_File_close(&file));
}

/* A program without MPI removes the file while it is open: its ranks go on with it, and others find none. */
static void removed(void)
{
    MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE), other;
    write_records(file, 1);
    meet(file);
    if (rank == 0) unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    write_records(file, 2);
    meet(file);
    EXPECT(read_records(file, (rank + 1) % size, 2), RECORDS);
    FAILS(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &other), MPI_ERR_NO_SUCH_FILE);
    SAYS(MPI_File_close(&file), MPI_ERR_NO_SUCH_FILE, path);
}

/* A program without MPI shortens the file: reads end where it ends, writes lengthen it, and no rank is killed. */
static void shortened(void)
{
    MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE);
    for (int pass = 0; pass < 3; pass++) {
        for (int again = 0; again < 2; again++) {
            write_records(file, pass);
            meet(file);
            EXPECT(read_records(file, (rank + 1) % size, pass), RECORDS);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) EXPECT(truncate(path, place(0, 10)), 0);
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT(read_records(file, rank, pass), 10);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    write_records(file, 3);
    /* While others write. */
    if (rank == 0) EXPECT(truncate(path, 0), 0);
    write_records(file, 4);
    MPI_Barrier(MPI_COMM_WORLD);
    write_records(file, 5);
    meet(file);
    for (int of = 0; of < size; of++) EXPECT(read_records(file, of, 5), RECORDS);
    CHECK(MPI_File_close(&file));
}

/* The file may not grow: the rank that exceeds the limit is told, and the records of the others are there. */
static void limited(void)
{
    struct rlimit before, limit;
    char record[RECORD] = "";
    MPI_File file = opened(MPI_MODE_RDWR | MPI_MODE_CREATE);
    write_records(file, 1);
    meet(file);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)place(0, RECORDS);
    /* Of all ranks: where one has lengthened the file, others write by copies, which have no limit. */
    setrlimit(RLIMIT_FSIZE, &limit);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_write_at(file, place(rank, 2 * RECORDS), record, RECORD, MPI_BYTE, MPI_STATUS_IGNORE));
    SAYS(MPI_File_sync(file), MPI_ERR_IO, "ulimit -f");
    setrlimit(RLIMIT_FSIZE, &before);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int of = 0; of < size; of++) EXPECT(read_records(file, of, 1), RECORDS);
    CHECK(MPI_File_close(&file));
}

static void next(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(path, sizeof path, "%s/refused", argv[1]);
    views();
    descriptors();
    next();
    signals();
    next();
    removed();
    next();
    shortened();
    next();
    limited();
    next();
    MPI_Finalize();
    return 0;
}
