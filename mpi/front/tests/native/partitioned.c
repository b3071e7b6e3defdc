/* Partitioned messages: parts that become ready in any order, sides that divide the message otherwise, threads. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong, me, size;
static MPI_Comm all = MPI_COMM_WORLD;

#define RIGHT(what)                                                      \
    do {                                                                 \
        if (!(what)) {                                                   \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #what); \
            wrong++;                                                     \
        }                                                                \
    } while (0)
#define GOOD(call) RIGHT((call) == MPI_SUCCESS)

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

/* Rank 0 sends, in `out` parts, what rank 1 receives in `in` parts, `len` numbers in all, three times. */
static void transfer(int out, int in, int len)
{
    int *data = calloc((size_t)len, sizeof(int)), *order = calloc((size_t)out, sizeof(int)), flag = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    if (me == 0)
        GOOD(MPI_Psend_init(data, out, len / out, MPI_INT, 1, 5, all, MPI_INFO_NULL, &request));
    if (me == 1)
        GOOD(MPI_Precv_init(data, in, len / in, MPI_INT, 0, 5, all, MPI_INFO_NULL, &request));
    for (int round = 0; round < 3; round++) {
        if (me > 1)
            continue;
        for (int i = 0; i < len; i++) data[i] = me == 0 ? 1000 * round + i : -1;
        GOOD(MPI_Start(&request));
        if (me == 0) {
            for (int i = 0; i < out; i++) order[i] = out - 1 - i;
            if (round == 0)
                for (int i = 0; i < out; i++) GOOD(MPI_Pready(order[i], request));
            else if (round == 1)
                GOOD(MPI_Pready_list(out, order, request));
            else {
                GOOD(MPI_Pready_range(out / 2, out - 1, request));
                GOOD(MPI_Test(&request, &flag, &status));
                RIGHT(!flag || out < 2);
                if (out > 1)
                    GOOD(MPI_Pready_range(0, out / 2 - 1, request));
            }
        } else if (round != 1) {
            for (int part = in - 1; part >= 0; part--) {
                for (flag = 0; !flag;) GOOD(MPI_Parrived(request, part, &flag));
                RIGHT(data[len / in * part] == 1000 * round + len / in * part);
            }
        }
        GOOD(MPI_Wait(&request, &status));
        if (me == 1) {
            int count = -1;
            for (int i = 0; i < len; i++) wrong += data[i] != 1000 * round + i;
            GOOD(MPI_Get_count(&status, MPI_INT, &count));
            RIGHT(status.MPI_SOURCE == 0 && status.MPI_TAG == 5 && count == len);
            GOOD(MPI_Parrived(request, 0, &flag));
            RIGHT(flag);
        }
    }
    if (request != MPI_REQUEST_NULL)
        GOOD(MPI_Request_free(&request));
    free(order);
    free(data);
}

/* Parts without data arrive when they are ready, too. */
static void empty(void)
{
    int flag = -1;
    MPI_Request requests[2];
    MPI_Comm self = MPI_COMM_SELF;
    GOOD(MPI_Psend_init(NULL, 3, 0, MPI_INT, 0, 0, self, MPI_INFO_NULL, &requests[0]));
    GOOD(MPI_Precv_init(NULL, 3, 0, MPI_INT, 0, 0, self, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 2; round++) {
        GOOD(MPI_Startall(2, requests));
        for (int part = 0; part < 3; part++) {
            GOOD(MPI_Parrived(requests[1], part, &flag));
            RIGHT(!flag);
            GOOD(MPI_Pready(part, requests[0]));
            while (!flag) GOOD(MPI_Parrived(requests[1], part, &flag));
        }
        GOOD(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    GOOD(MPI_Request_free(&requests[0]));
    GOOD(MPI_Request_free(&requests[1]));
}

/* Messages of one tag, in the order in which their requests were made, beside others of the same tag. */
static void many(void)
{
    enum { REQUESTS = 4 };
    int data[REQUESTS][2], plain = -1, other = 1 - me;
    MPI_Request requests[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        data[i][0] = data[i][1] = i % 2 == me ? 10 * i : -1;
        if (i % 2 == me)
            GOOD(MPI_Psend_init(data[i], 2, 1, MPI_INT, other, 9, all, MPI_INFO_NULL, &requests[i]));
        else
            GOOD(MPI_Precv_init(data[i], 1, 2, MPI_INT, other, 9, all, MPI_INFO_NULL, &requests[i]));
    }
    GOOD(MPI_Startall(REQUESTS, requests));
    GOOD(MPI_Sendrecv(&me, 1, MPI_INT, other, 9, &plain, 1, MPI_INT, other, 9, all, MPI_STATUS_IGNORE));
    RIGHT(plain == other);
    for (int i = REQUESTS - 1; i >= 0; i--)
        if (i % 2 == me)
            GOOD(MPI_Pready_range(0, 1, requests[i]));
    GOOD(MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < REQUESTS; i++) {
        RIGHT(data[i][0] == 10 * i && data[i][1] == 10 * i);
        GOOD(MPI_Request_free(&requests[i]));
    }
}

enum { THREADS = 4, EACH = 8, LEN = 500 };
static MPI_Request shared;
static double numbers[THREADS * EACH][LEN];

static void *work(void *argument)
{
    int thread = *(int *)argument;
    for (int part = thread * EACH; part < (thread + 1) * EACH; part++) {
        for (int i = 0; i < LEN; i++) numbers[part][i] = part + i / 1000.0;
        if (MPI_Pready(part, shared) != MPI_SUCCESS)
            return argument;
    }
    return NULL;
}

/* Each thread says of its own parts that they are ready. */
static void threads(void)
{
    pthread_t thread[THREADS];
    int number[THREADS];
    if (me == 0)
        GOOD(MPI_Psend_init(numbers, THREADS * EACH, LEN, MPI_DOUBLE, 1, 0, all, MPI_INFO_NULL, &shared));
    else
        GOOD(MPI_Precv_init(numbers, THREADS, EACH * LEN, MPI_DOUBLE, 0, 0, all, MPI_INFO_NULL, &shared));
    for (int round = 0; round < 3; round++) {
        memset(numbers, 0, sizeof numbers);
        GOOD(MPI_Start(&shared));
        for (int i = 0; me == 0 && i < THREADS; i++) {
            number[i] = i;
            pthread_create(&thread[i], NULL, work, &number[i]);
        }
        for (int i = 0; me == 0 && i < THREADS; i++) {
            void *failed;
            pthread_join(thread[i], &failed);
            RIGHT(!failed);
        }
        GOOD(MPI_Wait(&shared, MPI_STATUS_IGNORE));
        for (int part = 0; part < THREADS * EACH; part++)
            for (int i = 0; i < LEN; i++) wrong += numbers[part][i] != part + i / 1000.0;
    }
    GOOD(MPI_Request_free(&shared));
}

/* Every second number of a matrix. */
static void gaps(void)
{
    int data[32];
    MPI_Datatype pairs;
    MPI_Request request;
    MPI_Type_vector(4, 1, 2, MPI_INT, &pairs);
    MPI_Type_create_resized(pairs, 0, 8 * sizeof(int), &pairs);
    MPI_Type_commit(&pairs);
    for (int i = 0; i < 32; i++) data[i] = me == 0 ? i : -1;
    if (me == 0)
        GOOD(MPI_Psend_init(data, 4, 1, pairs, 1, 3, all, MPI_INFO_NULL, &request));
    else
        GOOD(MPI_Precv_init(data, 8, 2, MPI_INT, 0, 3, all, MPI_INFO_NULL, &request));
    GOOD(MPI_Start(&request));
    if (me == 0)
        GOOD(MPI_Pready_range(0, 3, request));
    GOOD(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; me == 1 && i < 16; i++) RIGHT(data[i] == 2 * i);
    GOOD(MPI_Request_free(&request));
    MPI_Type_free(&pairs);
}

static void errors(void)
{
    int data[8] = {0}, parts[2] = {1, 1}, flag = 0;
    MPI_Comm own;
    MPI_Request request, plain;
    MPI_Status status;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    RIGHT(class_of(MPI_Psend_init(data, 0, 1, MPI_INT, 0, 0, own, MPI_INFO_NULL, &request)) == MPI_ERR_ARG);
    RIGHT(class_of(MPI_Psend_init(data, 2, -1, MPI_INT, 0, 0, own, MPI_INFO_NULL, &request)) == MPI_ERR_COUNT);
    RIGHT(class_of(MPI_Psend_init(data, 2, 1, MPI_INT, 7, 0, own, MPI_INFO_NULL, &request)) == MPI_ERR_RANK);
    RIGHT(class_of(MPI_Psend_init(data, 2, 1, MPI_DATATYPE_NULL, 0, 0, own, MPI_INFO_NULL, &request)) == MPI_ERR_TYPE);
    RIGHT(class_of(MPI_Precv_init(data, 2, 1, MPI_INT, MPI_ANY_SOURCE, 0, own, MPI_INFO_NULL, &request)) == MPI_ERR_RANK);
    RIGHT(class_of(MPI_Precv_init(data, 2, 1, MPI_INT, 0, MPI_ANY_TAG, own, MPI_INFO_NULL, &request)) == MPI_ERR_TAG);
    GOOD(MPI_Psend_init(data, 4, 1, MPI_INT, 0, 0, own, MPI_INFO_NULL, &request));
    RIGHT(class_of(MPI_Pready(0, request)) == MPI_ERR_REQUEST);
    RIGHT(class_of(MPI_Parrived(request, 0, &flag)) == MPI_ERR_REQUEST);
    GOOD(MPI_Start(&request));
    RIGHT(class_of(MPI_Start(&request)) == MPI_ERR_REQUEST);
    RIGHT(class_of(MPI_Pready(4, request)) == MPI_ERR_ARG);
    RIGHT(class_of(MPI_Pready(-1, request)) == MPI_ERR_ARG);
    RIGHT(class_of(MPI_Pready_range(2, 1, request)) == MPI_ERR_ARG);
    RIGHT(class_of(MPI_Pready_list(2, parts, request)) == MPI_ERR_ARG);
    RIGHT(class_of(MPI_Pready(1, request)) == MPI_ERR_ARG);
    GOOD(MPI_Pready(0, request));
    GOOD(MPI_Pready_range(2, 3, request));
    /* There is less room than is sent. */
    GOOD(MPI_Precv_init(data, 1, 2, MPI_INT, 0, 0, own, MPI_INFO_NULL, &plain));
    RIGHT(class_of(MPI_Pready(0, plain)) == MPI_ERR_REQUEST);
    GOOD(MPI_Start(&plain));
    RIGHT(class_of(MPI_Wait(&plain, &status)) == MPI_ERR_TRUNCATE);
    GOOD(MPI_Request_free(&plain));
    /* One that nobody sends to may be given back. */
    GOOD(MPI_Precv_init(data, 1, 2, MPI_INT, 0, 1, own, MPI_INFO_NULL, &plain));
    GOOD(MPI_Request_free(&plain));
    GOOD(MPI_Psend_init(data, 2, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, own, MPI_INFO_NULL, &plain));
    GOOD(MPI_Start(&plain));
    GOOD(MPI_Pready_range(0, 1, plain));
    GOOD(MPI_Wait(&plain, &status));
    GOOD(MPI_Request_free(&plain));
    GOOD(MPI_Precv_init(data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, own, MPI_INFO_NULL, &plain));
    GOOD(MPI_Start(&plain));
    GOOD(MPI_Wait(&plain, &status));
    RIGHT(status.MPI_SOURCE == MPI_PROC_NULL);
    GOOD(MPI_Request_free(&plain));
    GOOD(MPI_Irecv(data, 1, MPI_INT, 0, 4, own, &plain));
    RIGHT(class_of(MPI_Pready(0, plain)) == MPI_ERR_REQUEST);
    GOOD(MPI_Send(data, 1, MPI_INT, 0, 4, own));
    GOOD(MPI_Wait(&plain, &status));
    MPI_Comm_free(&own);
}

/* Requests that are freed before they are started keep their turn: the next ones of their tag belong together.
   Each rank sends to the next one; `behind`: the receives are made when the others' sends may have come. */
static void freed(MPI_Comm comm, int requests, int behind)
{
    enum { LEN = 24 };
    static int out[LEN], in[LEN];
    int next = (me + 1) % size, last = (me + size - 1) % size, right = 1;
    MPI_Request unused[2], request[2];
    for (int i = 0; i < requests; i++) {
        if (behind) {
            GOOD(MPI_Psend_init(out, 4, LEN / 4, MPI_INT, next, 3, comm, MPI_INFO_NULL, &unused[1]));
            GOOD(MPI_Barrier(comm));
        }
        GOOD(MPI_Precv_init(in, 2, LEN / 2, MPI_INT, last, 3, comm, MPI_INFO_NULL, &unused[0]));
        if (!behind)
            GOOD(MPI_Psend_init(out, 4, LEN / 4, MPI_INT, next, 3, comm, MPI_INFO_NULL, &unused[1]));
        GOOD(MPI_Request_free(&unused[i % 2]));
        GOOD(MPI_Request_free(&unused[1 - i % 2]));
    }
    GOOD(MPI_Precv_init(in, 3, LEN / 3, MPI_INT, last, 3, comm, MPI_INFO_NULL, &request[0]));
    GOOD(MPI_Psend_init(out, 6, LEN / 6, MPI_INT, next, 3, comm, MPI_INFO_NULL, &request[1]));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LEN; i++) out[i] = 1000 * me + 100 * round + i, in[i] = -1;
        GOOD(MPI_Startall(2, request));
        GOOD(MPI_Pready_range(0, 5, request[1]));
        GOOD(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        for (int i = 0; i < LEN; i++) right &= in[i] == 1000 * last + 100 * round + i;
    }
    RIGHT(right);
    GOOD(MPI_Request_free(&request[0]));
    GOOD(MPI_Request_free(&request[1]));
}

/* Also where the communicator is freed before the headers have come. */
static void freed_in_every_way(void)
{
    for (int requests = 0; requests < 40; requests += requests + 1)
        for (int behind = 0; behind < 2; behind++) {
            MPI_Comm own;
            GOOD(MPI_Comm_dup(all, &own));
            freed(all, requests, behind);
            freed(own, requests, behind);
            GOOD(MPI_Comm_free(&own));
        }
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &size);
    transfer(1, 1, 8);
    transfer(4, 1, 8);
    transfer(6, 4, 24);
    transfer(3, 12, 36);
    transfer(64, 16, 64);
    transfer(5, 4, 400000);
    empty();
    many();
    threads();
    gaps();
    freed_in_every_way();
    errors();
    MPI_Finalize();
    return wrong != 0;
}
