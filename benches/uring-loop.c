// uring-loop FILE DEPTH SECONDS [direct]: random reads of 4 KiB by io_uring with nothing around it; prints ns a read.
//
// The least a program can do: registered file, registered buffers, registered ring, the flags of the newest kernels (as our engine
// sets them: 6.6), no library, no statistics; the clock is read every 1024 batches. What a real engine takes more than this is its own.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef IORING_SETUP_SUBMIT_ALL
#define IORING_SETUP_SUBMIT_ALL (1U << 7)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif
#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#endif
#ifndef IORING_ENTER_REGISTERED_RING
#define IORING_ENTER_REGISTERED_RING (1U << 4)
enum { IORING_REGISTER_RING_FDS = 20 };
#endif

enum { BLOCK = 4096 };

static void fail(const char *what)
{
    fprintf(stderr, "uring-loop: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: uring-loop FILE DEPTH SECONDS [direct]\n");
        return 2;
    }
    unsigned depth = strtoul(argv[2], NULL, 10);
    double seconds = strtod(argv[3], NULL);
    int fd = open(argv[1], O_RDONLY | (argc > 4 ? O_DIRECT : 0));
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) < 0)
        fail(argv[1]);
    uint64_t blocks = stat.st_size / BLOCK, random = 1;

    struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL |
                                          IORING_SETUP_NO_SQARRAY };
    int ring = syscall(__NR_io_uring_setup, depth, &p);
    if (ring < 0)
        fail("io_uring_setup");
    size_t size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *queues = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *sqes = mmap(NULL, p.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
                                     IORING_OFF_SQES);
    char *memory = mmap(NULL, (size_t)depth * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (queues == MAP_FAILED || sqes == MAP_FAILED || memory == MAP_FAILED)
        fail("mmap");
    struct iovec all = { memory, (size_t)depth * BLOCK };
    if (syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &all, 1) < 0 ||
        syscall(__NR_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1) < 0)
        fail("io_uring_register");
    struct io_uring_rsrc_update place = { .offset = -1U, .data = ring };
    if (syscall(__NR_io_uring_register, ring, IORING_REGISTER_RING_FDS, &place, 1) != 1)
        fail("io_uring_register the ring");
    unsigned *sq_tail = (unsigned *)(queues + p.sq_off.tail), sq_mask = *(unsigned *)(queues + p.sq_off.ring_mask);
    unsigned *cq_head = (unsigned *)(queues + p.cq_off.head), *cq_tail = (unsigned *)(queues + p.cq_off.tail);
    unsigned cq_mask = *(unsigned *)(queues + p.cq_off.ring_mask);
    struct io_uring_cqe *cqes = (struct io_uring_cqe *)(queues + p.cq_off.cqes);
    unsigned idle[depth], count = depth;
    for (unsigned i = 0; i < depth; i++)
        idle[i] = i;

    double begin = now(), end = begin + seconds;
    uint64_t reads = 0;
    for (unsigned batch = 0;; batch++) {
        unsigned tail = *sq_tail, sent = count;
        while (count) {
            unsigned slot = idle[--count], at = tail++ & sq_mask;
            uint64_t block = (unsigned __int128)next(&random) * blocks >> 64;
            sqes[at] = (struct io_uring_sqe) {
                .opcode = IORING_OP_READ_FIXED, .flags = IOSQE_FIXED_FILE, .fd = 0, .off = block * BLOCK,
                .addr = (uint64_t)(memory + (size_t)slot * BLOCK), .len = BLOCK, .buf_index = 0, .user_data = slot,
            };
        }
        __atomic_store_n(sq_tail, tail, __ATOMIC_RELEASE);
        if (syscall(__NR_io_uring_enter, place.offset, sent, 1, IORING_ENTER_GETEVENTS | IORING_ENTER_REGISTERED_RING, NULL, 0) < 0)
            fail("io_uring_enter");
        unsigned head = *cq_head, done = __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE);
        for (; head != done; head++) {
            struct io_uring_cqe *cqe = &cqes[head & cq_mask];
            if (cqe->res != BLOCK) {
                errno = cqe->res < 0 ? -cqe->res : EIO;
                fail("read");
            }
            idle[count++] = cqe->user_data;
            reads++;
        }
        __atomic_store_n(cq_head, head, __ATOMIC_RELEASE);
        if (batch % 1024 == 0 && now() >= end)
            break;
    }
    printf("%.1f\n", (now() - begin) * 1e9 / reads);
    return 0;
}
