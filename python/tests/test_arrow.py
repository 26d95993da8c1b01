# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables pass to other libraries by the Arrow interface, without a copy."""

import pytest
import schedlab

pyarrow = pytest.importorskip("pyarrow")


def kept():
    keep = schedlab.simulator.KEPT[:4]
    return schedlab.simulate("hogs:n=3,work=10ms", "rr:quantum=1ms", keep=keep)


def test_pyarrow_reads_every_column():
    result = kept()
    for ours in (result.slices, result.states, result.queues, result.progress):
        table = pyarrow.table(ours)
        assert table.column_names == ours.column_names and table.num_rows == len(ours)
        for name in ours.column_names:
            assert table[name].to_pylist() == ours.column(name)
    types = {field.name: str(field.type) for field in pyarrow.table(result.slices).schema}
    assert types["start_ns"] == "uint64" and types["cpu"] == "uint32"
    assert types["end"].startswith("dictionary<values=string")
    assert pyarrow.schema(result.slices) == pyarrow.table(result.slices).schema


def test_the_buffers_are_shared():
    slices = kept().slices
    address = [
        pyarrow.table(slices)["start_ns"].chunk(0).buffers()[1].address for _ in range(2)
    ]
    assert address[0] == address[1]


def test_a_table_outlives_its_result():
    table = pyarrow.table(kept().slices)
    assert table["end_ns"].to_pylist()[-1] == 30_000_000


def by_polars(table):
    return pytest.importorskip("polars").DataFrame(table)["end_ns"].to_list()


def by_pandas(table):
    return pytest.importorskip("pandas").DataFrame.from_arrow(table)["end_ns"].tolist()


def by_duckdb(table):
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql('select end_ns from "table" order by start_ns, cpu').fetchall()
    return [end for (end,) in rows]


@pytest.mark.parametrize("read", [by_polars, by_pandas, by_duckdb])
def test_other_libraries_read_a_table(read):
    slices = kept().slices
    assert read(slices) == slices.column("end_ns")
