/* Info keys of a communicator that wish something for its messages. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int wrong;

#define EXPECT(condition)                                               \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
            wrong++;                                                    \
        }                                                               \
    } while (0)

static MPI_Info info_of(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    return info;
}

/* The value is refused with this class, and the text names what there is. */
static void refused(MPI_Comm comm, const char *key, const char *value, int expected, const char *word)
{
    MPI_Info info = info_of(key, value);
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm copy = MPI_COMM_NULL;
    int class = MPI_SUCCESS, length, code = MPI_Comm_set_info(comm, info);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    if (class != expected || strstr(text, word) == NULL) {
        fprintf(stderr, "%s = %s: class %d, expected %d: %s\n", key, value, class, expected, text);
        wrong++;
    }
    MPI_Error_class(MPI_Comm_dup_with_info(comm, info, &copy), &class);
    EXPECT(class == expected && copy == MPI_COMM_NULL);
    MPI_Info_free(&info);
}

/* A large message and some small ones around the ring of all ranks, and a sum. */
static void exchange(MPI_Comm comm)
{
    enum { LEN = 100000 };
    static int out[LEN], in[LEN];
    int rank, size, sum = 0;
    MPI_Request requests[10];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < LEN; i++) out[i] = rank * LEN + i;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Irecv(in, LEN, MPI_INT, from, 0, comm, &requests[0]);
    for (int tag = 1; tag < 5; tag++) MPI_Irecv(&sum, 1, MPI_INT, from, tag, comm, &requests[tag]);
    MPI_Isend(out, LEN, MPI_INT, to, 0, comm, &requests[5]);
    for (int tag = 1; tag < 5; tag++) MPI_Isend(out, 1, MPI_INT, to, tag, comm, &requests[5 + tag]);
    MPI_Waitall(10, requests, MPI_STATUSES_IGNORE);
    EXPECT(in[0] == from * LEN && in[LEN - 1] == from * LEN + LEN - 1);
    MPI_Sendrecv(out, LEN, MPI_INT, to, 7, in, LEN, MPI_INT, from, 7, comm, MPI_STATUS_IGNORE);
    MPI_Send(out, 1, MPI_INT, to, 8, comm);
    MPI_Recv(in, 1, MPI_INT, from, 8, comm, MPI_STATUS_IGNORE);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(sum == size * (size - 1) / 2);
}

int main(int argc, char **argv)
{
    const char *wishes[][2] = {{"nmad_strategy", "fifo"}, {"nmad_strategy", "iso_split"}, {"nmad_rail", "0"},
                               {"nmad_priority", "-128"}, {"nmad_priority", "127"}, {"nmad_prefer", "latency"},
                               {"nmad_prefer", "bandwidth"}, {"nmad_strategy", ""}, {"nmad_prefer", "either"}};
    char value[64];
    int found;
    MPI_Comm comm, other;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    refused(comm, "nmad_strategy", "magic", MPI_ERR_INFO_VALUE, "iso_split");
    refused(comm, "nmad_rail", "77", MPI_ERR_INFO_VALUE, "known: 0 or ");
    refused(comm, "nmad_priority", "128", MPI_ERR_INFO_VALUE, "-128 to 127");
    refused(comm, "nmad_prefer", "speed", MPI_ERR_INFO_VALUE, "latency, bandwidth");
    refused(comm, "nmad_rails", "0", MPI_ERR_INFO_KEY, "nmad_rail");
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        info = info_of(wishes[i][0], wishes[i][1]);
        EXPECT(MPI_Comm_set_info(comm, info) == MPI_SUCCESS);
        exchange(comm);
        EXPECT(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &other) == MPI_SUCCESS);
        exchange(other);
        MPI_Comm_free(&other);
        MPI_Info_free(&info);
        MPI_Comm_get_info(comm, &info);
        MPI_Info_get(info, wishes[i][0], sizeof value - 1, value, &found);
        EXPECT(found && strcmp(value, wishes[i][1]) == 0);
        MPI_Info_free(&info);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return wrong != 0;
}
