/*
 * zfs-requests MARKS POOL
 *
 * Runs the lines of standard input in order, and writes each to MARKS (tracefs's trace_marker) before it runs, so that what
 * a device is asked stands beneath the line that asked it:
 *
 *   open PATH                 opens a file, which is made if there is none; `direct PATH` around the page cache, `dsync PATH`
 *                             for synchronous writes, which are marked d and not w
 *   close                     closes it
 *   size BYTES                sets its length
 *   w OFFSET LENGTH           writes; r OFFSET LENGTH reads
 *   s                         ends the transaction group (zpool sync)
 *   fsync                     commits what was written to the intent log
 *   random SEED COUNT LENGTH RECORD   so many of w, r and s in the first LENGTH bytes, each marked
 *   commits SEED COUNT LENGTH RECORD  the same, with fsync
 *   sh COMMAND                runs it
 *   # ...                     is only marked
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 64 << 20 };
static int marks, file = -1, synchronous;
static char sync_command[300];
static unsigned char *buffer;
static unsigned long long state;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static unsigned random_below(unsigned long long limit) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((state >> 33) % limit);
}

static void mark(const char *line) {
    if (write(marks, line, strlen(line)) < 0) fail("mark");
}

static void shell(const char *command) {
    if (system(command) != 0) fail(command);
}

static void request(char op, unsigned long long offset, unsigned long long length) {
    char line[100];
    sprintf(line, "%c %llu %llu", op == 'w' && synchronous ? 'd' : op, offset, length);
    mark(line);
    if (length > LARGEST) fail("too long");
    ssize_t done = op == 'r' ? pread(file, buffer, length, (off_t)offset) : pwrite(file, buffer, length, (off_t)offset);
    if (done != (ssize_t)length) fail(line);
}

static void group(void) {
    mark("s");
    shell(sync_command);
}

static void commit(void) {
    mark("fsync");
    if (fsync(file)) fail("fsync");
}

static void many(unsigned seed, unsigned count, unsigned long long length, unsigned long long record, int commits) {
    state = seed;
    while (count-- > 0) {
        unsigned kind = random_below(10);
        if (kind == 9 && (!commits || random_below(8) == 0)) {
            group();
            continue;
        }
        if (kind >= 8 && commits) {
            commit();
            continue;
        }
        /* Half of them in sectors, a quarter in pages, a quarter in records. */
        unsigned long long unit = random_below(2) ? 512 : random_below(2) ? 4096 : record;
        unsigned long long most = 5 * record / 2 / unit;
        unsigned long long bytes = unit * (1 + random_below(random_below(2) ? most : (most + 7) / 8));
        unsigned long long offset = unit * random_below((length - bytes) / unit + 1);
        request(kind < 7 ? 'w' : 'r', offset, bytes);
    }
}

int main(int argc, char **argv) {
    char line[512], path[400];
    unsigned long long a, b;
    unsigned seed, count;
    if (argc != 3) return 2;
    marks = open(argv[1], O_WRONLY);
    if (marks < 0) fail(argv[1]);
    snprintf(sync_command, sizeof sync_command, "zpool sync %s", argv[2]);
    if (posix_memalign((void **)&buffer, 4096, LARGEST)) fail("memory");
    /* No record of it is zero or a copy of another. */
    for (unsigned i = 0; i < LARGEST / 4; i++) ((unsigned *)buffer)[i] = i * 2654435761u + 1;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "w %llu %llu", &a, &b) == 2) request('w', a, b);
        else if (sscanf(line, "r %llu %llu", &a, &b) == 2) request('r', a, b);
        else if (!strcmp(line, "s")) group();
        else if (!strcmp(line, "fsync")) commit();
        else if (sscanf(line, "random %u %u %llu %llu", &seed, &count, &a, &b) == 4) many(seed, count, a, b, 0);
        else if (sscanf(line, "commits %u %u %llu %llu", &seed, &count, &a, &b) == 4) many(seed, count, a, b, 1);
        else {
            mark(line);
            int direct = sscanf(line, "direct %399s", path) == 1;
            int dsync = sscanf(line, "dsync %399s", path) == 1;
            if (direct || dsync || sscanf(line, "open %399s", path) == 1) {
                file = open(path, O_RDWR | O_CREAT | (direct ? O_DIRECT : 0) | (dsync ? O_DSYNC : 0), 0644);
                synchronous = dsync;
                if (file < 0) fail(path);
            } else if (!strcmp(line, "close")) {
                close(file);
            } else if (sscanf(line, "size %llu", &a) == 1) {
                if (ftruncate(file, (off_t)a)) fail(line);
            } else if (!strncmp(line, "sh ", 3)) {
                shell(line + 3);
            } else if (line[0] != '#') {
                fail(line);
            }
        }
    }
    return 0;
}
