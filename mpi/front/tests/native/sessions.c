/* Sessions: without MPI_Init (no argument), beside it (`beside`), or in a job of two programs (`two`). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong, calls;
static MPI_Session asked = MPI_SESSION_NULL;

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

static void handler(MPI_Session *session, int *code, ...)
{
    (void)code;
    asked = *session;
    calls++;
}

static void sets(MPI_Session session)
{
    int count = -1, has_world = 0, has_self = 0;
    GOOD(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
    RIGHT(count >= 2);
    for (int i = 0; i < count; i++) {
        char name[MPI_MAX_PSET_NAME_LEN], text[32], start[5];
        int len = 0, size = -1, flag = 0, room = sizeof text, rank;
        MPI_Info info;
        MPI_Group group;
        GOOD(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &len, NULL));
        RIGHT(len > 1 && len <= MPI_MAX_PSET_NAME_LEN);
        GOOD(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &len, name));
        RIGHT((int)strlen(name) == len - 1);
        len = sizeof start;
        GOOD(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &len, start));
        RIGHT(strlen(start) == 4 && strncmp(start, name, 4) == 0);
        GOOD(MPI_Session_get_pset_info(session, name, &info));
        GOOD(MPI_Info_get_string(info, "mpi_size", &room, text, &flag));
        GOOD(MPI_Group_from_session_pset(session, name, &group));
        GOOD(MPI_Group_size(group, &size));
        GOOD(MPI_Group_rank(group, &rank));
        int is_foreign = strncmp(name, "mpix://PROGRAM/", 15) == 0;
        RIGHT(flag && atoi(text) == size && (rank >= 0 || is_foreign));
        has_world |= strcmp(name, "mpi://WORLD") == 0;
        has_self |= strcmp(name, "mpi://SELF") == 0 && size == 1;
        MPI_Info_free(&info);
        MPI_Group_free(&group);
    }
    RIGHT(has_world && has_self);
}

/* A communicator of a set of the session: everybody talks to everybody. */
static MPI_Comm talk(MPI_Session session, const char *set, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm = MPI_COMM_NULL, copy;
    int rank, size, sum = -1, from = -1;
    void *upper;
    GOOD(MPI_Group_from_session_pset(session, set, &group));
    GOOD(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    GOOD(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    RIGHT(sum == size * (size - 1) / 2);
    GOOD(MPI_Comm_dup(comm, &copy));
    GOOD(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size, 0, copy,
                      MPI_STATUS_IGNORE));
    RIGHT(from == (rank + size - 1) % size);
    GOOD(MPI_Comm_get_attr(copy, MPI_TAG_UB, &upper, &from));
    RIGHT(from && *(int *)upper >= 32767);
    MPI_Comm_free(&copy);
    return comm;
}

static void errors(MPI_Session session)
{
    MPI_Errhandler handle, found;
    MPI_Session none = MPI_SESSION_NULL;
    MPI_Group group, own;
    MPI_Comm comm;
    char name[MPI_MAX_PSET_NAME_LEN];
    int count, len = sizeof name, ranks[1] = {99};
    GOOD(MPI_Session_create_errhandler(handler, &handle));
    GOOD(MPI_Session_set_errhandler(session, handle));
    GOOD(MPI_Session_get_errhandler(session, &found));
    RIGHT(found == handle);
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&handle);
    calls = 0;
    RIGHT(class_of(MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL)) == MPI_ERR_ARG);
    RIGHT(class_of(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 99, &len, name)) == MPI_ERR_ARG);
    RIGHT(calls == 2 && asked == session);
    /* No set, no group. */
    GOOD(MPI_Group_from_session_pset(session, "mpi://NOWHERE", &group));
    RIGHT(group == MPI_GROUP_NULL);
    /* A group has the handler of its session. */
    GOOD(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    asked = MPI_SESSION_NULL;
    RIGHT(class_of(MPI_Group_incl(group, 1, ranks, &own)) == MPI_ERR_RANK);
    RIGHT(calls == 3 && asked == session);
    GOOD(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
    RIGHT(calls == 4);
    /* What is made has the handler that is given, also when it cannot be made. */
    RIGHT(class_of(MPI_Comm_create_from_group(group, "org.example", MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL)) == MPI_ERR_ARG);
    GOOD(MPI_Comm_create_from_group(group, "org.example", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    RIGHT(class_of(MPI_Comm_rank(comm, NULL)) == MPI_ERR_ARG);
    RIGHT(calls == 4);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    RIGHT(class_of(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL)) == MPI_ERR_ARG);
    GOOD(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &none));
    RIGHT(none != session && none != MPI_SESSION_NULL);
    MPI_Session ended = none;
    GOOD(MPI_Session_finalize(&none));
    RIGHT(none == MPI_SESSION_NULL);
    if (calls == 4) {
        /* Nobody has a handler: they would be fatal. */
        int is_initialized;
        MPI_Initialized(&is_initialized);
        if (is_initialized) {
            MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
            RIGHT(class_of(MPI_Session_get_num_psets(ended, MPI_INFO_NULL, &count)) == MPI_ERR_SESSION);
            RIGHT(class_of(MPI_Session_finalize(&none)) == MPI_ERR_SESSION);
        }
    }
}

/* Buffered messages wait in the buffer of their session. */
static void buffers(MPI_Session session, MPI_Comm comm)
{
    char space[2 * (64 + MPI_BSEND_OVERHEAD)], *found = NULL;
    int rank, size, value = -1, len = -1;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
    RIGHT(class_of(MPI_Session_flush_buffer(session)) == MPI_ERR_BUFFER);
    RIGHT(class_of(MPI_Bsend(&rank, 1, MPI_INT, rank, 1, comm)) == MPI_ERR_BUFFER);
    GOOD(MPI_Session_attach_buffer(session, space, sizeof space));
    GOOD(MPI_Bsend(&rank, 1, MPI_INT, (rank + 1) % size, 1, comm));
    GOOD(MPI_Recv(&value, 1, MPI_INT, (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE));
    RIGHT(value == (rank + size - 1) % size);
    GOOD(MPI_Session_iflush_buffer(session, &request));
    GOOD(MPI_Wait(&request, MPI_STATUS_IGNORE));
    GOOD(MPI_Session_flush_buffer(session));
    GOOD(MPI_Session_detach_buffer(session, &found, &len));
    RIGHT(found == space && len == (int)sizeof space);
}

/* The processes of each program are a set, and talk to each other. */
static void programs(MPI_Session session)
{
    int count, all = 0, with_us = 0, size, rank;
    MPI_Group world, group;
    GOOD(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
    RIGHT(count == 5);
    for (int number = 0; number < 2; number++) {
        char name[32];
        snprintf(name, sizeof name, "mpix://PROGRAM/%d", number);
        GOOD(MPI_Group_from_session_pset(session, name, &group));
        GOOD(MPI_Group_size(group, &size));
        GOOD(MPI_Group_rank(group, &rank));
        RIGHT(size == number + 1);
        all += size;
        if (rank != MPI_UNDEFINED) {
            MPI_Comm comm = talk(session, name, "org.example.program");
            MPI_Comm_free(&comm);
            with_us++;
        }
        MPI_Group_free(&group);
    }
    GOOD(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    GOOD(MPI_Group_size(world, &size));
    MPI_Group_free(&world);
    RIGHT(with_us == 1 && all == size);
    GOOD(MPI_Group_from_session_pset(session, "mpix://PROGRAM/2", &group));
    RIGHT(group == MPI_GROUP_NULL);
}

int main(int argc, char **argv)
{
    MPI_Session first, second;
    MPI_Comm one, other;
    MPI_Info info;
    char level[64] = "";
    int is_beside = argc > 1 && strcmp(argv[1], "beside") == 0, is_two = argc > 1 && !is_beside;
    int flag = 0, len = sizeof level;
    if (is_beside)
        MPI_Init(&argc, &argv);
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE");
    GOOD(MPI_Session_init(info, MPI_ERRORS_RETURN, &first));
    MPI_Info_free(&info);
    MPI_Initialized(&flag);
    RIGHT(flag == is_beside);
    GOOD(MPI_Session_get_info(first, &info));
    GOOD(MPI_Info_get_string(info, "thread_level", &len, level, &flag));
    RIGHT(flag && strcmp(level, "MPI_THREAD_MULTIPLE") == 0);
    MPI_Info_free(&info);
    sets(first);
    if (is_two)
        programs(first);
    one = talk(first, "mpi://WORLD", "org.example.first");
    GOOD(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second));
    other = talk(second, "mpi://WORLD", "org.example.second");
    MPI_Comm_compare(one, other, &flag);
    RIGHT(flag == MPI_CONGRUENT);
    errors(first);
    buffers(first, one);
    MPI_Comm_free(&one);
    GOOD(MPI_Session_finalize(&first));
    GOOD(MPI_Barrier(other));
    MPI_Comm_free(&other);
    if (is_beside) {
        GOOD(MPI_Barrier(MPI_COMM_WORLD));
        MPI_Finalize();
        MPI_Finalized(&flag);
        RIGHT(flag);
    }
    /* A session outlives the world model. */
    one = talk(second, "mpi://WORLD", "org.example.third");
    MPI_Comm_free(&one);
    GOOD(MPI_Session_finalize(&second));
    /* And there may be others. */
    for (int i = 0; i < 3; i++) {
        GOOD(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second));
        one = talk(second, "mpi://WORLD", "org.example.later");
        MPI_Comm_free(&one);
        one = talk(second, "mpi://SELF", "org.example.self");
        MPI_Comm_free(&one);
        GOOD(MPI_Session_finalize(&second));
    }
    return wrong != 0;
}
