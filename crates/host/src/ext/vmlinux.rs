// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header `vmlinux.h`: a kernel's types in C, from its type information (BTF).
//!
//! Source: what `bpftool btf dump format c` writes, by the same functions of libbpf. The layout
//! does not matter: with CO-RE every field is found again in the kernel that loads the scheduler.

use crate::error::HostError;
use libbpf_rs::libbpf_sys as sys;
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Longest part that libbpf writes at once.
const PART_MAX: usize = 1 << 16;

const HEAD: &str = "#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n\
    #ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n\
    #pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)\n\
    #endif\n\n";
const TAIL: &str = "\n#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n#pragma clang attribute pop\n#endif\n\
    #endif /* __VMLINUX_H__ */\n";

/// Types that headers of newer schedulers name and older kernels lack: how their definition begins,
/// and the definition. What uses them asks with `bpf_core_type_exists` first (Linux 7.3,
/// kernel/sched/ext/types.h and kernel/sched/ext_internal.h).
const YOUNG: &[(&str, &str)] = &[
    (
        "struct scx_cmask {",
        "struct scx_cmask { u32 base; u32 nr_cids; u32 alloc_words; u64 bits[0]; };",
    ),
    (
        "struct scx_cid_topo {",
        "struct scx_cid_topo { s32 core_cid, core_idx, llc_cid, llc_idx, node_cid, node_idx, \
         shard_cid, shard_idx, cluster_cid, cluster_idx; };",
    ),
    (
        "struct scx_bpf_dsq_insert_vtime_args {",
        "struct scx_bpf_dsq_insert_vtime_args { u64 dsq_id, slice, vtime, enq_flags; };",
    ),
    (
        "struct scx_bpf_select_cpu_and_args {",
        "struct scx_bpf_select_cpu_and_args { s32 prev_cpu; u64 wake_flags, flags; };",
    ),
    ("} class_rcu_t;", "typedef struct { void *lock; } class_rcu_t;"),
];

/// Members of structs that headers of newer schedulers name and older kernels lack: the struct, the
/// type, the member. What uses them asks with `bpf_core_field_exists` first.
const YOUNG_MEMBERS: &[(&str, &str, &str)] = &[
    ("scx_exit_info", "s32", "exit_cpu"),
    ("sched_ext_entity", "u64", "tid"),
    ("scx_event_stats", "s64", "SCX_EV_REENQ_IMMED"),
    ("scx_event_stats", "s64", "SCX_EV_REENQ_LOCAL_REPEAT"),
    ("scx_event_stats", "s64", "SCX_EV_INSERT_NOT_OWNED"),
    ("scx_event_stats", "s64", "SCX_EV_SUB_BYPASS_DISPATCH"),
];

/// Adds to a header what newer kernels have.
fn add_young(text: &mut String) {
    for (owner, of, member) in YOUNG_MEMBERS {
        let start = format!("struct {owner} {{\n");
        let Some(at) = text.find(&start).map(|at| at + start.len()) else { continue };
        let end = text[at..].find("\n};").map_or(text.len(), |end| at + end);
        if !text[at..end].contains(&format!(" {member};")) {
            text.insert_str(at, &format!("\t{of} {member};\n"));
        }
    }
    for (start, definition) in YOUNG {
        if !text.contains(start) {
            text.push_str(definition);
            text.push('\n');
        }
    }
}

/// What libbpf has written, and a buffer for its next part.
struct Written {
    text: Vec<u8>,
    part: Vec<u8>,
}

unsafe extern "C" {
    fn vsnprintf(
        to: *mut c_char,
        size: usize,
        format: *const c_char,
        args: *mut sys::__va_list_tag,
    ) -> c_int;
}

unsafe extern "C" fn write(
    context: *mut c_void,
    format: *const c_char,
    args: *mut sys::__va_list_tag,
) {
    // SAFETY: the context is that of `header`; the buffer has the given size.
    unsafe {
        let written = &mut *context.cast::<Written>();
        let nr = vsnprintf(written.part.as_mut_ptr().cast(), PART_MAX, format, args);
        let nr = usize::try_from(nr).unwrap_or(0).min(PART_MAX - 1);
        written.text.extend_from_slice(&written.part[..nr]);
    }
}

/// The header for the kernel whose type information is in `path`: raw, or in an ELF image.
///
/// # Errors
/// The file has none.
pub fn header(path: &Path) -> Result<String, HostError> {
    let none = |what: &str| {
        HostError::Unavailable(format!(
            "{what} the kernel's type information in {}; a scheduler that includes vmlinux.h \
             needs it, or a vmlinux.h of its own",
            path.display()
        ))
    };
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| none("cannot read"))?;
    let mut written = Written { text: HEAD.as_bytes().to_vec(), part: vec![0; PART_MAX] };
    // SAFETY: calls of libbpf in the order that its documentation asks for; `written` outlives the
    // dump that has a pointer to it.
    let failed = unsafe {
        let btf = sys::btf__parse(name.as_ptr(), std::ptr::null_mut());
        if btf.is_null() {
            return Err(none("there is none of"));
        }
        let context = (&raw mut written).cast();
        let dump = sys::btf_dump__new(btf, Some(write), context, std::ptr::null());
        let mut failed = dump.is_null();
        if !failed {
            for id in 1..sys::btf__type_cnt(btf) {
                failed |= sys::btf_dump__dump_type(dump, id) < 0;
            }
            sys::btf_dump__free(dump);
        }
        sys::btf__free(btf);
        failed
    };
    if failed {
        return Err(none("cannot write out"));
    }
    let mut text = String::from_utf8_lossy(&written.text).into_owned();
    add_young(&mut text);
    Ok(text + TAIL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_kernels_types_are_written_in_c() {
        let path = Path::new(super::super::RUNNING_TYPES);
        if !path.is_file() {
            return schedlab_testing::skip(format!("no {}", path.display()));
        }
        let text = header(path).unwrap();
        assert!(text.contains("\nstruct task_struct {\n"), "{} bytes", text.len());
        assert!(text.starts_with(HEAD) && text.ends_with(TAIL));
    }

    #[test]
    fn what_newer_kernels_have_is_added_once() {
        let mut text = "struct scx_exit_info {\n\tint kind;\n};\nstruct scx_cmask {\n};\n".into();
        add_young(&mut text);
        assert!(text.starts_with("struct scx_exit_info {\n\ts32 exit_cpu;\n\tint kind;\n};"));
        assert_eq!(text.matches("struct scx_cmask {").count(), 1, "{text}");
        assert_eq!(text.matches("struct scx_cid_topo {").count(), 1, "{text}");
        let once = text.clone();
        add_young(&mut text);
        assert_eq!(text, once);
    }

    #[test]
    fn a_file_without_types_is_refused_by_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = header(file.path()).unwrap_err().to_string();
        assert!(error.contains("there is none of the kernel's type information in"), "{error}");
    }
}
