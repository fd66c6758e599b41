# SPDX-License-Identifier: Apache-2.0
"""Inputs from files: what is read, as what, and how what cannot be is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from privml.cli.arrays import read_array
from privml.errors import ConfigError, InvalidInput

NUMBERS = [[1.5, -2.0, 3.0], [4.0, 5.25, -6.0]]


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "1.5,-2,3\n4,5.25,-6\n",
        "age,weight,height\n1.5,-2,3\n4,5.25,-6\n",
        "age,2,height\n1.5,-2,3\n4,5.25,-6",
        "\ufeffage,weight,height\r\n1.5,-2,3\r\n4,5.25,-6\r\n",
        '"the age, in years",weight,height\n1.5,-2,3\n4,5.25,-6\n',
        "a,a,a\n1.5,-2,3\n\n4,5.25,-6\n",
    ],
    ids=["none", "names", "one name", "mark and CRLF", "quoted", "same names, empty line"],
)
def test_a_csv_file_has_a_header_if_its_first_line_is_not_numbers(text, tmp_path):
    pytest.importorskip("pyarrow")
    found = read_array(written(tmp_path, "x.csv", text))
    assert found.dtype == torch.float32 and found.tolist() == NUMBERS


@pytest.mark.parametrize(
    "text, dtype",
    [("1,2\n3,4\n", torch.int64), ("1,2\n3,4.0\n", torch.float32), ("a,b\n1,true\n2,false\n", torch.int64)],
)
def test_a_table_of_whole_numbers_is_int64_and_any_other_float32(text, dtype, tmp_path):
    pytest.importorskip("pyarrow")
    assert read_array(written(tmp_path, "x.csv", text)).dtype == dtype


def test_parquet_is_read_in_the_order_of_its_columns(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"b": [1.5, 4.0], "a": [-2.0, 5.25], "c": [3, -6]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "x.parquet")
    found = read_array(tmp_path / "x.parquet")
    assert found.dtype == torch.float32 and found.tolist() == NUMBERS
    parquet.write_table(pyarrow.table({"when": pyarrow.array([0], pyarrow.date32())}), tmp_path / "y.parquet")
    with pytest.raises(InvalidInput, match="y.parquet: column when holds date32"):
        read_array(tmp_path / "y.parquet")
    parquet.write_table(pyarrow.table({"a": [1.0, None]}), tmp_path / "z.parquet")
    with pytest.raises(InvalidInput, match="column a, row 2 is empty"):
        read_array(tmp_path / "z.parquet")
    parquet.write_table(pyarrow.table({"a": pyarrow.array([1 << 63], pyarrow.uint64())}), tmp_path / "u.parquet")
    with pytest.raises(InvalidInput, match="column a has numbers beyond those of int64"):
        read_array(tmp_path / "u.parquet")


@pytest.mark.parametrize("index", [None, "patient", ""], ids=["range", "named", "nameless"])
def test_an_index_of_pandas_is_no_column(index, tmp_path):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.5, 2.0], "height": [3.0, 4.0]})
    if index is not None:
        frame.index = pandas.Index([17, 4], name=index or None)
    frame.to_parquet(tmp_path / "x.parquet")
    assert read_array(tmp_path / "x.parquet").tolist() == [[1.5, 3.0], [2.0, 4.0]]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_without_pyarrow_a_table_says_what_to_install(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not there
    with pytest.raises(ConfigError, match=rf"{name}: .* pip install 'privml\[tables\]'"):
        read_array(written(tmp_path, name, "1,2\n"))


@pytest.mark.parametrize(
    "name, content, words",
    [
        ("x.csv", "a,b\n1,2\n3,four\n", "column b, row 2: 'four' is not a number"),
        ("x.csv", "a,b\n1,\n", "column b, row 1 is empty"),
        ("x.csv", "1,2\n3\n", "Expected 2 columns, got 1"),
        ("x.csv", "1;2\n3;4\n", "separate them by commas"),
        ("x.csv", "", "the file is empty"),
        ("x.csv", "a,b\n", "has no rows"),
        ("x.csv", b"\xff\xfe\x00,1\n", "x.csv: "),
        ("x.parquet", "no parquet", "x.parquet: "),
        ("x.npy", "1,2\n", "not a .npy file; inputs are .npy, .csv or .parquet"),
        ("x.txt", "1,2\n", "not a .npy file"),
        ("x.npy", b"\x93NUMPY\x01\x00\x06\x00{", "a damaged .npy file"),
        ("missing.csv", None, "missing.csv: no such file"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_with_its_place(name, content, words, tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / name if content is None else written(tmp_path, name, content)
    with pytest.raises(InvalidInput, match=words) as error:
        read_array(path)
    assert "pickle" not in str(error.value) and len(str(error.value).splitlines()) == 1


def test_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(InvalidInput, match="holds Python objects, which are not loaded"):
        read_array(tmp_path / "x.npy")


@pytest.mark.parametrize("dtype", [">f4", "<i2", "u1", "?"])
def test_arrays_of_any_number_type_are_read(dtype, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1, 0]], dtype=dtype))
    assert read_array(tmp_path / "x.npy").tolist() == [[1, 0]]
