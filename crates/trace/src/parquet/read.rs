// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the two tables. The files are treated as hostile: schema, sizes and every value are
//! checked, and an error names the row.
//!
//! Memory: one batch of rows, and one page of each column, as the library decodes it. A row group
//! whose stated size is too large is refused before it is read.
//!
//! The library panics on some damaged files (for example with negative offsets in the footer). Such
//! a panic is caught silently and becomes an error; only the reader is affected, and it is dropped.

use super::guard::Guarded;
use super::{END_KEY, EVENTS_SCHEMA, KINDS, OBJECTS_KEY, TASKS_SCHEMA};
use crate::text::shown;
use crate::{Facts, WakeSource};
use crate::{Place, ReadError};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use schedlab_model::cpumask::NR_CPUS_MAX;
use schedlab_model::trace::{ObjectInfo, TaskInfo, WaitKind};
use schedlab_model::{CpuId, Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::sync::Once;

/// Rows decoded at a time.
const BATCH: usize = 8192;
/// Largest row group (stated size without compression, bytes). schedlab's have some 40 bytes per
/// row, 10 MB in total.
const ROW_GROUP_BYTES_MAX: i64 = 256 << 20;

/// Most rows of a row group. A few bytes can represent billions of equal rows; schedlab's groups
/// have [`super::ROW_GROUP`].
const ROW_GROUP_ROWS_MAX: i64 = 4 * super::ROW_GROUP as i64;

/// Values of a batch of one column: `None` where the table has null.
type Column<T> = Vec<Option<T>>;

thread_local! {
    /// Whether this thread is inside the library.
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `read`, and turns a panic in it into an error.
fn without_panic<T>(read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_READING.get() {
                usual(info);
            }
        }));
    });
    let was_reading = IS_READING.replace(true);
    let caught = std::panic::catch_unwind(AssertUnwindSafe(read));
    IS_READING.set(was_reading);
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        let what = format!("the file is damaged ({})", shown(text.as_bytes()));
        Err(ReadError { place: Place::Row(0), what })
    })
}

/// Reads the tables of events and tasks. On an error the sink has all rows before it, and no `end`.
pub fn read<R: ChunkReader + 'static, S: TraceSink + ?Sized>(
    events: R,
    tasks: R,
    sink: &mut S,
) -> Result<Facts, ReadError> {
    let mut reader = Reader::default();
    let stated = without_panic(|| reader.tables(events, tasks, sink))?;
    let end_ns = stated.unwrap_or(0).max(reader.last_ns);
    sink.end(end_ns);
    Ok(Facts {
        nr_cpus: reader.nr_cpus.max(1),
        nr_records: reader.row,
        nr_events: reader.row,
        nr_tasks: u64::from(reader.nr_tasks),
        end_ns,
        is_own: true,
        nr_switches: reader.nr_switches,
        wakes: WakeSource::Wakeup,
        ..Facts::default()
    })
}

/// A value of a file's metadata.
fn value_of<R: ChunkReader + 'static>(
    reader: &SerializedFileReader<R>,
    key: &str,
) -> Option<String> {
    let pairs = reader.metadata().file_metadata().key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.clone()
}

/// Passes on each row group of a table with this schema.
fn table<R: ChunkReader + 'static>(
    reader: &SerializedFileReader<R>,
    schema: &str,
    take: &mut dyn FnMut(&dyn RowGroupReader) -> Result<(), String>,
) -> Result<(), String> {
    let said = |error: ParquetError| error.to_string();
    let metadata = reader.metadata();
    let wanted = parse_message_type(schema).map_err(said)?;
    let found = metadata.file_metadata().schema();
    if found.get_fields() != wanted.get_fields() {
        let names = |of: &parquet::schema::types::Type| {
            of.get_fields().iter().map(|field| field.name()).collect::<Vec<_>>().join(", ")
        };
        return Err(format!(
            "its columns are {}; a table that schedlab wrote has {} with the types of its \
             reference",
            shown(names(found).as_bytes()),
            names(&wanted)
        ));
    }
    for index in 0..reader.num_row_groups() {
        let bytes = metadata.row_group(index).total_byte_size();
        if !(0..=ROW_GROUP_BYTES_MAX).contains(&bytes) {
            return Err(format!(
                "row group {index} has {bytes} bytes; at most {ROW_GROUP_BYTES_MAX} are allowed"
            ));
        }
        let rows = metadata.row_group(index).num_rows();
        let columns = metadata.row_group(index).columns();
        if !(0..=ROW_GROUP_ROWS_MAX).contains(&rows)
            || columns.iter().any(|column| column.num_values() != rows)
        {
            return Err(format!(
                "row group {index} has {rows} rows, or a column with another number of them; at \
                 most {ROW_GROUP_ROWS_MAX} are allowed"
            ));
        }
        take(&*reader.get_row_group(index).map_err(said)?)?;
    }
    Ok(())
}

/// A column of numbers or texts that is read batch by batch.
macro_rules! batches {
    ($name:ident, $variant:ident, $type:ty) => {
        fn $name(column: &mut ColumnReader, is_optional: bool) -> Result<Column<$type>, String> {
            let ColumnReader::$variant(reader) = column else {
                return Err("a column has another type than its schema says".into());
            };
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            let (rows, _, _) = reader
                .read_records(BATCH, is_optional.then_some(&mut levels), None, &mut values)
                .map_err(|error| error.to_string())?;
            let mut values = values.into_iter();
            let column: Column<$type> = match is_optional {
                true => levels.iter().map(|level| (*level > 0).then(|| values.next())?).collect(),
                false => values.map(Some).collect(),
            };
            if column.len() != rows {
                return Err("a column has fewer values than rows".into());
            }
            Ok(column)
        }
    };
}

batches!(ints, Int32ColumnReader, i32);
batches!(longs, Int64ColumnReader, i64);
batches!(texts, ByteArrayColumnReader, ByteArray);

/// What has been read so far.
#[derive(Default)]
struct Reader {
    row: u64,
    nr_tasks: u32,
    nr_objects: u32,
    nr_cpus: u32,
    nr_switches: u64,
    last_ns: Nanos,
}

/// One row of the events.
struct Row<'a> {
    kind: &'a str,
    task: Option<TaskId>,
    other: Option<TaskId>,
    out: Option<&'a str>,
    detail: Option<i64>,
}

impl Reader {
    fn error(&self, what: String) -> ReadError {
        ReadError { place: Place::Row(self.row), what }
    }

    /// Reads both tables; returns the end of the run.
    fn tables<R: ChunkReader + 'static, S: TraceSink + ?Sized>(
        &mut self,
        events: R,
        tasks: R,
        sink: &mut S,
    ) -> Result<Option<Nanos>, ReadError> {
        let tasks = SerializedFileReader::new(Guarded(tasks)).map_err(|error| error.to_string());
        tasks
            .and_then(|tasks| table(&tasks, TASKS_SCHEMA, &mut |group| self.tasks(group, sink)))
            .map_err(|what| self.error(format!("table of tasks: {what}")))?;
        self.row = 0;
        let events = SerializedFileReader::new(Guarded(events))
            .map_err(|error| self.error(format!("table of events: {error}")))?;
        self.objects(&events, sink).map_err(|what| self.error(what))?;
        table(&events, EVENTS_SCHEMA, &mut |group| self.events(group, sink))
            .map_err(|what| self.error(what))?;
        Ok(value_of(&events, END_KEY).and_then(|end| end.parse().ok()))
    }

    /// The objects of the metadata.
    fn objects<R: ChunkReader + 'static, S: TraceSink + ?Sized>(
        &mut self,
        events: &SerializedFileReader<R>,
        sink: &mut S,
    ) -> Result<(), String> {
        let Some(texts) = value_of(events, OBJECTS_KEY) else { return Ok(()) };
        let texts: Vec<String> =
            serde_json::from_str(&texts).map_err(|error| format!("{OBJECTS_KEY}: {error}"))?;
        for text in texts {
            let (class, name) = text.split_once(' ').unwrap_or((&text, ""));
            let kind = WaitKind::ALL.into_iter().find(|kind| kind.name() == class);
            let kind = kind.ok_or_else(|| {
                let names = WaitKind::ALL.map(WaitKind::name).join(", ");
                format!("the object {:?} is none of {names}", shown(text.as_bytes()))
            })?;
            if name.len() > crate::binary::NAME_MAX {
                return Err(format!("an object's name of {} bytes", name.len()));
            }
            sink.object(ObjectId(self.nr_objects), &ObjectInfo { name: name.into(), kind });
            self.nr_objects += 1;
        }
        Ok(())
    }

    fn tasks<S: TraceSink + ?Sized>(
        &mut self,
        group: &dyn RowGroupReader,
        sink: &mut S,
    ) -> Result<(), String> {
        let mut columns = columns(group)?;
        let [task, name, spec, pid] = &mut columns[..] else { return Err(mismatch()) };
        loop {
            let (tasks, names) = (ints(task, false)?, texts(name, false)?);
            let (specs, pids) = (ints(spec, true)?, ints(pid, false)?);
            let rows = same_length(&[tasks.len(), names.len(), specs.len(), pids.len()])?;
            if rows == 0 {
                return Ok(());
            }
            for row in 0..rows {
                let id = tasks[row].map(i32::cast_unsigned);
                if id != Some(self.nr_tasks) {
                    let found = id.unwrap_or_default();
                    return Err(format!("task {found} stands where {} should", self.nr_tasks));
                }
                let name = text_of(names[row].as_ref())?;
                if name.len() > crate::binary::NAME_MAX {
                    let (length, max) = (name.len(), crate::binary::NAME_MAX);
                    return Err(format!(
                        "a task name of {length} bytes; at most {max} are allowed"
                    ));
                }
                let info = TaskInfo {
                    name: name.into(),
                    spec: specs[row].map(i32::cast_unsigned),
                    pid: pids[row].map_or(0, i32::cast_unsigned),
                };
                sink.task(TaskId(self.nr_tasks), &info);
                self.nr_tasks = self.nr_tasks.checked_add(1).ok_or("too many tasks")?;
                self.row += 1;
            }
        }
    }

    fn events<S: TraceSink + ?Sized>(
        &mut self,
        group: &dyn RowGroupReader,
        sink: &mut S,
    ) -> Result<(), String> {
        let mut columns = columns(group)?;
        let [time, cpu, kind, task, other, out, object, detail] = &mut columns[..] else {
            return Err(mismatch());
        };
        loop {
            let (times, cpus) = (longs(time, false)?, ints(cpu, false)?);
            let (kinds, tasks) = (texts(kind, false)?, ints(task, true)?);
            let (others, outs) = (ints(other, true)?, texts(out, true)?);
            // The name of an object is in the metadata too; here it is for people.
            let (objects, details) = (texts(object, true)?, longs(detail, true)?);
            let lengths = [times.len(), cpus.len(), kinds.len(), tasks.len(), others.len()];
            let rows = same_length(&lengths)?;
            same_length(&[rows, outs.len(), objects.len(), details.len()])?;
            if rows == 0 {
                return Ok(());
            }
            for row in 0..rows {
                let what = Row {
                    kind: text_of(kinds[row].as_ref())?,
                    task: self.known(tasks[row])?,
                    other: self.known(others[row])?,
                    out: outs[row].as_ref().map(|out| text_of(Some(out))).transpose()?,
                    detail: details[row],
                };
                self.event(times[row], cpus[row], &what, sink)?;
            }
        }
    }

    fn event<S: TraceSink + ?Sized>(
        &mut self,
        time: Option<i64>,
        cpu: Option<i32>,
        row: &Row<'_>,
        sink: &mut S,
    ) -> Result<(), String> {
        let time_ns = time.map_or(0, i64::cast_unsigned);
        if time_ns < self.last_ns {
            return Err(format!("the time goes back from {} to {time_ns} ns", self.last_ns));
        }
        let cpu = self.cpu(cpu.map_or(0, |cpu| i64::from(cpu.cast_unsigned())))?;
        let kind = self.kind(row)?;
        self.last_ns = time_ns;
        self.row += 1;
        self.nr_switches += u64::from(matches!(kind, EventKind::Switch { .. }));
        sink.event(&Event { time_ns, cpu, kind });
        Ok(())
    }

    fn cpu(&mut self, cpu: i64) -> Result<CpuId, String> {
        if !(0..NR_CPUS_MAX as i64).contains(&cpu) {
            return Err(format!("CPU {cpu} is not allowed: allowed are 0 to {}", NR_CPUS_MAX - 1));
        }
        self.nr_cpus = self.nr_cpus.max(cpu as u32 + 1);
        Ok(CpuId(cpu as u32))
    }

    fn known(&self, task: Option<i32>) -> Result<Option<TaskId>, String> {
        match task.map(i32::cast_unsigned) {
            Some(task) if task >= self.nr_tasks => {
                Err(format!("task {task} is named, but is not in the table of tasks"))
            }
            task => Ok(task.map(TaskId)),
        }
    }

    fn kind(&mut self, row: &Row<'_>) -> Result<EventKind, String> {
        let task = || row.task.ok_or_else(|| format!("{} without a task", row.kind));
        let number = || {
            let number = row.detail.and_then(|number| u32::try_from(number).ok());
            number.ok_or_else(|| format!("{} with the detail {:?}", row.kind, row.detail))
        };
        Ok(match row.kind {
            "switch" => EventKind::Switch { prev: row.task, next: row.other, out: out_of(row)? },
            "wakeup" => EventKind::Wakeup { task: task()?, waker: row.other },
            "fork" => EventKind::Fork { task: task()?, parent: row.other },
            "exit" => EventKind::Exit { task: task()? },
            "migrate" => {
                EventKind::Migrate { task: task()?, from: self.cpu(i64::from(number()?))? }
            }
            "phase" => EventKind::Phase { task: task()?, phase: number()? },
            "progress" => EventKind::Progress { task: task()? },
            "block" => match number()? {
                object if object < self.nr_objects => {
                    EventKind::Block { task: task()?, object: ObjectId(object) }
                }
                object => {
                    return Err(format!("object {object} is named, but is not in the metadata"));
                }
            },
            "lost" => EventKind::Lost { count: number()? },
            other => {
                return Err(format!(
                    "the kind {:?} is not known: allowed are {}",
                    shown(other.as_bytes()),
                    KINDS.join(", ")
                ));
            }
        })
    }
}

/// Why the task of a switch left.
fn out_of(row: &Row<'_>) -> Result<SwitchOut, String> {
    let word = row.out.unwrap_or_default();
    let out = SwitchOut::ALL.into_iter().find(|out| out.name() == word);
    match out {
        Some(out) if row.task.is_none() == (out == SwitchOut::Idle) => Ok(out),
        Some(_) => {
            let who = row.task.map_or("idle".into(), |id| format!("task {id}"));
            Err(format!("a switch lets {who} leave the CPU as {word:?}"))
        }
        None => Err(format!("out {:?} is not known", shown(word.as_bytes()))),
    }
}

fn columns(group: &dyn RowGroupReader) -> Result<Vec<ColumnReader>, String> {
    let count = group.num_columns();
    (0..count).map(|i| group.get_column_reader(i).map_err(|e| e.to_string())).collect()
}

fn mismatch() -> String {
    "its number of columns is not that of its schema".into()
}

fn same_length(lengths: &[usize]) -> Result<usize, String> {
    let first = lengths[0];
    match lengths.iter().all(|length| *length == first) {
        true => Ok(first),
        false => Err("its columns have different numbers of rows".into()),
    }
}

fn text_of(bytes: Option<&ByteArray>) -> Result<&str, String> {
    let bytes = bytes.map_or(&[][..], ByteArray::data);
    std::str::from_utf8(bytes).map_err(|_| format!("{:?} is not UTF-8", shown(bytes)))
}
