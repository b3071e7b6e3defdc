/* Rank 1 dies inside a write of all ranks: the others get an error and do not hang; the launcher does not end them. Each
 * writes its error to a file (named by the first argument and its rank), and ends when both have, since a rank that
 * ended earlier would be lost to the other one, too. The second argument is the file that is written. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { COUNT = 200000 };
static int data[COUNT];

int main(int argc, char **argv)
{
    int rank, size, done, code, class, len;
    char text[MPI_MAX_ERROR_STRING] = "", name[512], partial[520];
    MPI_File file;
    MPI_Datatype type;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_File_open(MPI_COMM_WORLD, argv[2], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Type_create_resized(MPI_INT, 0, size * (MPI_Aint)sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_File_set_view(file, rank * (MPI_Offset)sizeof(int), MPI_INT, type, "native", MPI_INFO_NULL);
    code = MPI_File_write_at_all(file, 0, data, COUNT, MPI_INT, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        /* It has announced its part of the write, and usually has sent none of its data. */
        MPI_File_iwrite_at_all(file, 0, data, COUNT, MPI_INT, &request);
        for (int i = 0; i < 3; i++) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    /* On a busy machine the others may have all data of rank 1 before it dies. The next write must fail then. */
    for (int i = 0; i < 2 && code == MPI_SUCCESS; i++)
        code = MPI_File_write_at_all(file, 0, data, COUNT, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &len);
    snprintf(name, sizeof name, "%s.%d", argv[1], rank);
    snprintf(partial, sizeof partial, "%s.new", name);
    FILE *report = fopen(partial, "w");
    fprintf(report, "%s: %s\n", class == MPI_ERR_PROC_ABORTED ? "aborted" : "another class", text);
    fclose(report);
    rename(partial, name);
    snprintf(name, sizeof name, "%s.%d", argv[1], 2 - rank);
    while (access(name, F_OK) != 0) usleep(1000);
    _exit(0);
}
