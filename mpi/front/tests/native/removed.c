/* What MPI-3.0 has removed and programs that were compiled before it still call: the header has it no more.
   And handles as numbers, which are macros in the header but functions to who loads the library without it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int MPI_Address(void *location, MPI_Aint *address);
int MPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler);
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler);
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler);
int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent);
int MPI_Type_hindexed(int count, int *lens, MPI_Aint *places, MPI_Datatype old, MPI_Datatype *new_type);
int MPI_Type_hvector(int count, int len, MPI_Aint stride, MPI_Datatype old, MPI_Datatype *new_type);
int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement);
int MPI_Type_struct(int count, int *lens, MPI_Aint *places, MPI_Datatype *types, MPI_Datatype *new_type);
int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement);

#undef MPI_Comm_c2f
#undef MPI_Comm_f2c
#undef PMPI_Session_f2c
MPI_Fint MPI_Comm_c2f(MPI_Comm comm);
MPI_Comm MPI_Comm_f2c(MPI_Fint comm);
MPI_Session PMPI_Session_f2c(MPI_Fint session);

static int wrong, handled;

static void expect(const char *what, long found, long expected)
{
    if (found != expected) fprintf(stderr, "%s: %ld instead of %ld\n", what, found, expected), wrong++;
}

static void handle(MPI_Comm *comm, int *code, ...)
{
    handled += *comm == MPI_COMM_SELF && *code != MPI_SUCCESS;
}

static void bounds(const char *what, MPI_Datatype type, long lower, long upper)
{
    MPI_Aint lb, ub, extent;
    MPI_Type_lb(type, &lb);
    MPI_Type_ub(type, &ub);
    MPI_Type_extent(type, &extent);
    expect(what, lb, lower);
    expect(what, ub, upper);
    expect(what, extent, upper - lower);
}

static void marks(void)
{
    int lens[3] = {1, 1, 1}, size, from[12], into[12];
    MPI_Aint places[3] = {-4, 0, 20};
    MPI_Datatype parts[3] = {MPI_LB, MPI_INT, MPI_UB}, marked, several;
    MPI_Status status;
    MPI_Type_struct(3, lens, places, parts, &marked);
    bounds("between marks", marked, -4, 20);
    MPI_Type_contiguous(2, marked, &several);
    bounds("two between marks", several, -4, 44);
    MPI_Type_size(several, &size);
    expect("size", size, 8);
    MPI_Type_commit(&several);
    for (int i = 0; i < 12; i++) from[i] = i, into[i] = -1;
    MPI_Sendrecv(from, 1, several, 0, 0, into, 2, MPI_INT, 0, 0, MPI_COMM_SELF, &status);
    MPI_Get_elements(&status, several, &size);
    expect("elements", size, 2);
    expect("first", into[0], 0);
    expect("second", into[1], 6);
    expect("nothing more", into[2], -1);
    MPI_Type_free(&several);
    MPI_Type_free(&marked);
    /* One mark leaves the other end where it is. */
    MPI_Type_struct(2, lens + 1, places + 1, parts + 1, &marked);
    bounds("upper mark", marked, 0, 20);
    MPI_Type_free(&marked);
}

static void numbers(void)
{
    int size;
    expect("number", MPI_Comm_c2f(MPI_COMM_WORLD), MPI_COMM_WORLD);
    expect("answer", MPI_Comm_size(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_SELF)), &size), MPI_SUCCESS);
    expect("size", size, 1);
    expect("session", PMPI_Session_f2c(MPI_Session_c2f(MPI_SESSION_NULL)), MPI_SESSION_NULL);
    expect("type", MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)), MPI_DOUBLE);
    expect("no file", MPI_File_c2f(MPI_FILE_NULL), 0);
    expect("null", MPI_File_f2c(0) == MPI_FILE_NULL && PMPI_File_f2c(7) == MPI_FILE_NULL, 1);
}

int main(int argc, char **argv)
{
    int data[8] = {0}, lens[2] = {2, 1}, size;
    MPI_Aint places[2] = {8, 0}, first, third;
    MPI_Datatype type;
    MPI_Errhandler mine, found;
    MPI_Status status = {1, 2, 3, 4, 5};
    MPI_Fint copy[MPI_F_STATUS_SIZE];

    MPI_Init(&argc, &argv);
    MPI_Address(&data[0], &first);
    MPI_Address(&data[2], &third);
    expect("address", third - first, 8);
    MPI_Type_hindexed(2, lens, places, MPI_INT, &type);
    bounds("hindexed", type, 0, 16);
    MPI_Type_free(&type);
    MPI_Type_hvector(3, 1, 12, MPI_INT, &type);
    bounds("hvector", type, 0, 28);
    MPI_Type_free(&type);
    marks();
    numbers();
    MPI_Errhandler_create(handle, &mine);
    MPI_Errhandler_set(MPI_COMM_SELF, mine);
    MPI_Errhandler_get(MPI_COMM_SELF, &found);
    expect("handler", found, mine);
    MPI_Send(data, -1, MPI_INT, 0, 0, MPI_COMM_SELF);
    expect("handled", handled, 1);
    MPI_Status_c2f(&status, copy);
    MPI_Type_size(MPI_UB, &size);
    expect("size of a mark", size, 0);
    expect("status", memcmp(&status, copy, sizeof copy), 0);
    expect("accelerators", MPIX_Query_cuda_support(), 0);
    MPI_Finalize();
    return wrong != 0;
}
