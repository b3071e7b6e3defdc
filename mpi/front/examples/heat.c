/* Heat diffusion in a square plate, its rows shared among the ranks: each step exchanges one row with both
 * neighbours. One edge is hot; the run ends when nothing changes any more, and compares with the discrete
 * solution's property that each inner point is the mean of its neighbours.
 *   mpicc heat.c -lm -o heat && mpiexec -n 4 ./heat [POINTS] */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define AT(plate, row, column) ((plate)[(size_t)(row) * (points + 2) + (column)])

int main(int argc, char **argv)
{
    int rank, size, up, down, steps = 0, points = 48, periodic = 0;
    MPI_Comm line;

    MPI_Init(&argc, &argv);
    if (argc > 1)
        points = atoi(argv[1]);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 1, &line);
    MPI_Comm_rank(line, &rank);
    MPI_Cart_shift(line, 0, 1, &up, &down);
    int rows = points / size + (rank < points % size);
    size_t count = (size_t)(rows + 2) * (points + 2);
    double *old = calloc(count, sizeof *old), *new = calloc(count, sizeof *new), change = 1;

    if (rank == 0)
        for (int column = 0; column < points + 2; column++)
            AT(old, 0, column) = AT(new, 0, column) = 100;
    while (change > 1e-9) {
        MPI_Sendrecv(&AT(old, 1, 0), points + 2, MPI_DOUBLE, up, 0, &AT(old, rows + 1, 0), points + 2,
                     MPI_DOUBLE, down, 0, line, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&AT(old, rows, 0), points + 2, MPI_DOUBLE, down, 1, &AT(old, 0, 0), points + 2, MPI_DOUBLE,
                     up, 1, line, MPI_STATUS_IGNORE);
        double largest = 0;
        for (int row = 1; row <= rows; row++)
            for (int column = 1; column <= points; column++) {
                AT(new, row, column) = (AT(old, row - 1, column) + AT(old, row + 1, column) +
                                        AT(old, row, column - 1) + AT(old, row, column + 1)) / 4;
                largest = fmax(largest, fabs(AT(new, row, column) - AT(old, row, column)));
            }
        double *swapped = old;
        old = new;
        new = swapped;
        steps++;
        if (steps % 100 == 0)
            MPI_Allreduce(&largest, &change, 1, MPI_DOUBLE, MPI_MAX, line);
    }
    /* By symmetry the four plates that have one hot edge each sum up to a plate that is hot everywhere, so
     * the middle of an odd plate has a quarter of the heat. The mean of all points is that too. */
    double sum = 0, all = 0;
    for (int row = 1; row <= rows; row++)
        for (int column = 1; column <= points; column++)
            sum += AT(old, row, column);
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, line);
    int wrong = rank == 0 && fabs(all / points / points - 25) > 1e-3;
    if (rank == 0)
        printf("heat: %d steps, mean %.6f, expected 25\n", steps, all / points / points);
    free(old);
    free(new);
    MPI_Comm_free(&line);
    MPI_Finalize();
    return wrong;
}
