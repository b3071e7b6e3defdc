/* What the tests expect, and what they say if it is not so. */
#ifndef EXPECT_H
#define EXPECT_H
#include <nmad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                                        \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "%s:%d: expected %s (last error: %s)\n", __FILE__, __LINE__,         \
                    #condition, nmad_last_error());                                              \
            abort();                                                                             \
        }                                                                                        \
    } while (0)

#define OK(call) EXPECT((call) == NMAD_OK)

/* Fails with this code, and the words name the cause. */
#define FAILS(call, code, word)                                  \
    do {                                                         \
        EXPECT((call) == (code));                                \
        EXPECT(strstr(nmad_last_error(), word) != NULL);         \
    } while (0)

#endif
