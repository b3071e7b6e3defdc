#define _GNU_SOURCE
#include "io.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The beginning of a record; its other bytes are all equal. */
struct head {
  int rank, number;
};

static char filler(struct head head) { return (char)(head.rank * 37 + head.number * 11 + 1); }

static void make(char *record, size_t bytes, struct head head) {
  memset(record, filler(head), bytes);
  memcpy(record, &head, sizeof head);
}

/* Returns whether the bytes behind the head are those that belong to it. */
static int is_whole(const char *record, size_t bytes, struct head head) {
  for (size_t i = sizeof head; i < bytes; i++)
    if (record[i] != filler(head)) return 0;
  return 1;
}

MPI_Offset place(const struct records *records, int of_rank, int number) {
  MPI_Offset before = records->order == BY_RANK ? (MPI_Offset)of_rank * records->count + number
                                                : (MPI_Offset)number * size + of_rank;
  return before * (MPI_Offset)records->bytes;
}

char *made(const struct records *records) {
  char *all = malloc(records->bytes * (size_t)records->count);
  if (!all) refuse("there is not enough memory for the records");
  for (int i = 0; i < records->count; i++) make(all + (size_t)i * records->bytes, records->bytes, (struct head){rank, i});
  return all;
}

void write_file(const struct records *records, const char *path) {
  char *record = malloc(records->bytes);
  int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  if (!record || file < 0) refuse("a file cannot be made");
  for (int of = 0; of < size; of++)
    for (int i = 0; i < records->count; i++) {
      make(record, records->bytes, (struct head){of, i});
      if (pwrite(file, record, records->bytes, place(records, of, i)) != (ssize_t)records->bytes)
        refuse("a file cannot be written: is there enough space?");
    }
  fsync(file);
  close(file);
  free(record);
}

/* Marks a record as seen; returns whether it exists, is complete, and was not seen before. */
static int is_new(const struct records *records, const char *record, char *seen) {
  struct head head;
  memcpy(&head, record, sizeof head);
  if (head.rank < 0 || head.rank >= size || head.number < 0 || head.number >= records->count) return 0;
  size_t index = (size_t)head.rank * (size_t)records->count + (size_t)head.number;
  if (seen[index] || !is_whole(record, records->bytes, head)) return 0;
  return seen[index] = 1;
}

int is_written(const struct records *records, const char *path) {
  size_t all = (size_t)size * (size_t)records->count;
  char *record = malloc(records->bytes), *seen = calloc(all, 1);
  int file = open(path, O_RDONLY), right = record && seen && file >= 0;
  for (size_t i = 0; right && i < all; i++) {
    struct head head;
    off_t at = (off_t)(i * records->bytes);
    right = pread(file, record, records->bytes, at) == (ssize_t)records->bytes && is_new(records, record, seen);
    memcpy(&head, record, sizeof head);
    if (right && records->order != ANY) right = place(records, head.rank, head.number) == at;
  }
  if (file >= 0) close(file);
  free(record);
  free(seen);
  return right;
}

int is_read(const struct records *records, const char *memory) {
  char *seen = calloc((size_t)size * (size_t)records->count, 1);
  int right = seen != NULL;
  for (int i = 0; right && i < records->count; i++) {
    const char *record = memory + (size_t)i * records->bytes;
    struct head head;
    right = is_new(records, record, seen);
    memcpy(&head, record, sizeof head);
    if (right && records->order != ANY) right = head.rank == rank && head.number == i;
  }
  free(seen);
  return right;
}
