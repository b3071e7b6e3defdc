/* Which error handler hears of an error. Whatever is not told to the right one ends the job. */
#include <mpi.h>
#include <stdio.h>

static int wrong, calls;
static MPI_Comm asked = MPI_COMM_NULL;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    asked = *comm;
    calls++;
}

/* The last call has failed with a class, and the handler of this communicator has heard of it. */
static void heard(int line, int code, int expected, MPI_Comm comm)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    if (class != expected || asked != comm || calls != 1) {
        fprintf(stderr, "line %d: class %d, expected %d; heard %d times, by %s communicator\n", line, class, expected,
                calls, asked == comm ? "the right" : "another");
        wrong++;
    }
    asked = MPI_COMM_NULL;
    calls = 0;
}
#define HEARD(code, expected, comm) heard(__LINE__, code, expected, comm)

/* Where there is no place for an answer. */
static void places(MPI_Comm own)
{
    int value = 0, flag, source;
    MPI_Comm made;
    MPI_Request request = MPI_REQUEST_NULL, pair[2];
    MPI_Message message;
    MPI_Status status;
    HEARD(MPI_Comm_rank(own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Comm_size(own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Comm_dup(own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Comm_split(own, 0, 0, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Comm_group(own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Comm_get_attr(own, MPI_TAG_UB, NULL, &flag), MPI_ERR_ARG, own);
    HEARD(MPI_Comm_get_name(own, NULL, &value), MPI_ERR_ARG, own);
    HEARD(MPI_Comm_get_errhandler(own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Isend(&value, 1, MPI_INT, 0, 0, own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Irecv(&value, 1, MPI_INT, 0, 0, own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Ibarrier(own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Send_init(&value, 1, MPI_INT, 0, 0, own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Iprobe(0, 0, own, NULL, &status), MPI_ERR_ARG, own);
    HEARD(MPI_Cart_create(own, 0, NULL, NULL, 0, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Topo_test(own, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Intercomm_create(own, 0, own, 0, 0, NULL), MPI_ERR_ARG, own);
    /* A request and a message have the handler of their communicator. */
    MPI_Irecv(&value, 1, MPI_INT, 0, 7, own, &request);
    HEARD(MPI_Test(&request, NULL, &status), MPI_ERR_ARG, own);
    HEARD(MPI_Request_get_status(request, NULL, &status), MPI_ERR_ARG, own);
    HEARD(MPI_Start(&request), MPI_ERR_REQUEST, own);
    MPI_Send(&value, 1, MPI_INT, 0, 7, own);
    MPI_Wait(&request, &status);
    MPI_Send(&value, 1, MPI_INT, 0, 8, own);
    MPI_Mprobe(0, 8, own, &message, &status);
    HEARD(MPI_Imrecv(&value, 1, MPI_INT, &message, NULL), MPI_ERR_ARG, own);
    HEARD(MPI_Mrecv(&value, -1, MPI_INT, &message, &status), MPI_ERR_COUNT, own);
    MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
    (void)made, (void)pair, (void)source;
}

static int refuses;

static int delete_nothing(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    return refuses ? MPI_ERR_NAME : MPI_SUCCESS;
}

/* What a delete function answers is told to the handler of the object, which stays. */
static int deleting(MPI_Comm own)
{
    int key;
    MPI_Comm copy;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_nothing, &key, NULL);
    MPI_Comm_dup(own, &copy);
    MPI_Comm_set_attr(copy, key, NULL);
    refuses = 1;
    MPI_Comm handle = copy;
    HEARD(MPI_Comm_free(&copy), MPI_ERR_NAME, handle);
    HEARD(MPI_Comm_disconnect(&copy), MPI_ERR_NAME, handle);
    HEARD(MPI_Comm_delete_attr(copy, key), MPI_ERR_NAME, handle);
    HEARD(MPI_Comm_set_attr(copy, key, NULL), MPI_ERR_NAME, handle);
    wrong += copy != handle;
    refuses = 0;
    MPI_Comm_free(&copy);
    return key;
}

int main(int argc, char **argv)
{
    int class, key;
    MPI_Comm own;
    MPI_Errhandler handle;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(handler, &handle);
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_set_errhandler(own, handle);
    places(own);
    key = deleting(own);
    /* What belongs to no object: the handler of MPI_COMM_WORLD if the program has set that one only, as programs did
       before MPI 4; that of MPI_COMM_SELF otherwise. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handle);
    HEARD(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT, MPI_COMM_WORLD);
    HEARD(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG, MPI_COMM_WORLD);
    HEARD(MPI_Error_class(-7, &class), MPI_ERR_ARG, MPI_COMM_WORLD);
    HEARD(MPI_Comm_rank(MPI_COMM_NULL, &class), MPI_ERR_COMM, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handle);
    HEARD(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT, MPI_COMM_SELF);
    HEARD(MPI_Comm_rank(MPI_COMM_NULL, &class), MPI_ERR_COMM, MPI_COMM_SELF);
    /* Finalizing deletes the attributes of both. */
    MPI_Comm_free(&own);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    refuses = 1;
    HEARD(MPI_Finalize(), MPI_ERR_NAME, MPI_COMM_WORLD);
    refuses = 0;
    MPI_Errhandler_free(&handle);
    MPI_Finalize();
    return wrong != 0;
}
