/* A finite-element mini-application: Laplace's equation on a brick of hexahedra with values given on its
 * surface. Each rank has a slab of planes of nodes; it assembles its rows of the matrix (CSR) from the elements
 * that touch them, and solves with conjugate gradients: halo exchange with Irecv, Send and Waitall, inner
 * products with Allreduce. The solution is known, a linear function, which these elements represent exactly.
 *   mpicc cg.c -lm -o cg && mpiexec -n 4 ./cg [ELEMENTS ALONG AN EDGE] */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct slab {
    int nodes;        /* along an edge */
    int first, count; /* planes of this rank */
    int down, up;     /* neighbours, perhaps MPI_PROC_NULL */
    int plane;        /* nodes of a plane */
};

struct matrix {
    int rows, *begin, *columns;
    double *values;
};

static double known(int x, int y, int z)
{
    return 1 + x + 2.0 * y - 3.0 * z;
}

static int on_surface(const struct slab *s, int x, int y, int z)
{
    int last = s->nodes - 1;
    return x == 0 || y == 0 || z == 0 || x == last || y == last || z == last;
}

/* Stiffness of a unit cube between corners i and j, by 2 x 2 x 2 points of Gauss. */
static double stiffness(int i, int j)
{
    double sum = 0, point[2] = {0.5 - sqrt(1.0 / 12), 0.5 + sqrt(1.0 / 12)};
    for (int g = 0; g < 8; g++) {
        double at[3] = {point[g & 1], point[g >> 1 & 1], point[g >> 2]};
        for (int d = 0; d < 3; d++) {
            double product = 1;
            for (int e = 0; e < 3; e++) {
                int a = i >> e & 1, b = j >> e & 1;
                double fa = a ? at[e] : 1 - at[e], fb = b ? at[e] : 1 - at[e];
                product *= e == d ? (a ? 1 : -1) * (b ? 1 : -1) : fa * fb;
            }
            sum += product / 8;
        }
    }
    return sum;
}

/* The row of the node (x, y, z): the 27 nodes around it, those on the surface on the right hand side. */
static void assemble_row(const struct slab *s, double k[8][8], int x, int y, int z, struct matrix *m, double *rhs)
{
    double around[27] = {0};
    for (int corner = 0; corner < 8; corner++)
        for (int other = 0; other < 8; other++) {
            int dx = (other & 1) - (corner & 1), dy = (other >> 1 & 1) - (corner >> 1 & 1),
                dz = (other >> 2) - (corner >> 2);
            around[(dz + 1) * 9 + (dy + 1) * 3 + dx + 1] += k[corner][other];
        }
    int at = m->begin[m->rows];
    *rhs = on_surface(s, x, y, z) ? known(x, y, z) : 0;
    for (int i = 0; i < 27; i++) {
        int nx = x + i % 3 - 1, ny = y + i / 3 % 3 - 1, nz = z + i / 9 - 1;
        if (on_surface(s, x, y, z) ? i != 13 : on_surface(s, nx, ny, nz)) {
            if (!on_surface(s, x, y, z))
                *rhs -= around[i] * known(nx, ny, nz);
            continue;
        }
        m->columns[at] = (nz - s->first + 1) * s->plane + ny * s->nodes + nx;
        m->values[at++] = on_surface(s, x, y, z) ? 1 : around[i];
    }
    m->begin[++m->rows] = at;
}

static struct matrix assemble(const struct slab *s, double *rhs)
{
    int most = s->count * s->plane;
    struct matrix m = {0, calloc(most + 1, sizeof(int)), malloc(27 * sizeof(int) * most),
                       malloc(27 * sizeof(double) * most)};
    double k[8][8];
    for (int i = 0; i < 64; i++)
        k[i / 8][i % 8] = stiffness(i / 8, i % 8);
    for (int z = s->first; z < s->first + s->count; z++)
        for (int y = 0; y < s->nodes; y++)
            for (int x = 0; x < s->nodes; x++)
                assemble_row(s, k, x, y, z, &m, &rhs[m.rows]);
    return m;
}

/* The planes of the neighbours next to ours: before the first and after the last. */
static void exchange(const struct slab *s, double *vector)
{
    MPI_Request requests[2];
    double *own = vector + s->plane, *after = own + s->count * s->plane;
    MPI_Irecv(vector, s->plane, MPI_DOUBLE, s->down, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(after, s->plane, MPI_DOUBLE, s->up, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(own, s->plane, MPI_DOUBLE, s->down, 1, MPI_COMM_WORLD);
    MPI_Send(after - s->plane, s->plane, MPI_DOUBLE, s->up, 0, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void multiply(const struct slab *s, const struct matrix *m, double *vector, double *product)
{
    exchange(s, vector);
    for (int row = 0; row < m->rows; row++) {
        product[row] = 0;
        for (int at = m->begin[row]; at < m->begin[row + 1]; at++)
            product[row] += m->values[at] * vector[m->columns[at]];
    }
}

static double inner(int count, const double *a, const double *b)
{
    double own = 0, all;
    for (int i = 0; i < count; i++)
        own += a[i] * b[i];
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Solves from zero; the number of steps. */
static int solve(const struct slab *s, const struct matrix *m, const double *rhs, double *solution)
{
    int n = m->rows, steps = 0;
    double *residual = malloc(n * sizeof(double)), *product = malloc(n * sizeof(double));
    double *direction = calloc(n + 2 * s->plane, sizeof(double)), *own = direction + s->plane;
    for (int i = 0; i < n; i++)
        own[i] = residual[i] = rhs[i];
    double error = inner(n, residual, residual), enough = error * 1e-24;
    while (error > enough && steps < 1000) {
        multiply(s, m, direction, product);
        double alpha = error / inner(n, own, product), before = error;
        for (int i = 0; i < n; i++) {
            solution[i] += alpha * own[i];
            residual[i] -= alpha * product[i];
        }
        error = inner(n, residual, residual);
        for (int i = 0; i < n; i++)
            own[i] = residual[i] + error / before * own[i];
        steps++;
    }
    free(residual);
    free(product);
    free(direction);
    return steps;
}

int main(int argc, char **argv)
{
    int rank, size, elements = 16;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1)
        elements = atoi(argv[1]);
    struct slab s = {.nodes = elements + 1, .plane = (elements + 1) * (elements + 1)};
    s.first = s.nodes * rank / size;
    s.count = s.nodes * (rank + 1) / size - s.first;
    s.down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    s.up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    if (s.nodes < size) {
        fprintf(stderr, "cg: %d planes cannot be shared among %d ranks\n", s.nodes, size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int n = s.count * s.plane;
    double *rhs = calloc(n, sizeof(double)), *solution = calloc(n, sizeof(double)), wrong = 0, most;
    struct matrix m = assemble(&s, rhs);
    double begin = MPI_Wtime();
    int steps = solve(&s, &m, rhs, solution);
    double seconds = MPI_Wtime() - begin;
    for (int i = 0; i < n; i++) {
        int x = i % s.nodes, y = i / s.nodes % s.nodes, z = s.first + i / s.plane;
        wrong = fmax(wrong, fabs(solution[i] - known(x, y, z)));
    }
    MPI_Reduce(&wrong, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("cg: %d steps, %.3f s, largest error %.1e\n", steps, seconds, most);
    free(m.begin);
    free(m.columns);
    free(m.values);
    free(rhs);
    free(solution);
    MPI_Finalize();
    return rank == 0 && most > 1e-7;
}
