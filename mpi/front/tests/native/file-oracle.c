/* Random programs on a file, checked against what the standard allows (MPI 5.0, section 14.6.1). Arguments: a folder, a
 * seed, and the number of seeds that are tried from there on. All ranks and threads make the same random numbers, so that
 * each knows what all others do. With a fourth argument, `apart`, ranks are on machines that do not see each other's writes,
 * so that the hint `direct` promises nothing and is not given.
 *
 * Without atomic mode: what was written before the last MPI_File_sync, MPI_Barrier, MPI_File_sync is seen by all; what one
 * thread alone has written since it reads back; bytes that others write meanwhile may be old or new. */
#include "file-oracle.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rank, size, seed, epoch;

/* What a byte may be, as a set of values; which actors have written it since the last synchronisation; the last value of
 * this one. */
struct byte {
    unsigned char may[32];
    unsigned char since[32];
    unsigned writers;
};

static struct byte bytes[LENGTH];
static int last_of[MAX_ACTORS][LENGTH];
static struct access all[MAX_ACTORS][ACCESSES];
static int thread_count;
static MPI_File file;
static char path[512];
/* Bytes of the file, as far as all ranks know. */
static long end;
static int is_apart;

void failed(int line, const char *what, long where, long found)
{
    fprintf(stderr, "file-oracle.c:%d: seed %d, epoch %d, rank %d: %s (at %ld: %ld)\n", line, seed, epoch, rank, what, where,
            found);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

void check(int code, int line)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &len);
    failed(line, text, 0, code);
}

unsigned drawn(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* A view of `count` blocks of `len` bytes, `stride` apart, from `start` on. */
void draw(struct access *access, unsigned *state)
{
    access->len = 1 + (int)drawn(state, drawn(state, 4) ? 60 : 900);
    access->stride = access->len + (drawn(state, 3) ? (int)drawn(state, 200) : 0);
    access->count = 1 + (int)drawn(state, drawn(state, 4) ? 12 : 60);
    if (drawn(state, 4) == 0) access->count = MANY, access->len = 1 + access->len % 40, access->stride = 2 * access->len;
    access->start = (long)drawn(state, LENGTH / 2);
    while (access->start + (long)access->count * access->stride > LENGTH) access->count -= 1;
    if (access->count < 1) access->count = 1, access->len = 1, access->stride = 1;
    access->writes = drawn(state, 5) < 3;
    access->is_deferred = drawn(state, 4) == 0;
    access->value = 1 + (int)drawn(state, 255);
}

long place(const struct access *access, int index)
{
    return access->start + (long)(index / access->len) * access->stride + index % access->len;
}

int is_in(const unsigned char *set, int value) { return set[value / 8] >> value % 8 & 1; }
static void put_in(unsigned char *set, int value) { set[value / 8] |= (unsigned char)(1 << value % 8); }

/* Accesses the file by one datatype in memory and explicit offsets: a write of a block each, or all blocks by one call with a
 * view, which all ranks set. */
static void run_blocks(const struct access *access, char *data)
{
    MPI_Request requests[MANY];
    for (int i = 0; i < access->count; i++) {
        MPI_Offset at = access->start + (long)i * access->stride;
        char *block = data + (size_t)i * access->len;
        MPI_Request *request = &requests[i];
        *request = MPI_REQUEST_NULL;
        if (access->writes && access->is_deferred)
            check(MPI_File_iwrite_at(file, at, block, access->len, MPI_BYTE, request), __LINE__);
        else if (access->writes)
            check(MPI_File_write_at(file, at, block, access->len, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
        else if (access->is_deferred)
            check(MPI_File_iread_at(file, at, block, access->len, MPI_BYTE, request), __LINE__);
        else
            check(MPI_File_read_at(file, at, block, access->len, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
    }
    check(MPI_Waitall(access->count, requests, MPI_STATUSES_IGNORE), __LINE__);
}

/* The same by a view, independent or with all ranks. */
void run_view(MPI_File on, const struct access *access, char *data, int together)
{
    MPI_Datatype block, spread;
    int bytes = access->len * access->count, count;
    MPI_Status status;
    MPI_Type_contiguous(access->len, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, access->stride, &spread);
    MPI_Type_commit(&spread);
    check(MPI_File_set_view(on, access->start, MPI_BYTE, spread, "native", MPI_INFO_NULL), __LINE__);
    if (access->writes && together)
        check(MPI_File_write_at_all(on, 0, data, bytes, MPI_BYTE, &status), __LINE__);
    else if (access->writes)
        check(MPI_File_write_at(on, 0, data, bytes, MPI_BYTE, &status), __LINE__);
    else if (together)
        check(MPI_File_read_at_all(on, 0, data, bytes, MPI_BYTE, &status), __LINE__);
    else
        check(MPI_File_read_at(on, 0, data, bytes, MPI_BYTE, &status), __LINE__);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (access->writes && count != bytes) failed(__LINE__, "a write is short", access->start, count);
    MPI_Type_free(&block);
    MPI_Type_free(&spread);
}

/* Checks what a thread has read. */
static void checked(int actor, const struct access *access, const char *data)
{
    for (int i = 0; i < access->len * access->count; i++) {
        long at = place(access, i);
        const struct byte *byte = &bytes[at];
        int found = (unsigned char)data[i], own = last_of[actor][at];
        int others = byte->writers & ~(1u << actor);
        if (own >= 0 && !others) {
            if (found != own) failed(__LINE__, "not what this thread has written", at, found);
        } else if (!is_in(byte->may, found) && !(others && is_in(byte->since, found)))
            failed(__LINE__, "a value that nobody has written there", at, found);
    }
}

/* Runs the accesses of one thread in this epoch. */
static void *run(void *argument)
{
    int actor = (int)(long)argument;
    char *data = malloc(MANY * 1000);
    int by_view = thread_count == 1 && epoch % 2;
    for (int i = 0; i < ACCESSES; i++) {
        struct access *access = &all[actor][i];
        int length = access->len * access->count;
        memset(data, access->writes ? access->value : 0, (size_t)length);
        if (by_view)
            run_view(file, access, data, i % 3 == 0);
        else
            run_blocks(access, data);
        if (!access->writes) checked(actor, access, data);
        for (int n = 0; access->writes && n < length; n++) last_of[actor][place(access, n)] = access->value;
    }
    free(data);
    return NULL;
}

/* Bytes behind the end of the file are not read: the program makes it as long as it will be. */
static void draw_epoch(void)
{
    for (int actor = 0; actor < size * thread_count; actor++) {
        unsigned state = (unsigned)(seed * 7919 + epoch * 104729 + actor * 1299709 + 17);
        for (int i = 0; i < ACCESSES; i++) draw(&all[actor][i], &state);
    }
    for (long at = 0; at < LENGTH; at++) {
        memset(bytes[at].since, 0, sizeof bytes[at].since);
        bytes[at].writers = 0;
    }
    memset(last_of, -1, sizeof last_of);
    for (int actor = 0; actor < size * thread_count; actor++)
        for (int i = 0; i < ACCESSES; i++) {
            struct access *access = &all[actor][i];
            /* What all ranks do by one call is of one kind. */
            if (i % 3 == 0) access->writes = all[0][i].writes;
            for (int n = 0; access->writes && n < access->len * access->count; n++) {
                long at = place(access, n);
                put_in(bytes[at].since, access->value);
                bytes[at].writers |= 1u << actor;
                if (at >= end) end = at + 1;
            }
        }
}

/* What bytes may be after this epoch: the last value of the only writer, or any of those of several. */
static void settle(void)
{
    for (int actor = 0; actor < size * thread_count; actor++)
        for (int i = 0; i < ACCESSES; i++) {
            const struct access *access = &all[actor][i];
            for (int n = 0; access->writes && n < access->len * access->count; n++) {
                struct byte *byte = &bytes[place(access, n)];
                memset(byte->may, 0, sizeof byte->may);
                if (byte->writers == 1u << actor) put_in(byte->may, access->value);
                else memcpy(byte->may, byte->since, sizeof byte->may);
            }
        }
}

static void look_at_all(void)
{
    char *data = malloc(LENGTH);
    MPI_Offset bytes_of_file;
    MPI_Status status;
    int count;
    check(MPI_File_get_size(file, &bytes_of_file), __LINE__);
    if (bytes_of_file != end) failed(__LINE__, "the size of the file", end, (long)bytes_of_file);
    check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), __LINE__);
    check(MPI_File_read_at(file, 0, data, LENGTH, MPI_BYTE, &status), __LINE__);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (count != end) failed(__LINE__, "a read of the whole file", end, count);
    for (long at = 0; at < end; at++)
        if (!is_in(bytes[at].may, (unsigned char)data[at]))
            failed(__LINE__, "not what was synchronised", at, (unsigned char)data[at]);
    free(data);
    /* Nobody writes on before all have looked. */
    MPI_Barrier(MPI_COMM_WORLD);
}

MPI_Info drawn_hints(unsigned *state)
{
    static const char *const ways[] = {"owners", "automatic", "direct"};
    static const char *const regions[] = {"4096", "8192", "65536"};
    static const char *const waiting[] = {"0", "4096", "16384", "1048576"};
    static const char *const switches[] = {"enable", "disable", "automatic"};
    char owners[16];
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "nmad_indep_rw", ways[drawn(state, is_apart ? 2 : 3)]);
    MPI_Info_set(info, "cb_buffer_size", regions[drawn(state, 3)]);
    MPI_Info_set(info, "nmad_buffer_size", waiting[drawn(state, 4)]);
    MPI_Info_set(info, "romio_cb_write", switches[drawn(state, 3)]);
    MPI_Info_set(info, "romio_cb_read", switches[drawn(state, 3)]);
    snprintf(owners, sizeof owners, "%u", 1 + drawn(state, (unsigned)size));
    MPI_Info_set(info, "cb_nodes", owners);
    return info;
}

/* The file changes as a whole: its length, its hints. */
static void change(unsigned *state)
{
    unsigned kind = drawn(state, 5);
    if (kind == 0) {
        MPI_Info info = drawn_hints(state);
        check(MPI_File_set_info(file, info), __LINE__);
        MPI_Info_free(&info);
    } else if (kind == 1) {
        long new = (long)drawn(state, LENGTH);
        check(MPI_File_set_size(file, new), __LINE__);
        for (long at = new < end ? new : end; at < LENGTH; at++) {
            memset(bytes[at].may, 0, sizeof bytes[at].may);
            put_in(bytes[at].may, 0);
        }
        end = new;
    }
}

static void epochs(const char *folder)
{
    unsigned state = (unsigned)seed * 31 + 5;
    MPI_Info info = drawn_hints(&state);
    snprintf(path, sizeof path, "%s/oracle", folder);
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file),
          __LINE__);
    MPI_Info_free(&info);
    memset(bytes, 0, sizeof bytes);
    for (long at = 0; at < LENGTH; at++) put_in(bytes[at].may, 0);
    end = 0;
    for (epoch = 0; epoch < EPOCHS; epoch++) {
        pthread_t threads[MAX_THREADS];
        thread_count = drawn(&state, 3) ? 1 : MAX_THREADS;
        draw_epoch();
        /* Reads stay inside the file. */
        check(MPI_File_set_size(file, end), __LINE__);
        check(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), __LINE__);
        for (int i = 1; i < thread_count; i++)
            pthread_create(&threads[i], NULL, run, (void *)(long)(rank * thread_count + i));
        run((void *)(long)(rank * thread_count));
        for (int i = 1; i < thread_count; i++) pthread_join(threads[i], NULL);
        check(MPI_File_sync(file), __LINE__);
        MPI_Barrier(MPI_COMM_WORLD);
        check(MPI_File_sync(file), __LINE__);
        settle();
        look_at_all();
        change(&state);
    }
    check(MPI_File_close(&file), __LINE__);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    is_apart = argc == 5 && strcmp(argv[4], "apart") == 0;
    if ((argc != 4 && !is_apart) || size * MAX_THREADS > MAX_ACTORS) MPI_Abort(MPI_COMM_WORLD, 2);
    int first = atoi(argv[2]), count = atoi(argv[3]);
    for (seed = first; seed < first + count; seed++) {
        epochs(argv[1]);
        for (epoch = 0; epoch < ATOMIC_EPOCHS; epoch++) atomic_epoch(argv[1]);
    }
    MPI_Finalize();
    return 0;
}
