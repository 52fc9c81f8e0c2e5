/*
 * layers DEVICE MARKER <LIST
 *
 * Makes the requests of a list, one line each, with O_DIRECT and one at a time, and writes the line
 * to MARKER (tracefs' trace_marker) before it does:
 *
 *   r OFFSET LENGTH   a read
 *   w OFFSET LENGTH   a write
 *   s OFFSET LENGTH   a write with RWF_DSYNC: the kernel makes it one with FUA, and flushes
 *   f                 fsync(2)
 *
 * Lengths up to 4 MiB. The buffer is of huge pages, so that the kernel makes one request of each.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LARGEST = 4 << 20 };

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "layers DEVICE MARKER <LIST\n"), 2;
    int device = open(argv[1], O_RDWR | O_DIRECT), marker = open(argv[2], O_WRONLY);
    if (device < 0 || marker < 0) return perror(device < 0 ? argv[1] : argv[2]), 2;
    void *buffer = mmap(NULL, LARGEST, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
    if (buffer == MAP_FAILED) return perror("huge pages"), 2;
    memset(buffer, 0xa5, LARGEST);
    char line[128];
    while (fgets(line, sizeof line, stdin)) {
        char op = 0;
        long long offset = 0;
        size_t length = 0;
        sscanf(line, "%c %lld %zu", &op, &offset, &length);
        if (length > LARGEST) return fprintf(stderr, "too long: %s", line), 2;
        struct iovec one = {buffer, length};
        ssize_t done = -1;
        if (write(marker, line, strlen(line)) < 0) return perror(argv[2]), 2;
        switch (op) {
        case 'r': done = preadv(device, &one, 1, offset); break;
        case 'w': done = pwritev(device, &one, 1, offset); break;
        case 's': done = pwritev2(device, &one, 1, offset, RWF_DSYNC); break;
        case 'f': done = fsync(device); break;
        default: errno = EINVAL;
        }
        if (done != (ssize_t)length)
            return fprintf(stderr, "%s: %s: %s", argv[1], strerror(errno), line), 1;
    }
    close(device);
    if (write(marker, "end\n", 4) < 0) return perror(argv[2]), 2;
    return 0;
}
