/* Messages in all modes, received in all ways. Who sends what to whom is drawn alike by everybody. */
#include "random.h"

#define MOST 30
#define TAGS 3

struct message {
    int side, from, to, tag, mode, way, shape;
    long ints;
    uint64_t name;
    int is_done;
};

struct plan {
    MPI_Comm comm;
    int is_between, side, me, count;
    struct message all[MOST];
    /* Of the longest. */
    long ints;
    /* How a receiver leaves open from whom (1) and with which tag (2). */
    int style;
    struct message *mine[MOST];
    int coming;
};

enum { SEND, SSEND, RSEND, ISEND, ISSEND, IRSEND, BSEND, IBSEND, KEPT, KEPT_S, KEPT_B, MODES };

static struct plan drawn_plan(MPI_Comm comm, int is_between, int side)
{
    struct plan plan = {.comm = comm, .is_between = is_between, .side = side};
    int near, far, few = below(4) == 0;
    MPI_Comm_size(comm, &near);
    MPI_Comm_rank(comm, &plan.me);
    far = near;
    if (is_between) MPI_Comm_remote_size(comm, &far);
    int sizes[2] = {side ? far : near, side ? near : far};
    plan.count = 1 + below(few ? 5 : MOST);
    for (int i = 0; i < plan.count; i++) {
        static const int lens[6] = {0, 3, 30, 400, 5000, 60000};
        struct message *m = &plan.all[i];
        m->side = is_between ? below(2) : 0;
        m->from = below(sizes[m->side]);
        m->to = below(sizes[is_between ? 1 - m->side : 0]);
        m->tag = below(TAGS);
        m->mode = below(MODES);
        m->way = below(4);
        m->shape = below(SHAPES);
        m->ints = below(lens[below(6)] * (few ? 4 : 1) + 1) / shapes[m->shape].ints * shapes[m->shape].ints;
        m->name = drawn;
        if (m->ints > plan.ints) plan.ints = m->ints;
        if (m->to == plan.me && (!is_between || m->side != side)) plan.mine[plan.coming++] = m;
    }
    plan.style = below(4);
    return plan;
}

static int is_from_me(const struct plan *plan, const struct message *m)
{
    return m->from == plan->me && m->side == plan->side;
}

/* Sends; true if the request is to be waited for. */
static int sent(const struct message *m, const int *data, MPI_Comm comm, MPI_Request *request)
{
    const struct shape *shape = &shapes[m->shape];
    MPI_Datatype type = shape->type;
    int count = (int)(m->ints / shape->ints), to = m->to, tag = m->tag;
    switch (m->mode) {
    case SEND: MPI_Send(data, count, type, to, tag, comm); return 0;
    case SSEND: MPI_Ssend(data, count, type, to, tag, comm); return 0;
    case RSEND: MPI_Rsend(data, count, type, to, tag, comm); return 0;
    case BSEND: MPI_Bsend(data, count, type, to, tag, comm); return 0;
    case ISEND: MPI_Isend(data, count, type, to, tag, comm, request); return 1;
    case ISSEND: MPI_Issend(data, count, type, to, tag, comm, request); return 1;
    case IRSEND: MPI_Irsend(data, count, type, to, tag, comm, request); return 1;
    case IBSEND: MPI_Ibsend(data, count, type, to, tag, comm, request); return 1;
    case KEPT: MPI_Send_init(data, count, type, to, tag, comm, request); break;
    case KEPT_S: MPI_Ssend_init(data, count, type, to, tag, comm, request); break;
    default: MPI_Bsend_init(data, count, type, to, tag, comm, request);
    }
    MPI_Start(request);
    return 1;
}

/* Sends everything of ours; with requests only, unless the receives are posted. */
static int send_all(const struct plan *plan, int are_posted, MPI_Request *requests, int **buffers)
{
    int count = 0, begun = 0;
    for (int i = 0; i < plan->count; i++) {
        struct message m = plan->all[i];
        if (!is_from_me(plan, &m)) continue;
        if (!are_posted && m.mode <= RSEND) m.mode += ISEND - SEND;
        if (!are_posted && m.mode == IRSEND) m.mode = ISEND;
        buffers[count] = filled(&shapes[m.shape], m.ints, m.name);
        begun += sent(&m, buffers[count++], plan->comm, &requests[begun]);
    }
    buffers[count] = NULL;
    return begun;
}

static void end_sends(MPI_Request *requests, int count, int **buffers)
{
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++)
        if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);
    for (; *buffers; buffers++) free(*buffers);
}

/* The message that must have come: the first of its sender and tag, since they do not overtake. */
static void judge(struct plan *plan, const struct shape *shape, int *buffer, MPI_Status *status)
{
    int ints = -1;
    for (int i = 0; i < plan->coming; i++) {
        struct message *m = plan->mine[i];
        if (m->is_done || m->from != status->MPI_SOURCE || m->tag != status->MPI_TAG) continue;
        m->is_done = 1;
        MPI_Get_elements(status, shape->type, &ints);
        expect("length", i, ints, m->ints);
        check("message", shape, buffer, m->ints, plan->ints, m->name);
        free(buffer);
        return;
    }
    fail("a message that nobody sent", status->MPI_TAG, status->MPI_SOURCE, -1);
}

static int source_of(const struct plan *plan, const struct message *m)
{
    return plan->style & 1 ? MPI_ANY_SOURCE : m->from;
}

static int tag_of(const struct plan *plan, const struct message *m)
{
    return plan->style & 2 ? MPI_ANY_TAG : m->tag;
}

/* Room for the longest message in elements of a shape. */
static int places(const struct plan *plan, const struct shape *shape)
{
    return (int)((plan->ints + shape->ints - 1) / shape->ints);
}

static void wait_all(int way, int count, MPI_Request *requests, MPI_Status *statuses)
{
    static int which[MOST];
    static MPI_Status some[MOST];
    int done = 0, index = 0;
    switch (way) {
    case 0: MPI_Waitall(count, requests, statuses); return;
    case 1:
        while (!done) MPI_Testall(count, requests, &done, statuses);
        return;
    case 2:
        for (int i = count; i-- > 0;) MPI_Wait(&requests[i], &statuses[i]);
        return;
    case 3:
        for (int i = 0; i < count; i++) {
            MPI_Status status;
            MPI_Waitany(count, requests, &index, &status);
            statuses[index] = status;
        }
        return;
    default:
        for (int left = count; left > 0; left -= done) {
            MPI_Waitsome(count, requests, &done, which, some);
            for (int i = 0; i < done; i++) statuses[which[i]] = some[i];
        }
    }
}

/* A receive that nothing matches ends when it is cancelled. */
static void cancelled(MPI_Comm comm)
{
    int nothing, is_cancelled = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, TAGS, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    expect("cancelled", 0, is_cancelled, 1);
}

static void posted(struct plan *plan)
{
    static MPI_Request requests[MOST], sends[MOST];
    static MPI_Status statuses[MOST];
    static int *into[MOST], *from[MOST + 1];
    int way = below(4);
    for (int i = 0; i < plan->coming; i++) {
        const struct message *m = plan->mine[i];
        const struct shape *shape = &shapes[(m->shape + m->way) % SHAPES];
        int count = places(plan, shape), source = source_of(plan, m), tag = tag_of(plan, m);
        into[i] = room(shape, plan->ints + shape->ints);
        if (m->way) {
            MPI_Irecv(into[i], count, shape->type, source, tag, plan->comm, &requests[i]);
        } else {
            MPI_Recv_init(into[i], count, shape->type, source, tag, plan->comm, &requests[i]);
            MPI_Start(&requests[i]);
        }
        if (m->way == 2) cancelled(plan->comm);
    }
    MPI_Barrier(plan->comm);
    int begun = send_all(plan, 1, sends, from);
    wait_all(way, plan->coming, requests, statuses);
    for (int i = 0; i < plan->coming; i++) {
        const struct message *m = plan->mine[i];
        if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);
        judge(plan, &shapes[(m->shape + m->way) % SHAPES], into[i], &statuses[i]);
    }
    end_sends(sends, begun, from);
}

static void unexpected(struct plan *plan)
{
    static MPI_Request sends[MOST];
    static int *from[MOST + 1];
    int begun = send_all(plan, 0, sends, from), is_there = 0;
    for (int i = 0; i < plan->coming; i++) {
        const struct message *m = plan->mine[i];
        const struct shape *shape = &shapes[(m->shape + 2) % SHAPES];
        int *into = room(shape, plan->ints + shape->ints);
        int count = places(plan, shape), source = source_of(plan, m), tag = tag_of(plan, m);
        MPI_Status status;
        MPI_Message message;
        MPI_Request request;
        switch (m->way) {
        case 0: MPI_Recv(into, count, shape->type, source, tag, plan->comm, &status); break;
        case 1:
            MPI_Probe(source, tag, plan->comm, &status);
            MPI_Recv(into, count, shape->type, status.MPI_SOURCE, status.MPI_TAG, plan->comm, &status);
            break;
        case 2:
            MPI_Mprobe(source, tag, plan->comm, &message, &status);
            MPI_Mrecv(into, count, shape->type, &message, &status);
            break;
        default:
            for (is_there = 0; !is_there;)
                MPI_Improbe(source, tag, plan->comm, &is_there, &message, &status);
            MPI_Imrecv(into, count, shape->type, &message, &request);
            MPI_Wait(&request, &status);
        }
        judge(plan, shape, into, &status);
    }
    end_sends(sends, begun, from);
}

void messages(MPI_Comm comm, int is_between, int side)
{
    struct plan plan = drawn_plan(comm, is_between, side);
    below(2) ? posted(&plan) : unexpected(&plan);
    /* What is received with any tag is of this round. */
    MPI_Barrier(comm);
}
