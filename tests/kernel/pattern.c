/*
 * pattern fill|check DEVICE TAG FIRST COUNT
 *
 * Writes sectors FIRST to FIRST + COUNT of a block device (COUNT 0: to its end) so that each names
 * its own address: eight times the 64-byte line "TAG, padded to 47 columns, a space, the sector's
 * number in 15 columns, a newline". `check` reads them past the page cache and fails at the first
 * that differs. The tag `-` stands for zeros.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512, LINE = 64, BLOCK = 512 };

static void put(char *at, const char *tag, unsigned long long sector) {
    char line[LINE + 1];
    if (!strcmp(tag, "-")) {
        memset(at, 0, SECTOR);
        return;
    }
    snprintf(line, sizeof line, "%-47.47s %15llu\n", tag, sector);
    for (int i = 0; i < SECTOR; i += LINE) memcpy(at + i, line, LINE);
}

static int check(const char *device, const char *tag, unsigned long long at, const char *want,
                 const char *have, size_t sectors) {
    for (size_t i = 0; i < sectors; i++) {
        if (!memcmp(want + i * SECTOR, have + i * SECTOR, SECTOR)) continue;
        fprintf(stderr, "%s: sector %llu is not \"%s\" but \"%.64s\"\n", device, at + i, tag,
                have + i * SECTOR);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 6) return fprintf(stderr, "pattern fill|check DEVICE TAG FIRST COUNT\n"), 2;
    const char *device = argv[2], *tag = argv[3];
    int checks = !strcmp(argv[1], "check");
    unsigned long long first = strtoull(argv[4], 0, 10), count = strtoull(argv[5], 0, 10);
    /* Direct reads: what is checked lies on the members, not only in the cache. */
    int fd = open(device, checks ? O_RDONLY | O_DIRECT : O_WRONLY);
    if (fd < 0) return perror(device), 1;
    unsigned long long size = lseek(fd, 0, SEEK_END) / SECTOR;
    unsigned long long end = count ? first + count : size;
    if (end > size) return fprintf(stderr, "%s has %llu sectors\n", device, size), 1;
    char *want = aligned_alloc(4096, BLOCK * SECTOR), *have = aligned_alloc(4096, BLOCK * SECTOR);
    if (!want || !have) return perror("pattern"), 1;
    for (unsigned long long at = first; at < end;) {
        /* Blocks end at multiples of their own length, so whole chunks are written at once. */
        unsigned long long n = BLOCK - at % BLOCK;
        if (n > end - at) n = end - at;
        for (unsigned long long i = 0; i < n; i++) put(want + i * SECTOR, tag, at + i);
        ssize_t length = n * SECTOR;
        ssize_t done = checks ? pread(fd, have, length, at * SECTOR)
                              : pwrite(fd, want, length, at * SECTOR);
        if (done != length) {
            fprintf(stderr, "%s: sector %llu: %zd of %zd bytes: %m\n", device, at, done, length);
            return 1;
        }
        if (checks && check(device, tag, at, want, have, n)) return 1;
        at += n;
    }
    if (!checks && fsync(fd)) return perror("fsync"), 1;
    return 0;
}
