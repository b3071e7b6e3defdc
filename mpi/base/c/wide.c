/* Arithmetic of the numbers that Rust has no type for: C's `long double` (80 bits of x87 on x86-64) and IEEE
 * binary128. The C compiler that builds this file defines what `long double` is for the programs that it compiles,
 * so nobody knows its rounding and its padding better.
 *
 * Arrays may lie at any address. A store of an x87 number leaves its six bytes of padding alone.
 */
#include <float.h>
#include <stddef.h>

typedef long double extended __attribute__((aligned(1), may_alias));

#if defined(__SIZEOF_FLOAT128__)
typedef __float128 wide;
#elif LDBL_MANT_DIG == 113
typedef long double wide;
#else
#error "this C compiler has no type of IEEE binary128: build with gcc or clang on a machine that has one"
#endif
typedef wide quad __attribute__((aligned(1), may_alias));

typedef int number __attribute__((aligned(1), may_alias));

#define EACH(body)                                                                                                     \
    for (size_t i = 0; i < count; i++) {                                                                               \
        body                                                                                                           \
    }

/* inout[i] = in[i] op inout[i]; of complex numbers `count` counts pairs of parts. */
#define REDUCTIONS(name, type, plain)                                                                                  \
    void nmad_mpi_##name##_sum(const type *in, type *inout, size_t count) { EACH(inout[i] = in[i] + inout[i];) }       \
    void nmad_mpi_##name##_prod(const type *in, type *inout, size_t count) { EACH(inout[i] = in[i] * inout[i];) }      \
    void nmad_mpi_##name##_max(const type *in, type *inout, size_t count) {                                            \
        EACH(if (in[i] > inout[i]) inout[i] = in[i];)                                                                  \
    }                                                                                                                  \
    void nmad_mpi_##name##_min(const type *in, type *inout, size_t count) {                                            \
        EACH(if (in[i] < inout[i]) inout[i] = in[i];)                                                                  \
    }                                                                                                                  \
    void nmad_mpi_##name##_complex_prod(const type *in, type *inout, size_t count) {                                   \
        EACH(plain re = in[2 * i] * inout[2 * i] - in[2 * i + 1] * inout[2 * i + 1];                                   \
             plain im = in[2 * i] * inout[2 * i + 1] + in[2 * i + 1] * inout[2 * i];                                   \
             inout[2 * i] = re; inout[2 * i + 1] = im;)                                                                \
    }

REDUCTIONS(extended, extended, long double)
REDUCTIONS(quad, quad, wide)

/* A value and an index, `stride` bytes from one pair to the next, the index `offset` bytes into it. Of equal values the
 * lower index wins. */
#define LOCATIONS(name, type, index, before)                                                                           \
    void nmad_mpi_##name(const char *in, char *inout, size_t count, size_t offset, size_t stride) {                    \
        EACH(const type *a = (const type *)(in + i * stride); type *b = (type *)(inout + i * stride);                  \
             const index *at = (const index *)(in + i * stride + offset);                                              \
             index *best = (index *)(inout + i * stride + offset);                                                     \
             if (*a before *b) { *b = *a; *best = *at; } else if (*a == *b && *at < *best) { *best = *at; })           \
    }

LOCATIONS(extended_maxloc, extended, number, >)
LOCATIONS(extended_minloc, extended, number, <)
LOCATIONS(quad_maxloc, quad, quad, >)
LOCATIONS(quad_minloc, quad, quad, <)

void nmad_mpi_extended_to_quad(const extended *from, quad *to) { *to = (wide)*from; }
void nmad_mpi_quad_to_extended(const quad *from, extended *to) { *to = (long double)*from; }
void nmad_mpi_quad_to_double(const quad *from, double *to) { *to = (double)*from; }
void nmad_mpi_double_to_quad(const double *from, quad *to) { *to = (wide)*from; }
