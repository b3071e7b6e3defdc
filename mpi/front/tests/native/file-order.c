/* Atomic mode: there must be an order of all accesses, each as a whole, that has those of each rank in the order of its
 * program, and in which every read finds what was written last. Every write has a value of its own, so that a read says
 * whose write it has found. From that follow orders of pairs of accesses, from these follow others, and a circle in them is
 * a violation. */
#include "file-oracle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 9, SPAN = 30000, STEP = 13, NODES = 1 + MAX_ACTORS * (EACH + 1) };

/* A part of what a rank sees of the file: bytes of its view from `first` on. */
struct event {
    const struct access *view;
    int first, bytes, writes;
    unsigned char *data;
};

/* Event 0 is what the file has at first; each rank has EACH of its own, and reads everything at the end. */
static struct event events[NODES];
static struct access views[MAX_ACTORS];
static const struct access whole = {0, SPAN, SPAN, 1, 0, 0, 0};
static unsigned char before[NODES][NODES];
/* By event and byte of the file: whether it touches it, and which write a read has found there. */
static unsigned char touched[NODES][SPAN], found[NODES][SPAN];
static int count;

static int node(int of, int number) { return 1 + of * (EACH + 1) + number; }

static long at(const struct event *event, int index)
{
    int place_ = event->first + index;
    return event->view->start + (long)(place_ / event->view->len) * event->view->stride + place_ % event->view->len;
}

static void draw_rank(int of)
{
    unsigned state = (unsigned)(seed * 15485863 + epoch * 32452843 + of * 49979687 + 3);
    struct access *view = &views[of];
    view->len = 1 + (int)drawn(&state, 300);
    view->stride = view->len + (int)drawn(&state, 2) * (int)drawn(&state, 300);
    view->start = (long)drawn(&state, 500);
    int most = (int)((SPAN - view->start) / view->stride) * view->len;
    for (int number = 0; number < EACH; number++) {
        struct event *event = &events[node(of, number)];
        event->view = view;
        event->first = (int)drawn(&state, (unsigned)most);
        event->bytes = 1 + (int)drawn(&state, (unsigned)(most - event->first));
        event->writes = (int)drawn(&state, 2);
        if (number > 0) before[node(of, number - 1)][node(of, number)] = 1;
        before[0][node(of, number)] = 1;
    }
    events[node(of, EACH)] = (struct event){&whole, 0, SPAN, 0, NULL};
}

static void draw_all(void)
{
    count = 1 + size * (EACH + 1);
    memset(before, 0, sizeof before);
    memset(touched, 0, sizeof touched);
    events[0] = (struct event){&whole, 0, SPAN, 1, NULL};
    for (int of = 0; of < size; of++) draw_rank(of);
    /* The last reads come behind everything. */
    for (int of = 0; of < size; of++)
        for (int other = 0; other < count; other++)
            if (other == 0 || (other - 1) % (EACH + 1) < EACH) before[other][node(of, EACH)] = 1;
    for (int event = 0; event < count; event++)
        for (int i = 0; i < events[event].bytes; i++) touched[event][at(&events[event], i)] = 1;
}

static void run_event(MPI_File file, int number)
{
    struct event *event = &events[number];
    MPI_Request request = MPI_REQUEST_NULL;
    event->data = malloc((size_t)event->bytes);
    memset(event->data, number, (size_t)event->bytes);
    if (event->writes && number % 3 == 0)
        check(MPI_File_iwrite_at(file, event->first, event->data, event->bytes, MPI_BYTE, &request), __LINE__);
    else if (event->writes)
        check(MPI_File_write_at(file, event->first, event->data, event->bytes, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
    else
        check(MPI_File_read_at(file, event->first, event->data, event->bytes, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
    check(MPI_Wait(&request, MPI_STATUS_IGNORE), __LINE__);
}

static void set_view(MPI_File file, const struct access *view)
{
    MPI_Datatype block, spread;
    MPI_Type_contiguous(view->len, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, view->stride, &spread);
    MPI_Type_commit(&spread);
    check(MPI_File_set_view(file, view->start, MPI_BYTE, spread, "native", MPI_INFO_NULL), __LINE__);
    MPI_Type_free(&block);
    MPI_Type_free(&spread);
}

/* Tells all ranks what each read has found. */
static void spread_reads(void)
{
    memset(found, 0, sizeof found);
    for (int number = 0; number <= EACH; number++) {
        struct event *event = &events[node(rank, number)];
        for (int i = 0; i < event->bytes; i++) found[node(rank, number)][at(event, i)] = event->data[i];
        free(event->data);
    }
    for (int of = 0; of < size; of++)
        check(MPI_Bcast(found[node(of, 0)], (EACH + 1) * SPAN, MPI_BYTE, of, MPI_COMM_WORLD), __LINE__);
}

/* Adds what follows from the orders of pairs. */
static void close_orders(void)
{
    for (int middle = 0; middle < count; middle++)
        for (int from = 0; from < count; from++)
            for (int to = 0; before[from][middle] && to < count; to++) before[from][to] |= before[middle][to];
    for (int event = 0; event < count; event++)
        if (before[event][event]) failed(__LINE__, "accesses in a circle: no order of them explains what was read", event, 0);
}

/* Adds orders that follow from what reads have found, of some bytes; whether there were new ones. */
static int add_orders(void)
{
    int is_new = 0;
    for (int read = 1; read < count; read++)
        for (long place_ = 0; !events[read].writes && place_ < SPAN; place_ += STEP) {
            int writer = found[read][place_];
            if (!touched[read][place_]) continue;
            if (writer >= count || !events[writer].writes || !touched[writer][place_])
                failed(__LINE__, "a value that nobody has written there", place_, writer);
            is_new |= !before[writer][read];
            before[writer][read] = 1;
            for (int other = 0; other < count; other++) {
                if (other == writer || !events[other].writes || !touched[other][place_]) continue;
                if (before[other][read] && !before[other][writer]) is_new = before[other][writer] = 1;
                if (before[writer][other] && !before[read][other]) is_new = before[read][other] = 1;
            }
        }
    return is_new;
}

void atomic_epoch(const char *folder)
{
    char path[512];
    unsigned state = (unsigned)(seed * 127 + epoch);
    unsigned char *nothing = calloc(SPAN, 1);
    MPI_Info info = drawn_hints(&state);
    MPI_File file;
    snprintf(path, sizeof path, "%s/order", folder);
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file),
          __LINE__);
    MPI_Info_free(&info);
    draw_all();
    if (rank == 0) check(MPI_File_write_at(file, 0, nothing, SPAN, MPI_BYTE, MPI_STATUS_IGNORE), __LINE__);
    free(nothing);
    check(MPI_File_set_atomicity(file, 1), __LINE__);
    set_view(file, &views[rank]);
    for (int number = 0; number < EACH; number++) run_event(file, node(rank, number));
    set_view(file, &whole);
    run_event(file, node(rank, EACH));
    check(MPI_File_close(&file), __LINE__);
    spread_reads();
    do close_orders();
    while (add_orders());
}
