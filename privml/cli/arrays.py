# SPDX-License-Identifier: Apache-2.0
"""Inputs from files: arrays of NumPy (.npy), and tables (.csv, .parquet), a row per sample, a column per feature.

The first line of a CSV file is its header if one of its fields is not a number. Columns are taken in the file's order,
whatever their names; an index that pandas wrote is none. A table of whole numbers alone becomes int64, any other
float32; what is empty or no number is refused with its place.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from privml.errors import ConfigError, InvalidInput

_TABLES = (".csv", ".parquet", ".pq")
FORMS = ".npy, .csv or .parquet"


def read_array(path: str | os.PathLike) -> torch.Tensor:
    """The numbers of a file as a tensor. InvalidInput that names the file, and the place, for one that is missing or
    holds something else, ConfigError if the package that reads tables is not installed."""
    suffix = Path(path).suffix.lower()
    if not Path(path).is_file():
        raise InvalidInput(f"{path}: {'a folder' if Path(path).is_dir() else 'no such file'}")
    array = _table(Path(path), suffix) if suffix in _TABLES else _numpy(path)
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}: dtype {array.dtype} is not a number type; save float32 or integers")
    try:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")))
    except TypeError:
        raise InvalidInput(f"{path}: dtype {array.dtype} is not known to torch; save float32 or integers") from None


def _numpy(path: str | os.PathLike) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read ({error.strerror or error})") from None
    except Exception as error:  # of files, zip archives, Python's tokenizer and memory, which NumPy lets through
        with open(path, "rb") as file:
            written_by_numpy = file.read(6) == b"\x93NUMPY"
        if written_by_numpy and "pickle" in str(error):
            raise InvalidInput(f"{path}: holds Python objects, which are not loaded; save numbers") from None
        why = f"a damaged .npy file ({error})" if written_by_numpy else f"not a .npy file; inputs are {FORMS}"
        raise InvalidInput(f"{path}: {why}") from None
    if not isinstance(array, np.ndarray):
        raise InvalidInput(f"{path}: an archive of several arrays (.npz); save one of them as .npy")
    return array


# ---- tables
def _table(path: Path, suffix: str) -> np.ndarray:
    try:
        import pyarrow
    except ImportError:
        raise ConfigError(f"{path}: tables are read by PyArrow: pip install 'privml[tables]'") from None
    try:
        table = _read_csv(path) if suffix == ".csv" else _read_parquet(path)
    except (pyarrow.ArrowException, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path}: {str(error).splitlines()[0]}") from None
    if not table.num_columns or not table.num_rows:
        raise InvalidInput(f"{path}: the table has no {'rows' if table.num_columns else 'columns'}")
    columns = [_column(path, name, table.column(index)) for index, name in enumerate(table.column_names)]
    whole = all(column.dtype.kind in "iub" for column in columns)
    return np.stack([column.astype(np.int64 if whole else np.float32) for column in columns], axis=1)


def _read_csv(path: Path) -> Any:
    from pyarrow import csv as tables

    with path.open(newline="", encoding="utf-8-sig") as file:
        first: list[str] = next((row for row in csv.reader(file) if row), [])
    if len(first) == 1 and any(mark in first[0] for mark in ";\t"):
        raise InvalidInput(f"{path}: its fields are not separated by commas; separate them by commas")
    if not first:
        raise InvalidInput(f"{path}: the file is empty")
    has_header = not all(_is_number(field) for field in first)
    reading = tables.ReadOptions(autogenerate_column_names=not has_header)
    converting = tables.ConvertOptions(strings_can_be_null=False)
    return tables.read_csv(path, read_options=reading, convert_options=converting)


def _read_parquet(path: Path) -> Any:
    from pyarrow import parquet

    table = parquet.read_table(path)
    index = (table.schema.pandas_metadata or {}).get("index_columns", ())
    return table.drop_columns([name for name in index if isinstance(name, str) and name in table.column_names])


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return field.strip() == ""  # a missing number, which is refused with its place
    return True


def _column(path: Path, name: str, column: Any) -> np.ndarray:
    """A column's numbers; InvalidInput with its name and, for a field that is not a number, its row, counted from 1."""
    import pyarrow.types as kinds

    kind = column.type
    if column.null_count:
        row = next(index for index, value in enumerate(column) if not value.is_valid)
        raise InvalidInput(f"{path}: column {name}, row {row + 1} is empty")
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        row, text = next(
            ((i, v) for i, v in enumerate(column.to_pylist()) if not _is_number(v) or not v.strip()), (0, column[0])
        )
        raise InvalidInput(
            f"{path}: column {name}, row {row + 1}: " + (f"{str(text)[:40]!r} is not a number" if text else "is empty")
        )
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        raise InvalidInput(f"{path}: column {name} holds {kind} instead of numbers")
    numbers = np.asarray(column.to_numpy())
    if numbers.dtype == np.uint64 and numbers.max(initial=0) > np.iinfo(np.int64).max:
        raise InvalidInput(f"{path}: column {name} has numbers beyond those of int64")
    return numbers
