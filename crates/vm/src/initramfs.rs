// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs the guest's initial file system: one program, in cpio format "newc"
//! (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel). The same program
//! gives the same bytes everywhere: inode numbers count up, every time is 0, and root owns
//! everything.

/// S_IFDIR, S_IFCHR and S_IFREG with their permissions.
const DIRECTORY: u32 = 0o040_755;
const CHARACTER_DEVICE: u32 = 0o020_600;
const PROGRAM: u32 = 0o100_755;

/// An archive that is being written.
struct Archive {
    bytes: Vec<u8>,
    nr_entries: u32,
}

impl Archive {
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn add(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.nr_entries += 1;
        let inode = if mode == 0 { 0 } else { self.nr_entries };
        let links = if mode == DIRECTORY { 2 } else { 1 };
        let fields = [
            inode,
            mode,
            0,
            0,
            links,
            0,
            content.len() as u32,
            0,
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }
}

/// An archive with `init` as its only program. The kernel opens /dev/console before init starts.
pub fn pack(init: &[u8]) -> Vec<u8> {
    let mut archive = Archive { bytes: Vec::with_capacity(init.len() + 1024), nr_entries: 0 };
    archive.add("dev", DIRECTORY, (0, 0), &[]);
    archive.add("dev/console", CHARACTER_DEVICE, (5, 1), &[]);
    archive.add("init", PROGRAM, (0, 0), init);
    archive.add("TRAILER!!!", 0, (0, 0), &[]);
    archive.bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the archive back by the format's own rules.
    #[test]
    fn the_archive_holds_the_console_and_the_program() {
        let init = b"\x7fELF and thirteen";
        let bytes = pack(init);
        assert_eq!(bytes, pack(init), "the same program gives the same bytes");
        let mut at = 0;
        let mut seen = Vec::new();
        loop {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let field = |nth: usize| {
                let text = std::str::from_utf8(&bytes[at + 6 + nth * 8..][..8]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (mode, len, name_len) = (field(1), field(6) as usize, field(11) as usize);
            assert_eq!((field(5), field(2), field(3)), (0, 0, 0), "time and owner");
            let name_at = at + 110;
            let name = std::str::from_utf8(&bytes[name_at..name_at + name_len - 1]).unwrap();
            let content_at = (name_at + name_len).next_multiple_of(4);
            if name == "TRAILER!!!" {
                break;
            }
            if name == "init" {
                assert_eq!(&bytes[content_at..content_at + len], init);
            }
            if name == "dev/console" {
                assert_eq!((field(9), field(10)), (5, 1));
            }
            seen.push((name.to_owned(), mode));
            at = (content_at + len).next_multiple_of(4);
        }
        assert_eq!(
            seen,
            [
                ("dev".to_owned(), DIRECTORY),
                ("dev/console".to_owned(), CHARACTER_DEVICE),
                ("init".to_owned(), PROGRAM)
            ]
        );
    }
}
