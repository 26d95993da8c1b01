// SPDX-License-Identifier: MIT OR Apache-2.0
//! The descriptions of events (`events/sched/*/format` of tracefs), which stand in the heads of
//! recordings, and events read by them.
//!
//! Offsets, sizes and even the letters of states change between kernels, so nothing is assumed
//! that a description tells.
//! Source: Linux kernel/trace/trace_events.c (`f_show`), include/trace/events/sched.h.

use super::number_at;
use crate::kernel::{COMM_MAX, Kernel, PID_MAX, Wake, Who};
use schedlab_model::SwitchOut;
use schedlab_model::cpumask::NR_CPUS_MAX;

/// Where a value is in the bytes of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Field {
    offset: usize,
    size: usize,
    place: Place,
}

/// Where the bytes of a text are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Here,
    /// The field holds their offset (lower half) and length.
    From(Base),
}

/// From where such an offset counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    Event,
    FieldEnd,
}

/// The fields that name a task.
#[derive(Clone, Copy, Debug)]
struct WhoFields {
    comm: Field,
    pid: Field,
}

/// What the bits of prev_state mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct States {
    dead: u64,
    device: u64,
    /// All bits that have a letter.
    known: u64,
    /// "Still runnable", printed as `+`.
    preempted: u64,
}

/// An event and the fields that matter.
#[derive(Clone, Copy, Debug)]
enum Format {
    Switch { prev: WhoFields, state: Field, next: WhoFields, states: States },
    Wake { who: WhoFields, cpu: Option<Field>, wake: Wake },
    Migrate { who: WhoFields, from: Field, to: Field },
    Fork { parent: WhoFields, child: WhoFields },
    Exit { who: WhoFields },
    Exec { pid: Field, old_pid: Field },
}

/// The fields that every event has.
#[derive(Clone, Copy, Debug)]
struct Common {
    kind: Field,
    flags: Field,
    pid: Field,
}

/// The formats of a recording.
#[derive(Debug, Default)]
pub(crate) struct Formats {
    /// By the event's id.
    table: Vec<Option<Format>>,
    common: Option<Common>,
}

/// An event of a recording.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    pub kernel: Kernel<'a>,
    /// The process id of what ran.
    pub pid: u32,
    /// Whether an interrupt ran.
    pub in_irq: bool,
}

/// Hard and soft interrupts, and those that cannot be masked: `TRACE_FLAG_HARDIRQ`, `_SOFTIRQ` and
/// `_NMI` (include/linux/trace_events.h).
const IN_IRQ: u64 = 0x08 | 0x10 | 0x40;

impl Formats {
    /// Whether nothing of scheduling can be read by them.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Takes the description of one event; one of another kind is left out.
    pub fn add(&mut self, text: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(text);
        let description = Description::of(&text)?;
        let Some(format) = description.format()? else { return Ok(()) };
        let id = description.id as usize;
        if id >= self.table.len() {
            self.table.resize(id + 1, None);
        }
        self.table[id] = Some(format);
        self.common = Some(Common {
            kind: description.field("common_type")?,
            flags: description.field("common_flags")?,
            pid: description.field("common_pid")?,
        });
        Ok(())
    }

    /// Whether these are the bytes of a scheduling event.
    #[inline]
    pub fn is_wanted(&self, raw: &[u8]) -> bool {
        let kind = self.common.and_then(|common| number(raw, common.kind).ok());
        kind.is_some_and(|kind| matches!(self.table.get(kind as usize), Some(Some(_))))
    }

    /// Takes the bytes of an event apart.
    pub fn parse<'a>(&self, raw: &'a [u8]) -> Result<Parsed<'a>, String> {
        let other = Parsed { kernel: Kernel::Other, pid: 0, in_irq: false };
        let Some(common) = &self.common else { return Ok(other) };
        let kind = number(raw, common.kind)?;
        let Some(Some(format)) = self.table.get(kind as usize) else { return Ok(other) };
        let kernel = format.parse(raw)?;
        let in_irq = number(raw, common.flags)? & IN_IRQ != 0;
        Ok(Parsed { kernel, pid: number(raw, common.pid)? as u32, in_irq })
    }
}

impl Format {
    fn parse<'a>(&self, raw: &'a [u8]) -> Result<Kernel<'a>, String> {
        let cpu = |field| within(raw, field, NR_CPUS_MAX as u64 - 1, "CPU");
        let pid = |field| within(raw, field, u64::from(PID_MAX), "process id");
        Ok(match *self {
            Self::Switch { prev, state, next, states } => Kernel::Switch {
                prev: prev.of(raw)?,
                out: states.out(number(raw, state)?),
                next: next.of(raw)?,
            },
            Self::Wake { who, cpu: target, wake } => {
                Kernel::Wake { who: who.of(raw)?, cpu: target.map(cpu).transpose()?, wake }
            }
            Self::Migrate { who, from, to } => {
                Kernel::Migrate { who: who.of(raw)?, from: cpu(from)?, to: cpu(to)? }
            }
            Self::Fork { parent, child } => {
                Kernel::Fork { parent: parent.of(raw)?, child: child.of(raw)? }
            }
            Self::Exit { who } => Kernel::Exit { who: who.of(raw)? },
            Self::Exec { pid: new, old_pid } => {
                Kernel::Exec { pid: pid(new)?, old_pid: pid(old_pid)? }
            }
        })
    }
}

impl WhoFields {
    #[inline]
    fn of(self, raw: &[u8]) -> Result<Who<'_>, String> {
        let pid = within(raw, self.pid, u64::from(PID_MAX), "process id")?;
        Ok(Who { comm: text(raw, self.comm)?, pid })
    }
}

/// The number in a field.
#[inline]
fn number(raw: &[u8], field: Field) -> Result<u64, String> {
    number_at(raw, field.offset, field.size).ok_or_else(|| too_short(raw, field))
}

#[cold]
fn too_short(raw: &[u8], field: Field) -> String {
    let (len, Field { offset, size, .. }) = (raw.len(), field);
    format!("an event of {len} bytes has no field of {size} bytes at {offset}")
}

/// The number in a field, at most `max`.
#[inline]
fn within(raw: &[u8], field: Field, max: u64, what: &str) -> Result<u32, String> {
    match number(raw, field)? {
        value if value <= max => Ok(value as u32),
        value => Err(format!("{what} {value} is not allowed: allowed are 0 to {max}")),
    }
}

/// The text in a field, up to the first 0 byte.
#[inline]
fn text(raw: &[u8], field: Field) -> Result<&[u8], String> {
    let (offset, size) = match field.place {
        Place::Here => (field.offset, field.size),
        Place::From(base) => {
            let word = number(raw, field)?;
            let start = match base {
                Base::Event => 0,
                Base::FieldEnd => field.offset + field.size,
            };
            (start + (word & 0xffff) as usize, (word >> 16) as usize & 0xffff)
        }
    };
    let place = Field { offset, size, place: Place::Here };
    let whole = raw.get(offset..offset + size).ok_or_else(|| too_short(raw, place))?;
    let text = &whole[..memchr::memchr(0, whole).unwrap_or(size)];
    if text.len() > COMM_MAX {
        return Err(format!("a name of {} bytes: allowed are {COMM_MAX}", text.len()));
    }
    Ok(text)
}

/// The description of an event, taken apart.
struct Description<'a> {
    name: &'a str,
    id: u64,
    fields: Vec<(&'a str, Field)>,
    print: &'a str,
}

impl<'a> Description<'a> {
    fn of(text: &'a str) -> Result<Self, String> {
        let mut found = Self { name: "", id: u64::MAX, fields: Vec::new(), print: "" };
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name: ") {
                found.name = name.trim();
            } else if let Some(id) = line.strip_prefix("ID: ") {
                found.id = id.trim().parse().unwrap_or(u64::MAX);
            } else if let Some(field) = line.trim_start().strip_prefix("field:") {
                found.fields.extend(parse_field(field));
            } else if let Some(print) = line.strip_prefix("print fmt: ") {
                found.print = print;
            }
        }
        // common_type has two bytes.
        match found.id {
            0..=0xffff => Ok(found),
            _ => Err(format!("the format of event {:?} has no id below 65536", found.name)),
        }
    }

    fn field(&self, name: &str) -> Result<Field, String> {
        let found = self.fields.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, field)| *field)
            .ok_or_else(|| format!("the format of event {:?} has no field {name:?}", self.name))
    }

    fn who(&self, prefix: &str) -> Result<WhoFields, String> {
        Ok(WhoFields {
            comm: self.field(&format!("{prefix}comm"))?,
            pid: self.field(&format!("{prefix}pid"))?,
        })
    }

    /// What is read of the event; none of one that tells nothing of scheduling.
    fn format(&self) -> Result<Option<Format>, String> {
        let wake = |wake| -> Result<Format, String> {
            Ok(Format::Wake { who: self.who("")?, cpu: self.field("target_cpu").ok(), wake })
        };
        Ok(Some(match self.name {
            "sched_switch" => Format::Switch {
                prev: self.who("prev_")?,
                state: self.field("prev_state")?,
                next: self.who("next_")?,
                states: States::of(self.print),
            },
            "sched_wakeup" => wake(Wake::Wakeup)?,
            "sched_wakeup_new" => wake(Wake::New)?,
            "sched_waking" => wake(Wake::Waking)?,
            "sched_migrate_task" => Format::Migrate {
                who: self.who("")?,
                from: self.field("orig_cpu")?,
                to: self.field("dest_cpu")?,
            },
            "sched_process_fork" => {
                Format::Fork { parent: self.who("parent_")?, child: self.who("child_")? }
            }
            "sched_process_exit" => Format::Exit { who: self.who("")? },
            "sched_process_exec" => {
                Format::Exec { pid: self.field("pid")?, old_pid: self.field("old_pid")? }
            }
            _ => return Ok(None),
        }))
    }
}

/// `char prev_comm[16]; offset:8; size:16; signed:0;`, with tabs between.
fn parse_field(text: &str) -> Option<(&str, Field)> {
    let mut parts = text.split(';');
    let declaration = parts.next()?.trim();
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.trim().split_once(':') {
            Some(("offset", value)) => offset = value.parse().ok(),
            Some(("size", value)) => size = value.parse().ok(),
            _ => {}
        }
    }
    let (offset, size): (usize, usize) = (offset?, size?);
    let name = declaration.split_whitespace().next_back()?.split('[').next()?;
    let place = if declaration.starts_with("__data_loc") {
        Place::From(Base::Event)
    } else if declaration.starts_with("__rel_loc") {
        Place::From(Base::FieldEnd)
    } else {
        Place::Here
    };
    // Events are at most a page or two; an absurd offset could overflow.
    (offset <= 1 << 20 && size <= 1 << 20).then_some((name, Field { offset, size, place }))
}

impl States {
    /// Linux since 4.14 (`TASK_REPORT`, include/linux/sched.h), where a description has no letters.
    const USUAL: Self = Self { dead: 0x30, device: 2, known: 0xff, preempted: 0x100 };

    /// From the pairs `{ 0x0001, "S" }` of a description; the bit for `+` is above the greatest.
    fn of(print: &str) -> Self {
        let mut found = Self { dead: 0, device: 0, known: 0, preempted: 0 };
        for pair in print.split('{').skip(1) {
            let Some((inside, _)) = pair.split_once('}') else { continue };
            let Some((bit, letter)) = inside.split_once(',') else { continue };
            let Some(bit) = parse_bit(bit.trim()) else { continue };
            match letter.trim().trim_matches('"') {
                "X" | "Z" | "x" => found.dead |= bit,
                "D" => found.device |= bit,
                _ => {}
            }
            found.known |= bit;
        }
        if found.dead == 0 || found.device == 0 {
            return Self::USUAL;
        }
        let greatest = 1u64 << found.known.ilog2();
        Self { preempted: greatest.checked_mul(2).unwrap_or(0), ..found }
    }

    const fn out(self, bits: u64) -> SwitchOut {
        match bits {
            bits if bits & self.preempted != 0 || bits & self.known == 0 => SwitchOut::Preempted,
            bits if bits & self.dead != 0 => SwitchOut::Dead,
            bits if bits & self.device != 0 => SwitchOut::BlockedIo,
            _ => SwitchOut::Sleeping,
        }
    }
}

fn parse_bit(text: &str) -> Option<u64> {
    let value = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    (value.is_power_of_two()).then_some(value)
}
