/* Files: every way to access them, with any number of ranks. The first argument is a folder. With a second one, `apart`, ranks
 * are on machines that do not see each other's writes, and may undo them in a page that both write by handles of their own. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size;
static char path[512];
static int is_apart;

#define CHECK(what) \
    do { \
        int code_ = (what); \
        if (code_ != MPI_SUCCESS) { \
            char text_[MPI_MAX_ERROR_STRING]; \
            int len_; \
            MPI_Error_string(code_, text_, &len_); \
            fprintf(stderr, "files.c:%d: rank %d: %s: %s\n", __LINE__, rank, #what, text_); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

#define EXPECT(found, wanted) \
    do { \
        long long found_ = (found), wanted_ = (wanted); \
        if (found_ != wanted_) { \
            fprintf(stderr, "files.c:%d: rank %d: %s is %lld, not %lld\n", __LINE__, rank, #found, found_, wanted_); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

static void expect_class(int code, int wanted, int line)
{
    int class_, len;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(code, &class_);
    MPI_Error_string(code, text, &len);
    if (class_ != wanted) {
        fprintf(stderr, "files.c:%d: rank %d: class %d, not %d: %s\n", line, rank, class_, wanted, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

#define FAILS(what, wanted) expect_class((what), (wanted), __LINE__)

/* The number that belongs to a place of the file. */
static int number(long place)
{
    return (int)(place * 7 + 3);
}

static MPI_File opened(const char *name, int amode, MPI_Info info)
{
    MPI_File file;
    snprintf(path, sizeof path, "%s", name);
    CHECK(MPI_File_open(MPI_COMM_WORLD, name, amode, info, &file));
    return file;
}

static int count_of(MPI_Status *status)
{
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    return count;
}

/* A view of every size-th block of `block` ints, beginning with the rank's own. */
static MPI_Datatype interleaved(int block)
{
    MPI_Datatype blocks, type;
    MPI_Type_contiguous(block, MPI_INT, &blocks);
    MPI_Type_create_resized(blocks, 0, (MPI_Aint)block * size * (MPI_Aint)sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&blocks);
    return type;
}

static void set_interleaved(MPI_File file, int block)
{
    MPI_Datatype type = interleaved(block);
    CHECK(MPI_File_set_view(file, (MPI_Offset)rank * block * sizeof(int), MPI_INT, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
}

/* Place in the file of this rank's n-th int. */
static long place_of(int n, int block)
{
    return ((long)(n / block) * size + rank) * block + n % block;
}

static void fill(int *data, int count, int block)
{
    for (int n = 0; n < count; n++)
        data[n] = number(place_of(n, block));
}

static void is_filled(const int *data, int count, int block, int line)
{
    for (int n = 0; n < count; n++)
        if (data[n] != number(place_of(n, block))) {
            fprintf(stderr, "files.c:%d: rank %d: int %d is %d, not %d\n", line, rank, n, data[n],
                    number(place_of(n, block)));
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

/* Every form of access writes what every other form reads. */
enum { FORMS = 10 };

static void write_form(MPI_File file, int form, int *data, int count)
{
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    memset(&status, -1, sizeof status);
    switch (form) {
    case 0: CHECK(MPI_File_write_at(file, 0, data, count, MPI_INT, &status)); break;
    case 1: CHECK(MPI_File_write(file, data, count, MPI_INT, &status)); break;
    case 2: CHECK(MPI_File_iwrite_at(file, 0, data, count, MPI_INT, &request)); break;
    case 3: CHECK(MPI_File_iwrite(file, data, count, MPI_INT, &request)); break;
    case 4: CHECK(MPI_File_write_at_all(file, 0, data, count, MPI_INT, &status)); break;
    case 5: CHECK(MPI_File_write_all(file, data, count, MPI_INT, &status)); break;
    case 6: CHECK(MPI_File_iwrite_at_all(file, 0, data, count, MPI_INT, &request)); break;
    case 7: CHECK(MPI_File_iwrite_all(file, data, count, MPI_INT, &request)); break;
    case 8:
        CHECK(MPI_File_write_at_all_begin(file, 0, data, count, MPI_INT));
        CHECK(MPI_File_write_at_all_end(file, data, &status));
        break;
    default:
        CHECK(MPI_File_write_all_begin(file, data, count, MPI_INT));
        CHECK(MPI_File_write_all_end(file, data, &status));
    }
    if (request != MPI_REQUEST_NULL)
        CHECK(MPI_Wait(&request, &status));
    EXPECT(count_of(&status), count);
}

static void read_form(MPI_File file, int form, int *data, int count, int expected)
{
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    memset(data, 0, (size_t)count * sizeof(int));
    switch (form) {
    case 0: CHECK(MPI_File_read_at(file, 0, data, count, MPI_INT, &status)); break;
    case 1: CHECK(MPI_File_read(file, data, count, MPI_INT, &status)); break;
    case 2: CHECK(MPI_File_iread_at(file, 0, data, count, MPI_INT, &request)); break;
    case 3: CHECK(MPI_File_iread(file, data, count, MPI_INT, &request)); break;
    case 4: CHECK(MPI_File_read_at_all(file, 0, data, count, MPI_INT, &status)); break;
    case 5: CHECK(MPI_File_read_all(file, data, count, MPI_INT, &status)); break;
    case 6: CHECK(MPI_File_iread_at_all(file, 0, data, count, MPI_INT, &request)); break;
    case 7: CHECK(MPI_File_iread_all(file, data, count, MPI_INT, &request)); break;
    case 8:
        CHECK(MPI_File_read_at_all_begin(file, 0, data, count, MPI_INT));
        CHECK(MPI_File_read_at_all_end(file, data, &status));
        break;
    default:
        CHECK(MPI_File_read_all_begin(file, data, count, MPI_INT));
        CHECK(MPI_File_read_all_end(file, data, &status));
    }
    if (request != MPI_REQUEST_NULL)
        CHECK(MPI_Wait(&request, &status));
    EXPECT(count_of(&status), expected);
}

static void forms(const char *name, const char *cb)
{
    enum { BLOCK = 5, COUNT = 5000 };
    int *data = malloc(COUNT * sizeof(int)), *back = malloc((COUNT + 10) * sizeof(int));
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", cb);
    MPI_Info_set(info, "romio_cb_read", cb);
    MPI_Info_set(info, "cb_buffer_size", "4096");
    fill(data, COUNT, BLOCK);
    for (int form = 0; form < FORMS; form++) {
        MPI_File file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, info);
        MPI_Offset bytes;
        set_interleaved(file, BLOCK);
        write_form(file, form, data, COUNT);
        CHECK(MPI_File_sync(file));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(MPI_File_get_size(file, &bytes));
        EXPECT(bytes, (long long)size * COUNT * sizeof(int));
        for (int reader = 0; reader < FORMS; reader++) {
            read_form(file, reader, back, COUNT, COUNT);
            is_filled(back, COUNT, BLOCK, __LINE__);
        }
        /* Behind the end nothing is read. */
        read_form(file, form, back, COUNT + 10, COUNT);
        is_filled(back, COUNT, BLOCK, __LINE__);
        CHECK(MPI_File_close(&file));
        EXPECT(file == MPI_FILE_NULL, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* A host of a network file system may know the name of a file for some time after another has removed it. */
    if (rank == 0) EXPECT(access(name, F_OK), -1);
    MPI_Info_free(&info);
    free(data);
    free(back);
}

/* Memory with gaps, views of subarrays, and ranks that have nothing to say. */
static void arrays(const char *name)
{
    enum { ROWS = 12, OWN = 7 };
    int sizes[2] = {ROWS, OWN * size}, parts[2] = {ROWS, OWN}, starts[2] = {0, OWN * rank};
    int inner[2] = {ROWS + 2, OWN + 3}, begin[2] = {1, 2};
    int memory[ROWS + 2][OWN + 3], back[ROWS + 2][OWN + 3];
    MPI_Datatype view, buffer;
    MPI_File file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL);
    MPI_Status status;
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &view);
    MPI_Type_create_subarray(2, inner, parts, begin, MPI_ORDER_C, MPI_INT, &buffer);
    MPI_Type_commit(&view);
    MPI_Type_commit(&buffer);
    CHECK(MPI_File_set_view(file, 64, MPI_INT, view, "native", MPI_INFO_NULL));
    memset(memory, 0, sizeof memory);
    memset(back, 0, sizeof back);
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < OWN; column++)
            memory[row + 1][column + 2] = number((long)row * OWN * size + OWN * rank + column);
    CHECK(MPI_File_write_all(file, memory, 1, buffer, &status));
    EXPECT(count_of(&status), ROWS * OWN);
    CHECK(MPI_File_sync(file));
    CHECK(MPI_File_read_at_all(file, 0, back, 1, buffer, &status));
    EXPECT(memcmp(memory, back, sizeof back), 0);
    memset(back, 0, sizeof back);
    CHECK(MPI_File_read_at(file, 0, back, 1, buffer, &status));
    EXPECT(memcmp(memory, back, sizeof back), 0);
    /* The whole array, read by the last rank alone in a collective call. */
    CHECK(MPI_File_set_view(file, 64, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    int *whole = malloc((size_t)ROWS * OWN * size * sizeof(int));
    int count = rank == size - 1 ? ROWS * OWN * size : 0;
    CHECK(MPI_File_read_all(file, whole, count, MPI_INT, &status));
    EXPECT(count_of(&status), count);
    for (int place = 0; place < count; place++)
        EXPECT(whole[place], number(place));
    free(whole);
    MPI_Type_free(&view);
    MPI_Type_free(&buffer);
    CHECK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        CHECK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The shared pointer gives every access a place of its own; ordered accesses follow each other by rank. */
/* Tiles that reach into each other: numbers 0 and 2 of each, and each begins one number behind the last. */
static void reaching(const char *name)
{
    MPI_Datatype vector, type;
    MPI_File file = opened(name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
    CHECK(MPI_Type_vector(2, 1, 2, MPI_INT, &vector));
    CHECK(MPI_Type_create_resized(vector, 0, sizeof(int), &type));
    CHECK(MPI_Type_commit(&type));
    for (int is_collective = 0; is_collective < 2; is_collective++) {
        static const int order[] = { 0, 2, 1, 3 };
        int data[4], back[4], more[6] = {0};
        MPI_Offset start = (MPI_Offset)rank * sizeof data;
        for (int n = 0; n < 4; n++)
            data[n] = number(4 * rank + n + is_collective);
        CHECK(MPI_File_set_view(file, start, MPI_INT, type, "native", MPI_INFO_NULL));
        if (is_collective)
            CHECK(MPI_File_write_at_all(file, 0, data, 4, MPI_INT, MPI_STATUS_IGNORE));
        else
            CHECK(MPI_File_write_at(file, 0, data, 4, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(MPI_File_read_at_all(file, 0, back, 4, MPI_INT, MPI_STATUS_IGNORE));
        EXPECT(memcmp(back, data, sizeof data), 0);
        /* The third tile begins where the first one ends. */
        FAILS(MPI_File_write_at(file, 0, more, 6, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
        CHECK(MPI_File_set_view(file, start, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
        CHECK(MPI_File_read_at(file, 0, back, 4, MPI_INT, MPI_STATUS_IGNORE));
        for (int n = 0; n < 4; n++)
            EXPECT(back[order[n]], data[n]);
    }
    CHECK(MPI_Type_free(&type));
    CHECK(MPI_Type_free(&vector));
    CHECK(MPI_File_close(&file));
}

static void pointers(const char *name)
{
    enum { COUNT = 30 };
    MPI_File file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
    MPI_Offset offset;
    MPI_Request request;
    MPI_Status status;
    int *seen = calloc((size_t)COUNT * size, sizeof(int)), value;
    CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int n = 0; n < COUNT; n++) {
        value = rank * COUNT + n;
        if (n % 2) {
            CHECK(MPI_File_iwrite_shared(file, &value, 1, MPI_INT, &request));
            CHECK(MPI_Wait(&request, &status));
        } else {
            CHECK(MPI_File_write_shared(file, &value, 1, MPI_INT, &status));
        }
        EXPECT(count_of(&status), 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_get_position_shared(file, &offset));
    EXPECT(offset, (long long)COUNT * size);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int n = 0; n < COUNT; n++) {
        if (n % 2) {
            CHECK(MPI_File_iread_shared(file, &value, 1, MPI_INT, &request));
            CHECK(MPI_Wait(&request, &status));
        } else {
            CHECK(MPI_File_read_shared(file, &value, 1, MPI_INT, &status));
        }
        EXPECT(count_of(&status), 1);
        seen[value] += 1;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, COUNT * size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int n = 0; n < COUNT * size; n++)
        EXPECT(seen[n], 1);
    free(seen);
    CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    int mine[16], others = 0;
    for (int other = 0; other < rank; other++)
        others += other % 3 + 1;
    for (int round = 0; round < 2; round++) {
        for (int n = 0; n < rank % 3 + 1; n++)
            mine[n] = 1000 * round + 10 * rank + n;
        if (round == 0) {
            CHECK(MPI_File_write_ordered(file, mine, rank % 3 + 1, MPI_INT, &status));
        } else {
            CHECK(MPI_File_write_ordered_begin(file, mine, rank % 3 + 1, MPI_INT));
            CHECK(MPI_File_write_ordered_end(file, mine, &status));
        }
        EXPECT(count_of(&status), rank % 3 + 1);
    }
    CHECK(MPI_File_get_position_shared(file, &offset));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_seek_shared(file, -offset, MPI_SEEK_CUR));
    for (int round = 0; round < 2; round++) {
        memset(mine, 0, sizeof mine);
        if (round == 0) {
            CHECK(MPI_File_read_ordered_begin(file, mine, rank % 3 + 1, MPI_INT));
            CHECK(MPI_File_read_ordered_end(file, mine, &status));
        } else {
            CHECK(MPI_File_read_ordered(file, mine, rank % 3 + 1, MPI_INT, &status));
        }
        for (int n = 0; n < rank % 3 + 1; n++)
            EXPECT(mine[n], 1000 * round + 10 * rank + n);
    }
    CHECK(MPI_File_read_at(file, others, mine, 1, MPI_INT, &status));
    EXPECT(mine[0], 10 * rank);
    CHECK(MPI_File_seek(file, 3, MPI_SEEK_SET));
    CHECK(MPI_File_seek(file, 4, MPI_SEEK_CUR));
    CHECK(MPI_File_get_position(file, &offset));
    EXPECT(offset, 7);
    FAILS(MPI_File_seek(file, -8, MPI_SEEK_CUR), MPI_ERR_ARG);
    CHECK(MPI_File_seek(file, -1, MPI_SEEK_END));
    CHECK(MPI_File_get_position(file, &offset));
    EXPECT(offset, (long long)COUNT * size - 1);
    CHECK(MPI_File_close(&file));
}

/* In atomic mode a read finds all of a write or nothing of it. */
static void atomic(const char *name)
{
    enum { COUNT = 3000, ROUNDS = 20 };
    int *data = malloc(COUNT * sizeof(int)), flag;
    MPI_File file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
    MPI_Datatype type;
    MPI_Status status;
    CHECK(MPI_File_get_atomicity(file, &flag));
    EXPECT(flag, 0);
    CHECK(MPI_File_set_atomicity(file, 1));
    CHECK(MPI_File_get_atomicity(file, &flag));
    EXPECT(flag, 1);
    /* All ranks access the same ints, with gaps. */
    MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &type);
    MPI_Type_commit(&type);
    CHECK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    for (int n = 0; n < COUNT; n++)
        data[n] = rank;
    CHECK(MPI_File_write_at_all(file, 0, data, COUNT, MPI_INT, &status));
    for (int round = 0; round < ROUNDS; round++) {
        if ((round + rank) % 2) {
            for (int n = 0; n < COUNT; n++)
                data[n] = 100 * round + rank;
            CHECK(MPI_File_write_at(file, 0, data, COUNT, MPI_INT, &status));
        } else {
            CHECK(MPI_File_read_at(file, 0, data, COUNT, MPI_INT, &status));
            EXPECT(count_of(&status), COUNT);
            for (int n = 1; n < COUNT; n++)
                EXPECT(data[n], data[0]);
        }
    }
    CHECK(MPI_File_write_at_all(file, 0, data, COUNT, MPI_INT, &status));
    CHECK(MPI_File_read_at_all(file, 0, data, COUNT, MPI_INT, &status));
    for (int n = 1; n < COUNT; n++)
        EXPECT(data[n], data[0]);
    CHECK(MPI_File_set_atomicity(file, 0));
    CHECK(MPI_File_close(&file));
    free(data);
}

/* A write is seen by a rank that was told of it afterwards, and what was read before is not taken for what is there now:
 * more than the standard asks for, but programs rely on it. */
enum { TELLINGS = 7 };

static void tell(int telling, int from, int to, MPI_Win win)
{
    MPI_Request request;
    MPI_Comm copy;
    int value = 1;
    switch (telling) {
    case 0: MPI_Barrier(MPI_COMM_WORLD); return;
    case 1: MPI_Bcast(&value, 1, MPI_INT, from, MPI_COMM_WORLD); return;
    case 2: MPI_Comm_dup(MPI_COMM_WORLD, &copy); MPI_Comm_free(&copy); return;
    case 3: MPI_Win_fence(0, win); return;
    case 4: MPI_Ibarrier(MPI_COMM_WORLD, &request); MPI_Wait(&request, MPI_STATUS_IGNORE); return;
    }
    if (rank == from) {
        if (telling == 5) MPI_Send(&value, 1, MPI_INT, to, 3, MPI_COMM_WORLD);
        else MPI_Isend(&value, 1, MPI_INT, to, 3, MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == to)
        MPI_Recv(&value, 1, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void telling(const char *name)
{
    MPI_File file, own;
    MPI_Win win;
    MPI_Offset bytes;
    int word;
    file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL);
    MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int round = 0; round < 6 * TELLINGS; round++) {
        int from = round % size, to = (round + 1) % size, records = round % 3 ? 5 : 300;
        if (rank == from)
            for (int i = 0; i < records; i++) {
                word = round * 1000 + i;
                CHECK(MPI_File_write_at(file, 2 * i, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
            }
        if (size > 1) tell(round % TELLINGS, from, to, win);
        if (rank == to) {
            CHECK(MPI_File_get_size(file, &bytes));
            EXPECT(bytes >= (2 * records - 1) * 4, 1);
            for (int i = 0; i < records; i++) {
                CHECK(MPI_File_read_at(file, 2 * i, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
                EXPECT(word, round * 1000 + i);
            }
        }
        if (size > 1) tell((round + 2) % TELLINGS, to, from, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
    CHECK(MPI_File_sync(file));
    /* Two handles of one process. */
    CHECK(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR, MPI_INFO_NULL, &own));
    MPI_Barrier(MPI_COMM_WORLD);
    word = rank + 7;
    int place = 1024 + rank * (is_apart ? 1024 : 1);
    CHECK(MPI_File_write_at(own, place * 4, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(MPI_File_sync(own));
    CHECK(MPI_File_sync(file));
    CHECK(MPI_File_read_at(file, place, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    EXPECT(word, rank + 7);
    CHECK(MPI_File_close(&own));
    CHECK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A write that waits in memory fails later: the next synchronisation tells it, once. */
static void delayed(const char *name)
{
    enum { LIMIT = 100000 };
    struct rlimit limit = {LIMIT, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    char data[100] = "", text[MPI_MAX_ERROR_STRING] = "";
    int code, len;
    MPI_File file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK(MPI_File_write_at(file, 2 * LIMIT + 100 * rank, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    code = MPI_File_sync(file);
    expect_class(code, MPI_ERR_IO, __LINE__);
    MPI_Error_string(code, text, &len);
    if (!strstr(text, name) || !strstr(text, "are lost") || !strstr(text, "ulimit -f")) {
        fprintf(stderr, "files.c:%d: rank %d: %s\n", __LINE__, rank, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    CHECK(MPI_File_write_at(file, 100 * rank, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(MPI_File_sync(file));
    setrlimit(RLIMIT_FSIZE, &none);
    CHECK(MPI_File_close(&file));
}

static int converted;

static int read_doubled(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    (void)type;
    for (int n = 0; n < count; n++)
        ((int *)user)[position + n] = (int)(((long long *)file)[n] / 2);
    converted += *(int *)state;
    return MPI_SUCCESS;
}

static int write_doubled(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state)
{
    (void)type;
    for (int n = 0; n < count; n++)
        ((long long *)file)[n] = 2LL * ((int *)user)[position + n];
    converted += *(int *)state;
    return MPI_SUCCESS;
}

static int doubled(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    int bytes;
    (void)state;
    MPI_Type_size(type, &bytes);
    *extent = 2 * bytes;
    return MPI_SUCCESS;
}

/* Bytes on the disk: external32 is big endian, and a representation of the program's is what it says. */
static void representations(const char *name)
{
    static int one = 1;
    MPI_File file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
    MPI_Status status;
    MPI_Aint extent;
    unsigned char bytes[64];
    int ints[4], back[4];
    long longs[2] = {rank + 1, -2}, long_back[2];
    double pi = 3.25, pi_back;
    char used[MPI_MAX_DATAREP_STRING];
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    CHECK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
    CHECK(MPI_File_get_view(file, &disp, &etype, &filetype, used));
    EXPECT(strcmp(used, "external32") == 0 && disp == 0 && etype == MPI_BYTE, 1);
    CHECK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    MPI_Count packed;
    MPI_Pack_external_size_c("external32", 1, MPI_LONG, &packed);
    EXPECT(extent, packed);
    for (int n = 0; n < 4; n++)
        ints[n] = 0x01020304 + n + 16 * rank;
    CHECK(MPI_File_write_at(file, 64 * rank, ints, 4, MPI_INT, &status));
    EXPECT(count_of(&status), 4);
    CHECK(MPI_File_write_at_all(file, 64 * rank + 16, longs, 2, MPI_LONG, &status));
    CHECK(MPI_File_write_at(file, 64 * rank + 16 + 2 * extent, &pi, 1, MPI_DOUBLE, &status));
    memset(back, 0, sizeof back);
    CHECK(MPI_File_read_at_all(file, 64 * rank, back, 4, MPI_INT, &status));
    EXPECT(memcmp(ints, back, sizeof ints), 0);
    CHECK(MPI_File_read_at(file, 64 * rank + 16, long_back, 2, MPI_LONG, &status));
    EXPECT(long_back[0] == longs[0] && long_back[1] == longs[1], 1);
    CHECK(MPI_File_read_at(file, 64 * rank + 16 + 2 * extent, &pi_back, 1, MPI_DOUBLE, &status));
    EXPECT(pi_back == pi, 1);
    CHECK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "internal", MPI_INFO_NULL));
    CHECK(MPI_File_read_at(file, 64 * rank, bytes, 32, MPI_BYTE, &status));
    for (int n = 0; n < 4; n++)
        EXPECT(bytes[4 * n] == 1 && bytes[4 * n + 1] == 2 && bytes[4 * n + 2] == 3
                   && bytes[4 * n + 3] == 4 + n + 16 * rank, 1);
    EXPECT(bytes[16 + extent - 1], rank + 1);

    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "doubled", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    CHECK(MPI_Register_datarep("doubled", read_doubled, write_doubled, doubled, &one));
    FAILS(MPI_Register_datarep("doubled", read_doubled, write_doubled, doubled, &one), MPI_ERR_DUP_DATAREP);
    CHECK(MPI_File_set_size(file, 0));
    MPI_Datatype type;
    MPI_Type_vector(2, 1, size, MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK(MPI_File_set_view(file, (MPI_Offset)rank * 8, MPI_INT, type, "doubled", MPI_INFO_NULL));
    MPI_Type_free(&type);
    converted = 0;
    int pair[2] = {number(rank), number(rank + size)}, pair_back[2] = {0, 0};
    CHECK(MPI_File_write_at_all(file, 0, pair, 2, MPI_INT, &status));
    EXPECT(count_of(&status), 2);
    CHECK(MPI_File_read_at_all(file, 0, pair_back, 2, MPI_INT, &status));
    EXPECT(pair_back[0] == pair[0] && pair_back[1] == pair[1], 1);
    EXPECT(converted, 2);
    CHECK(MPI_File_set_view(file, 0, MPI_LONG_LONG, MPI_LONG_LONG, "native", MPI_INFO_NULL));
    long long *all = malloc(2 * (size_t)size * sizeof(long long));
    CHECK(MPI_File_read_at(file, 0, all, 2 * size, MPI_LONG_LONG, &status));
    for (int n = 0; n < 2 * size; n++)
        EXPECT(all[n], 2LL * number(n));
    free(all);
    CHECK(MPI_File_close(&file));
}

static int handled;

static void handler(MPI_File *file, int *code, ...)
{
    (void)file;
    (void)code;
    handled += 1;
}

/* What is wrong has its class, and goes to the handler of the file. */
static void errors(const char *name, const char *folder)
{
    MPI_File file = MPI_FILE_NULL, other;
    MPI_Errhandler errhandler, found;
    MPI_Status status;
    MPI_Request request;
    MPI_Offset offset;
    MPI_Info info;
    int value = 0, flag, amode;
    char longer[600];
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    EXPECT(file == MPI_FILE_NULL, 1);
    FAILS(MPI_File_open(MPI_COMM_WORLD, folder, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_BAD_FILE);
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = 0;
    FAILS(MPI_File_open(MPI_COMM_WORLD, longer, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file),
          MPI_ERR_BAD_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_INFO_NULL, &file),
          MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file),
          MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, 1 << 20, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_close(&file), MPI_ERR_FILE);
    FAILS(MPI_File_get_size(MPI_FILE_NULL, &offset), MPI_ERR_FILE);
    if (size > 1)
        FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | (rank ? MPI_MODE_RDWR : MPI_MODE_WRONLY),
                            MPI_INFO_NULL, &file),
              MPI_ERR_NOT_SAME);

    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_nodes", "1");
    MPI_Info_set(info, "file_perm", "0600");
    MPI_Info_set(info, "nobody_knows_it", "1");
    file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, info);
    MPI_Info_free(&info);
    CHECK(MPI_File_get_info(file, &info));
    char text[64];
    MPI_Info_get(info, "cb_nodes", 63, text, &flag);
    EXPECT(flag && strcmp(text, "1") == 0, 1);
    MPI_Info_get(info, "nobody_knows_it", 63, text, &flag);
    EXPECT(flag, 0);
    CHECK(MPI_File_set_info(file, info));
    MPI_Info_free(&info);
    CHECK(MPI_File_get_amode(file, &amode));
    EXPECT(amode, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL);
    MPI_Group group, world;
    CHECK(MPI_File_get_group(file, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &flag);
    EXPECT(flag, MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &other),
          MPI_ERR_FILE_EXISTS);

    CHECK(MPI_File_get_errhandler(file, &found));
    EXPECT(found == MPI_ERRORS_RETURN, 1);
    CHECK(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    EXPECT(found == MPI_ERRORS_RETURN, 1);
    CHECK(MPI_File_create_errhandler(handler, &errhandler));
    CHECK(MPI_File_set_errhandler(file, errhandler));
    handled = 0;
    FAILS(MPI_File_read_at(file, -1, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
    FAILS(MPI_File_write_at(file, 0, &value, -1, MPI_INT, &status), MPI_ERR_COUNT);
    FAILS(MPI_File_write_at(file, 0, &value, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    FAILS(MPI_File_write_at(file, 0, NULL, 1, MPI_INT, &status), MPI_ERR_BUFFER);
    FAILS(MPI_File_write_at_all(file, -7, &value, 1, MPI_INT, &status), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, -7, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nothing", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    FAILS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    FAILS(MPI_File_read_all_end(file, &value, &status), MPI_ERR_OTHER);
    EXPECT(handled, 10);
    if (size > 1) {
        FAILS(MPI_File_set_size(file, 10 + rank), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_set_atomicity(file, rank == 0), MPI_ERR_NOT_SAME);
        FAILS(MPI_File_seek_shared(file, rank, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
        /* What is wrong on one rank does not keep the others from their access. */
        int code = MPI_File_write_at_all(file, rank ? 4 * rank : -1, &value, 1, MPI_INT, &status);
        FAILS(code, rank ? MPI_SUCCESS : MPI_ERR_ARG);
    }
    CHECK(MPI_File_read_all_begin(file, &value, 0, MPI_INT));
    FAILS(MPI_File_read_all(file, &value, 0, MPI_INT, &status), MPI_ERR_OTHER);
    FAILS(MPI_File_write_all_end(file, &value, &status), MPI_ERR_OTHER);
    FAILS(MPI_File_close(&file), MPI_ERR_OTHER);
    CHECK(MPI_File_read_all_end(file, &value, &status));
    CHECK(MPI_Errhandler_free(&errhandler));
    CHECK(MPI_File_preallocate(file, 4000));
    CHECK(MPI_File_get_size(file, &offset));
    EXPECT(offset, 4000);
    CHECK(MPI_File_close(&file));

    file = opened(name, MPI_MODE_RDONLY, MPI_INFO_NULL);
    FAILS(MPI_File_write(file, &value, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_set_size(file, 1), MPI_ERR_READ_ONLY);
    CHECK(MPI_File_close(&file));
    file = opened(name, MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL);
    CHECK(MPI_File_get_position(file, &offset));
    EXPECT(offset, 4000);
    CHECK(MPI_File_get_position_shared(file, &offset));
    EXPECT(offset, 4000);
    FAILS(MPI_File_read(file, &value, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    CHECK(MPI_File_close(&file));
    file = opened(name, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL);
    FAILS(MPI_File_read(file, &value, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(MPI_File_read_shared(file, &value, 1, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI_Datatype etype, filetype;
    CHECK(MPI_File_get_view(file, &offset, &etype, &filetype, longer));
    EXPECT(offset, 4 * size);
    CHECK(MPI_File_close(&file));

    /* No space: independent, nonblocking and collective. */
    file = opened("/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL);
    FAILS(MPI_File_write_at(file, 0, &value, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
    CHECK(MPI_File_iwrite_at(file, 0, &value, 1, MPI_INT, &request));
    FAILS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
    int only = rank == size - 1;
    FAILS(MPI_File_write_at_all(file, 0, &value, only, MPI_INT, &status), MPI_ERR_NO_SPACE);
    CHECK(MPI_File_iwrite_at_all(file, 0, &value, only, MPI_INT, &request));
    FAILS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
    CHECK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        CHECK(MPI_File_delete(name, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Several accesses of all ranks under way at once, and forms with large counts. */
static void at_once(const char *name)
{
    enum { COUNT = 700, ACCESSES = 6 };
    static int data[ACCESSES][COUNT], back[ACCESSES][COUNT];
    MPI_Request requests[ACCESSES];
    MPI_Status status;
    MPI_File file = opened(name, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
    set_interleaved(file, 2);
    for (int n = 0; n < ACCESSES; n++) {
        for (int i = 0; i < COUNT; i++)
            data[n][i] = number(1000L * n + i) + rank;
        if (n % 2)
            CHECK(MPI_File_iwrite_at_all_c(file, (MPI_Offset)n * COUNT, data[n], COUNT, MPI_INT, &requests[n]));
        else
            CHECK(MPI_File_iwrite_at_c(file, (MPI_Offset)n * COUNT, data[n], COUNT, MPI_INT, &requests[n]));
    }
    CHECK(MPI_Waitall(ACCESSES, requests, MPI_STATUSES_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int n = ACCESSES - 1; n >= 0; n--)
        CHECK(MPI_File_iread_at_all(file, (MPI_Offset)n * COUNT, back[n], COUNT, MPI_INT, &requests[n]));
    CHECK(MPI_Waitall(ACCESSES, requests, MPI_STATUSES_IGNORE));
    EXPECT(memcmp(data, back, sizeof data), 0);
    memset(back, 0, sizeof back);
    CHECK(MPI_File_read_at_c(file, 0, back, (MPI_Count)ACCESSES * COUNT, MPI_INT, &status));
    EXPECT(memcmp(data, back, sizeof data), 0);
    CHECK(MPI_File_close(&file));
}

int main(int argc, char **argv)
{
    char name[400];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    is_apart = argc == 3 && strcmp(argv[2], "apart") == 0;
    if (argc != 2 && !is_apart)
        MPI_Abort(MPI_COMM_WORLD, 2);
    snprintf(name, sizeof name, "%s/file", argv[1]);
    errors(name, argv[1]);
    forms(name, "automatic");
    forms(name, "enable");
    forms(name, "disable");
    arrays(name);
    reaching(name);
    pointers(name);
    atomic(name);
    telling(name);
    delayed(name);
    representations(name);
    at_once(name);
    MPI_Finalize();
    return 0;
}
