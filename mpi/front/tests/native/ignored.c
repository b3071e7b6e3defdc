/* Arguments that the standard ignores may be anything; names, counts and keys as the standard has them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

#define RIGHT(what)                                                      \
    do {                                                                 \
        if (!(what)) {                                                   \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #what); \
            wrong++;                                                     \
        }                                                                \
    } while (0)
#define GOOD(call) RIGHT((call) == MPI_SUCCESS)

enum { MOST = 8, NONE = -1 };

/* No handle of a datatype in either interface. */
#define NO_TYPE ((MPI_Datatype)MPI_INFO_NULL)

static int me, size, at[MOST], own[MOST], ones[MOST];
static MPI_Comm all = MPI_COMM_WORLD;

/* What everybody has is 1 + its rank in each entry. */
static void fill(int *data)
{
    for (int i = 0; i < MOST; i++) data[i] = 1 + me;
}

static void finish(MPI_Request *request, int is_persistent)
{
    if (is_persistent)
        GOOD(MPI_Start(request));
    GOOD(MPI_Wait(request, MPI_STATUS_IGNORE));
    if (is_persistent)
        GOOD(MPI_Request_free(request));
}

/* A collective in its three forms, with what is expected in our entry `index` afterwards. */
#define FORMS(name, small, index, expected, ...)                      \
    do {                                                              \
        MPI_Request request;                                          \
        fill(at);                                                     \
        GOOD(MPI_##name(__VA_ARGS__));                                \
        RIGHT(at[index] == (expected));                               \
        fill(at);                                                     \
        GOOD(MPI_I##small(__VA_ARGS__, &request));                    \
        finish(&request, 0);                                          \
        RIGHT(at[index] == (expected));                               \
        fill(at);                                                     \
        GOOD(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request)); \
        finish(&request, 1);                                          \
        RIGHT(at[index] == (expected));                               \
    } while (0)

static void collectives(void)
{
    int root = size - 1, is_root = me == root, last = size - 1, ranks[MOST];
    MPI_Datatype types[MOST], none[MOST];
    void *place = MPI_IN_PLACE;
    for (int i = 0; i < MOST; i++) {
        ones[i] = 1;
        ranks[i] = i;
        types[i] = MPI_INT;
        none[i] = NO_TYPE;
    }
    fill(own);
    FORMS(Allgather, allgather, last, size, place, NONE, NO_TYPE, at, 1, MPI_INT, all);
    FORMS(Allgatherv, allgatherv, last, size, place, NONE, NO_TYPE, at, ones, ranks, MPI_INT, all);
    FORMS(Alltoall, alltoall, last, size, place, NONE, NO_TYPE, at, 1, MPI_INT, all);
    FORMS(Alltoallv, alltoallv, last, size, place, NULL, NULL, NO_TYPE, at, ones, ranks, MPI_INT, all);
    int bytes[MOST];
    for (int i = 0; i < MOST; i++) bytes[i] = (int)sizeof(int) * i;
    FORMS(Alltoallw, alltoallw, last, size, place, NULL, NULL, NULL, at, ones, bytes, types, all);
    FORMS(Alltoallw, alltoallw, last, size, place, NULL, NULL, none, at, ones, bytes, types, all);
    /* At the root what it would send, elsewhere what it would receive. */
    if (is_root) {
        FORMS(Gather, gather, last, size, place, NONE, NO_TYPE, at, 1, MPI_INT, root, all);
        FORMS(Gatherv, gatherv, last, size, place, NONE, NO_TYPE, at, ones, ranks, MPI_INT, root, all);
        FORMS(Scatter, scatter, last, size, at, 1, MPI_INT, place, NONE, NO_TYPE, root, all);
        FORMS(Scatterv, scatterv, last, size, at, ones, ranks, MPI_INT, place, NONE, NO_TYPE, root, all);
    } else {
        FORMS(Gather, gather, 0, 1 + me, own, 1, MPI_INT, NULL, NONE, NO_TYPE, root, all);
        FORMS(Gatherv, gatherv, 0, 1 + me, own, 1, MPI_INT, NULL, NULL, NULL, NO_TYPE, root, all);
        FORMS(Scatter, scatter, 0, size, NULL, NONE, NO_TYPE, at, 1, MPI_INT, root, all);
        FORMS(Scatterv, scatterv, 0, size, NULL, NULL, NULL, NO_TYPE, at, 1, MPI_INT, root, all);
    }
}

/* What is needed is still refused. */
static void needed(void)
{
    int class, count = -1;
    MPI_Comm one = MPI_COMM_SELF;
    MPI_Comm_set_errhandler(one, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, at, count, MPI_INT, one), &class);
    RIGHT(class == MPI_ERR_COUNT);
    MPI_Error_class(MPI_Bcast(at, 1, NO_TYPE, 0, one), &class);
    RIGHT(class == MPI_ERR_TYPE);
    MPI_Error_class(MPI_Send(at, -1, MPI_INT, MPI_PROC_NULL, 0, one), &class);
    RIGHT(class == MPI_ERR_COUNT);
    MPI_Error_class(MPI_Send(at, 1, MPI_DATATYPE_NULL, 0, 0, one), &class);
    RIGHT(class == MPI_ERR_TYPE);
    MPI_Comm_set_errhandler(one, MPI_ERRORS_ARE_FATAL);
}

/* Nothing goes to no process, whatever it is. */
static void nobody(void)
{
    MPI_Datatype null = MPI_DATATYPE_NULL;
    MPI_Request request;
    MPI_Status status;
    int to = MPI_PROC_NULL;
    GOOD(MPI_Send(NULL, 1, null, to, 0, all));
    GOOD(MPI_Ssend(NULL, 0, null, to, 0, all));
    GOOD(MPI_Bsend(at, 1, null, to, 0, all));
    GOOD(MPI_Recv(NULL, 1, null, to, 0, all, &status));
    RIGHT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    GOOD(MPI_Sendrecv(NULL, 2, null, to, 0, NULL, 3, null, to, 0, all, &status));
    GOOD(MPI_Sendrecv_replace(NULL, 2, null, to, 0, to, 0, all, &status));
    GOOD(MPI_Isend(NULL, 1, null, to, 0, all, &request));
    GOOD(MPI_Wait(&request, MPI_STATUS_IGNORE));
    GOOD(MPI_Irecv(NULL, 1, null, to, 0, all, &request));
    GOOD(MPI_Wait(&request, &status));
    RIGHT(status.MPI_SOURCE == MPI_PROC_NULL);
    GOOD(MPI_Send_init(NULL, 1, null, to, 0, all, &request));
    finish(&request, 1);
    GOOD(MPI_Recv_init(NULL, 1, null, to, 0, all, &request));
    finish(&request, 1);
}

/* A count of 63 bits is no negative number. */
static void counts(void)
{
    MPI_Status status;
    memset(&status, 0, sizeof status);
    for (int bit = 30; bit < 63; bit++) {
        MPI_Count found = -1, count = (MPI_Count)1 << bit;
        int flag = 1;
        GOOD(MPI_Status_set_elements_c(&status, MPI_BYTE, count + 5));
        GOOD(MPI_Status_set_cancelled(&status, bit % 2));
        GOOD(MPI_Get_elements_c(&status, MPI_BYTE, &found));
        RIGHT(found == count + 5);
        GOOD(MPI_Get_count_c(&status, MPI_BYTE, &found));
        RIGHT(found == count + 5);
        GOOD(MPI_Test_cancelled(&status, &flag));
        RIGHT(flag == bit % 2);
    }
}

/* No elements need no datatype: programs that have nothing for a rank give MPI_DATATYPE_NULL, as MPICH takes it. */
static void no_type(void)
{
    int none[MOST] = {0}, first[MOST] = {1}, next = (me + 1) % size, last = (me + size - 1) % size, count = -1;
    MPI_Datatype null = MPI_DATATYPE_NULL, types[MOST], nulls[MOST];
    MPI_Request requests[2];
    MPI_Status status;
    GOOD(MPI_Irecv(NULL, 0, null, last, 1, all, &requests[0]));
    GOOD(MPI_Send(NULL, 0, null, next, 1, all));
    GOOD(MPI_Wait(&requests[0], &status));
    RIGHT(status.MPI_SOURCE == last);
    GOOD(MPI_Get_count(&status, MPI_INT, &count));
    RIGHT(count == 0);
    GOOD(MPI_Send_init(NULL, 0, null, next, 1, all, &requests[0]));
    GOOD(MPI_Recv_init(NULL, 0, null, last, 1, all, &requests[1]));
    for (int round = 0; round < 2; round++) {
        GOOD(MPI_Startall(2, requests));
        GOOD(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < 2; i++) GOOD(MPI_Request_free(&requests[i]));
    GOOD(MPI_Sendrecv(NULL, 0, null, next, 2, at, 1, MPI_INT, last, 2, all, &status));
    GOOD(MPI_Psend_init(NULL, 2, 0, null, next, 3, all, MPI_INFO_NULL, &requests[0]));
    GOOD(MPI_Precv_init(NULL, 1, 0, null, last, 3, all, MPI_INFO_NULL, &requests[1]));
    GOOD(MPI_Startall(2, requests));
    GOOD(MPI_Pready_range(0, 1, requests[0]));
    GOOD(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; i++) GOOD(MPI_Request_free(&requests[i]));
    GOOD(MPI_Bcast(NULL, 0, null, 0, all));
    GOOD(MPI_Alltoallv(NULL, none, none, null, NULL, none, none, null, all));
    /* Rank 0 gives each of the others one number. */
    for (int i = 0; i < MOST; i++) types[i] = MPI_INT, nulls[i] = null;
    fill(own), fill(at);
    GOOD(MPI_Alltoallw(own, me ? none : ones, none, me ? nulls : types, at, first, none, types, all));
    RIGHT(at[0] == 1);
}

static void name(MPI_Datatype type, const char *expected)
{
    char found[MPI_MAX_OBJECT_NAME];
    int len;
    GOOD(MPI_Type_get_name(type, found, &len));
    if (strcmp(found, expected) != 0) {
        fprintf(stderr, "a datatype is called %s, expected %s\n", found, expected);
        wrong++;
    }
}

static int deleted;

/* Frees the key that its attribute uses, through a copy of its handle. */
static int delete_key(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)value, (void)state;
    deleted++;
    return MPI_Comm_free_keyval(&keyval);
}

static void keys(void)
{
    MPI_Comm first, second;
    int key, copy, class;
    MPI_Comm_dup(MPI_COMM_SELF, &first);
    MPI_Comm_dup(MPI_COMM_SELF, &second);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_key, &key, NULL);
    copy = key;
    GOOD(MPI_Comm_set_attr(first, key, &key));
    GOOD(MPI_Comm_set_attr(second, key, &key));
    GOOD(MPI_Comm_free(&first));
    GOOD(MPI_Comm_free_keyval(&key));
    RIGHT(key == MPI_KEYVAL_INVALID);
    key = copy;
    GOOD(MPI_Comm_free_keyval(&key));
    GOOD(MPI_Comm_free(&second));
    RIGHT(deleted == 2);
    /* Now nothing uses it. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Comm_free_keyval(&copy), &class);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    RIGHT(class == MPI_ERR_KEYVAL);
}

/* Split by a hint: every process gets a communicator, or none, but no error. */
static int split(int type, const char *key, const char *value)
{
    MPI_Info info;
    MPI_Comm part;
    int members = 0;
    MPI_Info_create(&info);
    if (key)
        MPI_Info_set(info, key, value);
    GOOD(MPI_Comm_split_type(all, type, 0, info, &part));
    if (part != MPI_COMM_NULL) {
        MPI_Comm_size(part, &members);
        MPI_Comm_free(&part);
    }
    MPI_Info_free(&info);
    return members;
}

static void splits(void)
{
    const char *units[] = {"machine", "socket", "package", "numanode", "core", "hwthread", "l1dcache", "l3cache"};
    RIGHT(split(MPI_COMM_TYPE_SHARED, NULL, NULL) == size);
    RIGHT(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "mpi_shared_memory") == size);
    RIGHT(split(MPI_COMM_TYPE_HW_GUIDED, "shmem_topo", "machine") == 0);
    RIGHT(split(MPI_COMM_TYPE_HW_UNGUIDED, NULL, NULL) < size || size == 1);
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++) {
        RIGHT(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", units[i]) <= size);
        RIGHT(split(MPI_COMM_TYPE_SHARED, "shmem_topo", units[i]) <= size);
    }
    RIGHT(split(MPI_COMM_TYPE_SHARED, "shmem_topo", "machine") == size);
    /* What is not understood, or not given alike, is no hint. */
    RIGHT(split(MPI_COMM_TYPE_SHARED, "shmem_topo", "a shoe") == size);
    RIGHT(split(MPI_COMM_TYPE_SHARED, "shmem_topo", me ? "core" : "machine") == size);
    RIGHT(split(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "a shoe") == 0);
#ifdef MPIX_COMM_TYPE_NEIGHBORHOOD
    RIGHT(split(MPIX_COMM_TYPE_NEIGHBORHOOD, "nbhd_common_dirname", ".") == size);
    RIGHT(split(MPIX_COMM_TYPE_NEIGHBORHOOD, "nbhd_common_dirname", "/there/is/none") == 0);
    RIGHT(split(MPIX_COMM_TYPE_NEIGHBORHOOD, "a shoe", "9") == 0);
    RIGHT(size == 1 || split(MPIX_COMM_TYPE_NEIGHBORHOOD, "nbhd_common_dirname", me ? "." : "/") == 0);
#endif
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &size);
    collectives();
    needed();
    nobody();
    counts();
    no_type();
    name(MPI_LONG_LONG, "MPI_LONG_LONG_INT");
    name(MPI_LONG_LONG_INT, "MPI_LONG_LONG_INT");
    name(MPI_C_COMPLEX, "MPI_C_COMPLEX");
    name(MPI_C_FLOAT_COMPLEX, "MPI_C_COMPLEX");
    name(MPI_UNSIGNED, "MPI_UNSIGNED");
    keys();
    splits();
    MPI_Finalize();
    return wrong != 0;
}
