/* Functions of the program: operators, error handlers, attributes, generalized requests; and handles inside. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong, copies, deletions, handled, freed;
static MPI_Datatype pair;

#define CHECK(what)                                                  \
    do {                                                             \
        if (!(what)) {                                               \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what); \
            wrong++;                                                 \
        }                                                            \
    } while (0)

/* Two by two matrices: associative, but the order matters. */
static void multiply(void *in, void *inout, int *len, MPI_Datatype *type)
{
    CHECK(*type == pair);
    for (int i = 0; i < *len; i++) {
        int *a = (int *)in + 4 * i, *b = (int *)inout + 4 * i;
        int c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                    a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

static void handler(MPI_Comm *comm, int *code, ...)
{
    int class;
    MPI_Error_class(*code, &class);
    CHECK(*comm != MPI_COMM_WORLD && class == MPI_ERR_RANK);
    handled++;
}

static int copy(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval;
    CHECK(state == &copies);
    *(void **)out = in;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)keyval;
    CHECK(value == &wrong && state == &copies);
    deletions++;
    return MPI_SUCCESS;
}

static int query(void *state, MPI_Status *status)
{
    CHECK(state == &freed);
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = 9;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    (*(int *)state)++;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void operators(int rank, int size)
{
    int own[4] = {1, rank + 1, 0, 1}, all[4], sum = size * (size + 1) / 2;
    MPI_Op op;
    MPI_Type_contiguous(4, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(multiply, 0, &op);
    MPI_Allreduce(own, all, 1, pair, op, MPI_COMM_WORLD);
    CHECK(all[0] == 1 && all[1] == sum && all[2] == 0 && all[3] == 1);
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
    CHECK(op == MPI_OP_NULL && pair == MPI_DATATYPE_NULL);
}

static int refuse(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)state, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

static int refuse_type(MPI_Datatype type, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)type, (void)keyval, (void)state, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

/* A duplicate that fails is undone: what was copied is deleted, and there is no new handle. */
static void refused(void)
{
    MPI_Comm old, comm = MPI_COMM_WORLD;
    MPI_Datatype type, none = MPI_INT;
    MPI_Request request;
    int first, second, third, before = deletions;
    MPI_Comm_dup(MPI_COMM_SELF, &old);
    MPI_Comm_set_errhandler(old, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(copy, delete, &first, &copies);
    MPI_Comm_create_keyval(refuse, MPI_COMM_NULL_DELETE_FN, &second, NULL);
    MPI_Type_create_keyval(refuse_type, MPI_TYPE_NULL_DELETE_FN, &third, NULL);
    MPI_Comm_set_attr(old, first, &wrong);
    MPI_Comm_set_attr(old, second, &wrong);
    CHECK(MPI_Comm_dup(old, &comm) != MPI_SUCCESS && comm == MPI_COMM_NULL && deletions == before + 1);
    comm = MPI_COMM_WORLD;
    CHECK(MPI_Comm_idup(old, &comm, &request) != MPI_SUCCESS && comm == MPI_COMM_NULL);
    CHECK(request == MPI_REQUEST_NULL && deletions == before + 2);
    MPI_Comm_free(&old);
    MPI_Type_dup(MPI_INT, &type);
    MPI_Type_set_attr(type, third, &wrong);
    CHECK(MPI_Type_dup(type, &none) != MPI_SUCCESS && none == MPI_DATATYPE_NULL);
    MPI_Type_free(&type);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void attributes(void)
{
    MPI_Comm first, second;
    int keyval, flag, *bound, copied;
    void *value;
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_create_keyval(copy, delete, &keyval, &copies);
    MPI_Comm_set_attr(first, keyval, &wrong);
    MPI_Comm_dup(first, &second);
    MPI_Comm_get_attr(second, keyval, &value, &flag);
    CHECK(flag && value == &wrong && copies == 1);
    MPI_Comm_free(&second);
    MPI_Comm_free(&first);
    CHECK(deletions == 2);
    MPI_Comm_free_keyval(&keyval);
    CHECK(keyval == MPI_KEYVAL_INVALID);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &first);
    MPI_Comm_set_attr(first, keyval, &copied);
    MPI_Comm_dup(first, &second);
    MPI_Comm_get_attr(second, keyval, &value, &flag);
    CHECK(flag && value == &copied);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    CHECK(flag && *bound >= 32767);
}

int main(int argc, char **argv)
{
    int rank, size, value, flag;
    MPI_Comm own;
    MPI_Errhandler errhandler;
    MPI_Request request;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    operators(rank, size);
    attributes();
    refused();
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(own, errhandler);
    MPI_Errhandler_free(&errhandler);
    MPI_Send(&value, 1, MPI_INT, 77, 0, own);
    CHECK(handled == 1);
    MPI_Comm_free(&own);
    MPI_Grequest_start(query, release, cancel, &freed, &request);
    MPI_Test(&request, &flag, &status);
    CHECK(!flag);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &value);
    CHECK(request == MPI_REQUEST_NULL && value == 3 && status.MPI_TAG == 9 && freed == 1);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Finalize();
    return wrong != 0;
}
