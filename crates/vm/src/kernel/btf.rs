// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds in a kernel's type information (BTF, Documentation/bpf/btf.rst) whether sched_ext can be
//! used.
//!
//! Some builds of 7.1 and 7.2 describe functions with an implicit argument as if it were an
//! ordinary one (pahole 1.30 drops the tags that mark it). The function `scx_bpf_create_dsq` then
//! has three parameters in BTF instead of two. No program can call it, and a scheduler that creates
//! a queue cannot be loaded.

/// Whether schedulers can be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExtSupport {
    /// Yes.
    Yes,
    /// The kernel has no sched_ext.
    No,
    /// The kernel has sched_ext, but its type information is wrong.
    Broken,
    /// The image could not be read.
    Unknown,
}

impl ExtSupport {
    /// A word for results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
        }
    }
}

const MAGIC: u32 = 0xeb9f;
const KIND_STRUCT: u32 = 4;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;

/// Bytes after the common part of a type, by kind (include/uapi/linux/btf.h); `None`: unknown kind.
fn extra_len(kind: u32, vlen: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * vlen,
        6 | 13 => 8 * vlen,
        _ => return None,
    })
}

/// One type: name, kind, number of members or parameters, the type it refers to.
struct Type<'a> {
    name: &'a [u8],
    kind: u32,
    vlen: usize,
    refers: u32,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Every type in order, from number 1 on; `None`: the bytes are not BTF.
fn types(bytes: &[u8]) -> Option<Vec<Type<'_>>> {
    if word(bytes, 0)? & 0xffff != MAGIC {
        return None;
    }
    let header = word(bytes, 4)? as usize;
    let part = |offset: usize, len: usize| {
        let from = header.checked_add(word(bytes, offset)? as usize)?;
        bytes.get(from..from.checked_add(word(bytes, len)? as usize)?)
    };
    let (table, names) = (part(8, 12)?, part(16, 20)?);
    let mut found = Vec::new();
    let mut at = 0;
    while at < table.len() {
        let info = word(table, at + 4)?;
        let (kind, vlen) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        let name = names.get(word(table, at)? as usize..)?;
        let name = &name[..name.iter().position(|byte| *byte == 0)?];
        found.push(Type { name, kind, vlen, refers: word(table, at + 8)? });
        at = at.checked_add(12 + extra_len(kind, vlen)?)?;
    }
    Some(found)
}

/// Whether schedulers can be loaded into a kernel with this BTF.
pub fn ext_support(btf: &[u8]) -> ExtSupport {
    let Some(types) = types(btf) else { return ExtSupport::Unknown };
    let is =
        |found: &Type<'_>, kind, name: &str| found.kind == kind && found.name == name.as_bytes();
    if !types.iter().any(|found| is(found, KIND_STRUCT, "sched_ext_ops")) {
        return ExtSupport::No;
    }
    let parameters = types
        .iter()
        .find(|found| is(found, KIND_FUNC, "scx_bpf_create_dsq"))
        .and_then(|function| types.get((function.refers as usize).checked_sub(1)?))
        .filter(|prototype| prototype.kind == KIND_FUNC_PROTO)
        .map(|prototype| prototype.vlen);
    if parameters == Some(2) { ExtSupport::Yes } else { ExtSupport::Broken }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BTF with a struct, and a function with this number of parameters.
    fn btf(has_ops: bool, parameters: usize) -> Vec<u8> {
        let names = b"\0sched_ext_ops\0scx_bpf_create_dsq\0";
        let mut table = Vec::new();
        let mut push = |name: u32, kind: u32, vlen: usize, refers: u32, extra: usize| {
            for value in [name, kind << 24 | vlen as u32, refers] {
                table.extend_from_slice(&value.to_le_bytes());
            }
            table.resize(table.len() + extra, 0);
        };
        push(0, 1, 0, 4, 4);
        if has_ops {
            push(1, KIND_STRUCT, 2, 8, 24);
        } else {
            push(0, KIND_STRUCT, 2, 8, 24);
        }
        push(0, KIND_FUNC_PROTO, parameters, 1, 8 * parameters);
        push(15, KIND_FUNC, 0, 3, 0);
        let mut bytes = Vec::new();
        for value in [MAGIC | 1 << 16, 24, 0, table.len() as u32, table.len() as u32] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&(names.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&table);
        bytes.extend_from_slice(names);
        bytes
    }

    #[test]
    fn the_number_of_parameters_decides() {
        assert_eq!(ext_support(&btf(true, 2)), ExtSupport::Yes);
        assert_eq!(ext_support(&btf(true, 3)), ExtSupport::Broken);
        assert_eq!(ext_support(&btf(false, 2)), ExtSupport::No);
        assert_eq!(ext_support(b"no type information"), ExtSupport::Unknown);
    }

    #[test]
    fn damaged_bytes_are_no_disaster() {
        let whole = btf(true, 2);
        for len in 0..whole.len() {
            let _ = ext_support(&whole[..len]);
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = ext_support(&damaged);
        }
    }

    /// The running kernel's own BTF, if it shows it.
    #[test]
    fn a_real_kernel_can_be_read() {
        let Ok(btf) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            return schedlab_testing::skip("this kernel has no BTF");
        };
        let has_ext = std::path::Path::new("/sys/kernel/sched_ext").exists();
        let found = ext_support(&btf);
        assert_ne!(found, ExtSupport::Unknown);
        assert_eq!(found != ExtSupport::No, has_ext);
    }
}
