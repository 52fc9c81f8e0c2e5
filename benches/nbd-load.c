// nbd-load SOCKET PATTERN BLOCK DEPTH SECONDS [CONNECTIONS [PID [EXPORT]]]: one exact load on an NBD server at a Unix socket.
//
// PATTERN: read, write (one after another, each connection in its own part), randread, randwrite, or fill: everything written once.
// DEPTH requests are always outstanding on every connection: each answer that is here is taken, and as many requests are sent at once.
// What is written carries its own offset, and of every block that is read the first word is looked at: a server that sends something
// else, or nothing, is found out. NBD_PATTERN=any looks at nothing. Prints I/Os a second, MB/s, 50th and 99th percentile of the latency
// in µs, and the server's processor time per I/O in µs: of PID and its children, while the load ran (0 without one).
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST = 28, REPLY = 16, BUFFER = 1 << 20, BUCKETS = 1024, STAMP = 512 };

struct connection {
    int fd;
    uint64_t first, blocks, next, random, ios, latencies[BUCKETS];
    uint64_t *offset, *sent;
};

static const char *path, *pattern, *export = "";
static uint64_t size, block;
static unsigned depth;
static double seconds;
static int writes, randomly, once, any;
static pthread_barrier_t begin, end;

static void fail(const char *what)
{
    fprintf(stderr, "nbd-load: %s: %s\n", what, errno ? strerror(errno) : "the server broke the protocol");
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void get(int fd, void *into, size_t length)
{
    for (ssize_t got; length; into = (char *)into + got, length -= got)
        if ((got = recv(fd, into, length, 0)) <= 0)
            fail("receive");
}

static void put(int fd, const void *from, size_t length)
{
    for (ssize_t sent; length; from = (const char *)from + sent, length -= sent)
        if ((sent = send(fd, from, length, MSG_NOSIGNAL)) <= 0)
            fail("send");
}

// Greeting and NBD_OPT_GO, with simple replies.
static int connect_to(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (void *)&address, sizeof address) < 0)
        fail(path);
    unsigned char message[64];
    get(fd, message, 18);
    uint32_t name = strlen(export), words[] = { htonl(3), htonl(0x49484156), htonl(0x454f5054), htonl(7), htonl(name + 6), htonl(name) };
    put(fd, words, sizeof words);
    put(fd, export, name);
    put(fd, "\0\0", 2);
    for (;;) {
        uint32_t head[5];
        get(fd, head, sizeof head);
        uint32_t kind = ntohl(head[3]), length = ntohl(head[4]);
        unsigned char data[4096];
        errno = 0;
        if (kind >> 31 || length > sizeof data)
            fail("go");
        get(fd, data, length);
        if (kind == 1)
            return fd;
        if (kind == 3 && length == 12 && !data[0] && !data[1]) {
            uint64_t bytes;
            memcpy(&bytes, data + 2, 8);
            size = be64toh(bytes);
        }
    }
}

// Log-linear: 16 buckets for every doubling.
static unsigned bucket(uint64_t ns)
{
    unsigned bits = 63 - __builtin_clzll(ns | 16);
    return bits * 16 + (ns >> (bits - 4)) % 16;
}

static double percentile(const uint64_t *counts, double part)
{
    uint64_t total = 0, seen = 0;
    for (int i = 0; i < BUCKETS; i++)
        total += counts[i];
    for (int i = 0; i < BUCKETS; i++)
        if ((seen += counts[i]) >= total * part && seen)
            return (double)(16 + i % 16) * (1ULL << (i / 16)) / 16 / 1e3;
    return 0;
}

// Appends the request of `slot` to `out`.
static char *ask(struct connection *c, char *out, unsigned slot, uint64_t at)
{
    uint64_t index = randomly ? (unsigned __int128)next(&c->random) * c->blocks >> 64 : c->next++ % c->blocks;
    uint64_t offset = c->offset[slot] = (c->first + index) * block;
    uint32_t head[7] = { htonl(0x25609513), htonl(writes), slot, 0, htonl(offset >> 32), htonl(offset), htonl(block) };
    c->sent[slot] = at;
    memcpy(out, head, REQUEST);
    out += REQUEST;
    for (uint64_t i = 0; writes && i < block; i += STAMP) {
        uint64_t stamp = offset + i;
        memcpy(out + i, &stamp, 8);
    }
    return out + (writes ? block : 0);
}

// Takes the answers among `length` bytes at `in` and appends as many requests to `*out`; returns what is left of the bytes.
static size_t take(struct connection *c, const char *in, size_t length, uint64_t *skip, char **out, int stop, unsigned *outstanding)
{
    uint64_t at = now();
    for (;;) {
        uint64_t step = *skip < length ? *skip : length;
        in += step, length -= step, *skip -= step;
        if (*skip || length < REPLY)
            return length;
        uint32_t head[4];
        memcpy(head, in, REPLY);
        errno = 0;
        if (head[0] != htonl(0x67446698) || head[1] || head[2] >= depth)
            fail("a reply");
        uint64_t word, offset = c->offset[head[2]];
        if (!writes && !any && length >= REPLY + 8 && (memcpy(&word, in + REPLY, 8), word != offset))
            fail("other bytes than were written");
        in += REPLY, length -= REPLY, *skip = writes ? 0 : block;
        c->latencies[bucket(at - c->sent[head[2]])]++;
        c->ios++;
        if (stop || (once && c->next == c->blocks))
            --*outstanding;
        else
            *out = ask(c, *out, head[2], at);
    }
}

static void *load(void *of)
{
    struct connection *c = of;
    char *in = malloc(BUFFER), *out = calloc(depth, REQUEST + (writes ? block : 0)), *tail = out;
    uint64_t skip = 0, stop_at = 0;
    unsigned outstanding = depth;
    size_t left = 0;
    pthread_barrier_wait(&begin);
    stop_at = once ? UINT64_MAX : now() + seconds * 1e9;
    for (unsigned slot = 0; slot < depth; slot++)
        tail = ask(c, tail, slot, now());
    // What a read brings is taken in one go, if the socket has it.
    size_t room = writes || block * depth < 65536 ? 65536 : BUFFER;
    while (outstanding) {
        put(c->fd, out, tail - out);
        ssize_t got = recv(c->fd, in + left, room - left, 0);
        if (got <= 0)
            fail("receive");
        tail = out;
        size_t length = left + got;
        left = take(c, in, length, &skip, &tail, now() >= stop_at, &outstanding);
        memmove(in, in + length - left, left);
    }
    for (ssize_t got; skip; skip -= got)
        if ((got = recv(c->fd, in, skip < BUFFER ? skip : BUFFER, 0)) <= 0)
            fail("receive");
    pthread_barrier_wait(&end);
    return NULL;
}

// The first line of a file of /proc, empty if there is none.
static void first_line(char *line, size_t size, const char *form, unsigned long pid, const char *task)
{
    char name[300];
    snprintf(name, sizeof name, form, pid, task);
    FILE *file = fopen(name, "r");
    if (!file || !fgets(line, size, file))
        line[0] = 0;
    if (file)
        fclose(file);
}

// Nanoseconds that the threads of a process and of its children have run.
static uint64_t cpu(unsigned long pid)
{
    char name[100], line[4096];
    uint64_t total = 0;
    snprintf(name, sizeof name, "/proc/%lu/task", pid);
    DIR *tasks = pid ? opendir(name) : NULL;
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        first_line(line, sizeof line, "/proc/%lu/task/%s/schedstat", pid, task->d_name);
        total += strtoull(line, NULL, 10);
        first_line(line, sizeof line, "/proc/%lu/task/%s/children", pid, task->d_name);
        char *rest = line;
        for (unsigned long child; (child = strtoul(rest, &rest, 10));)
            total += cpu(child);
    }
    if (tasks)
        closedir(tasks);
    return total;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: nbd-load SOCKET read|write|randread|randwrite|fill BLOCK DEPTH SECONDS [CONNECTIONS [PID [EXPORT]]]\n");
        return 2;
    }
    path = argv[1], pattern = argv[2], block = strtoull(argv[3], NULL, 10), depth = atoi(argv[4]), seconds = atof(argv[5]);
    unsigned count = argc > 6 ? atoi(argv[6]) : 1;
    unsigned long pid = argc > 7 ? strtoul(argv[7], NULL, 10) : 0;
    const char *looks = getenv("NBD_PATTERN");
    export = argc > 8 ? argv[8] : "";
    once = !strcmp(pattern, "fill"), randomly = !strncmp(pattern, "rand", 4), writes = once || strstr(pattern, "write");
    any = looks && !strcmp(looks, "any");
    pthread_barrier_init(&begin, NULL, count + 1);
    pthread_barrier_init(&end, NULL, count + 1);
    struct connection *all = calloc(count, sizeof *all);
    pthread_t threads[count];
    for (unsigned i = 0; i < count; i++) {
        all[i].fd = connect_to();
        all[i].blocks = size / block / (randomly ? 1 : count);
        all[i].first = randomly ? 0 : all[i].blocks * i;
        all[i].random = i;
        all[i].offset = calloc(depth, 8), all[i].sent = calloc(depth, 8);
        pthread_create(&threads[i], NULL, load, &all[i]);
    }
    uint64_t used = cpu(pid), from = now();
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&end);
    double ns = now() - from, ios = 0;
    used = cpu(pid) - used;
    for (unsigned i = 0; i < count; i++) {
        ios += all[i].ios;
        for (int j = 0; i && j < BUCKETS; j++)
            all[0].latencies[j] += all[i].latencies[j];
        uint32_t bye[7] = { htonl(0x25609513), htonl(2) };
        put(all[i].fd, bye, REQUEST);
    }
    printf("%.0f %.1f %.2f %.2f %.3f\n", ios / ns * 1e9, ios * block / ns * 1e3, percentile(all[0].latencies, 0.5),
           percentile(all[0].latencies, 0.99), used / ios / 1e3);
    return 0;
}
