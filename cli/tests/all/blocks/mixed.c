/* Rank 0 sends a type of small and large blocks to rank 1, which looks for it before it receives it, so that each
 * message asks. Rank 1 receives it in the same type, in another one, and as bytes, and checks every byte. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 3, SMALL = 64, LARGE = 256 << 10, GAP = 32, PAIR = SMALL + LARGE + 2 * GAP, ROUNDS = 3 };
enum { LEN = PAIRS * (SMALL + LARGE), SPACE = PAIRS * PAIR };

static unsigned char byte_of(int round, int at) {
    return (unsigned char)(at * 31 ^ at >> 8 ^ round * 7);
}

/* The blocks of the type: where each lies in memory. */
static void blocks(int lens[], int places[]) {
    for (int pair = 0; pair < PAIRS; pair++) {
        lens[2 * pair] = SMALL;
        places[2 * pair] = pair * PAIR;
        lens[2 * pair + 1] = LARGE;
        places[2 * pair + 1] = pair * PAIR + SMALL + GAP;
    }
}

static void check(int right, const char *what, int round) {
    if (!right) {
        fprintf(stderr, "round %d: %s\n", round, what);
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

int main(int argc, char **argv) {
    int rank, count, lens[2 * PAIRS], places[2 * PAIRS];
    unsigned char *space = malloc(SPACE), *flat = malloc(2 * LEN);
    MPI_Datatype mixed, halves;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    blocks(lens, places);
    MPI_Type_indexed(2 * PAIRS, lens, places, MPI_BYTE, &mixed);
    MPI_Type_commit(&mixed);
    MPI_Type_vector(LEN / 96, 96, 192, MPI_BYTE, &halves);
    MPI_Type_commit(&halves);
    for (int round = 0; round < ROUNDS; round++) {
        memset(space, 0xEE, SPACE);
        memset(flat, 0xEE, 2 * LEN);
        if (rank == 0) {
            for (int block = 0, at = 0; block < 2 * PAIRS; block++)
                for (int i = 0; i < lens[block]; i++)
                    space[places[block] + i] = byte_of(round, at++);
            MPI_Send(space, 1, mixed, 1, round, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPI_Probe(MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            check(count == LEN, "the probe finds another length", round);
            if (round == 0)
                MPI_Recv(space, 1, mixed, 0, round, MPI_COMM_WORLD, &status);
            else if (round == 1)
                MPI_Recv(flat, 1, halves, MPI_ANY_SOURCE, round, MPI_COMM_WORLD, &status);
            else
                MPI_Recv(flat, LEN, MPI_BYTE, 0, round, MPI_COMM_WORLD, &status);
            for (int block = 0, at = 0; block < 2 * PAIRS; block++)
                for (int i = 0; i < lens[block]; i++, at++) {
                    int place = round == 0 ? places[block] + i : round == 1 ? at / 96 * 192 + at % 96 : at;
                    check((round == 0 ? space : flat)[place] == byte_of(round, at), "a byte is wrong", round);
                }
            for (int pair = 0; round == 0 && pair < PAIRS; pair++)
                for (int i = 0; i < GAP; i++)
                    check(space[pair * PAIR + SMALL + i] == 0xEE, "a gap was written", round);
            for (int at = 0; round == 1 && at < LEN; at++)
                check(at / 96 % 2 == 0 || flat[at] == 0xEE, "a gap was written", round);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&mixed);
    MPI_Type_free(&halves);
    MPI_Finalize();
    if (rank == 0)
        puts("all right");
    return 0;
}
