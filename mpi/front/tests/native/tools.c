/* The tools interface: settings, counts of rails and peers, categories, and functions that are called for messages. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong, rank, size;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #condition);                          \
            wrong++;                                                                                         \
        }                                                                                                    \
    } while (0)

static int cvar(const char *name, MPI_T_cvar_handle *handle)
{
    int index = -1, count = 0;
    CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, handle, &count) == MPI_SUCCESS);
    return count;
}

/* Before MPI is initialised settings can be set, and wrong values are found. */
static void settings_before(void)
{
    MPI_T_cvar_handle handle;
    char value[1024];
    CHECK(cvar("NMAD_STRATEGY", &handle) <= (int)sizeof value);
    CHECK(MPI_T_cvar_write(handle, "greedi") == MPI_T_ERR_INVALID);
    CHECK(MPI_T_cvar_write(handle, "greedy") == MPI_SUCCESS);
    CHECK(MPI_T_cvar_read(handle, value) == MPI_SUCCESS && !strcmp(value, "greedy"));
    CHECK(!strcmp(getenv("NMAD_STRATEGY"), "greedy"));
    CHECK(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL);
    CHECK(MPI_T_cvar_read(handle, value) == MPI_T_ERR_INVALID_HANDLE);
    cvar("NMAD_SECRET", &handle);
    CHECK(MPI_T_cvar_read(handle, value) == MPI_SUCCESS && strlen(value) < 64);
    CHECK(MPI_T_cvar_write(handle, "x") == MPI_T_ERR_CVAR_SET_NEVER);
    MPI_T_cvar_handle_free(&handle);
}

static void settings_after(void)
{
    MPI_T_cvar_handle handle;
    char value[1024];
    cvar("NMAD_CREDIT", &handle);
    CHECK(MPI_T_cvar_write(handle, "8MiB") == MPI_T_ERR_CVAR_SET_NOT_NOW);
    MPI_T_cvar_handle_free(&handle);
    cvar("NMAD_STRATEGY", &handle);
    CHECK(MPI_T_cvar_write(handle, "auto") == MPI_SUCCESS);
    CHECK(MPI_T_cvar_read(handle, value) == MPI_SUCCESS && !strcmp(value, "auto"));
    CHECK(MPI_T_cvar_write(handle, "no such") == MPI_T_ERR_INVALID);
    MPI_T_cvar_handle_free(&handle);
}

/* Everything has a name by which it is found, and a text; a short room gets a part of the name. */
static void names(void)
{
    int count, index, len, room, verbosity, class, bind, flags[3], scope;
    char name[128], part[4], text[512];
    MPI_Datatype type;
    MPI_T_enum items;
    CHECK(MPI_T_cvar_get_num(&count) == MPI_SUCCESS && count > 40);
    for (int i = 0; i < count; i++) {
        len = sizeof name, room = sizeof text;
        CHECK(MPI_T_cvar_get_info(i, name, &len, &verbosity, &type, &items, text, &room, &bind, &scope) ==
              MPI_SUCCESS);
        CHECK(len == (int)strlen(name) + 1 && room > 8 && type == MPI_CHAR && items == MPI_T_ENUM_NULL);
        CHECK(bind == MPI_T_BIND_NO_OBJECT && verbosity >= MPI_T_VERBOSITY_USER_BASIC);
        CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS && index == i);
        len = sizeof part;
        CHECK(MPI_T_cvar_get_info(i, part, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_SUCCESS);
        CHECK(!strncmp(part, name, 3) && part[3] == 0);
    }
    len = 0;
    CHECK(MPI_T_cvar_get_info(0, NULL, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_SUCCESS);
    CHECK(len == (int)strlen("NMAD_ADVICE") + 1);
    CHECK(MPI_T_cvar_get_info(count, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
          MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_pvar_get_num(&count) == MPI_SUCCESS && count > 20);
    for (int i = 0; i < count; i++) {
        len = sizeof name, room = sizeof text;
        CHECK(MPI_T_pvar_get_info(i, name, &len, &verbosity, &class, &type, &items, text, &room, &bind, flags,
                                  flags + 1, flags + 2) == MPI_SUCCESS);
        CHECK(flags[0] == 1 && flags[1] == 1);
        CHECK(class != MPI_T_PVAR_CLASS_COUNTER || type == MPI_UNSIGNED_LONG_LONG);
        CHECK((class == MPI_T_PVAR_CLASS_STATE) == (items != MPI_T_ENUM_NULL));
        CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS && index == i);
    }
    CHECK(MPI_T_pvar_get_index("nmad_rail_packets", MPI_T_PVAR_CLASS_LEVEL, &index) == MPI_T_ERR_INVALID_NAME);
}

static void categories(void)
{
    int count, total = 0, cvars, pvars, inner, events, len, all, list[64], changed;
    CHECK(MPI_T_category_get_num(&count) == MPI_SUCCESS && count == 6);
    for (int i = 0; i < count; i++) {
        char name[64];
        len = sizeof name;
        CHECK(MPI_T_category_get_info(i, name, &len, NULL, NULL, &cvars, &pvars, &inner) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_num_events(i, &events) == MPI_SUCCESS);
        CHECK(MPI_T_category_get_index(name, &all) == MPI_SUCCESS && all == i);
        CHECK(MPI_T_category_get_cvars(i, 64, list) == MPI_SUCCESS);
        total += cvars;
    }
    MPI_T_cvar_get_num(&all);
    CHECK(total == all);
    list[1] = -7;
    CHECK(MPI_T_category_get_categories(0, 1, list) == MPI_SUCCESS && list[0] == 1 && list[1] == -7);
    CHECK(MPI_T_category_changed(&changed) == MPI_SUCCESS);
}

static unsigned long long count_of(MPI_T_pvar_session session, const char *name, int class, MPI_Comm *comm, int which)
{
    MPI_T_pvar_handle handle;
    unsigned long long values[64] = {0}, sum = 0;
    int index, count;
    CHECK(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_handle_alloc(session, index, comm, &handle, &count) == MPI_SUCCESS && count <= 64);
    CHECK(!comm || count == size);
    CHECK(MPI_T_pvar_read(session, handle, values) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS);
    for (int i = 0; i < count; i++) sum += which < 0 || which == i ? values[i] : 0;
    return sum;
}

#define PEER(name, class) count_of(session, "nmad_peer_" name, MPI_T_PVAR_CLASS_##class, &world, other)

/* Counts are those of the messages that are sent here. */
static void counts(void)
{
    enum { SMALL = 10, LARGE = 3, LEN = 4 << 20 };
    int other = (rank + 1) % size, from = (rank + size - 1) % size, tag = 5;
    char *large = calloc(LEN, 1), small[8] = {0};
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request requests[LARGE];
    MPI_T_pvar_session session;
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    unsigned long long eager = PEER("sent_eager", COUNTER), asked = PEER("sent_rendezvous", COUNTER);
    unsigned long long bytes = count_of(session, "nmad_rail_packet_bytes", MPI_T_PVAR_CLASS_COUNTER, NULL, -1) +
                               count_of(session, "nmad_rail_chunk_bytes", MPI_T_PVAR_CLASS_COUNTER, NULL, -1);
    for (int i = 0; i < LARGE; i++) MPI_Irecv(large, LEN, MPI_CHAR, from, 6, MPI_COMM_WORLD, requests + i);
    for (int i = 0; i < SMALL; i++) MPI_Send(small, sizeof small, MPI_CHAR, other, tag, MPI_COMM_WORLD);
    char *sent = calloc(LEN, 1);
    for (int i = 0; i < LARGE; i++) MPI_Send(sent, LEN, MPI_CHAR, other, 6, MPI_COMM_WORLD);
    MPI_Waitall(LARGE, requests, MPI_STATUSES_IGNORE);
    CHECK(PEER("sent_eager", COUNTER) >= eager + SMALL && PEER("sent_rendezvous", COUNTER) >= asked + LARGE);
    /* Messages keep their order: when this one is here, so are those before it. */
    MPI_Sendrecv(&tag, 1, MPI_INT, other, 7, small, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* Nobody goes on to other messages before all are here; those of the barrier may count too. */
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned long long waiting = count_of(session, "nmad_peer_unexpected", MPI_T_PVAR_CLASS_LEVEL, &world, from);
    CHECK(waiting >= SMALL && waiting < SMALL + 3);
    CHECK(count_of(session, "nmad_peer_unexpected_bytes", MPI_T_PVAR_CLASS_LEVEL, &world, from) >=
          SMALL * sizeof small);
    for (int i = 0; i < SMALL; i++)
        MPI_Recv(small, sizeof small, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(count_of(session, "nmad_peer_unexpected", MPI_T_PVAR_CLASS_LEVEL, &world, from) < 3);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(count_of(session, "nmad_peer_received", MPI_T_PVAR_CLASS_COUNTER, &world, from) >= SMALL + LARGE);
    CHECK(count_of(session, "nmad_rail_packet_bytes", MPI_T_PVAR_CLASS_COUNTER, NULL, -1) +
              count_of(session, "nmad_rail_chunk_bytes", MPI_T_PVAR_CLASS_COUNTER, NULL, -1) >
          bytes + SMALL * sizeof small);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_T_ERR_INVALID_SESSION);
    free(large);
    free(sent);
}

static unsigned long long told_bytes;
static int told, freed, marker;

static void called(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                   void *user)
{
    unsigned long long bytes = 0;
    MPI_Count at = -1, now = -1;
    int to = -1, source = -1;
    CHECK(user == &marker && registration && safety == MPI_T_CB_REQUIRE_NONE);
    CHECK(MPI_T_event_read(instance, 0, &to) == MPI_SUCCESS && to >= 0 && to < size);
    CHECK(MPI_T_event_read(instance, 1, &bytes) == MPI_SUCCESS);
    CHECK(MPI_T_event_read(instance, 9, &bytes) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_event_get_timestamp(instance, &at) == MPI_SUCCESS);
    CHECK(MPI_T_source_get_timestamp(0, &now) == MPI_SUCCESS && now >= at);
    CHECK(MPI_T_event_get_source(instance, &source) == MPI_SUCCESS && source == 0);
    told++;
    told_bytes += bytes;
}

static void given_back(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    (void)registration, (void)safety;
    CHECK(user == &marker);
    freed++;
}

/* A function is called for each message, with its bytes. */
static void events(void)
{
    int index, elements = 8, other = (rank + 1) % size, from = (rank + size - 1) % size;
    char out[500] = {0}, in[500], name[32];
    MPI_Datatype types[8];
    MPI_Aint places[8];
    MPI_Count at;
    MPI_T_event_registration registration;
    CHECK(MPI_T_event_get_index("nmad_message_sent", &index) == MPI_SUCCESS);
    int len = sizeof name;
    CHECK(MPI_T_event_get_info(index, name, &len, NULL, types, places, &elements, NULL, NULL, NULL, NULL, NULL) ==
          MPI_SUCCESS);
    CHECK(elements == 4 && types[0] == MPI_INT && places[1] == 8);
    CHECK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration) == MPI_SUCCESS);
    CHECK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &marker, called) ==
          MPI_SUCCESS);
    for (int i = 0; i < 4; i++)
        MPI_Sendrecv(out, 500, MPI_CHAR, other, 1, in, 500, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_T_source_get_timestamp(0, &at);
    CHECK(told >= 4 && told_bytes >= 2000);
    CHECK(MPI_T_event_handle_free(registration, &marker, given_back) == MPI_SUCCESS && freed == 1);
    CHECK(MPI_T_event_handle_free(registration, &marker, given_back) == MPI_T_ERR_INVALID_HANDLE);
    int before = told;
    MPI_Sendrecv(out, 500, MPI_CHAR, other, 1, in, 500, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_T_source_get_timestamp(0, &at);
    CHECK(told == before);
}

static void rails(void)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_T_enum items;
    int index, count, values[64], number, value, len;
    char name[64];
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_index("nmad_rail", MPI_T_PVAR_CLASS_STATE, &index);
    MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, &items, NULL, NULL, NULL, NULL, NULL, NULL);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_read(session, handle, values) == MPI_SUCCESS);
    len = sizeof name;
    CHECK(MPI_T_enum_get_info(items, &number, name, &len) == MPI_SUCCESS && number == count && count > 0);
    len = sizeof name;
    CHECK(MPI_T_enum_get_item(items, values[0], &value, name, &len) == MPI_SUCCESS && len > 1);
    CHECK(MPI_T_enum_get_item(items, count, &value, name, &len) == MPI_T_ERR_INVALID_ITEM);
    MPI_T_pvar_session_free(&session);
}

int main(int argc, char **argv)
{
    int provided, count;
    CHECK(MPI_T_cvar_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE);
    settings_before();
    names();
    categories();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    settings_after();
    rails();
    if (size > 1) {
        counts();
        events();
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    CHECK(MPI_T_finalize() == MPI_SUCCESS && MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    return wrong != 0;
}
