/* Null, inactive and failed requests in every call that takes a request: what it answers, and what it leaves in
   statuses. */
#include <mpi.h>
#include <stdio.h>

static int wrong;

#define RIGHT(what)                                                          \
    do {                                                                     \
        if (!(what)) {                                                       \
            fprintf(stderr, "%s, line %d: %s does not hold\n", kind, __LINE__, #what); \
            wrong++;                                                         \
        }                                                                    \
    } while (0)
#define GOOD(call) RIGHT((call) == MPI_SUCCESS)

/* What nothing of MPI writes. */
enum { UNTOUCHED = 4711, TAG = 3 };

static const char *kind;
static int out[2] = {1, 2}, in[2];

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static MPI_Status untouched(void)
{
    MPI_Status status = {.MPI_SOURCE = UNTOUCHED, .MPI_TAG = UNTOUCHED, .MPI_ERROR = UNTOUCHED};
    return status;
}

/* An empty status has no error (MPI 5.0, section 3.7.3). */
static int is_empty(MPI_Status *status)
{
    int count = -1, cancelled = -1;
    MPI_Get_count(status, MPI_INT, &count);
    MPI_Test_cancelled(status, &cancelled);
    return status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG && status->MPI_ERROR == MPI_SUCCESS
        && count == 0 && !cancelled;
}

/* Two requests of the same kind that wait for nothing; calls leave them as they are. */
static void idle(MPI_Request first, MPI_Request second)
{
    MPI_Request request = first, both[2] = {first, second};
    MPI_Status status = untouched(), statuses[2] = {untouched(), untouched()};
    int flag = -1, index = -1, count = -1, indices[2];
    GOOD(MPI_Wait(&request, &status));
    RIGHT(is_empty(&status) && request == first);
    status = untouched();
    GOOD(MPI_Test(&request, &flag, &status));
    RIGHT(flag == 1 && is_empty(&status) && request == first);
    status = untouched(), flag = -1;
    GOOD(MPI_Request_get_status(request, &flag, &status));
    RIGHT(flag == 1 && is_empty(&status));
    GOOD(MPI_Waitall(2, both, statuses));
    RIGHT(is_empty(&statuses[0]) && is_empty(&statuses[1]));
    statuses[0] = statuses[1] = untouched(), flag = -1;
    GOOD(MPI_Testall(2, both, &flag, statuses));
    RIGHT(flag == 1 && is_empty(&statuses[0]) && is_empty(&statuses[1]));
    statuses[0] = statuses[1] = untouched(), flag = -1;
    GOOD(MPI_Request_get_status_all(2, both, &flag, statuses));
    RIGHT(flag == 1 && is_empty(&statuses[0]) && is_empty(&statuses[1]));
    status = untouched();
    GOOD(MPI_Waitany(2, both, &index, &status));
    RIGHT(index == MPI_UNDEFINED && is_empty(&status));
    status = untouched(), flag = index = -1;
    GOOD(MPI_Testany(2, both, &index, &flag, &status));
    RIGHT(flag == 1 && index == MPI_UNDEFINED && is_empty(&status));
    status = untouched(), flag = index = -1;
    GOOD(MPI_Request_get_status_any(2, both, &index, &flag, &status));
    RIGHT(flag == 1 && index == MPI_UNDEFINED && is_empty(&status));
    GOOD(MPI_Waitsome(2, both, &count, indices, statuses));
    RIGHT(count == MPI_UNDEFINED);
    count = -1;
    GOOD(MPI_Testsome(2, both, &count, indices, statuses));
    RIGHT(count == MPI_UNDEFINED);
    count = -1;
    GOOD(MPI_Request_get_status_some(2, both, &count, indices, statuses));
    RIGHT(count == MPI_UNDEFINED);
    RIGHT(both[0] == first && both[1] == second);
}

/* The calls for which only some requests are right. */
struct right {
    int cancels, frees, starts, arrives, is_ready, completes;
};

static void asked(MPI_Request request, struct right right)
{
    int flag = -1, one = 0;
    RIGHT(class_of(MPI_Cancel(&request)) == right.cancels);
    RIGHT(class_of(MPI_Parrived(request, 0, &flag)) == right.arrives && (right.arrives || flag == 1));
    RIGHT(class_of(MPI_Pready(0, request)) == right.is_ready);
    RIGHT(class_of(MPI_Pready_range(0, 0, request)) == right.is_ready);
    RIGHT(class_of(MPI_Pready_list(1, &one, request)) == right.is_ready);
    RIGHT(class_of(MPI_Grequest_complete(request)) == right.completes);
}

/* Each kind of request, in pairs: before it was started, and after it has ended. */
static void of_every_kind(void)
{
    const int no = MPI_ERR_REQUEST;
    const struct right persistent = {0, 0, 0, no, no, no}, receives = {0, 0, 0, 0, no, no},
                       null = {no, no, no, 0, no, no};
    const char *names[] = {"send", "receive", "collective", "partitioned send", "partitioned receive"};
    MPI_Request none = MPI_REQUEST_NULL, pairs[5][2];
    for (int i = 0; i < 2; i++) {
        MPI_Send_init(out, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &pairs[0][i]);
        MPI_Recv_init(in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &pairs[1][i]);
        MPI_Allreduce_init(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL, &pairs[2][i]);
        MPI_Psend_init(out, 1, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, MPI_INFO_NULL, &pairs[3][i]);
        MPI_Precv_init(in, 1, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, MPI_INFO_NULL, &pairs[4][i]);
    }
    kind = "null";
    idle(none, none);
    asked(none, null);
    RIGHT(class_of(MPI_Start(&none)) == null.starts);
    RIGHT(class_of(MPI_Startall(1, &none)) == null.starts);
    RIGHT(class_of(MPI_Request_free(&none)) == null.frees);
    for (int ran = 0; ran < 2; ran++) {
        for (int i = 0; i < 5; i++) {
            kind = names[i];
            idle(pairs[i][0], pairs[i][1]);
            idle(pairs[i][0], MPI_REQUEST_NULL);
            asked(pairs[i][0], i == 4 ? receives : persistent);
        }
        kind = "all together";
        GOOD(MPI_Startall(10, pairs[0]));
        RIGHT(class_of(MPI_Start(&pairs[1][0])) == MPI_ERR_REQUEST);
        GOOD(MPI_Pready(0, pairs[3][0]));
        GOOD(MPI_Pready(0, pairs[3][1]));
        GOOD(MPI_Waitall(10, pairs[0], MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < 10; i++) GOOD(MPI_Request_free(&pairs[i / 2][i % 2]));
}

/* A receive, which is too short if the message shall be truncated, and its send. */
static void pair(MPI_Request *requests, int count)
{
    MPI_Irecv(in, 1, MPI_INT, 0, TAG, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(out, count, MPI_INT, 0, TAG, MPI_COMM_SELF, &requests[1]);
}

static int errors_are(MPI_Status *statuses, int receives, int sends)
{
    return statuses[0].MPI_ERROR == receives && statuses[1].MPI_ERROR == sends;
}

/* MPI_ERROR, of sends as of receives: calls that end one request leave it alone, those that end several set it. */
static void error_fields(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2] = {untouched(), untouched()};
    int flag, index, count, indices[2], code;
    kind = "error field";
    pair(requests, 1);
    GOOD(MPI_Wait(&requests[0], &statuses[0]));
    GOOD(MPI_Wait(&requests[1], &statuses[1]));
    RIGHT(errors_are(statuses, UNTOUCHED, UNTOUCHED) && statuses[0].MPI_TAG == TAG);
    pair(requests, 1);
    for (int i = 0; i < 2; i++)
        for (flag = 0; !flag;) GOOD(MPI_Test(&requests[i], &flag, &statuses[i]));
    RIGHT(errors_are(statuses, UNTOUCHED, UNTOUCHED));
    pair(requests, 1);
    for (int i = 0; i < 2; i++) {
        MPI_Status one = untouched();
        GOOD(MPI_Waitany(2, requests, &index, &one));
        RIGHT(one.MPI_ERROR == UNTOUCHED);
    }
    pair(requests, 2);
    RIGHT(class_of(MPI_Wait(&requests[0], &statuses[0])) == MPI_ERR_TRUNCATE);
    GOOD(MPI_Wait(&requests[1], &statuses[1]));
    RIGHT(errors_are(statuses, UNTOUCHED, UNTOUCHED));
    pair(requests, 1);
    GOOD(MPI_Waitall(2, requests, statuses));
    RIGHT(errors_are(statuses, MPI_SUCCESS, MPI_SUCCESS));
    statuses[0] = statuses[1] = untouched();
    pair(requests, 1);
    for (flag = 0; !flag;) GOOD(MPI_Testall(2, requests, &flag, statuses));
    RIGHT(errors_are(statuses, MPI_SUCCESS, MPI_SUCCESS));
    pair(requests, 1);
    for (int left = 2; left > 0; left -= count) {
        statuses[0] = statuses[1] = untouched();
        GOOD(MPI_Waitsome(2, requests, &count, indices, statuses));
        for (int i = 0; i < count; i++) RIGHT(statuses[i].MPI_ERROR == MPI_SUCCESS);
    }
    /* The codes in statuses and that which points to them are the constants themselves. */
    pair(requests, 2);
    RIGHT(MPI_Waitall(2, requests, statuses) == MPI_ERR_IN_STATUS);
    RIGHT(errors_are(statuses, MPI_ERR_TRUNCATE, MPI_SUCCESS));
    pair(requests, 2);
    for (flag = 0, code = MPI_SUCCESS; !flag;) code = MPI_Testall(2, requests, &flag, statuses);
    RIGHT(code == MPI_ERR_IN_STATUS && errors_are(statuses, MPI_ERR_TRUNCATE, MPI_SUCCESS));
    for (int way = 0; way < 2; way++) {
        int codes = 0;
        pair(requests, 2);
        for (int left = 2; left > 0; left -= count) {
            code = way ? MPI_Testsome(2, requests, &count, indices, statuses)
                       : MPI_Waitsome(2, requests, &count, indices, statuses);
            RIGHT(code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS);
            codes += code != MPI_SUCCESS;
            for (int i = 0; i < count; i++)
                RIGHT(statuses[i].MPI_ERROR == (indices[i] == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
        }
        RIGHT(codes == 1);
    }
}

static int heard;

static void hear(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    heard = *code;
}

/* An error handler gets the constant, too, and the text of it says which request failed. */
static void handlers(void)
{
    MPI_Request requests[2];
    MPI_Errhandler handler;
    char text[MPI_MAX_ERROR_STRING];
    int len;
    kind = "handler";
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    pair(requests, 2);
    RIGHT(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_ERR_IN_STATUS && heard == MPI_ERR_IN_STATUS);
    GOOD(MPI_Error_string(heard, text, &len));
    RIGHT(len > 60);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

/* Many requests that are freed at once, whose operations go on. */
static void given_away(void)
{
    enum { MANY = 3000 };
    static int values[MANY];
    int sum = 0;
    kind = "given away";
    for (int i = 0; i < MANY; i++) {
        MPI_Request request;
        GOOD(MPI_Irecv(&values[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &request));
        GOOD(MPI_Request_free(&request));
        RIGHT(request == MPI_REQUEST_NULL);
    }
    for (int i = MANY - 1; i >= 0; i--) GOOD(MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF));
    /* Messages of one sender arrive in their order, so this one tells that all have. */
    GOOD(MPI_Sendrecv(out, 1, MPI_INT, 0, MANY, in, 1, MPI_INT, 0, MANY, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    for (int i = 0; i < MANY; i++) sum += values[i] != i;
    RIGHT(sum == 0);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    of_every_kind();
    error_fields();
    handlers();
    given_away();
    MPI_Finalize();
    return wrong > 0;
}
