/* A message built piece by piece, without a copy: a row of a matrix, one column of it, and their lengths. The
 * receiver learns the lengths from the first piece and only then says where the others shall go.
 *
 *     cc pieces.c $(pkg-config --cflags --libs nmad) -o pieces && mpiexec -n 2 ./pieces
 */
#include <inttypes.h>
#include <nmad.h>
#include <stdio.h>
#include <stdlib.h>

#define CONTEXT 3
#define MATRIX 9
#define ROWS 300
#define COLUMNS 500

static double matrix[ROWS][COLUMNS];

struct lengths {
    uint64_t row, column;
};

static void check(int code) {
    if (code < 0) {
        fprintf(stderr, "%s\n", nmad_last_error());
        exit(1);
    }
}

static void sender(nmad_session_t *session, uint32_t to) {
    struct lengths lengths = {COLUMNS, ROWS};
    nmad_packing_t message;

    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) matrix[row][column] = row * 1000 + column;
    check(nmad_begin_packing(session, to, CONTEXT, MATRIX, &message));
    check(nmad_pack(session, message, &lengths, sizeof lengths, NULL, NULL));
    check(nmad_pack(session, message, matrix[7], sizeof matrix[7], NULL, NULL));
    for (int row = 0; row < ROWS; row++)
        check(nmad_pack(session, message, &matrix[row][11], sizeof(double), NULL, NULL));
    check(nmad_end_packing(session, message)); /* all of it may be changed again */
}

static void receiver(nmad_session_t *session) {
    struct lengths lengths;
    nmad_unpacking_t message;
    nmad_request_t first;

    check(nmad_begin_unpacking(session, NMAD_ANY_RANK, CONTEXT, MATRIX, 0, &message));
    check(nmad_unpack(session, message, &lengths, sizeof lengths, &first));
    check(nmad_wait(session, &first, NULL));

    double *row = calloc(lengths.row, sizeof *row), *column = calloc(lengths.column, sizeof *column);
    if (row == NULL || column == NULL) exit(1);
    check(nmad_unpack(session, message, row, lengths.row * sizeof *row, NULL));
    for (uint64_t i = 0; i < lengths.column; i++)
        check(nmad_unpack(session, message, &column[i], sizeof *column, NULL));
    check(nmad_end_unpacking(session, message));

    int good = 1;
    for (int i = 0; i < COLUMNS; i++) good &= row[i] == 7000 + i;
    for (int i = 0; i < ROWS; i++) good &= column[i] == i * 1000 + 11;
    printf("a row of %" PRIu64 " and a column of %" PRIu64 ": %s\n", lengths.row, lengths.column,
           good ? "as they were sent" : "DAMAGED");
    free(row);
    free(column);
    if (!good) exit(1);
}

int main(void) {
    nmad_session_t *session;
    uint32_t rank, size;

    check(nmad_open(&session));
    check(nmad_rank(session, &rank));
    check(nmad_size(session, &size));
    if (size < 2) fprintf(stderr, "start it as two ranks: mpiexec -n 2 ./pieces\n");
    else if (rank == 0) sender(session, 1);
    else if (rank == 1) receiver(session);
    check(nmad_close(session));
    return size < 2;
}
