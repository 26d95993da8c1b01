/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Stand-in for libbpf's bpf_tracing.h in native builds: a program is a plain function with its
 * arguments. Left out: reading the registers of a traced function.
 */
#ifndef __BPF_TRACING_H__
#define __BPF_TRACING_H__

#include <bpf/bpf_helpers.h>

#define BPF_PROG(name, args...) name(args)
#define BPF_PROG2(name, args...) name(args)
#define BPF_KPROBE(name, args...) name(struct pt_regs *ctx, ##args)
#define BPF_KRETPROBE(name, args...) name(struct pt_regs *ctx, ##args)

#endif
