/* A rank dies, and the others go on: one case an argument. Run with --ft; the last rank is the one that dies. */

#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int me, size, victim;

#define CHECK(what)                                                                     \
    do {                                                                                \
        if (!(what)) {                                                                  \
            fprintf(stderr, "rank %d: line %d: %s\n", me, __LINE__, #what);             \
            MPI_Abort(MPI_COMM_WORLD, 3);                                               \
        }                                                                               \
    } while (0)

/* The class of an error code, and its words where it is not the expected one. */
static int class_of(int code, int expected, int line) {
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
    }
    if (class != expected) {
        char text[MPI_MAX_ERROR_STRING];
        int len;
        MPI_Error_string(code, text, &len);
        fprintf(stderr, "rank %d: line %d: class %d, not %d: %s\n", me, line, class, expected, text);
    }
    return class;
}

#define EXPECT(call, class) CHECK(class_of(call, class, __LINE__) == (class))

static void die_if_victim(void) {
    if (me == victim) {
        raise(SIGKILL);
    }
}

/* A communicator of the survivors works. */
static void check_survivors(MPI_Comm comm, int expected) {
    int n, sum = 0, one = 1, rank;
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &rank);
    CHECK(n == expected);
    EXPECT(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK(sum == expected);
    EXPECT(MPI_Barrier(comm), MPI_SUCCESS);
    int from = -1;
    EXPECT(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % n, 5, &from, 1, MPI_INT, (rank + n - 1) % n, 5, comm,
                        MPI_STATUS_IGNORE),
           MPI_SUCCESS);
    CHECK(from == (rank + n - 1) % n);
}

static void shrink_and_check(int expected) {
    MPI_Comm new;
    EXPECT(MPIX_Comm_shrink(MPI_COMM_WORLD, &new), MPI_SUCCESS);
    check_survivors(new, expected);
    MPI_Comm_free(&new);
}

static void test_point_to_point(void) {
    int word = 0;
    static char large[4 << 20];
    MPI_Request requests[2];
    die_if_victim();
    EXPECT(MPI_Recv(&word, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Recv(large, sizeof large, MPI_CHAR, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Send(large, sizeof large, MPI_CHAR, victim, 1, MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Probe(victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    MPI_Irecv(&word, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(&word, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Status statuses[2];
    EXPECT(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    EXPECT(statuses[0].MPI_ERROR, MPIX_ERR_PROC_FAILED);
    EXPECT(statuses[1].MPI_ERROR, MPIX_ERR_PROC_FAILED);
    /* What does not need the dead goes on. */
    int other = me == 0 ? 1 : 0;
    if (me < 2) {
        EXPECT(MPI_Sendrecv(&me, 1, MPI_INT, other, 2, &word, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
               MPI_SUCCESS);
        CHECK(word == other);
    }
    shrink_and_check(size - 1);
}

static void test_any_source(void) {
    int word = 0, flag = 1, count, ranks[1] = {0}, found[1];
    MPI_Request request;
    MPI_Group failed, all;
    MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request);
    die_if_victim();
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
    CHECK(request != MPI_REQUEST_NULL);
    EXPECT(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
    CHECK(request != MPI_REQUEST_NULL && !flag);
    EXPECT(MPI_Waitany(1, &request, &flag, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
    int second;
    EXPECT(MPI_Recv(&second, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Probe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &failed);
    MPI_Group_size(failed, &count);
    CHECK(count == 0);
    MPIX_Comm_failure_ack(MPI_COMM_WORLD);
    MPIX_Comm_failure_get_acked(MPI_COMM_WORLD, &failed);
    MPI_Group_size(failed, &count);
    CHECK(count == 1);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_translate_ranks(failed, 1, ranks, all, found);
    CHECK(found[0] == victim);
    MPI_Group_free(&all);
    MPI_Group_free(&failed);
    MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed);
    MPI_Group_size(failed, &count);
    CHECK(count == 1);
    EXPECT(MPIX_Comm_ack_failed(MPI_COMM_WORLD, 1, &count), MPI_SUCCESS);
    CHECK(count == 1);
    /* Now it waits for the others alone, once all are here. */
    flag = 1;
    EXPECT(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPI_SUCCESS);
    int next = (me + 1) % (size - 1);
    MPI_Send(&me, 1, MPI_INT, next, 3, MPI_COMM_WORLD);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK(word == (me + size - 2) % (size - 1));
    shrink_and_check(size - 1);
}

static void test_collective(const char *which) {
    static char data[1 << 20], more[8 << 20];
    int one = 1, sum, code = MPI_SUCCESS;
    for (int round = 0; code == MPI_SUCCESS && round < 100000; round++) {
        if (round == 50) {
            die_if_victim();
        }
        MPI_Request request;
        switch (which[0]) {
        case 'a': code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); break;
        case 'b': code = MPI_Barrier(MPI_COMM_WORLD); break;
        case 'c': code = MPI_Bcast(data, sizeof data, MPI_CHAR, victim, MPI_COMM_WORLD); break;
        case 'g': code = MPI_Allgather(data, 1 << 16, MPI_CHAR, more, 1 << 16, MPI_CHAR, MPI_COMM_WORLD); break;
        case 'i':
            code = MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
            code = code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
            break;
        case 'd': {
            MPI_Comm copy;
            code = MPI_Comm_dup(MPI_COMM_WORLD, &copy);
            code ? 0 : MPI_Comm_free(&copy);
            break;
        }
        default: CHECK(!"a known collective");
        }
    }
    EXPECT(code, MPIX_ERR_PROC_FAILED);
    EXPECT(MPI_Barrier(MPI_COMM_WORLD), MPIX_ERR_PROC_FAILED);
    shrink_and_check(size - 1);
}

static void test_revoke(void) {
    int word, flag;
    MPI_Comm comm, half, new;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, 0, &half);
    if (me == 0) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        EXPECT(MPIX_Comm_revoke(comm), MPI_SUCCESS);
    } else if (me == 1) {
        EXPECT(MPI_Barrier(comm), MPIX_ERR_REVOKED);
    } else {
        /* Nobody sends. */
        EXPECT(MPI_Recv(&word, 1, MPI_INT, me % 2 ? 1 : MPI_ANY_SOURCE, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    }
    MPIX_Comm_is_revoked(comm, &flag);
    CHECK(flag);
    EXPECT(MPI_Send(&me, 1, MPI_INT, (me + 1) % size, 0, comm), MPIX_ERR_REVOKED);
    EXPECT(MPI_Recv(&word, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    EXPECT(MPI_Recv(&word, 1, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    EXPECT(MPI_Allreduce(&me, &word, 1, MPI_INT, MPI_MAX, comm), MPIX_ERR_REVOKED);
    EXPECT(MPI_Iprobe(0, 0, comm, &flag, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    EXPECT(MPI_Comm_dup(comm, &new), MPIX_ERR_REVOKED);
    EXPECT(MPIX_Comm_revoke(comm), MPI_SUCCESS);
    /* Others are as they were. */
    MPIX_Comm_is_revoked(half, &flag);
    CHECK(!flag);
    EXPECT(MPI_Barrier(half), MPI_SUCCESS);
    EXPECT(MPI_Barrier(MPI_COMM_WORLD), MPI_SUCCESS);
    EXPECT(MPIX_Comm_shrink(comm, &new), MPI_SUCCESS);
    check_survivors(new, size);
    MPI_Comm_free(&new);
    flag = ~(1 << me);
    EXPECT(MPIX_Comm_agree(comm, &flag), MPI_SUCCESS);
    CHECK(flag == ~((1 << size) - 1));
    MPI_Comm_free(&comm);
    MPI_Comm_free(&half);
}

static void test_agree(void) {
    int flag = ~(1 << me);
    MPI_Request request;
    EXPECT(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPI_SUCCESS);
    CHECK(flag == ~((1 << size) - 1));
    die_if_victim();
    for (int round = 0; round < 3; round++) {
        flag = ~(1 << me);
        EXPECT(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPIX_ERR_PROC_FAILED);
        CHECK(flag == ~((1 << (size - 1)) - 1));
    }
    MPIX_Comm_failure_ack(MPI_COMM_WORLD);
    flag = ~(1 << me);
    EXPECT(MPIX_Comm_iagree(MPI_COMM_WORLD, &flag, &request), MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK(flag == ~((1 << (size - 1)) - 1));
    MPI_Comm new;
    EXPECT(MPIX_Comm_ishrink(MPI_COMM_WORLD, &new, &request), MPI_SUCCESS);
    EXPECT(MPI_Comm_set_errhandler(new, MPI_ERRORS_RETURN), MPI_SUCCESS);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    check_survivors(new, size - 1);
    MPI_Comm_free(&new);
}

static void test_window(void) {
    int *base, word = 0, code;
    MPI_Win win;
    MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    die_if_victim();
    code = MPI_Win_fence(0, win);
    EXPECT(code, MPIX_ERR_PROC_FAILED);
    code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, victim, 0, win);
    code = code ? code : MPI_Put(&word, 1, MPI_INT, victim, 0, 1, MPI_INT, win);
    code = code ? code : MPI_Win_unlock(victim, win);
    /* Memory of this node is still there. */
    if (code != MPI_SUCCESS) {
        EXPECT(code, MPIX_ERR_PROC_FAILED);
    }
    shrink_and_check(size - 1);
}

/* A session that begins after a failure gives the survivors a communicator. */
static void test_sessions(void) {
    MPI_Session session;
    MPI_Group failed, all, left;
    MPI_Comm new;
    die_if_victim();
    shrink_and_check(size - 1);
    MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed);
    EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_SUCCESS);
    EXPECT(MPI_Group_from_session_pset(session, "mpi://WORLD", &all), MPI_SUCCESS);
    MPI_Group_difference(all, failed, &left);
    EXPECT(MPI_Comm_create_from_group(left, "survivors", MPI_INFO_NULL, MPI_ERRORS_RETURN, &new), MPI_SUCCESS);
    check_survivors(new, size - 1);
    MPI_Comm_free(&new);
    MPI_Group_free(&failed);
    MPI_Group_free(&all);
    MPI_Group_free(&left);
    EXPECT(MPI_Session_finalize(&session), MPI_SUCCESS);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    victim = size - 1;
    const char *which = argc > 1 ? argv[1] : "";
    if (!strcmp(which, "without")) {
        int flag = 1;
        EXPECT(MPIX_Comm_revoke(MPI_COMM_WORLD), MPI_ERR_UNSUPPORTED_OPERATION);
        EXPECT(MPIX_Comm_agree(MPI_COMM_WORLD, &flag), MPI_ERR_UNSUPPORTED_OPERATION);
    } else if (!strcmp(which, "point-to-point")) {
        test_point_to_point();
    } else if (!strcmp(which, "any-source")) {
        test_any_source();
    } else if (!strcmp(which, "revoke")) {
        test_revoke();
    } else if (!strcmp(which, "agree")) {
        test_agree();
    } else if (!strcmp(which, "window")) {
        test_window();
    } else if (!strcmp(which, "sessions")) {
        test_sessions();
    } else if (!strcmp(which, "collective")) {
        CHECK(argc > 2);
        test_collective(argv[2]);
    } else {
        CHECK(!"a known case");
    }
    EXPECT(MPI_Finalize(), MPI_SUCCESS);
    return 0;
}
