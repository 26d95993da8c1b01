// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table with any columns as a Parquet file: text, whole numbers and floats, without nulls.
//!
//! For tables whose columns are known only when they are written, such as the results of a sweep.
//! Traces have fixed columns and their own writer. Compression: Zstandard. Equal tables give equal
//! bytes.

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

/// Type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// UTF-8.
    Text,
    /// INT64.
    Int,
    /// DOUBLE.
    Float,
}

impl ColumnKind {
    /// A column of this kind without values.
    pub const fn empty(self) -> Column {
        match self {
            Self::Text => Column::Text(Vec::new()),
            Self::Int => Column::Int(Vec::new()),
            Self::Float => Column::Float(Vec::new()),
        }
    }

    fn schema(self, name: &str) -> Result<Type> {
        let (physical, logical) = match self {
            Self::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Int => (Physical::INT64, None),
            Self::Float => (Physical::DOUBLE, None),
        };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::REQUIRED)
            .build()
    }
}

/// Values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum Column {
    /// UTF-8.
    Text(Vec<String>),
    /// INT64.
    Int(Vec<i64>),
    /// DOUBLE.
    Float(Vec<f64>),
}

/// Writes a table, a group of rows at a time.
pub struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

/// Converts the error into a file error. A full disk keeps its kind.
pub fn io_error(error: ParquetError) -> io::Error {
    // An error of the file itself keeps its kind, such as a full disk.
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(inner) => *inner,
            Err(inner) => io::Error::other(inner),
        },
        other => io::Error::other(other),
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Starts a table called `name` with these columns.
    pub fn new(writer: W, name: &str, columns: &[(String, ColumnKind)]) -> io::Result<Self> {
        let start = || {
            let fields: Result<Vec<Arc<Type>>> =
                columns.iter().map(|(name, kind)| Ok(Arc::new(kind.schema(name)?))).collect();
            let schema = Type::group_type_builder(name).with_fields(fields?).build()?;
            let properties = WriterProperties::builder()
                .set_writer_version(WriterVersion::PARQUET_1_0)
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
                .build();
            SerializedFileWriter::new(writer, Arc::new(schema), Arc::new(properties))
        };
        start().map(|writer| Self { writer }).map_err(io_error)
    }

    /// Writes rows: the columns in the order of the schema, all of the same length.
    pub fn write(&mut self, columns: &[Column]) -> io::Result<()> {
        self.write_group(columns).map_err(io_error)
    }

    fn write_group(&mut self, columns: &[Column]) -> Result<()> {
        let mismatch = || ParquetError::General("the columns and their schema differ".into());
        let mut group = self.writer.next_row_group()?;
        for column in columns {
            let mut next = group.next_column()?.ok_or_else(mismatch)?;
            match (next.untyped(), column) {
                (ColumnWriter::ByteArrayColumnWriter(writer), Column::Text(values)) => {
                    let bytes: Vec<ByteArray> =
                        values.iter().map(|text| ByteArray::from(text.as_str())).collect();
                    writer.write_batch(&bytes, None, None)?;
                }
                (ColumnWriter::Int64ColumnWriter(writer), Column::Int(values)) => {
                    writer.write_batch(values, None, None)?;
                }
                (ColumnWriter::DoubleColumnWriter(writer), Column::Float(values)) => {
                    writer.write_batch(values, None, None)?;
                }
                _ => return Err(mismatch()),
            }
            next.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the table and returns the writer.
    pub fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(io_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    fn written(rows: &[Column]) -> io::Result<Vec<u8>> {
        let kinds = [ColumnKind::Text, ColumnKind::Int, ColumnKind::Float];
        let columns: Vec<(String, ColumnKind)> =
            ["set.slice, x", "n", "value"].map(String::from).into_iter().zip(kinds).collect();
        let mut writer = TableWriter::new(Vec::new(), "t", &columns)?;
        writer.write(rows)?;
        writer.finish()
    }

    #[test]
    fn a_table_reads_back() {
        let rows = [
            Column::Text(vec!["a".into(), "\u{e4},\"".into()]),
            Column::Int(vec![i64::MAX, -1]),
            Column::Float(vec![0.1, 1e300]),
        ];
        let bytes = written(&rows).unwrap();
        assert_eq!(bytes, written(&rows).unwrap());
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let names = reader.metadata().file_metadata().schema().get_fields();
        assert_eq!(names[0].name(), "set.slice, x");
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].get_string(0).unwrap(), "\u{e4},\"");
        assert_eq!(rows[0].get_long(1).unwrap(), i64::MAX);
        assert_eq!(rows[1].get_double(2).unwrap(), 1e300);
    }

    #[test]
    fn other_columns_are_refused() {
        assert!(written(&[Column::Int(vec![1])]).is_err());
    }
}
