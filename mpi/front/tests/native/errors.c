/* Wrong arguments: the class of the standard, through the error handler, with a text that names the argument. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int wrong;

static void expect(const char *what, int code, int expected, const char *word)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = -1, len;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &len);
    if (class != expected || !strstr(text, word)) {
        fprintf(stderr, "%s: class %d, expected %d with '%s': %s\n", what, class, expected, word, text);
        wrong++;
    }
}

static MPI_Comm asked = MPI_COMM_NULL;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    asked = *comm;
}

static int tested(MPI_Request *request, int *flag)
{
    int code = MPI_SUCCESS;
    for (*flag = 0; !*flag && code == MPI_SUCCESS;) code = MPI_Test(request, flag, MPI_STATUS_IGNORE);
    return code;
}

static int tested_list(MPI_Request *request, int *flag)
{
    int code = MPI_SUCCESS;
    for (*flag = 0; !*flag && code == MPI_SUCCESS;) code = MPI_Testall(1, request, flag, MPI_STATUSES_IGNORE);
    return code;
}

/* What a wait finds is told to the handler of the request's communicator. */
static void completion(void)
{
    int value, flag, two[2] = {1, 2};
    MPI_Comm own;
    MPI_Errhandler handle;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_create_errhandler(handler, &handle);
    MPI_Comm_set_errhandler(own, handle);
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(&value, 1, MPI_INT, 0, 0, own, &request);
        MPI_Send(two, 2, MPI_INT, 0, 0, own);
        if (i == 0)
            expect("waited for", MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "MPI_Wait");
        else if (i == 1)
            expect("in a list", MPI_Waitall(1, &request, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS, "request 0");
        else if (i == 2)
            expect("tested", tested(&request, &flag), MPI_ERR_TRUNCATE, "MPI_Test");
        else
            expect("tested in a list", tested_list(&request, &flag), MPI_ERR_IN_STATUS, "request 0");
        /* What has failed has ended. */
        wrong += asked != own || (i >= 2 && flag != 1) || request != MPI_REQUEST_NULL;
        asked = MPI_COMM_NULL;
    }
    MPI_Errhandler_free(&handle);
    MPI_Comm_free(&own);
}

/* Numbers in texts are those that the program wrote, constants have their names too. */
static void numbers(void)
{
    int value = 0, class, code, position = 1, rank, flag, dims[1] = {1}, ring[1] = {0}, made = -1;
    void *found;
    char word[80];
    MPI_Comm one = MPI_COMM_SELF, grid;
    MPI_Datatype type;
    for (int n = -8; n < 0; n++) {
        sprintf(word, n == MPI_ANY_SOURCE ? "rank %d (MPI_ANY_SOURCE)" : n == MPI_ROOT ? "rank %d (MPI_ROOT)" : "rank %d ", n);
        if (n != MPI_PROC_NULL)
            expect("destination", MPI_Send(&value, 1, MPI_INT, n, 0, one), MPI_ERR_RANK, word);
        sprintf(word, n == MPI_PROC_NULL ? "root %d (MPI_PROC_NULL)" : "root %d ", n);
        expect("root", MPI_Bcast(&value, 1, MPI_INT, n, one), MPI_ERR_ROOT, word);
        sprintf(word, n == MPI_ANY_TAG ? "tag %d (MPI_ANY_TAG)" : "tag %d ", n);
        expect("tag", MPI_Send(&value, 1, MPI_INT, 0, n, one), MPI_ERR_TAG, word);
    }
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    sprintf(word, "%d is an error class", class);
    expect("class as code", MPI_Remove_error_code(class), MPI_ERR_ARG, word);
    expect("no class", MPI_Add_error_code(9999, &made), MPI_ERR_ARG, "errorclass: 9999");
    expect("no code", MPI_Error_class(-7, &made), MPI_ERR_ARG, "errorcode: -7");
    expect("digits", MPI_Type_create_f90_real(100, 7, &type), MPI_ERR_ARG,
           "no REAL has 100 decimal digits and an exponent range of 7");
    expect("complex", MPI_Type_create_f90_complex(40, MPI_UNDEFINED, &type), MPI_ERR_ARG,
           "no COMPLEX has 40 decimal digits");
    expect("attribute of others", MPI_Type_get_attr(MPI_INT, MPI_TAG_UB, &found, &flag), MPI_ERR_KEYVAL,
           "MPI_TAG_UB is an attribute of communicators");
    expect("predefined", MPI_Comm_set_attr(one, MPI_TAG_UB, &value), MPI_ERR_KEYVAL, "MPI_TAG_UB cannot be changed");
    expect("no key", MPI_Comm_set_attr(one, 12345, &value), MPI_ERR_KEYVAL, "no key 12345 of communicators");
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &made, NULL);
    sprintf(word, "no key %d of communicators", made);
    expect("key of types", MPI_Comm_get_attr(one, made, &found, &flag), MPI_ERR_KEYVAL, word);
    MPI_Cart_create(one, 1, dims, ring, 0, &grid);
    expect("coordinate", MPI_Cart_rank(grid, &position, &rank), MPI_ERR_ARG,
           "coordinate 1 of dimension 0, which is no ring, is not one of 0 to 0");
    MPI_Comm_free(&grid);
}

static void keep(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)len, (void)type;
}

/* Where there is no place for an answer, nothing is done: what would be made could not be given back. */
static void places(void)
{
    int value = 1, flag = 0, none = 0, ranks[1] = {0};
    MPI_Comm own;
    MPI_Group group;
    MPI_Request request;
    MPI_Status status;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    expect("communicator", MPI_Comm_dup(own, NULL), MPI_ERR_ARG, "argument newcomm is NULL");
    expect("request of duplicate", MPI_Comm_idup(own, &own, NULL), MPI_ERR_ARG, "argument request is NULL");
    expect("receive", MPI_Irecv(&value, 1, MPI_INT, 0, 0, own, NULL), MPI_ERR_ARG, "MPI_Irecv: argument request");
    expect("send", MPI_Isend(&value, 1, MPI_INT, 0, 0, own, NULL), MPI_ERR_ARG, "argument request is NULL");
    expect("collective", MPI_Ibarrier(own, NULL), MPI_ERR_ARG, "argument request is NULL");
    expect("type", MPI_Type_contiguous(2, MPI_INT, NULL), MPI_ERR_ARG, "argument newtype is NULL");
    expect("operator", MPI_Op_create(keep, 1, NULL), MPI_ERR_ARG, "argument op is NULL");
    expect("key", MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, NULL, NULL), MPI_ERR_ARG,
           "argument comm_keyval is NULL");
    expect("info", MPI_Info_create(NULL), MPI_ERR_ARG, "argument info is NULL");
    expect("rank", MPI_Comm_rank(own, NULL), MPI_ERR_ARG, "argument rank is NULL");
    expect("name", MPI_Comm_get_name(own, NULL, &value), MPI_ERR_ARG, "argument comm_name is NULL");
    char name[MPI_MAX_OBJECT_NAME];
    expect("length", MPI_Comm_get_name(own, name, NULL), MPI_ERR_ARG, "argument resultlen is NULL");
    MPI_Comm_group(own, &group);
    expect("list", MPI_Group_translate_ranks(group, 1, ranks, group, NULL), MPI_ERR_ARG, "argument ranks2 is NULL");
    expect("empty list", MPI_Group_translate_ranks(group, 0, NULL, group, NULL), MPI_SUCCESS, "");
    MPI_Group_free(&group);
    MPI_Iprobe(0, MPI_ANY_TAG, own, &none, MPI_STATUS_IGNORE);
    MPI_Irecv(&value, 1, MPI_INT, 0, 0, own, &request);
    MPI_Send(&value, 1, MPI_INT, 0, 0, own);
    expect("flag", MPI_Test(&request, NULL, &status), MPI_ERR_ARG, "argument flag is NULL");
    expect("indices", MPI_Waitsome(1, &request, &value, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG,
           "argument array_of_indices is NULL");
    wrong += none || request == MPI_REQUEST_NULL;
    MPI_Wait(&request, &status);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    value = 0;
    expect("how long", MPI_Info_get_string(info, "key", &value, NULL, &flag), MPI_SUCCESS, "");
    wrong += value != 6 || !flag;
    expect("value", MPI_Info_get_string(info, "key", &value, NULL, &flag), MPI_ERR_ARG, "argument value is NULL");
    MPI_Info_free(&info);
    MPI_Comm_free(&own);
}

/* A name that is too long is cut off. */
static void names(void)
{
    char name[2 * MPI_MAX_OBJECT_NAME], found[MPI_MAX_OBJECT_NAME];
    int len = 0;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    MPI_Datatype type;
    MPI_Type_dup(MPI_INT, &type);
    expect("name of a type", MPI_Type_set_name(type, name), MPI_SUCCESS, "");
    MPI_Type_get_name(type, found, &len);
    wrong += len != MPI_MAX_OBJECT_NAME - 1 || (int)strlen(found) != len;
    MPI_Type_free(&type);
    expect("name of a communicator", MPI_Comm_set_name(MPI_COMM_SELF, name), MPI_SUCCESS, "");
    MPI_Comm_get_name(MPI_COMM_SELF, found, &len);
    wrong += len != MPI_MAX_OBJECT_NAME - 1 || (int)strlen(found) != len;
}

int main(int argc, char **argv)
{
    int rank, size, value = 0;
    MPI_Request none = MPI_REQUEST_NULL;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm all = MPI_COMM_WORLD;
    expect("count", MPI_Send(&value, -1, MPI_INT, 0, 0, all), MPI_ERR_COUNT, "count");
    expect("type", MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, all), MPI_ERR_TYPE, "MPI_Send");
    expect("rank", MPI_Send(&value, 1, MPI_INT, size, 0, all), MPI_ERR_RANK, "rank");
    expect("tag", MPI_Send(&value, 1, MPI_INT, 0, -7, all), MPI_ERR_TAG, "tag");
    expect("comm", MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_COMM_NULL");
    expect("handle", MPI_Send(&value, 1, MPI_INT, 0, 0, (MPI_Comm)MPI_INFO_NULL), MPI_ERR_COMM, "comm");
    expect("op", MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_OP_NULL, all), MPI_ERR_OP, "MPI_Allreduce");
    expect("root", MPI_Bcast(&value, 1, MPI_INT, size, all), MPI_ERR_ROOT, "root");
    expect("start", MPI_Start(&none), MPI_ERR_REQUEST, "MPI_Start");
    expect("file", MPI_File_open(all, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE,
           "MPI_MODE_CREATE");
    expect("null", MPI_Send(NULL, 1, MPI_INT, 0, 0, all), MPI_ERR_BUFFER, "NULL");
    expect("nothing at null", MPI_Bcast(NULL, 0, MPI_INT, 0, all), MPI_SUCCESS, "");
    expect("null to all", MPI_Bcast(NULL, 1, MPI_INT, 0, all), MPI_ERR_BUFFER, "NULL");
    expect("in place of nothing", MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 0, all), MPI_ERR_BUFFER, "MPI_IN_PLACE");
    expect("the same", MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_SUM, all), MPI_ERR_BUFFER, "MPI_IN_PLACE");
    expect("many", MPI_Waitall(-1, NULL, MPI_STATUSES_IGNORE), MPI_ERR_COUNT, "count");
    if (rank == 0) {
        int two[2] = {1, 2};
        MPI_Send(two, 2, MPI_INT, 1, 5, all);
    } else if (rank == 1) {
        int code = MPI_Recv(&value, 1, MPI_INT, 0, 5, all, MPI_STATUS_IGNORE);
        expect("truncation", code, MPI_ERR_TRUNCATE, "MPI_Recv");
    }
    if (rank == 0)
        completion();
    names();
    numbers();
    places();
    int class, code;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "too hot");
    expect("added", code, class, "too hot");
    MPI_Finalize();
    return wrong != 0;
}
