/* Collectives with wrong arguments. What all ranks give alike all refuse, in each form, and the next collective is
   right. With the argument `told` (NMAD_MPI_CHECK=1), one rank's wrong arguments are an error on all of them. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 16, FORMS = 3, OPERATIONS = 17 };

static int wrong, me, size, told;
static MPI_Comm all = MPI_COMM_WORLD, ring;

#define RIGHT(what)                                                      \
    do {                                                                 \
        if (!(what)) {                                                   \
            fprintf(stderr, "rank %d, line %d: %s does not hold\n", me, __LINE__, #what); \
            wrong++;                                                     \
        }                                                                \
    } while (0)
#define GOOD(call) RIGHT((call) == MPI_SUCCESS)

static int ones[MOST], places[MOST], bytes[MOST];
static MPI_Datatype types[MOST];

static const char *names[OPERATIONS] = {
    "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw", "Allreduce", "Reduce_scatter",
    "Reduce_scatter_block", "Scan", "Exscan", "Gather", "Gatherv", "Scatter", "Scatterv", "Reduce", "Bcast",
    "Neighbor_alltoall"};
enum { ALLGATHERV = 1, SCAN = 8, EXSCAN, GATHER, SCATTERV = 13, REDUCE, BCAST, NEIGHBOR };

/* Those of which only the root has both buffers. */
static int has_root(int operation)
{
    return operation >= GATHER && operation <= REDUCE;
}

static int finish(int code, int form, MPI_Request *request)
{
    if (code == MPI_SUCCESS && form == 2)
        code = MPI_Start(request);
    if (code == MPI_SUCCESS && form > 0)
        code = MPI_Wait(request, MPI_STATUS_IGNORE);
    if (form == 2 && *request != MPI_REQUEST_NULL)
        MPI_Request_free(request);
    return code;
}

#define IN_FORM(name, small, ...)                                                       \
    do {                                                                                \
        MPI_Request request = MPI_REQUEST_NULL;                                         \
        int code = form == 0 ? MPI_##name(__VA_ARGS__)                                  \
            : form == 1      ? MPI_I##small(__VA_ARGS__, &request)                      \
                             : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request); \
        return finish(code, form, &request);                                            \
    } while (0)

/* An operation in a form with these buffers, from or to rank `root`. */
static int call(int operation, int form, int *from, int *to, int root)
{
    MPI_Op sum = MPI_SUM;
    MPI_Datatype type = MPI_INT;
    switch (operation) {
    case 0: IN_FORM(Allgather, allgather, from, 1, type, to, 1, type, all);
    case 1: IN_FORM(Allgatherv, allgatherv, from, 1, type, to, ones, places, type, all);
    case 2: IN_FORM(Alltoall, alltoall, from, 1, type, to, 1, type, all);
    case 3: IN_FORM(Alltoallv, alltoallv, from, ones, places, type, to, ones, places, type, all);
    case 4: IN_FORM(Alltoallw, alltoallw, from, ones, bytes, types, to, ones, bytes, types, all);
    case 5: IN_FORM(Allreduce, allreduce, from, to, 1, type, sum, all);
    case 6: IN_FORM(Reduce_scatter, reduce_scatter, from, to, ones, type, sum, all);
    case 7: IN_FORM(Reduce_scatter_block, reduce_scatter_block, from, to, 1, type, sum, all);
    case SCAN: IN_FORM(Scan, scan, from, to, 1, type, sum, all);
    case EXSCAN: IN_FORM(Exscan, exscan, from, to, 1, type, sum, all);
    case GATHER: IN_FORM(Gather, gather, from, 1, type, to, 1, type, root, all);
    case 11: IN_FORM(Gatherv, gatherv, from, 1, type, to, ones, places, type, root, all);
    case 12: IN_FORM(Scatter, scatter, from, 1, type, to, 1, type, root, all);
    case SCATTERV: IN_FORM(Scatterv, scatterv, from, ones, places, type, to, 1, type, root, all);
    case REDUCE: IN_FORM(Reduce, reduce, from, to, 1, type, sum, root, all);
    case BCAST: IN_FORM(Bcast, bcast, to, 1, type, root, all);
    default: IN_FORM(Neighbor_alltoall, neighbor_alltoall, from, 1, type, to, 1, type, ring);
    }
}

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

/* The next collective is right, and of the kind that the last one was. */
static void goes_on(int form)
{
    int own = 1 + me, sum = 0;
    MPI_Request request;
    if (form == 0) {
        GOOD(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, all));
    } else {
        GOOD(MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, all, &request));
        GOOD(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    RIGHT(sum == size * (size + 1) / 2);
}

/* All ranks answer the same class, or success. */
static void alike(int operation, int form, const char *how, int code, int expected)
{
    int class = class_of(code), range[2] = {class, -class};
    MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_INT, MPI_MAX, all);
    if (range[0] != -range[1] || (expected >= 0 && class != expected)) {
        fprintf(stderr, "MPI_%s, form %d, %s: rank %d has class %d, some rank %d\n", names[operation], form, how, me,
            class, range[0]);
        wrong++;
    }
    goes_on(form);
}

/* The same buffers on all ranks: at the same address, and the own block in the place of all. */
static void same_buffers(int operation, int form)
{
    int data[4 * MOST] = {0};
    alike(operation, form, "one buffer", call(operation, form, data, data, 0), MPI_ERR_BUFFER);
    if (operation <= ALLGATHERV)
        alike(operation, form, "own block", call(operation, form, data + me, data, 0), MPI_ERR_BUFFER);
    alike(operation, form, "apart", call(operation, form, data, data + 2 * MOST, 0), MPI_SUCCESS);
}

/* Only one rank is wrong: it has nothing to send or to receive into, or its buffers are the same. */
static void told_by_one(int operation, int form)
{
    int data[4 * MOST] = {0}, *to = data + 2 * MOST;
    for (int who = 0; who < size; who++) {
        int receives = !has_root(operation) || (operation > 11 && operation < REDUCE) || who == 0;
        int *none = me == who ? NULL : to;
        if (receives && !(operation == EXSCAN && who == 0))
            alike(operation, form, "no memory", call(operation, form, data, none, 0), MPI_ERR_BUFFER);
        if (operation < BCAST && (!has_root(operation) || who == 0))
            alike(operation, form, "its buffers", call(operation, form, data, me == who ? data : to, 0), MPI_ERR_BUFFER);
        if (has_root(operation) || operation == BCAST)
            alike(operation, form, "no such root", call(operation, form, data, to, me == who ? size : 0), MPI_ERR_ROOT);
    }
    alike(operation, form, "apart", call(operation, form, data, to, size - 1), MPI_SUCCESS);
}

/* Calls that make communicators. */
static void communicators(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    for (int who = 0; who < size; who++) {
        int code = MPI_Comm_split(all, me == who ? -7 : 0, 0, &made);
        RIGHT(class_of(code) == MPI_ERR_ARG && made == MPI_COMM_NULL);
        goes_on(0);
        code = MPI_Comm_create(all, me == who ? MPI_GROUP_NULL : MPI_GROUP_EMPTY, &made);
        RIGHT(class_of(code) == MPI_ERR_GROUP);
        goes_on(0);
    }
    GOOD(MPI_Comm_split(all, 0, 0, &made));
    GOOD(MPI_Comm_free(&made));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &size);
    told = argc > 1 && strcmp(argv[1], "told") == 0;
    int periodic = 1;
    MPI_Cart_create(all, 1, &size, &periodic, 0, &ring);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    for (int i = 0; i < MOST; i++) ones[i] = 1, places[i] = i, bytes[i] = i * (int)sizeof(int), types[i] = MPI_INT;
    /* Twice as often as a collective is called before the ranks of a node do it in shared memory. */
    for (int round = 0; round < (told ? 1 : 6); round++)
        for (int form = 0; form < FORMS; form++)
            for (int operation = 0; operation < OPERATIONS; operation++) {
                if (told)
                    told_by_one(operation, form);
                else if (operation < GATHER)
                    same_buffers(operation, form);
            }
    if (told)
        communicators();
    MPI_Comm_free(&ring);
    MPI_Finalize();
    return wrong != 0;
}
