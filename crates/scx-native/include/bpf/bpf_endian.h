/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Stand-in for libbpf's bpf_endian.h in native builds; the machine is little-endian. */
#ifndef __BPF_ENDIAN__
#define __BPF_ENDIAN__

#define bpf_htons(x) __builtin_bswap16(x)
#define bpf_ntohs(x) __builtin_bswap16(x)
#define bpf_htonl(x) __builtin_bswap32(x)
#define bpf_ntohl(x) __builtin_bswap32(x)
#define bpf_cpu_to_be64(x) __builtin_bswap64(x)
#define bpf_be64_to_cpu(x) __builtin_bswap64(x)

#endif
