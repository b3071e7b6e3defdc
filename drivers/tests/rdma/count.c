/* Stands before libibverbs (LD_PRELOAD) and counts what a program asks of the device; makes queue pairs fail.
 * It calls itself libibverbs.so.1, so that a program that opens that library gets this one, and behind it the
 * real one, which lies beside it as libibverbs-real.so. Calls of the fast path go through the table in the
 * context of a device, whose entries are replaced when it is opened (layout: binary interface since 1.1).
 *   VERBS_FAIL_EVERY=N  every N-th call that posts is preceded by the error state of its queue pair
 *   VERBS_REFUSE=1      memory of 1 to 4 MiB is not registered, as beyond the limit of locked memory
 *   VERBS_ON_DEMAND=1   but it is where the device shall fault its pages in (which this one then need not)
 *   VERBS_MTU=N         every port has this MTU: 1 is 256 B, 5 is 4096
 *   VERBS_PORT_STATE=N  every port is in this state: 1 is down, 4 is active
 *   VERBS_TEXT=TEXT     posted buffers are searched for this text
 *   VERBS_ATOMIC=N      atomics of every device: 0 none, 1 against the device itself, 2 against processors, too */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DOORBELLS, OPERATIONS, SIGNALED, COMPLETIONS, REGISTRATIONS, BUFFERED, DIRECT, FAILURES, READABLE, KINDS };
enum { POLL_CQ = (8 + 88) / 8, POST_SEND = (8 + 200) / 8, QPS_ERR = 6, QP_STATE = 1, WC_LEN = 48 };
enum { ON_DEMAND = 1 << 6 };

struct send_wr {
    uint64_t wr_id;
    struct send_wr *next;
    struct sge {
        uint64_t addr;
        uint32_t len, key;
    } *list;
    int count;
    uint32_t opcode, flags;
};
struct qp_attr {
    uint32_t state;
    char rest[140];
};

static atomic_long counts[KINDS];
static int (*poll_cq)(void *, int, char *);
static int (*post_send)(void *, struct send_wr *, struct send_wr **);

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* Counts since the program began: doorbells, operations, those that ask for a completion, completions (of
 * sends, reads and receives), registrations, bytes of messages, which travel from buffer to buffer, and of
 * reads and writes, which need none, failures made, buffers with the text of VERBS_TEXT. */
void verbs_counts(long *out)
{
    for (int kind = 0; kind < KINDS; kind++)
        out[kind] = counts[kind];
}

static void fail_now_and_then(void *qp, long calls)
{
    static long every = -1;
    if (every < 0)
        every = atol(getenv("VERBS_FAIL_EVERY") ? getenv("VERBS_FAIL_EVERY") : "0");
    if (every == 0 || calls % every != 0)
        return;
    struct qp_attr attr = { QPS_ERR, { 0 } };
    int (*modify)(void *, struct qp_attr *, int) = real("ibv_modify_qp");
    if (modify(qp, &attr, QP_STATE) == 0)
        counts[FAILURES]++;
}

static int has_text(const void *data, size_t len)
{
    const char *text = getenv("VERBS_TEXT");
    return text != NULL && memmem(data, len, text, strlen(text)) != NULL;
}

static int counted_post(void *qp, struct send_wr *list, struct send_wr **bad)
{
    fail_now_and_then(qp, ++counts[DOORBELLS]);
    for (struct send_wr *work = list; work; work = work->next) {
        counts[OPERATIONS]++;
        counts[SIGNALED] += (work->flags & 2) != 0;
        /* IBV_WR_SEND and the same with immediate data are messages; 0, 1 and 4 write and read. */
        int kind = work->opcode == 2 || work->opcode == 3 ? BUFFERED : DIRECT;
        for (int piece = 0; piece < work->count; piece++) {
            struct sge *data = &work->list[piece];
            counts[kind] += data->len;
            counts[READABLE] += kind == BUFFERED && has_text((void *)data->addr, data->len);
        }
    }
    return post_send(qp, list, bad);
}

static int counted_poll(void *cq, int most, char *found)
{
    int got = poll_cq(cq, most, found);
    counts[COMPLETIONS] += got > 0 ? got : 0;
    return got;
}

void *ibv_open_device(void *device)
{
    void *(*open)(void *) = real("ibv_open_device");
    void **context = open(device);
    if (!context)
        return NULL;
    if (!post_send) {
        *(void **)&poll_cq = context[POLL_CQ];
        *(void **)&post_send = context[POST_SEND];
    }
    context[POLL_CQ] = (void *)counted_poll;
    context[POST_SEND] = (void *)counted_post;
    return context;
}

/* Whether memory is not registered; takes out of `access` what a device that faults pages in has. */
static int refuses(void *start, size_t len, unsigned *access)
{
    /* The library may ask once more, by its other function. */
    static __thread void *faulted_in;
    int faults_in = start == faulted_in || (*access & ON_DEMAND && getenv("VERBS_ON_DEMAND") != NULL);
    faulted_in = faults_in ? start : NULL;
    if (faults_in)
        *access &= ~ON_DEMAND;
    if (faults_in || !getenv("VERBS_REFUSE") || len < 1 << 20 || len >= 4 << 20)
        return 0;
    errno = ENOMEM;
    return 1;
}

/* `struct ibv_port_attr` begins with the state, the longest MTU and the active one. */
int ibv_query_port(void *context, uint8_t port, uint32_t *attr)
{
    int (*query)(void *, uint8_t, uint32_t *) = real("ibv_query_port");
    int status = query(context, port, attr);
    if (getenv("VERBS_PORT_STATE"))
        attr[0] = atoi(getenv("VERBS_PORT_STATE"));
    if (getenv("VERBS_MTU"))
        attr[2] = atoi(getenv("VERBS_MTU"));
    return status;
}

int ibv_query_device(void *context, uint32_t *attr)
{
    int (*query)(void *, uint32_t *) = real("ibv_query_device");
    int status = query(context, attr);
    if (getenv("VERBS_ATOMIC"))
        attr[41] = atoi(getenv("VERBS_ATOMIC"));
    return status;
}

void *ibv_reg_mr(void *pd, void *start, size_t len, int access)
{
    void *(*reg)(void *, void *, size_t, int) = real("ibv_reg_mr");
    unsigned wanted = access;
    counts[REGISTRATIONS]++;
    return refuses(start, len, &wanted) ? NULL : reg(pd, start, len, wanted);
}

void *ibv_reg_mr_iova2(void *pd, void *start, size_t len, uint64_t iova, unsigned access)
{
    void *(*reg)(void *, void *, size_t, uint64_t, unsigned) = real("ibv_reg_mr_iova2");
    counts[REGISTRATIONS]++;
    return refuses(start, len, &access) ? NULL : reg(pd, start, len, iova, access);
}
