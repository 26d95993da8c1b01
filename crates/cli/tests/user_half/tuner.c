/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The user program of knob.bpf.c: it calls bpf(2) itself. A second thread looks at a counter of the
 * scheduler every 25 ms; after four looks the first one sets the scheduler's slice. With the
 * argument "exit" it then ends. A third thread answers each record of a ring buffer with one in
 * another.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, PROG_LOAD = 5, TEST_RUN = 10, BTF_LOAD = 18,
	LINK_CREATE = 28 };

/* Bytes of a ring buffer, and of a page. */
#define RING 4096
#define PAGE 4096

struct section {
	volatile uint64_t slice_knob, nr_looks, nr_seen, nr_advised;
};

static struct section *section;
static int counter, queue, program, events, orders;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t looked = PTHREAD_COND_INITIALIZER;

union attr {
	uint32_t words[32];
	uint64_t longs[16];
	char bytes[128];
};

static int try_bpf(int command, union attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int bpf(int command, union attr *attr)
{
	int result = try_bpf(command, attr);

	if (result < 0) {
		printf("command %d fails: %m\n", command);
		exit(1);
	}
	return result;
}

static int map(int type, int key, int value, int entries, const char *name, int types, int of)
{
	union attr attr = { .words = { type, key, value, entries, type == 2 && of ? 1 << 10 : 0 } };

	strncpy(attr.bytes + 28, name, 15);
	attr.words[12] = types;
	attr.words[14] = of;
	return bpf(MAP_CREATE, &attr);
}

/* Names: u64 1, slice_knob 5, nr_looks 16, nr_seen 25, nr_advised 33, .bss 44, double_knob 49. */
static const char names[] =
	"\0u64\0slice_knob\0nr_looks\0nr_seen\0nr_advised\0.bss\0double_knob";

static int load_types(void)
{
	static const uint32_t types[] = {
		1, 1 << 24, 8, 64,
		5, 14 << 24, 1, 1, 16, 14 << 24, 1, 1, 25, 14 << 24, 1, 1, 33, 14 << 24, 1, 1,
		44, 15 << 24 | 4, 32, 2, 0, 8, 3, 8, 8, 4, 16, 8, 5, 24, 8,
		0, 13 << 24, 1,
		49, 12 << 24 | 1, 7,
	};
	const uint32_t header[] = { 0x1eb9f, 24, 0, sizeof(types), sizeof(types), sizeof(names) };
	static char file[1024];
	union attr attr = { 0 };

	memcpy(file, header, sizeof(header));
	memcpy(file + sizeof(header), types, sizeof(types));
	memcpy(file + sizeof(header) + sizeof(types), names, sizeof(names));
	attr.longs[0] = (uint64_t)file;
	attr.words[4] = sizeof(header) + sizeof(types) + sizeof(names);
	return bpf(BTF_LOAD, &attr);
}

/* The number of the kernel's type for a scheduler, and its size. */
static int find_ops(uint32_t *size)
{
	static const unsigned char extra[] = { 0, 4, 0, 12, 12, 12, 8, 0, 0, 0, 0, 0, 0, 8, 4, 12, 0,
		4, 0, 12 };
	static const char wanted[] = "bpf_struct_ops_sched_ext_ops";
	int file = open("/sys/kernel/btf/vmlinux", O_RDONLY), id = 1;
	size_t len = lseek(file, 0, SEEK_END);
	char *bytes = malloc(len);

	lseek(file, 0, SEEK_SET);
	if (read(file, bytes, len) != (ssize_t)len)
		exit(1);
	uint32_t *header = (uint32_t *)bytes;
	char *types = bytes + header[1] + header[2], *end = types + header[3];
	char *texts = bytes + header[1] + header[4];
	while (types < end) {
		uint32_t *type = (uint32_t *)types, kind = type[1] >> 24 & 31, nr = type[1] & 0xffff;
		int many = kind == 4 || kind == 5 || kind == 6 || kind == 13 || kind == 15 || kind == 19;

		if (kind == 4 && !strcmp(texts + type[0], wanted)) {
			*size = type[2];
			free(bytes);
			close(file);
			return id;
		}
		types += 12 + extra[kind] * (many ? nr : 1);
		id++;
	}
	exit(1);
}

static void attach(void)
{
	uint32_t size, key = 0;
	int type = find_ops(&size);
	union attr made = { .words = { 26, 4, size, 1, 1 << 13 } }, put = { 0 }, link = { 0 };

	made.words[15] = type;
	int ops = bpf(MAP_CREATE, &made);
	put.words[0] = ops;
	put.longs[1] = (uint64_t)&key;
	put.longs[2] = (uint64_t)calloc(1, size);
	bpf(MAP_UPDATE, &put);
	link.words[0] = ops;
	link.words[2] = 44;
	bpf(LINK_CREATE, &link);
}

static void set_up(void)
{
	int types = load_types();
	int bss = map(2, 4, sizeof(struct section), 1, "knob.bss", types, 6);
	uint32_t function[] = { 0, 8 };
	union attr attr = { .words = { 31 } };

	section = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, bss, 0);
	counter = map(2, 4, 8, 1, "enqueued", types, 0);
	queue = map(22, 0, 4, 64, "advice", types, 0);
	events = map(27, 0, 0, RING, "events", types, 0);
	orders = map(31, 0, 0, RING, "orders", types, 0);
	memcpy(attr.bytes + 48, "double_knob", 11);
	attr.words[18] = types;
	attr.words[19] = sizeof(function);
	attr.longs[10] = (uint64_t)function;
	attr.words[22] = 1;
	program = bpf(PROG_LOAD, &attr);
	section->slice_knob = 10000000;
}

static void *look(void *unused)
{
	struct timespec pause = { .tv_nsec = 25000000 };

	for (;;) {
		uint32_t key = 0;
		uint64_t count = 0;
		union attr attr = { .words = { counter } };

		nanosleep(&pause, NULL);
		attr.longs[1] = (uint64_t)&key;
		attr.longs[2] = (uint64_t)&count;
		bpf(MAP_LOOKUP, &attr);
		pthread_mutex_lock(&lock);
		section->nr_looks++;
		section->nr_seen = count;
		if (section->nr_looks % 4 == 0)
			pthread_cond_signal(&looked);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static char *pages(int ring, int protection, int nth, int nr)
{
	char *at = mmap(NULL, nr * PAGE, protection, MAP_SHARED, ring, nth * PAGE);

	if (at == MAP_FAILED)
		exit(1);
	return at;
}

static void *answer(void *unused)
{
	volatile uint64_t *read = (void *)pages(events, PROT_READ | PROT_WRITE, 0, 1);
	char *theirs = pages(events, PROT_READ, 1, 3);
	char *ours = pages(orders, PROT_READ | PROT_WRITE, 1, 3);
	volatile uint64_t *available = (void *)theirs, *written = (void *)ours;
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 77 };
	int epoll = epoll_create1(0);
	uint64_t last = 0;

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, events, &event))
		exit(1);
	for (;;) {
		struct epoll_event got = { 0 };

		if (epoll_wait(epoll, &got, 1, -1) != 1 || got.data.u64 != 77) {
			printf("epoll_wait gives %lu\n", got.data.u64);
			exit(1);
		}
		while (*read < *available) {
			char *record = theirs + PAGE + *read % RING;
			char *order = ours + PAGE + *written % RING;

			if (*(uint32_t *)record != 8 || *(uint64_t *)(record + 8) != ++last) {
				printf("record %lu is wrong\n", last);
				exit(1);
			}
			*read += 16;
			*(uint64_t *)order = 8;
			*(uint64_t *)(order + 8) = 1;
			*written += 16;
		}
	}
	return unused;
}

/* After the first looks the slice is 1 ms; then a program of the scheduler doubles it. */
static void tune(int nth)
{
	uint64_t factor = 2;
	uint32_t pid = getpid();
	union attr put = { .words = { queue } }, run = { .words = { program } };

	put.longs[2] = (uint64_t)&pid;
	bpf(MAP_UPDATE, &put);
	if (nth == 0) {
		section->slice_knob = 1000000;
	} else if (nth == 1) {
		run.words[10] = sizeof(factor);
		run.longs[6] = (uint64_t)&factor;
		bpf(TEST_RUN, &run);
		if (run.words[1] != 7 || factor != 2000000 || section->slice_knob != 2000000) {
			printf("the program returned %u and %lu\n", run.words[1], factor);
			exit(1);
		}
	}
}

int main(int nr, char **args)
{
	pthread_t thread;
	struct timespec time;
	const char *mode = nr > 1 ? args[1] : "";

	set_up();
	attach();
	pthread_create(&thread, NULL, look, NULL);
	pthread_create(&thread, NULL, answer, NULL);
	for (int nth = 0;; nth++) {
		uint64_t seen;

		pthread_mutex_lock(&lock);
		seen = section->nr_looks;
		while (section->nr_looks < seen + 4)
			pthread_cond_wait(&looked, &lock);
		pthread_mutex_unlock(&lock);
		clock_gettime(CLOCK_MONOTONIC, &time);
		printf("%ld.%09ld\n", time.tv_sec, time.tv_nsec);
		fflush(stdout);
		tune(nth);
		if (!strcmp(mode, "exit"))
			return 3;
	}
}
