/* Small records of one file, which all ranks write in turn, each by itself with a call for each record; another rank reads
 * each of them after both have called MPI_File_sync, and overwrites it, and the first one looks again. With two ranks a host
 * in turns, the other rank is on another host. Prints a line for each check, and the times of the first pass.
 *   records FILE MB [BYTES [SECONDS]]
 * MB are the megabytes of all ranks, BYTES those of a record (1000). After SECONDS no rank writes further records; then they
 * are read once and not overwritten. What the file holds in the end depends on MB and BYTES only. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, failed;
static long bytes = 1000;
static MPI_File file;
static unsigned char *record, *wanted;

static void check(int is_right, const char *what)
{
    MPI_Allreduce(MPI_IN_PLACE, &is_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    failed |= !is_right;
    if (rank == 0)
        printf("%s %s\n", is_right ? "ok" : "wrong", what);
    fflush(stdout);
}

static void must(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &len);
    fprintf(stderr, "records: rank %d: %s: %s\n", rank, what, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The bytes of a record in a pass: its number, and then others for each record and pass. */
static void make(unsigned char *into, long number, int pass)
{
    for (long i = 0; i < bytes; i++)
        into[i] = (unsigned char)(i < 8 ? number >> 8 * i : number * 131 + i * 7 + pass * 59);
}

/* Writes each `ranks`-th record from `first` on, until the time is over: how many. */
static long write_records(int first, long count, int pass, double until)
{
    long done = 0;
    for (; done < count && (until == 0 || done % 16 != 0 || MPI_Wtime() < until); done++) {
        long number = first + done * ranks;
        make(record, number, pass);
        must(MPI_File_write_at(file, (MPI_Offset)number * bytes, record, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE), "write");
    }
    return done;
}

/* Reads each `ranks`-th record from `first` on: whether all of them are as they were written. */
static int read_records(int first, long count, int pass)
{
    int is_right = 1, got;
    MPI_Status status;
    for (long done = 0; done < count; done++) {
        long number = first + done * ranks;
        make(wanted, number, pass);
        memset(record, 0, (size_t)bytes);
        must(MPI_File_read_at(file, (MPI_Offset)number * bytes, record, (int)bytes, MPI_BYTE, &status), "read");
        MPI_Get_count(&status, MPI_BYTE, &got);
        if (got == bytes && memcmp(record, wanted, (size_t)bytes) == 0)
            continue;
        if (is_right)
            fprintf(stderr, "records: rank %d: record %ld, pass %d: %d B, wrong ones\n", rank, number, pass, got);
        is_right = 0;
    }
    return is_right;
}

/* What has been written before is seen by all after it. */
static void synchronise(void)
{
    must(MPI_File_sync(file), "sync");
    MPI_Barrier(MPI_COMM_WORLD);
    must(MPI_File_sync(file), "sync");
}

static void opened(char *path, int amode)
{
    must(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file), "open");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long megabytes = argc > 2 ? atol(argv[2]) : 0;
    double seconds = argc > 4 ? atof(argv[4]) : 0;
    if (argc > 3)
        bytes = atol(argv[3]);
    if (megabytes < 1 || bytes < 8 || bytes > megabytes * 1000000 / 12 || bytes > 1 << 20 || 12 % ranks != 0) {
        fprintf(stderr, "records: name a file, megabytes, and bytes of a record, from 8 to 1048576, with twelve in the "
                        "file; 1, 2, 3, 4, 6 or 12 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    record = malloc((size_t)bytes);
    wanted = malloc((size_t)bytes);
    /* A number that several numbers of ranks divide, so that the file is the same for each. */
    long all = megabytes * 1000000 / bytes / 12 * 12, count = all / ranks;
    int other = (rank + 1) % ranks;
    opened(argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR);
    must(MPI_File_set_size(file, 0), "set_size");
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    long done = write_records(rank, count, 1, seconds == 0 ? 0 : begin + seconds), least, sum;
    synchronise();
    double end = MPI_Wtime();
    MPI_Allreduce(&done, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&done, &least, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0)
        printf("time: %.1f MB in records of %ld B by %d ranks written and synchronised in %.2f s: %.2f MB/s\n",
               1e-6 * sum * bytes, bytes, ranks, end - begin, 1e-6 * sum * bytes / (end - begin));
    begin = MPI_Wtime();
    check(read_records(other, least, 1), "records that another rank has written");
    end = MPI_Wtime();
    if (rank == 0)
        printf("time: read in %.2f s: %.2f MB/s\n", end - begin, 1e-6 * least * ranks * bytes / (end - begin));
    if (seconds == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        write_records(other, count, 2, 0);
        synchronise();
        check(read_records(rank, count, 2), "records that another rank has overwritten");
    }
    must(MPI_File_close(&file), "close");
    opened(argv[1], MPI_MODE_RDONLY);
    check(read_records((rank + 2) % ranks, least, seconds == 0 ? 2 : 1), "records after close and open");
    must(MPI_File_close(&file), "close");
    MPI_Finalize();
    return failed;
}
