// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a natively compiled scheduler gets from C: memory functions (nothing else is linked),
 * masks, trees, lists, locks, bits, and tables that the loader reads. Everything that needs
 * the modelled kernel or a map is in crates/scx-native/src.
 *
 * It is compiled with every scheduler and loaded once for each run: a run's state is in its copy.
 * Semantics: kernel/bpf/cpumask.c, kernel/bpf/helpers.c of Linux 6.18. The tree is not the
 * kernel's: equal keys stay in the order of insertion, which the kernel's has too, and its shape
 * is not visible.
 */
#include "vmlinux.h"
#include "schedlab/quick.h"

#define NULL ((void *)0)
#define NR_WORDS (SCHEDLAB_NR_CPUS / 64)

/* Filled in by the loader. */
u32 schedlab_nr_cpus;

struct schedlab_call schedlab_call;

/*
 * The kernel's configuration, as Debian builds it; each word is as wide as any declaration of it.
 * The loader writes CONFIG_HZ. CONFIG_NR_CPUS is what a mask of the model holds.
 */
int LINUX_KERNEL_VERSION = ((SCHEDLAB_KERNEL / 100) << 16) + ((SCHEDLAB_KERNEL % 100) << 8);
u64 CONFIG_HZ = 250;
u64 CONFIG_NR_CPUS = SCHEDLAB_NR_CPUS;
u64 CONFIG_X86_64 = 1;
u64 CONFIG_64BIT = 1;
u64 CONFIG_SMP = 1;
u64 CONFIG_NUMA = 1;
u64 CONFIG_NO_HZ_COMMON = 1;
u64 CONFIG_NO_HZ_IDLE = 1;
u64 CONFIG_HIGH_RES_TIMERS = 1;
u64 CONFIG_PREEMPT_RCU = 1;
u64 CONFIG_PREEMPT_DYNAMIC = 1;
u64 CONFIG_FAIR_GROUP_SCHED = 1;
u64 CONFIG_CGROUP_SCHED = 1;
u64 CONFIG_CFS_BANDWIDTH = 1;
u64 CONFIG_SCHED_SMT = 1;
u64 CONFIG_SCHED_CLASS_EXT = 1;
u64 CONFIG_EXT_GROUP_SCHED = 1;
u64 CONFIG_BPF_JIT = 1;
char CONFIG_LOCALVERSION[64] = "-schedlab";
char CONFIG_CC_VERSION_TEXT[64] = __VERSION__;

/* What BPF_CORE_READ() reads behind a null pointer. */
const unsigned char schedlab_zeroes[4096] __attribute__((aligned(16)));

/* Frequency drivers: the model has none. */
struct cpufreq_policy *cpufreq_cpu_data[SCHEDLAB_NR_CPUS];

/* Tells interrupts from tasks (bpf_in_hardirq() of scx). bpf_this_cpu_ptr() fills it in. */
int __preempt_count[SCHEDLAB_NR_CPUS];

/* Stands for the kernel's per-CPU variable; bpf_per_cpu_ptr() gives the struct of a CPU. */
struct rq runqueues;

/* Ends the callback: the scheduler broke a rule that the verifier would have enforced. */
_Noreturn void schedlab_broken(const char *what, const void *returns_to);
#define BROKEN(what) schedlab_broken(what, __builtin_return_address(0))
void *schedlab_alloc(u64 size);
void schedlab_free(void *object);

/* ---- what needs no call into the simulator ---- */

u64 bpf_ktime_get_ns(void) { return schedlab_call.now_ns; }
u64 bpf_ktime_get_boot_ns(void) { return schedlab_call.now_ns; }
u64 bpf_ktime_get_coarse_ns(void) { return schedlab_call.now_ns; }
u64 bpf_ktime_get_tai_ns(void) { return schedlab_call.now_ns; }
u64 scx_bpf_now(void) { return schedlab_call.rq_now_ns; }
u32 bpf_get_smp_processor_id(void) { return schedlab_call.cpu; }

void *bpf_map_lookup_elem(void *map, const void *key)
{
	return schedlab_quick_lookup(map, key);
}

void *bpf_task_storage_get(void *map, struct task_struct *p, void *value, u64 flags)
{
	return schedlab_quick_storage(map, p, value, flags);
}

#ifdef SCHEDLAB_CHECKS
#include "schedlab/frames.h"
#else
/* ---- memory; the loops must not be turned into calls of these very functions ---- */

void *memset(void *s, int c, size_t n)
{
	unsigned char *p = s;

	for (size_t i = 0; i < n; i++) {
		p[i] = c;
		asm volatile("" : "+r"(i));
	}
	return s;
}

void *memcpy(void *dst, const void *src, size_t n)
{
	unsigned char *d = dst;
	const unsigned char *s = src;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		u64 word;

		__builtin_memcpy_inline(&word, s + i, 8);
		__builtin_memcpy_inline(d + i, &word, 8);
		asm volatile("" : "+r"(i));
	}
	for (; i < n; i++) {
		d[i] = s[i];
		asm volatile("" : "+r"(i));
	}
	return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
	unsigned char *d = dst;
	const unsigned char *s = src;

	if (d <= s)
		return memcpy(dst, src, n);
	while (n--) {
		d[n] = s[n];
		asm volatile("" : "+r"(n));
	}
	return dst;
}
#endif

int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < n; i++)
		if (x[i] != y[i])
			return x[i] - y[i];
	return 0;
}

int bcmp(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n);
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* ---- masks ---- */

static u32 nr_words(void)
{
	return (schedlab_nr_cpus + 63) / 64;
}

static u64 word_mask(u32 word)
{
	u32 left = schedlab_nr_cpus - word * 64;

	return left >= 64 ? ~0ULL : (1ULL << left) - 1;
}

u32 bpf_cpumask_first(const struct cpumask *mask)
{
	for (u32 i = 0; i < nr_words(); i++)
		if (mask->bits[i] & word_mask(i))
			return i * 64 + __builtin_ctzll(mask->bits[i] & word_mask(i));
	return schedlab_nr_cpus;
}

u32 bpf_cpumask_first_zero(const struct cpumask *mask)
{
	for (u32 i = 0; i < nr_words(); i++)
		if (~mask->bits[i] & word_mask(i))
			return i * 64 + __builtin_ctzll(~mask->bits[i] & word_mask(i));
	return schedlab_nr_cpus;
}

u32 bpf_cpumask_first_and(const struct cpumask *a, const struct cpumask *b)
{
	for (u32 i = 0; i < nr_words(); i++)
		if (a->bits[i] & b->bits[i] & word_mask(i))
			return i * 64 + __builtin_ctzll(a->bits[i] & b->bits[i] & word_mask(i));
	return schedlab_nr_cpus;
}

void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	if (cpu < schedlab_nr_cpus)
		mask->cpumask.bits[cpu / 64] |= 1ULL << (cpu % 64);
}

void bpf_cpumask_clear_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	if (cpu < schedlab_nr_cpus)
		mask->cpumask.bits[cpu / 64] &= ~(1ULL << (cpu % 64));
}

bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask)
{
	return cpu < schedlab_nr_cpus && mask->bits[cpu / 64] >> (cpu % 64) & 1;
}

bool bpf_cpumask_test_and_set_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	bool was = bpf_cpumask_test_cpu(cpu, &mask->cpumask);

	bpf_cpumask_set_cpu(cpu, mask);
	return was;
}

bool bpf_cpumask_test_and_clear_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	bool was = bpf_cpumask_test_cpu(cpu, &mask->cpumask);

	bpf_cpumask_clear_cpu(cpu, mask);
	return was;
}

void bpf_cpumask_setall(struct bpf_cpumask *mask)
{
	for (u32 i = 0; i < nr_words(); i++)
		mask->cpumask.bits[i] = word_mask(i);
}

void bpf_cpumask_clear(struct bpf_cpumask *mask)
{
	for (u32 i = 0; i < NR_WORDS; i++)
		mask->cpumask.bits[i] = 0;
}

bool bpf_cpumask_and(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b)
{
	u64 any = 0;

	for (u32 i = 0; i < nr_words(); i++)
		any |= dst->cpumask.bits[i] = a->bits[i] & b->bits[i];
	return any != 0;
}

void bpf_cpumask_or(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b)
{
	for (u32 i = 0; i < nr_words(); i++)
		dst->cpumask.bits[i] = a->bits[i] | b->bits[i];
}

void bpf_cpumask_xor(struct bpf_cpumask *dst, const struct cpumask *a, const struct cpumask *b)
{
	for (u32 i = 0; i < nr_words(); i++)
		dst->cpumask.bits[i] = a->bits[i] ^ b->bits[i];
}

bool bpf_cpumask_equal(const struct cpumask *a, const struct cpumask *b)
{
	for (u32 i = 0; i < nr_words(); i++)
		if ((a->bits[i] ^ b->bits[i]) & word_mask(i))
			return false;
	return true;
}

bool bpf_cpumask_intersects(const struct cpumask *a, const struct cpumask *b)
{
	for (u32 i = 0; i < nr_words(); i++)
		if (a->bits[i] & b->bits[i] & word_mask(i))
			return true;
	return false;
}

bool bpf_cpumask_subset(const struct cpumask *a, const struct cpumask *b)
{
	for (u32 i = 0; i < nr_words(); i++)
		if (a->bits[i] & ~b->bits[i] & word_mask(i))
			return false;
	return true;
}

bool bpf_cpumask_empty(const struct cpumask *mask)
{
	return bpf_cpumask_first(mask) >= schedlab_nr_cpus;
}

bool bpf_cpumask_full(const struct cpumask *mask)
{
	return bpf_cpumask_first_zero(mask) >= schedlab_nr_cpus;
}

void bpf_cpumask_copy(struct bpf_cpumask *dst, const struct cpumask *src)
{
	for (u32 i = 0; i < nr_words(); i++)
		dst->cpumask.bits[i] = src->bits[i];
}

u32 bpf_cpumask_weight(const struct cpumask *mask)
{
	u32 weight = 0;

	for (u32 i = 0; i < nr_words(); i++)
		weight += __builtin_popcountll(mask->bits[i] & word_mask(i));
	return weight;
}

int bpf_cpumask_populate(struct bpf_cpumask *dst, void *src, size_t size)
{
	u32 bytes = (schedlab_nr_cpus + 7) / 8;

	if (size < bytes || (size > sizeof(struct cpumask)))
		return -13;
	memcpy(dst->cpumask.bits, src, size < sizeof(struct cpumask) ? size : sizeof(struct cpumask));
	return 0;
}

/* The next CPU after the one that the last call gave, around the mask. */
static u32 distribute(const struct cpumask *a, const struct cpumask *b)
{
	static u32 last;

	for (u32 i = 1; i <= schedlab_nr_cpus; i++) {
		u32 cpu = (last + i) % schedlab_nr_cpus;

		if (bpf_cpumask_test_cpu(cpu, a) && bpf_cpumask_test_cpu(cpu, b))
			return last = cpu;
	}
	return schedlab_nr_cpus;
}

u32 bpf_cpumask_any_distribute(const struct cpumask *mask)
{
	return distribute(mask, mask);
}

u32 bpf_cpumask_any_and_distribute(const struct cpumask *a, const struct cpumask *b)
{
	return distribute(a, b);
}

struct bpf_cpumask *bpf_cpumask_create(void)
{
	struct bpf_cpumask *mask = schedlab_alloc(sizeof(*mask));

	if (mask)
		mask->usage.refs = 1;
	return mask;
}

struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *mask)
{
	mask->usage.refs++;
	return mask;
}

void bpf_cpumask_release(struct bpf_cpumask *mask)
{
	if (mask->usage.refs == 0)
		BROKEN("bpf_cpumask_release of a mask that was released before");
	if (--mask->usage.refs == 0)
		schedlab_free(mask);
}

/* ---- bits of words, and numbers ---- */

struct bits_iter {
	const u64 *words;
	u32 nr_bits;
	int bit;
};

int bpf_iter_bits_new(struct bpf_iter_bits *it, const u64 *words, u32 nr_words)
{
	struct bits_iter *bits = (void *)it;

	bits->words = words;
	bits->nr_bits = words && nr_words <= 511 ? nr_words * 64 : 0;
	bits->bit = -1;
	if (!words || !nr_words)
		return -22;
	return nr_words > 511 ? -7 : 0;
}

int *bpf_iter_bits_next(struct bpf_iter_bits *it)
{
	struct bits_iter *bits = (void *)it;

	for (u32 bit = bits->bit + 1; bit < bits->nr_bits; bit++) {
		u64 rest = bits->words[bit / 64] >> (bit % 64);

		if (rest) {
			bit += __builtin_ctzll(rest);
			bits->bit = bit;
			return &bits->bit;
		}
		bit |= 63;
	}
	bits->nr_bits = 0;
	return NULL;
}

void bpf_iter_bits_destroy(struct bpf_iter_bits *it)
{
	((struct bits_iter *)it)->nr_bits = 0;
}

/* ---- locks: a callback is never interrupted by another, so a held lock is held by itself ---- */

long bpf_spin_lock(struct bpf_spin_lock *lock)
{
	if (lock->val)
		BROKEN("bpf_spin_lock of a lock that is held already");
	lock->val = 1;
	return 0;
}

long bpf_spin_unlock(struct bpf_spin_lock *lock)
{
	if (!lock->val)
		BROKEN("bpf_spin_unlock of a lock that is not held");
	lock->val = 0;
	return 0;
}

int bpf_res_spin_lock(struct bpf_res_spin_lock *lock)
{
	if (lock->val)
		return -35;
	lock->val = 1;
	return 0;
}

void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock)
{
	if (!lock->val)
		BROKEN("bpf_res_spin_unlock of a lock that is not held");
	lock->val = 0;
}

int bpf_res_spin_lock_irqsave(struct bpf_res_spin_lock *lock, unsigned long *flags)
{
	*flags = 0;
	return bpf_res_spin_lock(lock);
}

void bpf_res_spin_unlock_irqrestore(struct bpf_res_spin_lock *lock, unsigned long *flags)
{
	bpf_res_spin_unlock(lock);
}

void bpf_rcu_read_lock(void) {}
void bpf_rcu_read_unlock(void) {}
void bpf_preempt_disable(void) {}
void bpf_preempt_enable(void) {}
void bpf_local_irq_save(unsigned long *flags) { *flags = 0; }
void bpf_local_irq_restore(unsigned long *flags) {}

/* ---- loops and pointers ---- */

long bpf_loop(u32 nr_loops, void *callback_fn, void *callback_ctx, u64 flags)
{
	long (*callback)(u64, void *) = callback_fn;
	u32 i = 0;

	if (flags)
		return -22;
	if (nr_loops > 1U << 23)
		return -7;
	while (i < nr_loops)
		if (callback(i++, callback_ctx))
			break;
	return i;
}

void *bpf_kptr_xchg(void *dst, void *ptr)
{
	void **place = dst, *old = *place;

	*place = ptr;
	return old;
}

/* ---- trees: an AVL tree; words of a node: left, right, parent, height ---- */

struct node {
	struct node *left, *right, *parent;
	/* 0: in no tree. */
	u64 height;
};

struct root {
	struct node *top;
	u64 unused;
};

static u64 height(const struct node *n)
{
	return n ? n->height : 0;
}

static void measure(struct node *n)
{
	u64 left = height(n->left), right = height(n->right);

	n->height = (left > right ? left : right) + 1;
}

static void replace(struct root *root, struct node *old, struct node *new)
{
	struct node *parent = old->parent;

	if (!parent)
		root->top = new;
	else if (parent->left == old)
		parent->left = new;
	else
		parent->right = new;
	if (new)
		new->parent = parent;
}

static struct node *rotate_left(struct root *root, struct node *n)
{
	struct node *up = n->right;

	replace(root, n, up);
	n->right = up->left;
	if (n->right)
		n->right->parent = n;
	up->left = n;
	n->parent = up;
	measure(n);
	measure(up);
	return up;
}

static struct node *rotate_right(struct root *root, struct node *n)
{
	struct node *up = n->left;

	replace(root, n, up);
	n->left = up->right;
	if (n->left)
		n->left->parent = n;
	up->right = n;
	n->parent = up;
	measure(n);
	measure(up);
	return up;
}

static void rebalance(struct root *root, struct node *n)
{
	while (n) {
		u64 left = height(n->left), right = height(n->right);

		if (left > right + 1) {
			if (height(n->left->left) < height(n->left->right))
				rotate_left(root, n->left);
			n = rotate_right(root, n);
		} else if (right > left + 1) {
			if (height(n->right->right) < height(n->right->left))
				rotate_right(root, n->right);
			n = rotate_left(root, n);
		} else {
			measure(n);
		}
		n = n->parent;
	}
}

typedef bool less_fn(struct bpf_rb_node *a, const struct bpf_rb_node *b);

int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node, less_fn *less,
			void *meta, u64 off)
{
	struct root *tree = (void *)root;
	struct node *new = (void *)node, *at = tree->top, *parent = NULL;
	bool left = false;

	if (new->height)
		return -22;
	while (at) {
		parent = at;
		left = less(node, (void *)at);
		at = left ? at->left : at->right;
	}
	new->left = new->right = NULL;
	new->parent = parent;
	new->height = 1;
	if (!parent)
		tree->top = new;
	else if (left)
		parent->left = new;
	else
		parent->right = new;
	rebalance(tree, parent);
	return 0;
}

struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root)
{
	struct node *n = ((struct root *)root)->top;

	while (n && n->left)
		n = n->left;
	return (void *)n;
}

struct bpf_rb_node *bpf_rbtree_root(struct bpf_rb_root *root)
{
	return (void *)((struct root *)root)->top;
}

struct bpf_rb_node *bpf_rbtree_left(struct bpf_rb_root *root, struct bpf_rb_node *node)
{
	return (void *)((struct node *)node)->left;
}

struct bpf_rb_node *bpf_rbtree_right(struct bpf_rb_root *root, struct bpf_rb_node *node)
{
	return (void *)((struct node *)node)->right;
}

static bool is_in_tree(const struct root *root, const struct node *n)
{
	while (n->parent)
		n = n->parent;
	return root->top == n;
}

struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node)
{
	struct root *tree = (void *)root;
	struct node *n = (void *)node, *from;

	if (!n || !n->height || !is_in_tree(tree, n))
		return NULL;
	if (n->left && n->right) {
		struct node *next = n->right;

		while (next->left)
			next = next->left;
		from = next->parent == n ? next : next->parent;
		replace(tree, next, next->right);
		next->left = n->left;
		next->left->parent = next;
		next->right = n->right;
		if (next->right)
			next->right->parent = next;
		replace(tree, n, next);
	} else {
		from = n->parent;
		replace(tree, n, n->left ? n->left : n->right);
	}
	rebalance(tree, from);
	n->left = n->right = n->parent = NULL;
	n->height = 0;
	return node;
}

/* ---- lists: words of a node: next, previous, the head that it is in ---- */

struct link {
	struct link *next, *prev;
	void *head;
};

struct head {
	struct link *first, *last;
};

int bpf_list_push_front_impl(struct bpf_list_head *list, struct bpf_list_node *node, void *meta,
			     u64 off)
{
	struct head *head = (void *)list;
	struct link *new = (void *)node;

	if (new->head)
		return -22;
	*new = (struct link){ .next = head->first, .head = head };
	if (head->first)
		head->first->prev = new;
	else
		head->last = new;
	head->first = new;
	return 0;
}

int bpf_list_push_back_impl(struct bpf_list_head *list, struct bpf_list_node *node, void *meta,
			    u64 off)
{
	struct head *head = (void *)list;
	struct link *new = (void *)node;

	if (new->head)
		return -22;
	*new = (struct link){ .prev = head->last, .head = head };
	if (head->last)
		head->last->next = new;
	else
		head->first = new;
	head->last = new;
	return 0;
}

static struct link *unlink(struct head *head, struct link *n)
{
	if (!n)
		return NULL;
	if (n->prev)
		n->prev->next = n->next;
	else
		head->first = n->next;
	if (n->next)
		n->next->prev = n->prev;
	else
		head->last = n->prev;
	*n = (struct link){};
	return n;
}

struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *list)
{
	struct head *head = (void *)list;

	return (void *)unlink(head, head->first);
}

struct bpf_list_node *bpf_list_pop_back(struct bpf_list_head *list)
{
	struct head *head = (void *)list;

	return (void *)unlink(head, head->last);
}

struct bpf_list_node *bpf_list_front(struct bpf_list_head *list)
{
	return (void *)((struct head *)list)->first;
}

struct bpf_list_node *bpf_list_back(struct bpf_list_head *list)
{
	return (void *)((struct head *)list)->last;
}

/* ---- objects; a count of references stands before each ---- */

void *bpf_obj_new_impl(u64 size, void *meta)
{
	u64 *object = schedlab_alloc(size + 16);

	if (!object)
		return NULL;
	object[0] = 1;
	return object + 2;
}

void *bpf_refcount_acquire_impl(void *object, void *meta)
{
	((u64 *)object)[-2]++;
	return object;
}

void bpf_obj_drop_impl(void *object, void *meta)
{
	u64 *refs = (u64 *)object - 2;

	if (!object)
		return;
	if (!refs[0])
		BROKEN("bpf_obj_drop of an object that was dropped before");
	if (!--refs[0])
		schedlab_free(refs);
}

void *bpf_percpu_obj_new_impl(u64 size, void *meta)
{
	return schedlab_alloc(((size + 7) & ~7ULL) * schedlab_nr_cpus);
}

#include "schedlab/dynptr.h"

/* ---- questions about the kernel ---- */

struct named {
	const char *name;
	u64 value;
	u32 since;
};

#define VALUE(name, value, since) { #name, value, since },
#define LIST(tag, list) list(VALUE)
const struct named schedlab_enums[] = { SCHEDLAB_SCX_ENUMS(LIST) { NULL, 0, 0 } };

/* Types and fields that are younger than 6.12, the oldest release with sched_ext. */
static const struct named young_types[] = {
	{ "struct scx_bpf_dsq_insert_vtime_args", 0, 619 },
	{ "struct scx_bpf_select_cpu_and_args", 0, 619 },
	{ "struct scx_event_stats", 0, 615 },
	{ "struct scx_cmask", 0, 702 },
	{ "struct scx_cid_topo", 0, 702 },
	{ "struct sched_ext_ops_cid", 0, 702 },
	{ NULL, 0, 0 },
};

static const struct named young_fields[] = {
	{ "exit_cpu", 0, 702 },
	{ "cgroup_set_bandwidth", 0, 617 },
	{ "cgroup_set_idle", 0, 619 },
	{ "sub_cgroup_id", 0, 701 },
	{ "sub_attach", 0, 701 },
	{ "bw_period_us", 0, 617 },
	{ "bw_quota_us", 0, 617 },
	{ "bw_burst_us", 0, 617 },
	{ "tid", 0, 702 },
	{ "priv", 0, 615 },
	{ "SCX_EV_REENQ_IMMED", 0, 701 },
	{ "SCX_EV_REENQ_LOCAL_REPEAT", 0, 701 },
	{ "SCX_EV_INSERT_NOT_OWNED", 0, 701 },
	{ "SCX_EV_SUB_BYPASS_DISPATCH", 0, 701 },
	{ "SCX_EV_REENQ_REPEAT", 0, 703 },
	{ "SCX_EV_SLICE_CLAMPED", 0, 703 },
	{ "SCX_EV_SLICE_DENIED", 0, 703 },
	{ "SCX_EV_SUB_FORCED_ADMIT", 0, 703 },
	{ "SCX_EV_SUB_PREEMPT_DENIED", 0, 703 },
	{ "SCX_EV_SUB_KICK_DENIED", 0, 703 },
	{ "SCX_EV_SUB_REENQ_DENIED", 0, 703 },
	{ "SCX_EV_SUB_CIDPERF_DENIED", 0, 703 },
	{ "SCX_EV_SUB_RESCUE", 0, 703 },
	{ "sub_caps_updated", 0, 703 },
	{ "sub_ecaps_updated", 0, 703 },
	{ "init_cids", 0, 703 },
	{ "cid_shard_size", 0, 703 },
	{ "rescue_bandwidth_ppt", 0, 703 },
	{ "rescue_quantum_us", 0, 703 },
	{ "cmask_arena_addr", 0, 703 },
	{ "shard_cid", 0, 703 },
	{ "shard_idx", 0, 703 },
	{ "cluster_cid", 0, 704 },
	{ "cluster_idx", 0, 704 },
	{ "reenq_reason_caps", 0, 703 },
	{ "reenq_reason_cid", 0, 703 },
	{ "prev_steal_time_rq", 0, 9999 },
	{ NULL, 0, 0 },
};

static int exists(const struct named *list, const char *name, int otherwise)
{
	for (; list->name; list++)
		if (same(list->name, name))
			return list->since <= SCHEDLAB_KERNEL;
	return otherwise;
}

int schedlab_core_type_exists(const char *name)
{
	size_t n = strlen(name);

	/* A private copy of a type, as CO-RE allows: its ending does not count. */
	for (size_t i = 1; i + 3 < n; i++)
		if (name[i] == '_' && name[i + 1] == '_' && name[i + 2] == '_')
			return 0;
	return exists(young_types, name, 1);
}

int schedlab_core_field_exists(const char *name)
{
	const char *last = name;

	for (; *name; name++)
		if (*name == '>' || *name == '.' || *name == ' ' || *name == ',')
			last = name + 1;
	return exists(young_fields, last, 1);
}

int schedlab_core_enum_value_exists(const char *name)
{
	/* Headers that fill `__SCX_X` in by hand define X as that. */
	if (same("__SCX_ENQ_INTERNAL_MASK", name))
		return 1;
	if (name[0] == '_' && name[1] == '_' && name[2] == 'S')
		name += 2;
	return exists(schedlab_enums, name, 0);
}

/* ---- layouts that the loader checks its own against (crates/scx-native/src/layout.rs) ---- */

#define AT(field) __builtin_offsetof(struct task_struct, field)
const u32 schedlab_task_layout[] = {
	sizeof(struct task_struct),
	AT(thread_info.cpu), AT(__state), AT(flags), AT(on_cpu), AT(on_rq),
	AT(prio), AT(static_prio), AT(normal_prio), AT(rt_priority), AT(policy),
	AT(wake_cpu), AT(recent_used_cpu), AT(nr_cpus_allowed), AT(cpus_ptr), AT(cpus_mask),
	AT(se.sum_exec_runtime), AT(scx), AT(sched_task_group), AT(pid), AT(tgid),
	AT(real_parent), AT(parent), AT(group_leader), AT(mm), AT(utime), AT(nvcsw), AT(nivcsw),
	AT(start_time), AT(comm), AT(cgroups), AT(schedlab_task), AT(last_wakee),
	AT(se.load.weight), AT(exit_state), AT(real_cred), AT(cred), AT(start_boottime),
	AT(schedlab_storage),
};

#define ENTITY(field) __builtin_offsetof(struct sched_ext_entity, field)
const u32 schedlab_entity_layout[] = {
	ENTITY(slice), ENTITY(dsq_vtime), ENTITY(weight), ENTITY(flags), ENTITY(disallow),
	ENTITY(tid),
};

#define GROUP(field) __builtin_offsetof(struct cgroup, field)
const u32 schedlab_cgroup_layout[] = {
	sizeof(struct cgroup), GROUP(self.cgroup), GROUP(self.parent), GROUP(level), GROUP(kn),
	GROUP(subsys), GROUP(ancestors), GROUP(dom_cgrp),
	__builtin_offsetof(struct cgroup_subsys_state, cgroup), sizeof(struct cpuset),
	__builtin_offsetof(struct cpuset, cpus_allowed),
};

#define RQ(field) __builtin_offsetof(struct rq, field)
const u32 schedlab_rq_layout[] = {
	sizeof(struct rq), RQ(nr_running), RQ(curr), RQ(idle), RQ(clock), RQ(clock_task), RQ(cpu),
	RQ(online), RQ(cpu_capacity), RQ(clock_pelt),
};

#define OP(field) __builtin_offsetof(struct sched_ext_ops, field)
#define SAME_PLACE(field, of_cid)                                                       \
	_Static_assert(OP(field) == __builtin_offsetof(struct sched_ext_ops_cid, of_cid), \
		       "a member of sched_ext_ops_cid has another place")
SAME_PLACE(select_cpu, select_cid);
SAME_PLACE(set_cpumask, set_cmask);
SAME_PLACE(update_idle, update_idle);
SAME_PLACE(dump_cpu, dump_cid);
SAME_PLACE(cpu_offline, cid_offline);
SAME_PLACE(cgroup_init, SCHEDLAB_CGROUP(init));
SAME_PLACE(cgroup_set_idle, SCHEDLAB_CGROUP(set_idle));
SAME_PLACE(init_cids, init_cids);
SAME_PLACE(sub_cgroup_id, sub_cgroup_id);
SAME_PLACE(priv, priv);

const struct named schedlab_ops_layout[] = {
	{ "dispatch_max_batch", OP(dispatch_max_batch), 0 },
	{ "flags", OP(flags), 0 },
	{ "timeout_ms", OP(timeout_ms), 0 },
	{ "exit_dump_len", OP(exit_dump_len), 0 },
	{ "name", OP(name), 0 },
	{ "cid_shard_size", OP(cid_shard_size), 0 },
	{ "sub_cgroup_id", OP(sub_cgroup_id), 0 },
#define CALLBACK(name) { #name, OP(name), 1 },
	CALLBACK(select_cpu) CALLBACK(enqueue) CALLBACK(dequeue) CALLBACK(dispatch) CALLBACK(tick)
	CALLBACK(runnable) CALLBACK(running) CALLBACK(stopping) CALLBACK(quiescent) CALLBACK(yield)
	CALLBACK(core_sched_before) CALLBACK(set_weight) CALLBACK(set_cpumask)
	CALLBACK(update_idle) CALLBACK(cpu_acquire) CALLBACK(cpu_release) CALLBACK(init_task)
	CALLBACK(exit_task) CALLBACK(enable) CALLBACK(disable) CALLBACK(dump) CALLBACK(dump_cpu)
	CALLBACK(dump_task) CALLBACK(cgroup_init) CALLBACK(cgroup_exit) CALLBACK(cgroup_prep_move)
	CALLBACK(cgroup_move) CALLBACK(cgroup_cancel_move) CALLBACK(cgroup_set_weight)
	CALLBACK(cgroup_set_bandwidth) CALLBACK(cgroup_set_idle) CALLBACK(cpu_online)
	CALLBACK(cpu_offline) CALLBACK(init_cids) CALLBACK(init) CALLBACK(exit)
	{ NULL, 0, 0 },
};
