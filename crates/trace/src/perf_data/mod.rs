// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading perf.data, the files of `perf record` and `perf sched record`, and what `perf record -o
//! -` writes into a pipe.
//!
//! One pass over the records. perf writes the rings of the CPUs one after the other, so records are
//! in order of time only within a round: those of two rounds are held ([`queue`]) and sorted. What
//! is read are the samples of the scheduler's tracepoints, by the descriptions in the file, the
//! names of tasks and the reports of losses. With the cargo feature `zstd` also the compressed
//! records of `perf record -z`.
//! Sources: Linux include/uapi/linux/perf_event.h (records, samples), tools/perf/Documentation/
//! perf.data-file-format.txt, tools/perf/util/{header,session,ordered-events}.c.
//! Left out: recordings of big-endian machines, and directories (`perf record --threads`).

mod header;
#[cfg(feature = "zstd")]
mod inflate;
mod queue;
mod record;
mod sample;
mod session;

use crate::{Facts, Place, ReadError};
use header::Header;
use record::{Record, Records};
use schedlab_model::TraceSink;
use session::{Session, Then};
use std::io::{BufReader, Read, Seek, SeekFrom};

/// The first bytes of a file and of a pipe.
pub const MAGIC: &[u8] = b"PERFILE2";

/// Reads a file. `names`: see [`crate::text::read`].
pub fn read<R: Read + Seek, S: TraceSink + ?Sized>(
    mut source: R,
    names: Vec<String>,
    sink: &mut S,
) -> Result<Facts, ReadError> {
    let wrong = |what| ReadError { place: Place::Byte(0), what };
    let header = Header::read(&mut source).map_err(wrong)?;
    let Some(header) = header else {
        source.seek(SeekFrom::Start(0)).map_err(|error| wrong(error.to_string()))?;
        return read_pipe(source, names, sink);
    };
    let start = header.data_offset;
    source.seek(SeekFrom::Start(start)).map_err(|error| wrong(error.to_string()))?;
    let session = Session::new(header, names).map_err(wrong)?;
    let size = session.data_size();
    play(Records::new(source.take(size), start), session, sink)
}

/// Reads what a pipe gives: descriptions are records too. A file cannot be read so, for what
/// describes it is at its end.
pub fn read_pipe<R: Read, S: TraceSink + ?Sized>(
    source: R,
    names: Vec<String>,
    sink: &mut S,
) -> Result<Facts, ReadError> {
    let wrong = |what| ReadError { place: Place::Byte(0), what };
    let mut source = BufReader::new(source);
    let header = Header::read_pipe(&mut source).map_err(wrong)?;
    let session = Session::new(header, names).map_err(wrong)?;
    play(Records::new(source, header::PIPE_HEADER_SIZE), session, sink)
}

/// Reads records to their end.
fn play<R: Read, S: TraceSink + ?Sized>(
    mut records: Records<R>,
    mut session: Session,
    sink: &mut S,
) -> Result<Facts, ReadError> {
    loop {
        let at = records.at();
        let wrong = |what| ReadError { place: Place::Byte(at), what };
        let then = match records.next_record().map_err(wrong)? {
            Record::End { is_cut_off } => {
                session.is_cut_off(is_cut_off);
                return session.finish(sink).map_err(wrong);
            }
            Record::Whole(record) => session.record(record, sink).map_err(wrong)?,
        };
        match then {
            Then::Next => {}
            Then::Skip(len) => records.skip(len).map_err(wrong)?,
            Then::Head(len) => {
                let head = records.take(len).map_err(wrong)?;
                session.head(&head).map_err(wrong)?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
