/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Stand-in for libbpf's bpf_helpers.h in native builds: the same macros and helpers under the same
 * names. Helpers are plain functions that the simulator provides (crates/scx-native/src, rt.c); a
 * name that nobody provides is refused when the scheduler is loaded.
 *
 * Left out: helpers that no scheduler can call (networking, tracing of arguments). Loops bound by
 * the verifier (`may_goto`) are bound by the limit of CPU time of a callback.
 */
#ifndef __BPF_HELPERS__
#define __BPF_HELPERS__

#define SEC(name) __attribute__((section(name), used))
#define __kconfig
#define __ksym
/* The loader knows these pointers by their tags: no update of a map overwrites them. */
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __kptr_untrusted __attribute__((btf_type_tag("kptr_untrusted")))
#define __percpu_kptr __attribute__((btf_type_tag("percpu_kptr")))
#define __uptr __attribute__((btf_type_tag("uptr")))
#define __bpf_fastcall
#define __arg_ctx
#define __arg_nonnull
#define __arg_nullable
#define __arg_trusted
#define __arg_untrusted
#define __arg_arena
#define __hidden __attribute__((visibility("hidden")))
#ifndef __weak
#define __weak __attribute__((weak))
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif
#ifndef __always_unused
#define __always_unused __attribute__((unused))
#endif
#ifndef __maybe_unused
#define __maybe_unused __attribute__((unused))
#endif

/* Definitions of maps; the loader reads them from the debug information. */
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
#define __array(name, val) typeof(val) *name[]
#define ___bpf_concat(a, b) a##b
#define ___bpf_apply(fn, n) ___bpf_concat(fn, n)
#define __ulong(name, val)                                              \
	enum { ___bpf_apply(__unique_value, __COUNTER__) = val } name

#ifndef NULL
#define NULL ((void *)0)
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#ifndef container_of
#define container_of(ptr, type, member)                                 \
	((type *)((char *)(ptr) - __builtin_offsetof(type, member)))
#endif
#ifndef KERNEL_VERSION
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#endif
#ifndef barrier
#define barrier() asm volatile("" ::: "memory")
#endif
#ifndef barrier_var
#define barrier_var(var) asm volatile("" : "+r"(var))
#endif
#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#endif
#ifndef unlikely
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
#ifndef READ_ONCE
#define SCHEDLAB_OWN_ONCE 1
#endif
#define __bpf_unreachable() __builtin_trap()

#define bpf_ksym_exists(sym) (!!(sym))

/* The number of arguments, and an array of them as 64-bit words. */
#define ___bpf_nth(_, _1, _2, _3, _4, _5, _6, _7, _8, _9, _a, _b, _c, N, ...) N
#define ___bpf_narg(...)                                                \
	___bpf_nth(_, ##__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ___bpf_fill0(arr, p, x) do {} while (0)
#define ___bpf_fill1(arr, p, x) arr[p] = (unsigned long long)(x)
#define ___bpf_fill2(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill1(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill3(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill2(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill4(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill3(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill5(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill4(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill6(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill5(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill7(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill6(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill8(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill7(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill9(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill8(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill10(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill9(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill11(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill10(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill12(arr, p, x, ...) arr[p] = (unsigned long long)(x); \
	___bpf_fill11(arr, p + 1, __VA_ARGS__)
#define ___bpf_fill(arr, args...)                                       \
	___bpf_apply(___bpf_fill, ___bpf_narg(args))(arr, 0, ##args)

/* Text goes to the simulator as a format and its arguments, as it goes to the kernel. */
#define SCHEDLAB_WITH_ARGS(call, args...)                               \
	({                                                              \
		unsigned long long ___data[___bpf_narg(args) ?: 1] = {}; \
		_Pragma("GCC diagnostic push")                          \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")  \
		___bpf_fill(___data, args);                             \
		_Pragma("GCC diagnostic pop")                           \
		call;                                                   \
	})
#define bpf_printk(fmt, args...)                                        \
	SCHEDLAB_WITH_ARGS(bpf_trace_vprintk(fmt, sizeof(fmt), ___data, \
					     ___bpf_narg(args) * 8), ##args)
#define BPF_SNPRINTF(out, out_size, fmt, args...)                       \
	SCHEDLAB_WITH_ARGS(bpf_snprintf(out, out_size, fmt, ___data,    \
					___bpf_narg(args) * 8), ##args)
#define bpf_stream_printk(id, fmt, args...) bpf_printk(fmt, ##args)

/* Loops. The bounds are read as libbpf reads them: once for the range, and again each time. */
#define bpf_for(i, start, end)                                          \
	for (int ___first = (start), ___end = (end), ___i = ___first;   \
	     ___i < ___end && ((i) = ___i, (i) >= (start) && (i) < (end)); ___i++)
#define bpf_repeat(N) for (int ___i = 0, ___end = (N); ___i < ___end; ___i++)
#define bpf_for_each(type, cur, args...)                                \
	for (struct bpf_iter_##type ___it                               \
		     __attribute__((aligned(8), cleanup(bpf_iter_##type##_destroy))), \
		     *___p __attribute__((unused)) = (                  \
			     bpf_iter_##type##_new(&___it, ##args), (void *)0); \
	     ((cur) = bpf_iter_##type##_next(&___it));)

#define BPF_MAX_LOOPS (1U << 23)

/* Elements of maps. */
void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(void *map, const void *key);
void *bpf_map_lookup_percpu_elem(void *map, const void *key, __u32 cpu);
long bpf_map_push_elem(void *map, const void *value, __u64 flags);
long bpf_map_pop_elem(void *map, void *value);
long bpf_map_peek_elem(void *map, void *value);
long bpf_for_each_map_elem(void *map, void *callback_fn, void *callback_ctx, __u64 flags);
void *bpf_task_storage_get(void *map, struct task_struct *task, void *value, __u64 flags);
long bpf_task_storage_delete(void *map, struct task_struct *task);
void *bpf_cgrp_storage_get(void *map, struct cgroup *cgroup, void *value, __u64 flags);
long bpf_cgrp_storage_delete(void *map, struct cgroup *cgroup);
void *bpf_kptr_xchg(void *dst, void *ptr);
#define bpf_kptr_xchg(dst, ptr) ((typeof(*(dst)))(bpf_kptr_xchg)(dst, ptr))
long bpf_ringbuf_output(void *ringbuf, void *data, __u64 size, __u64 flags);
void *bpf_ringbuf_reserve(void *ringbuf, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void *data, __u64 flags);
void bpf_ringbuf_discard(void *data, __u64 flags);
__u64 bpf_ringbuf_query(void *ringbuf, __u64 flags);
long bpf_user_ringbuf_drain(void *map, void *callback_fn, void *ctx, __u64 flags);

/* Hardware counters: no user program opens one here, so each read finds none. */
long bpf_perf_event_read_value(void *map, __u64 flags, struct bpf_perf_event_value *buf,
			       __u32 buf_size);
__u64 bpf_perf_event_read(void *map, __u64 flags);
long bpf_perf_event_output(void *ctx, void *map, __u64 flags, void *data, __u64 size);

/* Memory with bounds that are checked at run time. */
long bpf_dynptr_from_mem(void *data, __u64 size, __u64 flags, struct bpf_dynptr *ptr);
long bpf_dynptr_read(void *dst, __u64 len, const struct bpf_dynptr *src, __u64 offset,
		     __u64 flags);
long bpf_dynptr_write(const struct bpf_dynptr *dst, __u64 offset, void *src, __u64 len,
		      __u64 flags);
void *bpf_dynptr_data(const struct bpf_dynptr *ptr, __u64 offset, __u64 len);
long bpf_ringbuf_reserve_dynptr(void *ringbuf, __u32 size, __u64 flags, struct bpf_dynptr *ptr);
void bpf_ringbuf_submit_dynptr(struct bpf_dynptr *ptr, __u64 flags);
void bpf_ringbuf_discard_dynptr(struct bpf_dynptr *ptr, __u64 flags);

/* Time, place, chance, current task. */
__u64 bpf_ktime_get_ns(void);
__u64 bpf_ktime_get_boot_ns(void);
__u64 bpf_ktime_get_coarse_ns(void);
__u64 bpf_ktime_get_tai_ns(void);
__u64 bpf_jiffies64(void);
__u32 bpf_get_smp_processor_id(void);
long bpf_get_numa_node_id(void);
__u32 bpf_get_prandom_u32(void);
__u64 bpf_get_current_task(void);
struct task_struct *bpf_get_current_task_btf(void);
__u64 bpf_get_current_pid_tgid(void);
__u64 bpf_get_current_uid_gid(void);
__u64 bpf_get_current_cgroup_id(void);
long bpf_get_current_comm(void *buf, __u32 size_of_buf);
void *bpf_per_cpu_ptr(const void *percpu_ptr, __u32 cpu);
void *bpf_this_cpu_ptr(const void *percpu_ptr);

/* Timers. */
long bpf_timer_init(struct bpf_timer *timer, void *map, __u64 flags);
long bpf_timer_set_callback(struct bpf_timer *timer, void *callback_fn);
long bpf_timer_start(struct bpf_timer *timer, __u64 nsecs, __u64 flags);
long bpf_timer_cancel(struct bpf_timer *timer);

/* Locks: one task runs at a time, so nobody ever waits. Taking a held one is an error. */
long bpf_spin_lock(struct bpf_spin_lock *lock);
long bpf_spin_unlock(struct bpf_spin_lock *lock);

/* Memory and text. */
long bpf_probe_read_kernel(void *dst, __u32 size, const void *unsafe_ptr);
long bpf_probe_read_kernel_str(void *dst, __u32 size, const void *unsafe_ptr);
long bpf_probe_read(void *dst, __u32 size, const void *unsafe_ptr);
long bpf_probe_read_user(void *dst, __u32 size, const void *unsafe_ptr);
long bpf_probe_read_str(void *dst, __u32 size, const void *unsafe_ptr);
long bpf_copy_from_user(void *dst, __u32 size, const void *user_ptr);
long bpf_trace_vprintk(const char *fmt, __u32 fmt_size, const void *data, __u32 data_len);
long bpf_trace_printk(const char *fmt, __u32 fmt_size, ...);
long bpf_snprintf(char *str, __u32 str_size, const char *fmt, __u64 *data, __u32 data_len);
long bpf_strncmp(const char *s1, __u32 s1_sz, const char *s2);
long bpf_strtol(const char *buf, unsigned long buf_len, __u64 flags, long *res);
long bpf_strtoul(const char *buf, unsigned long buf_len, __u64 flags, unsigned long *res);
long bpf_loop(__u32 nr_loops, void *callback_fn, void *callback_ctx, __u64 flags);
long bpf_seq_write(struct seq_file *m, const void *data, __u32 len);
long bpf_seq_printf(struct seq_file *m, const char *fmt, __u32 fmt_size, const void *data,
		    __u32 data_len);

/* Of programs that are attached to functions of the kernel; none is called here. */
long bpf_get_func_ret(void *ctx, __u64 *value);
long bpf_get_func_arg(void *ctx, __u32 n, __u64 *value);
__u64 bpf_get_func_ip(void *ctx);
__u64 bpf_get_attach_cookie(void *ctx);
long bpf_send_signal(__u32 sig);
long bpf_send_signal_thread(__u32 sig);
long bpf_override_return(struct pt_regs *regs, __u64 rc);

/* The helpers that schedulers call most, without a call. */
#include "schedlab/quick.h"

#define bpf_map_lookup_elem(args...) schedlab_quick_lookup(args)
#define bpf_task_storage_get(args...) schedlab_quick_storage(args)
#define bpf_ktime_get_ns() (schedlab_call.now_ns)

#endif
