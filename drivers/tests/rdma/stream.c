/* Two ranks. Checks every byte, prints what the device was asked for if count.c stands before its library.
 *   stream counts        doorbells, completions and registrations per message; PEER: whatever they are
 *   stream moved         memory is unmapped, and other memory mapped there, between two messages
 *   stream text          VERBS_TEXT is in the device's buffers, unless NMAD_ENCRYPT=on
 *   stream bytes MIB     a stream of that length by its hash, in messages of 3 MiB and of 8 B */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BURST = 64, EAGER = 4096, ROUNDS = 20, MEGA = 1 << 20, LARGE = 3 * MEGA, AT_ONCE = 4 };

/* What count.c counts, in its order. */
enum { DOORBELLS, OPERATIONS, SIGNALED, COMPLETIONS, REGISTRATIONS, BUFFERED, DIRECT, FAILURES, READABLE, KINDS };

void verbs_counts(long *out) __attribute__((weak));

static int rank, failed;

static uint64_t next_word(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void fill(uint64_t *memory, size_t len, uint64_t seed)
{
    for (size_t at = 0; at < len / 8; at++)
        memory[at] = next_word(&seed);
}

static uint64_t hash(const uint64_t *memory, size_t len, uint64_t hash)
{
    for (size_t at = 0; at < len / 8; at++)
        hash = (hash ^ memory[at]) * 0x9E3779B97F4A7C15u + (hash >> 29);
    return hash;
}

static void expect(int is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "rank %d: FAILED: %s\n", rank, what);
    failed = 1;
}

/* What our driver owes, and another MPI need not. */
static void expect_of_us(int is_so, const char *what)
{
    expect(is_so || getenv("PEER"), what);
}

static void look(long *counts)
{
    memset(counts, 0, KINDS * sizeof *counts);
    if (verbs_counts)
        verbs_counts(counts);
}

static void tell(const char *what, const long *before, double messages)
{
    long after[KINDS];
    look(after);
    if (!verbs_counts)
        return;
    static const char *const names[] = { "doorbells", "operations", "completions asked for", "completions",
                                         "registrations", "B in buffers", "B read or written" };
    char line[400];
    int at = snprintf(line, sizeof line, "rank %d: %s, per message:", rank, what);
    for (int kind = 0; kind < FAILURES; kind++)
        at += snprintf(line + at, sizeof line - at, " %.*f %s%s", kind < BUFFERED ? 3 : 0,
                       (after[kind] - before[kind]) / messages, names[kind], kind < DIRECT ? "," : "\n");
    fputs(line, stdout);
    fflush(stdout);
}

static void bursts(int len, int count, const char *what)
{
    static uint64_t out[BURST][EAGER / 8], in[BURST][EAGER / 8];
    MPI_Request all[BURST];
    long before[KINDS], after[KINDS];
    look(before);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < count; i++) {
            fill(out[i], len, 1000 * round + i + 1);
            if (rank == 0)
                MPI_Isend(out[i], len, MPI_BYTE, 1, i, MPI_COMM_WORLD, &all[i]);
            else
                MPI_Irecv(in[i], len, MPI_BYTE, 0, i, MPI_COMM_WORLD, &all[i]);
        }
        MPI_Waitall(count, all, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count && rank == 1; i++)
            expect(memcmp(in[i], out[i], len) == 0, "a burst arrives as it was sent");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    look(after);
    /* How many messages share a doorbell depends on time: an emulated machine is idle between any two. */
    long doorbells = after[DOORBELLS] - before[DOORBELLS], asked = after[SIGNALED] - before[SIGNALED];
    long operations = after[OPERATIONS] - before[OPERATIONS];
    expect_of_us(len > 8 || asked <= operations / 8, "few short messages ask for a completion");
    expect_of_us(asked <= doorbells, "what leaves with one call asks for one completion");
    tell(what, before, (double)count * ROUNDS);
}

static void ping_pong(size_t len, int rounds, const char *what)
{
    uint64_t *memory = malloc(len), wanted;
    long before[KINDS], after[KINDS];
    for (int round = -2; round < rounds; round++) {
        if (round == 0)
            look(before);
        if (rank == 0) {
            fill(memory, len, 77 + round);
            MPI_Send(memory, len, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            wanted = hash(memory, len, 1);
            MPI_Recv(memory, len, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(hash(memory, len, 1) == wanted, "a message comes back as it was sent");
        } else {
            MPI_Recv(memory, len, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(memory, len, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
    }
    look(after);
    long buffered = after[BUFFERED] - before[BUFFERED], made = after[REGISTRATIONS] - before[REGISTRATIONS];
    expect_of_us(len < MEGA || buffered < (long)len / 16, "nothing of a large message is copied");
    /* Chunks with new borders have their memory registered anew, until all of it has one registration. */
    expect_of_us(made <= rounds, "memory that is used again stays registered");
    tell(what, before, 2 * rounds);
    free(memory);
}

static void *map(void *at, size_t len)
{
    int fixed = at ? MAP_FIXED_NOREPLACE : 0;
    void *memory = mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

/* Where nobody else is given memory: the system looks for room from the top of the addresses on, so what is
 * unmapped here stays free. */
static void *const APART = (void *)0x100000000000;

/* Loses memory, and returns other memory at the same place: unmapped, replaced in place, its pages given
 * back, moved away. */
static char *lose(char *memory, int way)
{
    static const char *const names[] = { "munmap", "mmap over it", "madvise", "mremap" };
    int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, done = 1;
    if (way == 0) {
        done = munmap(memory, LARGE) == 0;
    } else if (way == 1) {
        done = mmap(memory, LARGE, access, kind, -1, 0) == memory;
    } else if (way == 2) {
        done = madvise(memory, LARGE, MADV_DONTNEED) == 0;
    } else {
        char *away = map(NULL, LARGE);
        done = mremap(memory, LARGE, LARGE, MREMAP_MAYMOVE | MREMAP_FIXED, away) == away;
        munmap(away, LARGE);
    }
    if (!done)
        perror(names[way]);
    expect(done, "memory is lost");
    return done && way != 1 && way != 2 ? map(memory, LARGE) : memory;
}

static void moved(void)
{
    char *memory = map(APART, LARGE);
    for (int round = 0; round < 16; round++) {
        uint64_t *words = (uint64_t *)memory;
        fill(words, LARGE, rank == 0 ? 1000 + round : 5);
        if (rank == 0) {
            uint64_t sum = hash(words, LARGE, round);
            MPI_Send(words, LARGE, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Send(&sum, 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        } else {
            uint64_t sum;
            MPI_Recv(words, LARGE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(&sum, 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(hash(words, LARGE, round) == sum, "what was mapped anew is what is sent and received");
        }
        memory = lose(memory, round % 4);
    }
    if (rank == 0)
        printf("16 messages of 3 MiB from memory that was mapped anew: as sent\n");
}

/* A short message, which travels in a buffer, and a long one, which the receiver reads if that is allowed. */
static void text(void)
{
    const char *words = getenv("VERBS_TEXT"), *encrypt = getenv("NMAD_ENCRYPT");
    size_t each = words ? strlen(words) : 0;
    char *memory = malloc(LARGE);
    long before[KINDS], after[KINDS];
    expect(each > 0 && verbs_counts, "VERBS_TEXT and count.c are there");
    for (size_t at = 0; each > 0 && at < LARGE; at++)
        memory[at] = rank == 0 ? words[at % each] : 0;
    look(before);
    for (int len = EAGER; len <= LARGE; len += LARGE - EAGER) {
        if (rank == 0)
            MPI_Send(memory, len, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        else
            MPI_Recv(memory, len, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int at = 0; each > 0 && at < len; at++)
            if (memory[at] != words[at % each]) {
                expect(0, "the text arrives as it was sent");
                break;
            }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    look(after);
    int is_encrypted = encrypt && strcmp(encrypt, "on") == 0;
    long readable = after[READABLE] - before[READABLE], direct = after[DIRECT] - before[DIRECT];
    expect(rank == 1 || (readable == 0) == is_encrypted, "buffers are readable only without encryption");
    expect(rank == 0 || (direct == 0) == is_encrypted, "memory is read only without encryption");
    printf("rank %d: %ld buffers with the text, %ld B read\n", rank, readable, direct);
    free(memory);
}

static void stream(long mib)
{
    long count = mib * MEGA / LARGE + 1, left = count;
    uint64_t sum = 1, theirs, small = 0;
    long before[KINDS];
    char *memory[AT_ONCE];
    MPI_Request all[AT_ONCE];
    look(before);
    for (int i = 0; i < AT_ONCE; i++)
        memory[i] = malloc(LARGE);
    for (long at = 0; left > 0; at += AT_ONCE, left -= AT_ONCE) {
        int now = left < AT_ONCE ? left : AT_ONCE;
        for (int i = 0; i < now; i++) {
            if (rank == 0) {
                fill((uint64_t *)memory[i], LARGE, at + i + 1);
                sum = hash((uint64_t *)memory[i], LARGE, sum);
                MPI_Isend(memory[i], LARGE, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &all[i]);
            } else {
                MPI_Irecv(memory[i], LARGE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &all[i]);
            }
        }
        MPI_Waitall(now, all, MPI_STATUSES_IGNORE);
        for (int i = 0; i < now && rank == 1; i++)
            sum = hash((uint64_t *)memory[i], LARGE, sum);
        if (rank == 0)
            MPI_Send(&at, 8, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
        else
            MPI_Recv(&small, 8, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(rank == 0 || small == (uint64_t)at, "small messages keep their order");
    }
    MPI_Sendrecv(&sum, 8, MPI_BYTE, 1 - rank, 4, &theirs, 8, MPI_BYTE, 1 - rank, 4, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect(sum == theirs, "the hash of the receiver is that of the sender");
    long counts[KINDS];
    look(counts);
    printf("rank %d: %ld MiB, hash %016lx, %ld queue pairs were made to fail\n", rank, count * 3,
           (unsigned long)sum, counts[FAILURES]);
    expect(!getenv("VERBS_FAIL_EVERY") || counts[FAILURES] > 0, "queue pairs have failed");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "counts") == 0) {
        bursts(8, BURST, "bursts of 64 messages of 8 B");
        bursts(EAGER, 16, "bursts of 16 messages of 4 KiB");
        ping_pong(8, 100, "8 B to and fro");
        ping_pong(LARGE, 8, "3 MiB to and fro");
    } else if (strcmp(what, "moved") == 0) {
        moved();
    } else if (strcmp(what, "text") == 0) {
        text();
    } else if (strcmp(what, "bytes") == 0 && argc > 2) {
        stream(atol(argv[2]));
    } else {
        fprintf(stderr, "stream: what? counts, moved, text, or bytes MIB\n");
        failed = 2;
    }
    MPI_Finalize();
    return failed;
}
