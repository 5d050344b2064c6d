// The yardstick for an all-reduce of two ranks over loopback TCP: two processes
// exchange the same number of bytes both ways at once, with poll and nothing
// else. Prints the median round in nanoseconds.
//
//	cc -O2 -o exchange exchange.c && ./exchange BYTES ROUNDS
//
// Each process runs on a core of its own when there are two.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

static void pin(int core) {
#ifdef __linux__
	cpu_set_t s;
	CPU_ZERO(&s);
	CPU_SET(core, &s);
	sched_setaffinity(0, sizeof s, &s);
#else
	(void)core;
#endif
}

static void die(const char *what) {
	perror(what);
	exit(1);
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void exchange(int fd, const char *out, char *in, size_t n) {
	size_t sent = 0, got = 0;
	while (sent < n || got < n) {
		ssize_t k;
		if (sent < n) {
			k = write(fd, out + sent, n - sent);
			if (k > 0)
				sent += k;
			else if (errno != EAGAIN)
				die("write");
		}
		if (got < n) {
			k = read(fd, in + got, n - got);
			if (k > 0) {
				got += k;
				continue;
			}
			if (k == 0 || errno != EAGAIN)
				die("read");
		}
		if (sent < n || got < n) {
			struct pollfd p = {fd, (sent < n ? POLLOUT : 0) | (got < n ? POLLIN : 0), 0};
			if (poll(&p, 1, -1) < 0)
				die("poll");
		}
	}
}

static int ascending(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv) {
	size_t n = argc > 1 ? strtoull(argv[1], 0, 10) : 16384;
	int rounds = argc > 2 ? atoi(argv[2]) : 20000;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	if (bind(l, (struct sockaddr *)&a, len) || listen(l, 1) || getsockname(l, (struct sockaddr *)&a, &len))
		die("listen");
	pid_t child = fork();
	if (child < 0)
		die("fork");
	int fd;
	if (child == 0) {
		pin(1);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&a, len))
			die("connect");
	} else {
		pin(0);
		fd = accept(l, 0, 0);
		if (fd < 0)
			die("accept");
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	char *out = calloc(1, n + 1), *in = calloc(1, n + 1);
	int64_t *t = calloc(rounds, sizeof *t);
	for (int i = -rounds / 10; i < rounds; i++) {
		int64_t t0 = now();
		exchange(fd, out, in, n);
		if (i >= 0)
			t[i] = now() - t0;
	}
	if (child == 0)
		return 0;
	waitpid(child, 0, 0);
	qsort(t, rounds, sizeof *t, ascending);
	printf("%lld\n", (long long)t[rounds / 2]);
	return 0;
}
