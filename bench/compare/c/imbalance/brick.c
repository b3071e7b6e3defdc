/* Partition, matrix and halo of miniFE's problem (P5 section 3.2).
 *
 * The partition is irregular: boxes are halved again and again, along one of their two longest edges as the seed says.
 * Ranks have as many rows as others unless `--imbalance` says how uneven they are; neighbours and surfaces differ in any
 * case, and so do messages and bytes (P5 figures 10 and 11). Nodes on the surface of the brick have given values; their
 * columns are moved to the right-hand side, which keeps the matrix symmetric. */
#include "brick.h"
#include <stdlib.h>

static int width(const struct box *box, int axis) { return box->high[axis] - box->low[axis]; }

static int volume(const struct box *box) { return width(box, 0) * width(box, 1) * width(box, 2); }

void node_of(const struct box *box, int place, int node[3]) {
  for (int axis = 0; axis < 3; axis++) {
    node[axis] = box->low[axis] + place % width(box, axis);
    place /= width(box, axis);
  }
}

int place_of(const struct box *box, const int node[3]) {
  int place = 0;
  for (int axis = 2; axis >= 0; axis--) place = place * width(box, axis) + node[axis] - box->low[axis];
  return place;
}

static struct box overlap_of(const struct box *a, const struct box *b) {
  struct box both;
  for (int axis = 0; axis < 3; axis++) {
    both.low[axis] = a->low[axis] > b->low[axis] ? a->low[axis] : b->low[axis];
    both.high[axis] = a->high[axis] < b->high[axis] ? a->high[axis] : b->high[axis];
    if (both.high[axis] < both.low[axis]) both.high[axis] = both.low[axis];
  }
  return both;
}

static struct box halo_of(const struct box *own, int nodes) {
  struct box halo = *own, all = {{0, 0, 0}, {nodes, nodes, nodes}};
  for (int axis = 0; axis < 3; axis++) {
    halo.low[axis]--;
    halo.high[axis]++;
  }
  return overlap_of(&halo, &all);
}

/* The share of rows of the ranks from `first` on, `count` of them, in parts of that of an even one. It grows evenly from
 * rank to rank: the first one has as much less than the mean as the last one has more. */
static double weight(int first, int count) {
  double middle = first + (count - 1) / 2.0;
  return count * (1 + settings.imbalance / 100.0 * (2 * middle / (size - 1) - 1));
}

/* Gives the ranks from `first` on, `count` of them, their boxes. */
static void divide(struct box box, int first, int count, struct box *boxes) {
  int longest = 0, second, lower = count / 2, cut;
  struct box upper = box;
  if (count == 1) {
    boxes[first] = box;
    return;
  }
  for (int axis = 1; axis < 3; axis++)
    if (width(&box, axis) > width(&box, longest)) longest = axis;
  second = longest == 0 ? 1 : 0;
  for (int axis = 0; axis < 3; axis++)
    if (axis != longest && width(&box, axis) > width(&box, second)) second = axis;
  if (mixed(settings.seed, (unsigned)first, (unsigned)count) % 2 && width(&box, second) >= count) longest = second;
  cut = (int)(width(&box, longest) * weight(first, lower) / weight(first, count) + 0.5);
  if (cut == 0 || cut == width(&box, longest)) refuse("the brick has too few elements for so many ranks");
  box.high[longest] = upper.low[longest] = box.low[longest] + cut;
  divide(box, first, lower, boxes);
  divide(upper, first + lower, count - lower, boxes);
}

double solution(const int node[3]) { return 1 + 0.5 * node[0] + 0.25 * node[1] - 0.125 * node[2]; }

static int is_given(const struct brick *brick, const int node[3]) {
  for (int axis = 0; axis < 3; axis++)
    if (node[axis] == 0 || node[axis] == brick->nodes - 1) return 1;
  return 0;
}

/* Stiffness between corners `a` and `b` of a unit cube with trilinear functions; bit `axis` of a corner is its side. */
static double stiffness(int a, int b) {
  double sum = 0;
  for (int along = 0; along < 3; along++) {
    double product = 1;
    for (int axis = 0; axis < 3; axis++) {
      int is_same = (a >> axis & 1) == (b >> axis & 1);
      product *= axis == along ? (is_same ? 1.0 : -1.0) : (is_same ? 1.0 / 3 : 1.0 / 6);
    }
    sum += product;
  }
  return sum;
}

/* Adds what the eight elements around a node say, by neighbour: 0 to 26, 13 is the node itself. */
static void assemble(const struct brick *brick, const int node[3], double row[27]) {
  for (int i = 0; i < 27; i++) row[i] = 0;
  for (int own = 0; own < 8; own++) {
    int low[3], is_there = 1;
    for (int axis = 0; axis < 3; axis++) {
      low[axis] = node[axis] - (own >> axis & 1);
      is_there = is_there && low[axis] >= 0 && low[axis] + 1 < brick->nodes;
    }
    for (int other = 0; is_there && other < 8; other++) {
      int at = 0;
      for (int axis = 2; axis >= 0; axis--) at = at * 3 + low[axis] + (other >> axis & 1) - node[axis] + 1;
      row[at] += stiffness(own, other);
    }
  }
}

/* Appends a row; whether it needs values of other ranks. */
static int add_row(struct brick *brick, int number) {
  int node[3], next = brick->row_from[number], needs = 0;
  double row[27];
  node_of(&brick->own, number, node);
  brick->place[number] = place_of(&brick->halo, node);
  brick->right[number] = 0;
  assemble(brick, node, row);
  for (int i = 0; i < 27; i++) {
    int other[3] = {node[0] + i % 3 - 1, node[1] + i / 3 % 3 - 1, node[2] + i / 9 - 1}, is_own = 1;
    if (is_given(brick, node) ? i != 13 : row[i] == 0) continue;
    if (is_given(brick, node)) {
      row[i] = 1;
      brick->right[number] = solution(node);
    } else if (is_given(brick, other)) {
      brick->right[number] -= row[i] * solution(other);
      continue;
    }
    for (int axis = 0; axis < 3; axis++)
      is_own = is_own && other[axis] >= brick->own.low[axis] && other[axis] < brick->own.high[axis];
    needs = needs || !is_own;
    brick->column[next] = place_of(&brick->halo, other);
    brick->value[next++] = row[i];
  }
  brick->row_from[number + 1] = next;
  return needs;
}

static void fill(struct brick *brick) {
  size_t rows = (size_t)brick->rows;
  int last = brick->rows;
  brick->place = memory(rows * sizeof(int));
  brick->order = memory(rows * sizeof(int));
  brick->right = memory(rows * sizeof(double));
  brick->row_from = memory((rows + 1) * sizeof(int));
  brick->column = memory(rows * 27 * sizeof(int));
  brick->value = memory(rows * 27 * sizeof(double));
  brick->row_from[0] = brick->inner_count = 0;
  for (int number = 0; number < brick->rows; number++)
    if (add_row(brick, number)) brick->order[--last] = number;
    else brick->order[brick->inner_count++] = number;
}

/* The message with the nodes of `box`, and their places in the halo. */
static struct message message_of(const struct brick *brick, const struct box *box, int peer, int **places) {
  int count = volume(box);
  struct message message = {peer, 0, (size_t)count * sizeof(double), memory((size_t)count * sizeof(double))};
  *places = memory((size_t)count * sizeof(int));
  for (int i = 0; i < count; i++) {
    int node[3];
    node_of(box, i, node);
    (*places)[i] = place_of(&brick->halo, node);
  }
  return message;
}

static void join(struct brick *brick, const struct box *boxes, const struct cell *cell) {
  struct exchange *exchange = &brick->exchange;
  exchange->out = memory((size_t)size * sizeof(struct message));
  exchange->in = memory((size_t)size * sizeof(struct message));
  brick->out_places = memory((size_t)size * sizeof(int *));
  brick->in_places = memory((size_t)size * sizeof(int *));
  exchange->out_count = exchange->in_count = 0;
  /* Beginning with the next rank, so that not all send to the first one first. */
  for (int step = 1; step < size; step++) {
    int peer = (rank + step) % size, next = exchange->out_count;
    struct box theirs = halo_of(&boxes[peer], brick->nodes);
    struct box out = overlap_of(&boxes[rank], &theirs), in = overlap_of(&boxes[peer], &brick->halo);
    if (volume(&out) == 0) continue;
    exchange->out[next] = message_of(brick, &out, peer, &brick->out_places[next]);
    exchange->in[next] = message_of(brick, &in, peer, &brick->in_places[next]);
    exchange->out_count = exchange->in_count = next + 1;
  }
  exchange_begin(exchange, cell);
}

void brick_begin(struct brick *brick, const struct cell *cell) {
  struct box *boxes = memory((size_t)size * sizeof(struct box)), all = {{0, 0, 0}, {0, 0, 0}};
  brick->nodes = (int)cell->size + 1;
  for (int axis = 0; axis < 3; axis++) all.high[axis] = brick->nodes;
  divide(all, 0, size, boxes);
  brick->own = boxes[rank];
  brick->halo = halo_of(&boxes[rank], brick->nodes);
  brick->rows = volume(&brick->own);
  brick->halo_count = volume(&brick->halo);
  fill(brick);
  join(brick, boxes, cell);
  free(boxes);
}

void brick_end(struct brick *brick) {
  struct exchange *exchange = &brick->exchange;
  exchange_end(exchange);
  for (int i = 0; i < exchange->out_count; i++) {
    free(exchange->out[i].at);
    free(exchange->in[i].at);
    free(brick->out_places[i]);
    free(brick->in_places[i]);
  }
  void *all[] = {exchange->out, exchange->in,  brick->out_places, brick->in_places, brick->place,
                 brick->order,  brick->right, brick->row_from,   brick->column,    brick->value};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}
