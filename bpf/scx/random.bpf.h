/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The random numbers of a simulation, in a scheduler: on CPU n the n-th stream of the option seed,
 * so that on one CPU the draws are those of the model with the same seed (twin of
 * crates/model/src/random.rs, purpose Scheduler).
 *
 * Source: xoshiro256++ (Blackman and Vigna, 2019), seeded through SplitMix64 (Steele, Lea, Flood).
 */
#ifndef SCHEDLAB_RANDOM_BPF_H
#define SCHEDLAB_RANDOM_BPF_H

OPTION(u64, seed, 0, "0..18446744073709551615", "", "seed of the random numbers");

struct stream {
	u64 state[4];
} __attribute__((aligned(64)));

struct stream streams[NR_CPUS_MAX];

static __always_inline u64 splitmix64(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static __always_inline u64 rotate_left(u64 word, u32 by)
{
	return word << by | word >> (64 - by);
}

/* Begins the streams of all CPUs. */
static __always_inline void streams_begin(void)
{
	const u64 purpose = 3;
	s32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		struct stream *s = &streams[(u32)cpu & (NR_CPUS_MAX - 1)];
		u64 mix = seed, key, key2;

		key = splitmix64(&mix) ^ rotate_left(purpose, 48);
		key2 = splitmix64(&key) ^ cpu;
		s->state[0] = splitmix64(&key2);
		s->state[1] = splitmix64(&key2);
		s->state[2] = splitmix64(&key2);
		s->state[3] = splitmix64(&key2);
	}
}

/* 64 uniform bits of the stream of `cpu`. */
static __always_inline u64 random_u64(s32 cpu)
{
	u64 *s = streams[(u32)cpu & (NR_CPUS_MAX - 1)].state;
	u64 result = rotate_left(s[0] + s[3], 23) + s[0];
	u64 t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

/* Uniform in 0 .. 10, without bias (Lemire's method: the upper word of a product). */
static __always_inline u32 random_below_10(s32 cpu)
{
	const u64 threshold = -10ULL % 10;
	u64 drawn = random_u64(cpu);
	s32 i;

	/* A draw that has to be repeated comes once in 10^18. */
	bpf_for(i, 0, 4) {
		if (drawn * 10 >= threshold)
			break;
		drawn = random_u64(cpu);
	}
	return ((drawn >> 32) * 10 + ((drawn & 0xffffffff) * 10 >> 32)) >> 32;
}

#endif
