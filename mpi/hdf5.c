/* Parallel HDF5: all ranks write one file with collective and with independent transfers, contiguous and
 * chunked, and read it back divided in another way. Prints a line for each check.
 *   hdf5 FILE */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 240, COLUMNS = 50, RECORDS = 400 };

static int rank, ranks, failed;

static void check(int is_right, const char *what)
{
    MPI_Allreduce(MPI_IN_PLACE, &is_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    failed |= !is_right;
    if (rank == 0)
        printf("%s %s\n", is_right ? "ok" : "wrong", what);
}

/* The value at a place of dataset `which`. */
static double value(int which, hsize_t row, hsize_t column)
{
    return 1e6 * which + 100.0 * row + column;
}

static hid_t transfer(H5FD_mpio_xfer_t mode)
{
    hid_t list = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(list, mode);
    return list;
}

/* Selects every `ranks`-th row or column from this rank's own on. */
static hid_t part(hid_t dataset, int of_rows)
{
    hid_t space = H5Dget_space(dataset);
    hsize_t many = (of_rows ? ROWS : COLUMNS), count = (many - rank + ranks - 1) / ranks;
    hsize_t start[2] = { of_rows ? rank : 0, of_rows ? 0 : rank };
    hsize_t stride[2] = { of_rows ? ranks : 1, of_rows ? 1 : ranks };
    hsize_t counts[2] = { of_rows ? count : ROWS, of_rows ? COLUMNS : count };
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, counts, NULL);
    return space;
}

/* Moves this rank's part: writes it, or reads it; returns whether all of it is right. */
static int move(hid_t file, const char *name, int which, int of_rows, H5FD_mpio_xfer_t mode, int writes)
{
    hid_t dataset = H5Dopen(file, name, H5P_DEFAULT), space = part(dataset, of_rows), list = transfer(mode);
    hsize_t count = H5Sget_select_npoints(space), at = 0;
    hid_t memory = H5Screate_simple(1, &count, NULL);
    double *wanted = malloc(ROWS * COLUMNS * sizeof *wanted), *data = calloc(ROWS * COLUMNS, sizeof *data);
    for (hsize_t row = of_rows ? rank : 0; row < ROWS; row += of_rows ? ranks : 1)
        for (hsize_t column = of_rows ? 0 : rank; column < COLUMNS; column += of_rows ? 1 : ranks)
            wanted[at++] = value(which, row, column);
    herr_t code = writes ? H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, list, wanted)
                         : H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, list, data);
    int is_right = code >= 0 && at == count && (writes || memcmp(data, wanted, count * sizeof *data) == 0);
    free(data);
    free(wanted);
    H5Pclose(list);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(dataset);
    return is_right;
}

static void create(hid_t file, const char *name, int is_chunked)
{
    hsize_t size[2] = { ROWS, COLUMNS }, chunk[2] = { 16, 10 };
    hid_t space = H5Screate_simple(2, size, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    if (is_chunked)
        H5Pset_chunk(list, 2, chunk);
    H5Dclose(H5Dcreate(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Pclose(list);
    H5Sclose(space);
}

/* Records of one number that the ranks write in turn, each by itself: a call for each record. */
static int records(hid_t file, int writes)
{
    hid_t dataset = H5Dopen(file, "records", H5P_DEFAULT), list = transfer(H5FD_MPIO_INDEPENDENT);
    hsize_t one = 1;
    hid_t memory = H5Screate_simple(1, &one, NULL);
    int is_right = dataset >= 0;
    /* A reader reads what its neighbour has written. */
    for (int at = writes ? rank : (rank + 1) % ranks; at < RECORDS; at += ranks) {
        hid_t space = H5Dget_space(dataset);
        hsize_t start = at;
        double word = writes ? value(9, at, 0) : 0;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &one, NULL);
        is_right &= (writes ? H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, list, &word)
                            : H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, list, &word)) >= 0;
        is_right &= word == value(9, at, 0);
        H5Sclose(space);
    }
    H5Sclose(memory);
    H5Pclose(list);
    H5Dclose(dataset);
    return is_right;
}

static hid_t opened(const char *path, int is_new)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = is_new ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list) : H5Fopen(path, H5F_ACC_RDONLY, list);
    H5Pclose(list);
    return file;
}

int main(int argc, char **argv)
{
    static const char *const names[] = { "rows, collective", "columns, independent", "chunked rows, collective",
                                         "chunked columns, independent" };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2) {
        fprintf(stderr, "hdf5: name a file\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    hid_t file = opened(argv[1], 1);
    check(file >= 0, "create");
    for (int which = 0; which < 4; which++)
        create(file, names[which], which >= 2);
    hsize_t all = RECORDS;
    hid_t space = H5Screate_simple(1, &all, NULL);
    H5Dclose(H5Dcreate(file, "records", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    for (int which = 0; which < 4; which++) {
        H5FD_mpio_xfer_t mode = which % 2 ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE;
        check(move(file, names[which], which, which % 2 == 0, mode, 1), names[which]);
    }
    check(records(file, 1), "records of 8 B, independent");
    check(H5Fclose(file) >= 0, "close");
    file = opened(argv[1], 0);
    check(file >= 0, "open");
    for (int which = 0; which < 4; which++) {
        H5FD_mpio_xfer_t mode = which % 2 ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT;
        check(move(file, names[which], which, which % 2, mode, 0), names[which]);
    }
    check(records(file, 0), "records of 8 B, read by the neighbour");
    check(H5Fclose(file) >= 0, "close again");
    MPI_Finalize();
    return failed;
}
