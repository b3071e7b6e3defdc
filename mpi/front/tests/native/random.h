/* What the parts of the random program share: numbers from a seed, and types with gaps. */
#ifndef RANDOM_H
#define RANDOM_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a buffer holds where nothing must be written. */
#define UNTOUCHED (-77)
#define SHAPES 7

/* Ints as elements of a type: where they lie within one, in the order of the type map. */
struct shape {
    MPI_Datatype type;
    /* Ints in an element, and from one element to the next. */
    int ints, span;
    int at[4];
};

extern struct shape shapes[SHAPES];

/* What everybody draws alike. */
extern uint64_t drawn;
/* Number of ranks of MPI_COMM_WORLD. */
extern int world;

static inline uint64_t mixed(uint64_t word)
{
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

/* A number from 0 to `limit` - 1. */
static inline int below(int limit)
{
    drawn = mixed(drawn);
    return (int)(drawn >> 33) % limit;
}

/* Number `place` of the data called `name`. */
static inline int datum(uint64_t name, long place)
{
    return (int)(mixed(name * 1000003u + (uint64_t)place) & 0x3fffffff);
}

void fail(const char *what, long place, long found, long expected);

static inline void expect(const char *what, long place, long found, long expected)
{
    if (found != expected) fail(what, place, found, expected);
}

/* Room for that many ints of a shape, untouched. */
int *room(const struct shape *shape, long ints);
/* The same, with the data called `name` in it. */
int *filled(const struct shape *shape, long ints, uint64_t name);
/* `ints` of the data called `name` must be there, in room for `space`, and nothing else. */
void check(const char *what, const struct shape *shape, const int *buffer, long ints, long space, uint64_t name);

/* Messages within a communicator, or between two groups. */
void messages(MPI_Comm comm, int is_between, int side);
/* A collective within a communicator. */
void collective(MPI_Comm comm);
/* One between two groups. */
void between(MPI_Comm comm, int side);

#endif
