// SPDX-License-Identifier: MIT OR Apache-2.0
//! Type information for tests, written type by type.

/// Types in the form of a file.
pub(crate) struct Types {
    table: Vec<u8>,
    names: Vec<u8>,
    nr: u32,
}

impl Types {
    /// No type yet.
    pub(crate) fn new() -> Self {
        Self { table: Vec::new(), names: vec![0], nr: 0 }
    }

    fn text(&mut self, name: &str) -> u32 {
        let at = self.names.len() as u32;
        self.names.extend_from_slice(name.as_bytes());
        self.names.push(0);
        if name.is_empty() { 0 } else { at }
    }

    /// Adds a type and returns its number.
    pub(crate) fn add(&mut self, name: &str, kind: u32, nr: u32, refers: u32, more: &[u32]) -> u32 {
        let name = self.text(name);
        for word in [name, kind << 24 | nr, refers].iter().chain(more) {
            self.table.extend_from_slice(&word.to_le_bytes());
        }
        self.nr += 1;
        self.nr
    }

    /// Adds a number of `size` bytes.
    pub(crate) fn number(&mut self, name: &str, size: u32) -> u32 {
        self.add(name, 1, 0, size, &[size * 8])
    }

    /// Adds an array.
    pub(crate) fn array(&mut self, of: u32, nr: u32) -> u32 {
        self.add("", 3, 0, 0, &[of, of, nr])
    }

    /// Adds a struct with members: name, type, offset in bytes.
    pub(crate) fn structure(&mut self, name: &str, size: u32, members: &[(&str, u32, u32)]) -> u32 {
        let mut words = Vec::new();
        for (member, of, at) in members {
            words.extend([self.text(member), *of, at * 8]);
        }
        self.add(name, 4, members.len() as u32, size, &words)
    }

    /// Adds an enumeration of 64 bits.
    pub(crate) fn enumeration(&mut self, name: &str, values: &[(&str, u64)]) -> u32 {
        let mut words = Vec::new();
        for (value, number) in values {
            words.extend([self.text(value), *number as u32, (number >> 32) as u32]);
        }
        self.add(name, 19, values.len() as u32, 8, &words)
    }

    /// Adds a section of variables: name, type, offset, size.
    pub(crate) fn section(&mut self, name: &str, variables: &[(&str, u32, u32, u32)]) -> u32 {
        let mut words = Vec::new();
        for (variable, of, at, size) in variables {
            words.extend([self.add(variable, 14, 0, *of, &[1]), *at, *size]);
        }
        let size = variables.iter().map(|(.., at, size)| at + size).max().unwrap_or(0);
        self.add(name, 15, variables.len() as u32, size, &words)
    }

    /// The file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let len = self.table.len() as u32;
        let head = [0x1_eb9f, 24, 0, len, len, self.names.len() as u32];
        let mut all: Vec<u8> = head.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        all.extend_from_slice(&self.table);
        all.extend_from_slice(&self.names);
        all
    }
}

/// Types of a kernel with sched_ext, and the number of the struct that is attached.
pub(crate) fn kernel() -> (Vec<u8>, u32) {
    let mut types = Types::new();
    let long = types.number("unsigned long", 8);
    let ops = types.structure("sched_ext_ops", 16, &[("select_cpu", long, 0), ("flags", long, 8)]);
    let members = [("common", long, 0), ("data", ops, 64)];
    let value = types.structure("bpf_struct_ops_sched_ext_ops", 128, &members);
    let flags = [("SCX_OPS_ENQ_LAST", 2), ("SCX_OPS_ALL_FLAGS", 0xff), ("SCX_OPS_HIGH", 1 << 40)];
    types.enumeration("scx_ops_flags", &flags);
    (types.bytes(), value)
}
