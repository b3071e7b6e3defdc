/* Reads the cells of the job, measures them in order and prints what each took, in the lines of `nmad bench compare`:
 *
 *     library TEXT
 *     begin   NUMBER
 *     cell    NUMBER MEDIAN LOWEST HIGHEST      microseconds a record, or a file that is opened and closed
 *     skip    NUMBER REASON
 *     end
 *
 * Each cell has its own file, which is opened before the first turn and removed after the last. The first turn is not
 * counted; the median of the next five is reported. The time of a turn is that of the slowest rank. The data written
 * or read are checked after the last turn. */
#include "io.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of all records of a rank, and its largest number of records. */
enum { SAMPLES = 5, CELLS = 256, BYTES = 32 << 20, RECORDS = 4096, SHARED = 1024, FILES = 100, NAME = 4096 };

const char *const program = "io";

struct cell {
  int number;
  char pattern[32];
  size_t bytes;
};

static struct cell cells[CELLS];
static int cell_count;
static const char *folder;

/* The data of the present cell. */
static struct records records;
static MPI_File file;
static char *memory;

/* The work of one turn. */
typedef void work(void);

struct pattern {
  const char *name;
  /* What comes before each turn and is not timed; none: nothing. */
  work *prepare;
  work *run;
  enum order order;
  /* Whether the file has a view that shows only this rank's records. */
  int has_view;
  int reads;
  int most;
};

static void check(int code, const char *what) {
  char words[MPI_MAX_ERROR_STRING], text[MPI_MAX_ERROR_STRING + 64];
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, words, &length);
  snprintf(text, sizeof text, "%s: %s", what, words);
  refuse(text);
}

static char *record(int number) { return memory + (size_t)number * records.bytes; }
static int length(void) { return (int)records.bytes; }

static void write_records(void) {
  for (int i = 0; i < records.count; i++)
    check(MPI_File_write_at(file, place(&records, rank, i), record(i), length(), MPI_BYTE, MPI_STATUS_IGNORE),
          "MPI_File_write_at");
}

static void read_records(void) {
  for (int i = 0; i < records.count; i++)
    check(MPI_File_read_at(file, place(&records, rank, i), record(i), length(), MPI_BYTE, MPI_STATUS_IGNORE),
          "MPI_File_read_at");
}

static int all_bytes(void) { return length() * records.count; }

static void write_view(void) {
  check(MPI_File_write_at(file, 0, memory, all_bytes(), MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at");
}

static void read_view(void) {
  check(MPI_File_read_at(file, 0, memory, all_bytes(), MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_at");
}

static void write_together(void) {
  check(MPI_File_write_at_all(file, 0, memory, all_bytes(), MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
}

static void read_together(void) {
  check(MPI_File_read_at_all(file, 0, memory, all_bytes(), MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_at_all");
}

static void rewind_shared(void) {
  check(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), "MPI_File_seek_shared");
  MPI_Barrier(MPI_COMM_WORLD);
}

static void write_shared(void) {
  for (int i = 0; i < records.count; i++)
    check(MPI_File_write_shared(file, record(i), length(), MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_write_shared");
}

static void read_shared(void) {
  for (int i = 0; i < records.count; i++)
    check(MPI_File_read_shared(file, record(i), length(), MPI_BYTE, MPI_STATUS_IGNORE), "MPI_File_read_shared");
}

static void open_files(void) {
  for (int i = 0; i < records.count; i++) {
    char path[NAME];
    MPI_File opened;
    snprintf(path, sizeof path, "%s/open-%d", folder, i);
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &opened), "MPI_File_open");
    check(MPI_File_close(&opened), "MPI_File_close");
  }
}

static const struct pattern patterns[] = {
    {"contiguous-write", NULL, write_records, BY_RANK, 0, 0, RECORDS},
    {"contiguous-read", NULL, read_records, BY_RANK, 0, 1, RECORDS},
    {"strided-write", NULL, write_view, INTERLEAVED, 1, 0, RECORDS},
    {"strided-read", NULL, read_view, INTERLEAVED, 1, 1, RECORDS},
    {"records-write", NULL, write_records, INTERLEAVED, 0, 0, RECORDS},
    {"records-read", NULL, read_records, INTERLEAVED, 0, 1, RECORDS},
    {"collective-write", NULL, write_together, INTERLEAVED, 1, 0, RECORDS},
    {"collective-read", NULL, read_together, INTERLEAVED, 1, 1, RECORDS},
    {"shared-write", rewind_shared, write_shared, ANY, 0, 0, SHARED},
    {"shared-read", rewind_shared, read_shared, ANY, 0, 1, SHARED},
    {"open", NULL, open_files, BY_RANK, 0, 0, FILES},
};

static const struct pattern *find(const char *name) {
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
    if (!strcmp(patterns[i].name, name)) return &patterns[i];
  return NULL;
}

static void read_cells(const char *path) {
  FILE *list = fopen(path, "r");
  if (!list) refuse("the file of cells cannot be read");
  while (cell_count < CELLS) {
    struct cell *cell = &cells[cell_count];
    int fields = fscanf(list, "%d %31s %zu", &cell->number, cell->pattern, &cell->bytes);
    if (fields == EOF) break;
    if (fields != 3) refuse("the file of cells is damaged");
    cell_count++;
  }
  fclose(list);
}

static void show_own_records(void) {
  MPI_Datatype own, spread;
  MPI_Offset begin = rank * (MPI_Offset)records.bytes;
  MPI_Type_contiguous(length(), MPI_BYTE, &own);
  MPI_Type_create_resized(own, 0, (MPI_Aint)records.bytes * size, &spread);
  MPI_Type_commit(&spread);
  check(MPI_File_set_view(file, begin, MPI_BYTE, spread, "native", MPI_INFO_NULL), "MPI_File_set_view");
  MPI_Type_free(&spread);
  MPI_Type_free(&own);
}

/* Returns the time of a turn on the slowest rank, in seconds. */
static double timed(const struct pattern *pattern) {
  double took, slowest;
  MPI_Barrier(MPI_COMM_WORLD);
  if (pattern->prepare) pattern->prepare();
  took = MPI_Wtime();
  pattern->run();
  took = MPI_Wtime() - took;
  MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static void say(const struct cell *cell, double *took) {
  double scale = 1e6 / records.count;
  qsort(took, SAMPLES, sizeof *took, ascending);
  if (rank == 0)
    printf("cell\t%d\t%.5f\t%.5f\t%.5f\n", cell->number, took[SAMPLES / 2] * scale, took[0] * scale,
           took[SAMPLES - 1] * scale);
}

/* Times an access of records, and checks them; returns whether all ranks found them right. */
static int accessed(const struct pattern *pattern, const char *path, double *took) {
  int right = 1, all;
  memory = made(&records);
  if (pattern->reads && rank == 0) write_file(&records, path);
  MPI_Barrier(MPI_COMM_WORLD);
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "MPI_File_open");
  if (pattern->has_view) show_own_records();
  timed(pattern);
  if (pattern->reads) memset(memory, 0, records.bytes * (size_t)records.count);
  for (int i = 0; i < SAMPLES; i++) took[i] = timed(pattern);
  check(MPI_File_sync(file), "MPI_File_sync");
  MPI_Barrier(MPI_COMM_WORLD);
  if (pattern->reads) right = is_read(&records, memory);
  else if (rank == 0) right = is_written(&records, path);
  check(MPI_File_close(&file), "MPI_File_close");
  free(memory);
  MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all;
}

static void measure(const struct pattern *pattern, const struct cell *cell) {
  char path[NAME];
  double took[SAMPLES];
  size_t fit = cell->bytes ? BYTES / cell->bytes : (size_t)pattern->most;
  int right = 1;
  records.order = pattern->order;
  records.bytes = cell->bytes;
  records.count = fit > (size_t)pattern->most ? pattern->most : fit ? (int)fit : 1;
  snprintf(path, sizeof path, "%s/%s-%zu", folder, pattern->name, cell->bytes);
  if (pattern->run == open_files) {
    timed(pattern);
    for (int i = 0; i < SAMPLES; i++) took[i] = timed(pattern);
    for (int i = 0; rank == 0 && i < records.count; i++) {
      snprintf(path, sizeof path, "%s/open-%d", folder, i);
      check(MPI_File_delete(path, MPI_INFO_NULL), "MPI_File_delete");
    }
  } else {
    right = accessed(pattern, path, took);
    if (rank == 0) check(MPI_File_delete(path, MPI_INFO_NULL), "MPI_File_delete");
  }
  if (right) say(cell, took);
  else if (rank == 0) printf("skip\t%d\tthe records are wrong\n", cell->number);
}

static void measure_all(void) {
  for (int i = 0; i < cell_count; i++) {
    const struct pattern *pattern = find(cells[i].pattern);
    if (rank == 0) {
      printf("begin\t%d\n", cells[i].number);
      fflush(stdout);
    }
    if (pattern) measure(pattern, &cells[i]);
    else if (rank == 0) printf("skip\t%d\tthe program has no such pattern\n", cells[i].number);
    fflush(stdout);
  }
}

int main(int count, char **words) {
  const char *path = NULL;
  for (int i = 1; i < count; i++) {
    if (!strcmp(words[i], "--cells") && i + 1 < count) path = words[++i];
    else if (!strcmp(words[i], "--folder") && i + 1 < count) folder = words[++i];
    else if (!strcmp(words[i], "--pin")) pin();
  }
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (!path || !folder) refuse("usage: --cells FILE --folder DIR [--pin]");
  read_cells(path);
  introduce();
  measure_all();
  if (rank == 0) printf("end\n");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
