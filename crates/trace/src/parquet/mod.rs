// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two Parquet tables, events and tasks, for pandas, polars, DuckDB and similar programs.
//!
//! Columns of the events: `time_ns` (INT64, delta-packed), `cpu` (INT32), `kind` (text), `task`,
//! `other_task` (INT32 or null), `out`, `object` (text or null), `detail` (INT64 or null).
//! docs/reference/trace-format.md lists the contents of the last five for each kind. Columns of the
//! tasks: `task`, `name`, `spec`, `pid`. Row groups of [`ROW_GROUP`] rows are written when they are
//! full, so memory is constant. Compression: Zstandard. The columns are written directly, without
//! Arrow, because the trace has fixed columns, and Arrow would be most of the crate's build time.

mod guard;
mod read;

pub use read::read;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use schedlab_model::trace::{ObjectInfo, TaskInfo};
use schedlab_model::{Event, EventKind, Nanos, ObjectId, SwitchOut, TaskId, TraceSink};
use std::io::Write;
use std::sync::Arc;

/// Rows of a row group: a reader decodes them at once, and the sink keeps them in memory (some 40
/// bytes per row).
pub const ROW_GROUP: usize = 1 << 18;

/// Key of the events table's metadata with the end of the run (ns).
pub const END_KEY: &str = "schedlab.end_ns";

/// Key of its metadata with the objects: a JSON array of kind and name, by number.
pub const OBJECTS_KEY: &str = "schedlab.objects";

const EVENTS_SCHEMA: &str = "message events {
    required int64 time_ns (INTEGER(64, false));
    required int32 cpu (INTEGER(32, false));
    required binary kind (STRING);
    optional int32 task (INTEGER(32, false));
    optional int32 other_task (INTEGER(32, false));
    optional binary out (STRING);
    optional binary object (STRING);
    optional int64 detail;
}";

const TASKS_SCHEMA: &str = "message tasks {
    required int32 task (INTEGER(32, false));
    required binary name (STRING);
    optional int32 spec (INTEGER(32, false));
    required int32 pid (INTEGER(32, false));
}";

/// A column with nulls: the values, and for each row whether it has one.
#[derive(Debug)]
struct Optional<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Default for Optional<T> {
    fn default() -> Self {
        Self { values: Vec::new(), levels: Vec::new() }
    }
}

impl<T> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    /// Asserts that there are `nr` rows, and that all required values exist.
    fn assert_rows(&self, nr: usize) {
        let there = self.levels.iter().filter(|level| **level == 1).count();
        assert_eq!((self.levels.len(), self.values.len()), (nr, there), "rows and values");
    }

    fn clear(&mut self) {
        self.values.clear();
        self.levels.clear();
    }
}

#[derive(Debug, Default)]
struct EventRows {
    time_ns: Vec<i64>,
    cpu: Vec<i32>,
    kind: Vec<u8>,
    task: Optional<i32>,
    other_task: Optional<i32>,
    out: Optional<u8>,
    object: Optional<u32>,
    detail: Optional<i64>,
}

#[derive(Debug, Default)]
struct TaskRows {
    task: Vec<i32>,
    name: Vec<ByteArray>,
    spec: Optional<i32>,
    pid: Vec<i32>,
}

/// Words of the column `kind`; `EventRows::kind` holds indices into them.
const KINDS: [&str; 9] =
    ["switch", "wakeup", "fork", "exit", "migrate", "phase", "progress", "lost", "block"];

/// The column values of an event kind: index of the word, task, other task, out, detail.
type Row = (u8, Option<TaskId>, Option<TaskId>, Option<SwitchOut>, Option<i64>);

fn row_of(kind: EventKind) -> Row {
    match kind {
        EventKind::Switch { prev, next, out } => (0, prev, next, Some(out), None),
        EventKind::Wakeup { task, waker } => (1, Some(task), waker, None, None),
        EventKind::Fork { task, parent } => (2, Some(task), parent, None, None),
        EventKind::Exit { task } => (3, Some(task), None, None, None),
        EventKind::Migrate { task, from } => (4, Some(task), None, None, Some(from.0.into())),
        EventKind::Phase { task, phase } => (5, Some(task), None, None, Some(phase.into())),
        EventKind::Progress { task } => (6, Some(task), None, None, None),
        EventKind::Lost { count } => (7, None, None, None, Some(count.into())),
        EventKind::Block { task, object } => (8, Some(task), None, None, Some(object.0.into())),
    }
}

/// Writes the two tables.
pub struct ParquetSink<W: Write + Send> {
    events: SerializedFileWriter<W>,
    tasks: SerializedFileWriter<W>,
    event_rows: EventRows,
    task_rows: TaskRows,
    end_ns: Option<Nanos>,
    /// Kind and name of each object.
    objects: Vec<ByteArray>,
    error: Option<ParquetError>,
}

fn table<W: Write + Send>(writer: W, schema: &str) -> Result<SerializedFileWriter<W>> {
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_column_dictionary_enabled(ColumnPath::from("time_ns"), false)
        .set_column_encoding(ColumnPath::from("time_ns"), Encoding::DELTA_BINARY_PACKED)
        .build();
    SerializedFileWriter::new(writer, Arc::new(parse_message_type(schema)?), Arc::new(properties))
}

fn ints(group: &mut SerializedRowGroupWriter<'_, impl Write + Send>, values: &[i32]) -> Result<()> {
    column(group, |writer| match writer {
        ColumnWriter::Int32ColumnWriter(writer) => writer.write_batch(values, None, None),
        _ => Err(mismatch()),
    })
}

fn optional_ints(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    rows: &Optional<i32>,
) -> Result<()> {
    column(group, |writer| match writer {
        ColumnWriter::Int32ColumnWriter(writer) => {
            writer.write_batch(&rows.values, Some(&rows.levels), None)
        }
        _ => Err(mismatch()),
    })
}

fn longs(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[i64],
    levels: Option<&[i16]>,
) -> Result<()> {
    column(group, |writer| match writer {
        ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(values, levels, None),
        _ => Err(mismatch()),
    })
}

fn texts(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[ByteArray],
    levels: Option<&[i16]>,
) -> Result<()> {
    column(group, |writer| match writer {
        ColumnWriter::ByteArrayColumnWriter(writer) => writer.write_batch(values, levels, None),
        _ => Err(mismatch()),
    })
}

fn mismatch() -> ParquetError {
    ParquetError::General("the columns and their schema differ".into())
}

fn mismatch_of(error: &dyn std::error::Error) -> ParquetError {
    ParquetError::General(error.to_string())
}

/// Writes the next column of a row group.
fn column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    write: impl FnOnce(&mut ColumnWriter<'_>) -> Result<usize>,
) -> Result<()> {
    let mut next = group.next_column()?.ok_or_else(mismatch)?;
    write(next.untyped())?;
    next.close()
}

impl<W: Write + Send> ParquetSink<W> {
    /// Writes events and tasks to these two writers.
    pub fn new(events: W, tasks: W) -> Result<Self> {
        Ok(Self {
            events: table(events, EVENTS_SCHEMA)?,
            tasks: table(tasks, TASKS_SCHEMA)?,
            event_rows: EventRows::default(),
            task_rows: TaskRows::default(),
            end_ns: None,
            objects: Vec::new(),
            error: None,
        })
    }

    /// Writes the rest and returns both writers, or the first error.
    pub fn finish(mut self) -> Result<(W, W)> {
        self.try_write(Self::write_events);
        self.try_write(Self::write_tasks);
        if let Some(end_ns) = self.end_ns {
            let end = KeyValue::new(END_KEY.to_string(), end_ns.to_string());
            self.events.append_key_value_metadata(end);
        }
        if !self.objects.is_empty() {
            let texts: Vec<_> =
                self.objects.iter().map(|text| String::from_utf8_lossy(text.data())).collect();
            let texts = serde_json::to_string(&texts).map_err(|error| mismatch_of(&error))?;
            let objects = KeyValue::new(OBJECTS_KEY.to_string(), texts);
            self.events.append_key_value_metadata(objects);
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.events.into_inner()?, self.tasks.into_inner()?)),
        }
    }

    fn try_write(&mut self, write: impl FnOnce(&mut Self) -> Result<()>) {
        if self.error.is_none() {
            self.error = write(self).err();
        }
    }

    fn write_events(&mut self) -> Result<()> {
        let rows = &mut self.event_rows;
        if rows.time_ns.is_empty() {
            return Ok(());
        }
        let nr = rows.time_ns.len();
        assert_eq!([rows.cpu.len(), rows.kind.len()], [nr; 2], "columns of {nr} rows");
        rows.task.assert_rows(nr);
        rows.other_task.assert_rows(nr);
        rows.out.assert_rows(nr);
        rows.object.assert_rows(nr);
        rows.detail.assert_rows(nr);
        let kinds = KINDS.map(ByteArray::from);
        let outs = SwitchOut::ALL.map(|out| ByteArray::from(out.name()));
        let word = |words: &[ByteArray], index: &u8| words[usize::from(*index)].clone();
        let mut group = self.events.next_row_group()?;
        longs(&mut group, &rows.time_ns, None)?;
        ints(&mut group, &rows.cpu)?;
        texts(&mut group, &rows.kind.iter().map(|k| word(&kinds, k)).collect::<Vec<_>>(), None)?;
        optional_ints(&mut group, &rows.task)?;
        optional_ints(&mut group, &rows.other_task)?;
        let out: Vec<_> = rows.out.values.iter().map(|out| word(&outs, out)).collect();
        texts(&mut group, &out, Some(&rows.out.levels))?;
        let named = |object: &u32| self.objects.get(*object as usize).cloned().unwrap_or_default();
        let object: Vec<_> = rows.object.values.iter().map(named).collect();
        texts(&mut group, &object, Some(&rows.object.levels))?;
        longs(&mut group, &rows.detail.values, Some(&rows.detail.levels))?;
        group.close()?;
        rows.time_ns.clear();
        rows.cpu.clear();
        rows.kind.clear();
        rows.task.clear();
        rows.other_task.clear();
        rows.out.clear();
        rows.object.clear();
        rows.detail.clear();
        Ok(())
    }

    fn write_tasks(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.task_rows);
        if rows.task.is_empty() {
            return Ok(());
        }
        rows.spec.assert_rows(rows.task.len());
        let mut group = self.tasks.next_row_group()?;
        ints(&mut group, &rows.task)?;
        texts(&mut group, &rows.name, None)?;
        optional_ints(&mut group, &rows.spec)?;
        ints(&mut group, &rows.pid)?;
        group.close().map(|_| ())
    }
}

impl<W: Write + Send> TraceSink for ParquetSink<W> {
    fn task(&mut self, id: TaskId, info: &TaskInfo) {
        // The unsigned columns of Parquet hold their bits in signed integers.
        self.task_rows.task.push(id.0.cast_signed());
        self.task_rows.name.push(ByteArray::from(info.name.as_str()));
        self.task_rows.spec.push(info.spec.map(u32::cast_signed));
        self.task_rows.pid.push(info.pid.cast_signed());
        if self.task_rows.task.len() >= ROW_GROUP {
            self.try_write(Self::write_tasks);
        }
    }

    fn object(&mut self, _id: ObjectId, info: &ObjectInfo) {
        let text = format!("{} {}", info.kind.name(), info.name);
        self.objects.push(ByteArray::from(text.as_str()));
    }

    fn event(&mut self, event: &Event) {
        let (kind, task, other_task, out, detail) = row_of(event.kind);
        let rows = &mut self.event_rows;
        rows.time_ns.push(event.time_ns.cast_signed());
        rows.cpu.push(event.cpu.0.cast_signed());
        rows.kind.push(kind);
        rows.task.push(task.map(|task| task.0.cast_signed()));
        rows.other_task.push(other_task.map(|task| task.0.cast_signed()));
        rows.out.push(out.map(|out| out as u8));
        let object = match event.kind {
            EventKind::Block { object, .. } => Some(object.0),
            _ => None,
        };
        rows.object.push(object);
        rows.detail.push(detail);
        if rows.time_ns.len() >= ROW_GROUP {
            self.try_write(Self::write_events);
            if self.error.is_some() {
                // Nothing more is written, and nothing more is kept.
                self.event_rows = EventRows::default();
            }
        }
    }

    fn end(&mut self, end_ns: Nanos) {
        self.end_ns = Some(end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use proptest::prelude::*;
    use schedlab_model::trace::MemorySink;
    use schedlab_model::{CpuId, TraceSink};

    fn written(what: Synthetic, memory: &mut MemorySink) -> (Vec<u8>, Vec<u8>) {
        let mut sink = ParquetSink::new(Vec::new(), Vec::new()).unwrap();
        what.play(&mut (memory, &mut sink));
        sink.finish().unwrap()
    }

    fn read_back(
        (events, tasks): (Vec<u8>, Vec<u8>),
    ) -> std::result::Result<MemorySink, crate::ReadError> {
        let mut memory = MemorySink::default();
        read(Bytes::from(events), Bytes::from(tasks), &mut memory)?;
        Ok(memory)
    }

    /// More rows than a row group, with the greatest values.
    #[test]
    fn gives_back_what_was_written() {
        let mut memory = MemorySink::default();
        let mut sink = ParquetSink::new(Vec::new(), Vec::new()).unwrap();
        let nr_events = ROW_GROUP as u64 + 5_000;
        let what = Synthetic { seed: 6, nr_cpus: 4, nr_tasks: 100, nr_events };
        what.play(&mut (&mut memory, &mut sink));
        let kind = EventKind::Lost { count: u32::MAX };
        let lost = Event { time_ns: u64::MAX, cpu: CpuId(3), kind };
        (&mut memory, &mut sink).event(&lost);
        (&mut memory, &mut sink).end(u64::MAX);
        let (events, tasks) = sink.finish().unwrap();
        assert!(events.len() < 8 * memory.events.len(), "{} bytes", events.len());
        let reader = SerializedFileReader::new(Bytes::from(events.clone())).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let back = read_back((events, tasks)).unwrap();
        assert!(back.events == memory.events, "the events differ");
        assert_eq!((back.tasks, back.end_ns), (memory.tasks, u64::MAX));
        assert!(!memory.objects.is_empty() && back.objects == memory.objects);
    }

    #[test]
    fn a_trace_without_events_is_two_empty_tables() {
        let sink = ParquetSink::new(Vec::new(), Vec::new()).unwrap();
        let back = read_back(sink.finish().unwrap()).unwrap();
        assert_eq!((back.events.len(), back.tasks.len()), (0, 0));
    }

    #[test]
    fn other_tables_are_refused() {
        let what = Synthetic { seed: 2, nr_cpus: 2, nr_tasks: 5, nr_events: 100 };
        let (events, tasks) = written(what, &mut MemorySink::default());
        let error = read_back((tasks.clone(), events.clone())).unwrap_err().to_string();
        assert!(error.contains("table of tasks") && error.contains("time_ns"), "{error}");
        let error = read_back((events.clone(), Vec::new())).unwrap_err().to_string();
        assert!(error.contains("table of tasks"), "{error}");
        let none = ParquetSink::new(Vec::new(), Vec::new()).unwrap().finish().unwrap().1;
        let error = read_back((events, none)).unwrap_err().to_string();
        assert!(error.contains("is not in the table of tasks"), "{error}");
    }

    /// Found by fuzzing: a page header of the tasks claims a list that would be skipped for
    /// minutes. The first two bytes say where the table of tasks ends.
    #[test]
    fn a_list_without_end_is_an_error() {
        let data = include_bytes!("../../tests/samples/parquet-endless-list.bin");
        let (length, tables) = data.split_first_chunk::<2>().unwrap();
        let (tasks, events) = tables.split_at(usize::from(u16::from_le_bytes(*length)));
        let error = read_back((events.to_vec(), tasks.to_vec())).unwrap_err().to_string();
        assert!(error.contains("table of tasks"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        /// Damage is another trace or an error, never a panic.
        #[test]
        fn mutated_tables_are_read_or_refused(
            edits in proptest::collection::vec(
                (any::<bool>(), any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in proptest::option::of(any::<prop::sample::Index>()),
        ) {
            let what = Synthetic { seed: 9, nr_cpus: 3, nr_tasks: 6, nr_events: 60 };
            let mut tables = written(what, &mut MemorySink::default());
            for (in_tasks, at, byte) in edits {
                let table = if in_tasks { &mut tables.1 } else { &mut tables.0 };
                let at = at.index(table.len());
                table[at] = byte;
            }
            if let Some(cut) = cut {
                let length = cut.index(tables.0.len());
                tables.0.truncate(length);
            }
            let _ = read_back(tables);
        }
    }
}
