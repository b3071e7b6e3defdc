/* A brick of hexahedra on which Poisson's equation is solved, and the part of it that this rank has. */
#ifndef BRICK_H
#define BRICK_H

#include "imbalance.h"

/* Nodes from `low` to below `high` in each direction. */
struct box {
  int low[3], high[3];
};

/* The linear system of this rank: the rows of its own nodes. Vectors have a value for each node of the halo, which is
 * the box of own nodes and all that elements join with them. */
struct brick {
  /* Nodes along each edge of the whole brick. */
  int nodes;
  struct box own, halo;
  int rows, halo_count;
  /* Place in the halo of each row's node. */
  int *place;
  /* Matrix in compressed sparse rows, and right-hand side. */
  int *row_from, *column;
  double *value, *right;
  /* Rows that need values of other ranks come last. */
  int *order, inner_count;
  struct exchange exchange;
  /* For each message, the places in the halo that it is packed from or unpacked to. */
  int **out_places, **in_places;
};

void brick_begin(struct brick *brick, const struct cell *cell);
void brick_end(struct brick *brick);

/* The solution, which is linear: hexahedra represent it exactly. */
double solution(const int node[3]);

/* The node at a place of a box, and the place of a node. */
void node_of(const struct box *box, int place, int node[3]);
int place_of(const struct box *box, const int node[3]);

#endif
