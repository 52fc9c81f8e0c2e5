// nbd-bare SOCKET BYTES|FILE [block|epoll|uring]: the least an NBD server can do; what a real one takes more than this is its own.
//
// One export, of memory or of a file's mapping; NBD_OPT_GO, simple replies, reads and writes, nothing checked but the magic. Many
// requests are received at once, and their replies are sent at once, straight from where the bytes are. Three ways to wait, to choose
// between (docs/decisions/0017): a thread for a connection that blocks in recv; a thread that asks epoll first; a thread whose ring
// sends the replies and receives the next requests in one system call.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { REQUEST = 28, REPLY = 16, BUFFER = 256 << 10, PARTS = 1024, BATCH = 256 << 10 };

struct connection {
    int fd, epoll, ring;
    char *in;
    char heads[PARTS / 2][REPLY];
    struct iovec parts[PARTS];
    unsigned count;
    size_t bytes;
    unsigned *sq_tail, sq_mask, *cq_head, *cq_tail, cq_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

static char *memory;
static uint64_t size;
static const char *how = "block";

static void fail(const char *what)
{
    fprintf(stderr, "nbd-bare: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int get(int fd, void *into, size_t length)
{
    for (ssize_t got; length; into = (char *)into + got, length -= got)
        if ((got = recv(fd, into, length, 0)) <= 0)
            return 0;
    return 1;
}

// Greeting and options; 0 if the client goes.
static int handshake(int fd)
{
    uint64_t greeting[2] = { htobe64(0x4e42444d41474943), htobe64(0x49484156454f5054) };
    uint16_t flags = htons(3), transmission = htons(1 | 1 << 8);
    uint32_t option[4], client;
    char data[4096];
    send(fd, greeting, 16, MSG_NOSIGNAL | MSG_MORE);
    send(fd, &flags, 2, MSG_NOSIGNAL);
    if (!get(fd, &client, 4))
        return 0;
    while (get(fd, option, sizeof option) && ntohl(option[3]) <= sizeof data && get(fd, data, ntohl(option[3]))) {
        int go = option[2] == htonl(7) || option[2] == htonl(6);
        uint32_t reply[5] = { htonl(0x3e889), htonl(0x045565a9), option[2], htonl(go ? 3 : 0x80000001), htonl(go ? 12 : 0) };
        uint64_t bytes = htobe64(size);
        send(fd, reply, sizeof reply, MSG_NOSIGNAL);
        if (!go)
            continue;
        send(fd, "\0\0", 2, MSG_NOSIGNAL);
        send(fd, &bytes, 8, MSG_NOSIGNAL);
        send(fd, &transmission, 2, MSG_NOSIGNAL);
        reply[3] = htonl(1), reply[4] = 0;
        send(fd, reply, sizeof reply, MSG_NOSIGNAL);
        if (option[2] == htonl(7))
            return 1;
    }
    return 0;
}

static void ring(struct connection *c)
{
    struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN };
    c->ring = syscall(__NR_io_uring_setup, 8, &p);
    if (c->ring < 0)
        fail("io_uring_setup");
    size_t length = p.sq_off.array + p.sq_entries * 4, most = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    char *queues = mmap(NULL, length > most ? length : most, PROT_READ | PROT_WRITE, MAP_SHARED, c->ring, IORING_OFF_SQ_RING);
    c->sqes = mmap(NULL, p.sq_entries * sizeof *c->sqes, PROT_READ | PROT_WRITE, MAP_SHARED, c->ring, IORING_OFF_SQES);
    for (unsigned i = 0; i < p.sq_entries; i++)
        ((unsigned *)(queues + p.sq_off.array))[i] = i;
    c->sq_tail = (unsigned *)(queues + p.sq_off.tail), c->sq_mask = *(unsigned *)(queues + p.sq_off.ring_mask);
    c->cq_head = (unsigned *)(queues + p.cq_off.head), c->cq_tail = (unsigned *)(queues + p.cq_off.tail);
    c->cq_mask = *(unsigned *)(queues + p.cq_off.ring_mask);
    c->cqes = (struct io_uring_cqe *)(queues + p.cq_off.cqes);
}

// Sends the replies.
static int flush(struct connection *c)
{
    struct msghdr message = { .msg_iov = c->parts, .msg_iovlen = c->count };
    for (ssize_t sent; c->bytes; c->bytes -= sent) {
        if ((sent = sendmsg(c->fd, &message, MSG_NOSIGNAL)) <= 0)
            return 0;
        for (size_t rest = sent; rest;) {
            struct iovec *part = message.msg_iov;
            size_t step = rest < part->iov_len ? rest : part->iov_len;
            part->iov_base = (char *)part->iov_base + step, part->iov_len -= step, rest -= step;
            if (!part->iov_len)
                message.msg_iov++, message.msg_iovlen--;
        }
    }
    c->count = 0;
    return 1;
}

// Sends the replies and receives into `in`, in one call.
static ssize_t exchange(struct connection *c, char *in, size_t room)
{
    unsigned tail = *c->sq_tail, asked = 0;
    struct msghdr message = { .msg_iov = c->parts, .msg_iovlen = c->count };
    if (c->bytes)
        asked++, c->sqes[tail++ & c->sq_mask] = (struct io_uring_sqe) { .opcode = IORING_OP_SENDMSG, .flags = IOSQE_IO_LINK, .fd = c->fd,
                                                                  .addr = (uint64_t)&message, .len = 1, .msg_flags = MSG_WAITALL };
    asked++, c->sqes[tail++ & c->sq_mask] = (struct io_uring_sqe) { .opcode = IORING_OP_RECV, .fd = c->fd, .addr = (uint64_t)in,
                                                              .len = room, .user_data = 1 };
    __atomic_store_n(c->sq_tail, tail, __ATOMIC_RELEASE);
    ssize_t got = 0;
    for (unsigned done = 0, sent = asked; done < asked; sent = 0) {
        if (syscall(__NR_io_uring_enter, c->ring, sent, asked - done, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
            return -1;
        unsigned head = *c->cq_head, end = __atomic_load_n(c->cq_tail, __ATOMIC_ACQUIRE);
        for (; head != end; head++, done++)
            if (c->cqes[head & c->cq_mask].user_data)
                got = c->cqes[head & c->cq_mask].res;
        __atomic_store_n(c->cq_head, head, __ATOMIC_RELEASE);
    }
    c->count = c->bytes = 0;
    return got;
}

// The next bytes, after the replies are sent.
static ssize_t receive(struct connection *c, char *in, size_t room)
{
    if (c->ring >= 0)
        return exchange(c, in, room);
    if (!flush(c))
        return -1;
    struct epoll_event event;
    if (c->epoll >= 0)
        epoll_wait(c->epoll, &event, 1, -1);
    return recv(c->fd, in, room, 0);
}

// Answers a request of which `here` bytes after its head are received; returns how many of them it took, -1 at the end.
static ssize_t answer(struct connection *c, const uint32_t *head, char *payload, size_t here)
{
    uint64_t offset = (uint64_t)ntohl(head[4]) << 32 | ntohl(head[5]), length = ntohl(head[6]);
    uint32_t command = ntohl(head[1]) & 0xffff;
    size_t taken = 0;
    if (head[0] != htonl(0x25609513) || command > 1 || offset > size || length > size - offset)
        return -1;
    if (command == 1) {
        taken = here < length ? here : length;
        memcpy(memory + offset, payload, taken);
        if (!get(c->fd, memory + offset + taken, length - taken))
            return -1;
    }
    uint32_t reply[4] = { htonl(0x67446698), 0, head[2], head[3] };
    char *own = c->heads[c->count / 2];
    memcpy(own, reply, REPLY);
    c->parts[c->count++] = (struct iovec) { own, REPLY };
    c->parts[c->count++] = (struct iovec) { memory + offset, command ? 0 : length };
    c->bytes += REPLY + (command ? 0 : length);
    return c->count == PARTS || c->bytes >= BATCH ? (flush(c) ? (ssize_t)taken : -1) : (ssize_t)taken;
}

static void *serve(void *of)
{
    struct connection *c = of;
    size_t left = 0;
    ssize_t got = 1, taken = 0;
    if (!handshake(c->fd))
        got = 0;
    // The ring belongs to the thread that made it.
    if (!strcmp(how, "uring"))
        ring(c);
    while (got > 0 && (got = receive(c, c->in + left, BUFFER - left)) > 0) {
        char *at = c->in;
        left += got;
        while (left >= REQUEST && taken >= 0) {
            uint32_t head[7];
            memcpy(head, at, REQUEST);
            at += REQUEST, left -= REQUEST;
            taken = answer(c, head, at, left);
            if (taken >= 0)
                at += taken, left -= taken;
        }
        if (taken < 0)
            break;
        memmove(c->in, at, left);
    }
    close(c->fd);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: nbd-bare SOCKET BYTES|FILE [block|epoll|uring]\n");
        return 2;
    }
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
    struct stat stat;
    int file = open(argv[2], O_RDWR | O_CLOEXEC);
    size = file >= 0 && !fstat(file, &stat) ? (uint64_t)stat.st_size : strtoull(argv[2], NULL, 10);
    how = argc > 3 ? argv[3] : how;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED, file, 0);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (memory == MAP_FAILED || bind(listener, (void *)&address, sizeof address) < 0 || listen(listener, 16) < 0)
        fail(argv[1]);
    for (;;) {
        struct connection *c = calloc(1, sizeof *c);
        pthread_t thread;
        c->fd = accept(listener, NULL, NULL), c->epoll = c->ring = -1, c->in = malloc(BUFFER);
        if (!strcmp(how, "epoll")) {
            struct epoll_event event = { .events = EPOLLIN };
            c->epoll = epoll_create1(0);
            epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->fd, &event);
        }
        pthread_create(&thread, NULL, serve, c);
        pthread_detach(thread);
    }
}
