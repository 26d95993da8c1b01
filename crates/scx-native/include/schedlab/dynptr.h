/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Dynptrs: memory with bounds that are checked at run time. A part of rt.c. The words of a struct
 * bpf_dynptr: the memory, its size. Semantics: kernel/bpf/helpers.c of Linux 6.18. Left out:
 * read-only and network memory.
 */
#ifndef SCHEDLAB_DYNPTR_H
#define SCHEDLAB_DYNPTR_H

void *bpf_ringbuf_reserve(void *ringbuf, u64 size, u64 flags);
void bpf_ringbuf_submit(void *data, u64 flags);
void bpf_ringbuf_discard(void *data, u64 flags);
void *schedlab_user_record(void *map, u32 *size);

struct span {
	unsigned char *data;
	u64 size;
};

/* Longest memory of a dynptr (DYNPTR_MAX_SIZE). */
#define SPAN_MAX ((1U << 24) - 1)

static void *part(const struct bpf_dynptr *ptr, u64 offset, u64 len)
{
	const struct span *span = (const void *)ptr;

	if (!span->data || len > span->size || offset > span->size - len)
		return NULL;
	return span->data + offset;
}

long bpf_dynptr_from_mem(void *data, u64 size, u64 flags, struct bpf_dynptr *ptr)
{
	struct span *span = (void *)ptr;

	*span = (struct span){};
	if (size > SPAN_MAX)
		return -7;
	if (flags)
		return -22;
	*span = (struct span){ .data = data, .size = size };
	return 0;
}

void *bpf_dynptr_data(const struct bpf_dynptr *ptr, u64 offset, u64 len)
{
	return part(ptr, offset, len);
}

long bpf_dynptr_read(void *dst, u64 len, const struct bpf_dynptr *src, u64 offset, u64 flags)
{
	const void *from = part(src, offset, len);

	if (flags || !((const struct span *)src)->data)
		return -22;
	if (!from)
		return -7;
	memmove(dst, from, len);
	return 0;
}

long bpf_dynptr_write(const struct bpf_dynptr *dst, u64 offset, void *src, u64 len, u64 flags)
{
	void *to = part(dst, offset, len);

	if (flags || !((const struct span *)dst)->data)
		return -22;
	if (!to)
		return -7;
	memmove(to, src, len);
	return 0;
}

void *bpf_dynptr_slice(const struct bpf_dynptr *ptr, u64 offset, void *buffer, u64 size)
{
	return part(ptr, offset, size);
}

void *bpf_dynptr_slice_rdwr(const struct bpf_dynptr *ptr, u64 offset, void *buffer, u64 size)
{
	return part(ptr, offset, size);
}

u64 bpf_dynptr_size(const struct bpf_dynptr *ptr)
{
	return ((const struct span *)ptr)->size;
}

bool bpf_dynptr_is_null(const struct bpf_dynptr *ptr)
{
	return !((const struct span *)ptr)->data;
}

long bpf_ringbuf_reserve_dynptr(void *ringbuf, u32 size, u64 flags, struct bpf_dynptr *ptr)
{
	struct span *span = (void *)ptr;

	*span = (struct span){};
	if (flags)
		return -22;
	if (size > SPAN_MAX)
		return -7;
	span->data = bpf_ringbuf_reserve(ringbuf, size, 0);
	if (!span->data)
		return -22;
	span->size = size;
	return 0;
}

void bpf_ringbuf_submit_dynptr(struct bpf_dynptr *ptr, u64 flags)
{
	struct span *span = (void *)ptr;

	if (span->data)
		bpf_ringbuf_submit(span->data, flags);
	*span = (struct span){};
}

void bpf_ringbuf_discard_dynptr(struct bpf_dynptr *ptr, u64 flags)
{
	struct span *span = (void *)ptr;

	if (span->data)
		bpf_ringbuf_discard(span->data, flags);
	*span = (struct span){};
}

/* Most records of one call (BPF_MAX_USER_RINGBUF_SAMPLES). */
#define USER_RECORDS_MAX (128 * 1024)

long bpf_user_ringbuf_drain(void *map, void *callback, void *context, u64 flags)
{
	long (*call)(struct bpf_dynptr *ptr, void *context) = callback;
	long nr = 0;

	while (nr < USER_RECORDS_MAX) {
		struct bpf_dynptr ptr = {};
		struct span *span = (void *)&ptr;
		u32 size = 0;
		long stops;

		span->data = schedlab_user_record(map, &size);
		if (!span->data)
			break;
		span->size = size;
		nr++;
		stops = call(&ptr, context);
		schedlab_free(span->data);
		if (stops)
			break;
	}
	return nr;
}

#endif
