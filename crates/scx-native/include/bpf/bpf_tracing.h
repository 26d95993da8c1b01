/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Stand-in for libbpf's bpf_tracing.h in native builds: a program is a plain function with its
 * arguments. Left out: reading the registers of a traced function.
 */
#ifndef __BPF_TRACING_H__
#define __BPF_TRACING_H__

#include <bpf/bpf_helpers.h>

/* Headers of scx ask this before they read the kernel's preempt_count(). */
#define bpf_target_x86
#define bpf_target_defined

/*
 * Programs that are attached to functions of the kernel name their context `ctx`. The model calls
 * none of them; callbacks are called without this last argument and do not use it.
 */
#define BPF_PROG(name, ...) name(__VA_ARGS__ __VA_OPT__(,) unsigned long long *ctx)
#define BPF_PROG2(name, ...) BPF_PROG(name, ##__VA_ARGS__)
#define BPF_KPROBE(name, args...) name(struct pt_regs *ctx, ##args)
#define BPF_KRETPROBE(name, args...) name(struct pt_regs *ctx, ##args)
#define BPF_KSYSCALL(name, args...) name(struct pt_regs *ctx, ##args)
#define BPF_UPROBE(name, args...) name(struct pt_regs *ctx, ##args)
#define BPF_URETPROBE(name, args...) name(struct pt_regs *ctx, ##args)
#define PT_REGS_PARM1(ctx) ((ctx)->regs[0])
#define PT_REGS_PARM2(ctx) ((ctx)->regs[1])
#define PT_REGS_PARM3(ctx) ((ctx)->regs[2])
#define PT_REGS_PARM4(ctx) ((ctx)->regs[3])
#define PT_REGS_PARM5(ctx) ((ctx)->regs[4])
#define PT_REGS_RC(ctx) ((ctx)->regs[5])
#define PT_REGS_IP(ctx) ((ctx)->regs[6])

#endif
