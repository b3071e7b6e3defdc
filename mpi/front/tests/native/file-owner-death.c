/* An owner of regions of a file dies: the others' accesses go on, what was synchronised stays, and what they write afterwards
 * is in the file. In atomic mode a rank dies for which others wait. The argument is the file. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 4096, BLOCKS = 16, ATOMIC = 20000 };
static int rank, size;
static MPI_Comm left;

static void wrong(int line, const char *what, int number)
{
    fprintf(stderr, "file-owner-death.c:%d: rank %d: %s (%d)\n", line, rank, what, number);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void check(int code, int line)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &len);
    wrong(line, text, code);
}

static void expect_failed(int code, int line)
{
    int class_ = 0;
    MPI_Error_class(code, &class_);
    if (class_ != MPIX_ERR_PROC_FAILED) wrong(line, "another class", class_);
}

static int value(int block) { return 'A' + block % 50; }

static MPI_File opened(MPI_Comm comm, const char *path)
{
    MPI_File file;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "nmad_indep_rw", "owners");
    MPI_Info_set(info, "cb_nodes", "2");
    MPI_Info_set(info, "cb_buffer_size", "4096");
    check(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file), __LINE__);
    MPI_Info_free(&info);
    return file;
}

static void write_block(MPI_File file, int block)
{
    char data[BLOCK];
    memset(data, value(block), BLOCK);
    check(MPI_File_write_at(file, (MPI_Offset)block * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
}

static void read_block(MPI_File file, int block)
{
    char data[BLOCK] = "";
    check(MPI_File_read_at(file, (MPI_Offset)block * BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
    for (int i = 0; i < BLOCK; i++)
        if (data[i] != value(block)) wrong(__LINE__, "the data of a block are lost", block);
}

static void owner_dies(const char *path)
{
    MPI_File file = opened(MPI_COMM_WORLD, path);
    for (int block = rank; block < BLOCKS; block += size) write_block(file, block);
    check(MPI_File_sync(file), __LINE__);
    for (int block = BLOCKS + rank; block < 2 * BLOCKS; block += size) write_block(file, block);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) raise(SIGKILL);
    for (int block = 0; block < BLOCKS; block++) read_block(file, block);
    for (int block = 2 * BLOCKS + rank; block < 3 * BLOCKS; block += size) {
        write_block(file, block);
        read_block(file, block);
    }
    /* Of the regions of the other owner nothing is lost. */
    for (int block = BLOCKS; block < 2 * BLOCKS; block += 2) read_block(file, block);
    expect_failed(MPI_File_sync(file), __LINE__);
    check(MPIX_Comm_shrink(MPI_COMM_WORLD, &left), __LINE__);
    expect_failed(MPI_File_sync(file), __LINE__);
    MPI_Barrier(left);
    expect_failed(MPI_File_close(&file), __LINE__);
    file = opened(left, path);
    for (int block = 0; block < 3 * BLOCKS; block++) {
        int is_lost = block >= BLOCKS && block < 2 * BLOCKS && block % 2;
        int is_of_dead = block >= 2 * BLOCKS && (block - 2 * BLOCKS) % size == 1;
        if (!is_lost && !is_of_dead) read_block(file, block);
    }
    check(MPI_File_close(&file), __LINE__);
}

static void holder_dies(const char *path)
{
    static char data[ATOMIC];
    MPI_File file = opened(left, path);
    MPI_Request request;
    int last, me;
    MPI_Comm_rank(left, &me);
    MPI_Comm_size(left, &last);
    check(MPI_File_set_atomicity(file, 1), __LINE__);
    MPI_Barrier(left);
    if (me == last - 1) {
        check(MPI_File_iwrite_at(file, 0, data, ATOMIC, MPI_BYTE, &request), __LINE__);
        raise(SIGKILL);
    }
    for (int round = 0; round < 20; round++) {
        memset(data, round, ATOMIC);
        check(MPI_File_write_at(file, 0, data, ATOMIC, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
        check(MPI_File_read_at(file, 0, data, ATOMIC, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
        for (int i = 1; i < ATOMIC; i++)
            if (data[i] != data[0]) wrong(__LINE__, "a write is not whole", i);
    }
    expect_failed(MPI_File_close(&file), __LINE__);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    owner_dies(argv[1]);
    holder_dies(argv[1]);
    MPI_Finalize();
    return 0;
}
