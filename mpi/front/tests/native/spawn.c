/* Processes that are started by others, that meet at a port, and that part again. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int wrong, rank, size;
static const char *role = "parent";

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s %d, line %d: %s\n", role, rank, __LINE__, #condition);                      \
            wrong++;                                                                                         \
        }                                                                                                    \
    } while (0)

static void expect(const char *what, int code, int expected)
{
    int class;
    char text[MPI_MAX_ERROR_STRING];
    int len;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &len);
    if (class != expected) {
        fprintf(stderr, "%s: class %d, expected %d: %s\n", what, class, expected, text);
        wrong++;
    }
}

/* Both groups talk: small and large messages between all, then all together in one group. */
static void talk(MPI_Comm inter, int expected)
{
    enum { LARGE = 300000 };
    int others, own, ranks, value, sum = 0;
    MPI_Comm merged;
    MPI_Comm_remote_size(inter, &others);
    MPI_Comm_rank(inter, &own);
    CHECK(others == expected);
    int *large = malloc(sizeof *large * LARGE), *got = calloc(LARGE, sizeof *got);
    for (int i = 0; i < LARGE; i++) large[i] = own + i;
    for (int other = 0; other < others; other++) {
        int mine = 100 + own;
        MPI_Sendrecv(&mine, 1, MPI_INT, other, 3, &value, 1, MPI_INT, other, 3, inter, MPI_STATUS_IGNORE);
        CHECK(value == 100 + other);
        MPI_Sendrecv(large, LARGE, MPI_INT, other, 4, got, LARGE, MPI_INT, other, 4, inter, MPI_STATUS_IGNORE);
        CHECK(got[0] == other && got[LARGE - 1] == other + LARGE - 1);
    }
    CHECK(MPI_Intercomm_merge(inter, strcmp(role, "parent") != 0, &merged) == MPI_SUCCESS);
    MPI_Comm_size(merged, &ranks);
    value = 1;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, merged);
    CHECK(sum == ranks);
    MPI_Comm_rank(merged, &own);
    value = own == 0 ? 77 : 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, merged);
    CHECK(value == 77);
    MPI_Win window;
    int *memory;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, merged, &memory, &window);
    *memory = 0;
    MPI_Win_fence(0, window);
    value = 1;
    for (int other = 0; other < ranks; other++)
        MPI_Accumulate(&value, 1, MPI_INT, other, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    CHECK(*memory == ranks);
    MPI_Win_free(&window);
    MPI_Comm_free(&merged);
    free(large);
    free(got);
}

static void child(MPI_Comm parent, int parents)
{
    char name[MPI_MAX_OBJECT_NAME];
    int len;
    MPI_Comm_get_name(parent, name, &len);
    CHECK(!strcmp(name, "MPI_COMM_PARENT"));
    talk(parent, parents);
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&parent);
    CHECK(parent == MPI_COMM_NULL);
}

static void spawned(char *self)
{
    char count[16], *args[] = {"child", count, NULL};
    int codes[4] = {-1, -1, -1, -1};
    MPI_Comm inter;
    snprintf(count, sizeof count, "%d", size);
    for (int round = 0; round < 3; round++) {
        CHECK(MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes) == MPI_SUCCESS);
        CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == -1);
        talk(inter, 2);
        CHECK(MPI_Comm_disconnect(&inter) == MPI_SUCCESS && inter == MPI_COMM_NULL);
    }
    char *commands[] = {self, self};
    char **argvs[] = {args, args};
    int counts[] = {1, 2}, last = size - 1;
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    /* What counts at the root may be anything elsewhere. */
    if (rank == last)
        MPI_Comm_spawn_multiple(2, commands, argvs, counts, infos, last, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    else
        MPI_Comm_spawn_multiple(-1, NULL, NULL, NULL, NULL, last, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    talk(inter, 3);
    MPI_Comm_disconnect(&inter);
}

/* Two jobs that know nothing of each other but the name of a service. */
static void met(char *self)
{
    char service[64], *server[] = {"server", service, NULL}, *client[] = {"client", service, NULL};
    MPI_Comm first, second;
    snprintf(service, sizeof service, "nmad test %d", (int)getpid());
    MPI_Comm_spawn(self, server, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &first, MPI_ERRCODES_IGNORE);
    MPI_Recv(NULL, 0, MPI_INT, 0, 9, first, MPI_STATUS_IGNORE);
    MPI_Comm_spawn(self, client, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &second, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&second);
    MPI_Comm_disconnect(&first);
}

static void serve(MPI_Comm parent, const char *service)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    if (rank == 0) {
        CHECK(MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS);
        CHECK(MPI_Publish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS);
        expect("published twice", MPI_Publish_name(service, MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        CHECK(MPI_Lookup_name(service, MPI_INFO_NULL, found) == MPI_SUCCESS && !strcmp(port, found));
        MPI_Send(NULL, 0, MPI_INT, 0, 9, parent);
    }
    CHECK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter) == MPI_SUCCESS);
    if (rank == 0) {
        CHECK(MPI_Unpublish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS);
        CHECK(MPI_Close_port(port) == MPI_SUCCESS);
        expect("closed twice", MPI_Close_port(port), MPI_ERR_PORT);
    }
    talk(inter, 1);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_disconnect(&parent);
}

static void call(MPI_Comm parent, const char *service)
{
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    CHECK(MPI_Lookup_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS);
    CHECK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter) == MPI_SUCCESS);
    talk(inter, 2);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_disconnect(&parent);
}

static void errors(void)
{
    char port[MPI_MAX_PORT_NAME];
    int codes[2] = {0, 0};
    MPI_Comm inter = MPI_COMM_WORLD;
    MPI_Info soon;
    expect("no port", MPI_Comm_connect("tcp://x", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter), MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL);
    expect("no root", MPI_Comm_connect("x", MPI_INFO_NULL, size, MPI_COMM_WORLD, &inter), MPI_ERR_ROOT);
    expect("no name", MPI_Lookup_name("no such service", MPI_INFO_NULL, port), MPI_ERR_NAME);
    expect("no such program",
           MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes),
           MPI_ERR_SPAWN);
    CHECK(rank > 0 || codes[1] != MPI_SUCCESS);
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Info_create(&soon);
    MPI_Info_set(soon, "timeout", "0");
    expect("nobody comes", MPI_Comm_accept(port, soon, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    MPI_Info_free(&soon);
    MPI_Close_port(port);
}

/* Without a launcher nothing is started, and the text says what starts processes. */
static void alone(char *self)
{
    char text[MPI_MAX_ERROR_STRING];
    int code, len, codes[2] = {MPI_SUCCESS, MPI_SUCCESS};
    MPI_Comm inter = MPI_COMM_WORLD;
    code = MPI_Comm_spawn(self, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    expect("nobody starts processes", code, MPI_ERR_SPAWN);
    MPI_Error_string(code, text, &len);
    CHECK(strstr(text, "mpiexec") != NULL && inter == MPI_COMM_NULL && codes[0] != MPI_SUCCESS);
}

/* Two processes with a socket between them. */
static void joined(void)
{
    if (size < 2 || rank > 1) return;
    MPI_Comm inter;
    char path[64];
    int parent = rank == 0 ? (int)getpid() : 0;
    if (rank == 0) {
        MPI_Send(&parent, 1, MPI_INT, 1, 8, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&parent, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    snprintf(path, sizeof path, "nmad-join-%d", parent);
    int own = socket(AF_UNIX, SOCK_STREAM, 0), fd = own;
    struct {
        unsigned short family;
        char path[108];
    } address = {AF_UNIX, {0}};
    memcpy(address.path + 1, path, strlen(path));
    socklen_t len = (socklen_t)(sizeof address.family + 1 + strlen(path));
    if (rank == 0) {
        CHECK(bind(own, (void *)&address, len) == 0 && listen(own, 1) == 0);
        MPI_Send(NULL, 0, MPI_INT, 1, 8, MPI_COMM_WORLD);
        fd = accept(own, NULL, NULL);
    } else {
        MPI_Recv(NULL, 0, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(connect(own, (void *)&address, len) == 0);
    }
    CHECK(MPI_Comm_join(fd, &inter) == MPI_SUCCESS);
    int mine = rank, other = -1;
    MPI_Sendrecv(&mine, 1, MPI_INT, 0, 1, &other, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
    CHECK(other == 1 - rank);
    MPI_Comm_disconnect(&inter);
    close(own);
    if (fd != own) close(fd);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        role = argv[1];
        if (!strcmp(role, "child")) child(parent, atoi(argv[2]));
        if (!strcmp(role, "server")) serve(parent, argv[2]);
        if (!strcmp(role, "client")) call(parent, argv[2]);
    } else if (argc > 1) {
        alone(argv[0]);
    } else {
        spawned(argv[0]);
        if (rank == 0) met(argv[0]);
        errors();
        joined();
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong != 0;
}
