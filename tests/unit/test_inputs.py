# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
import torch

from privml.errors import ConfigError, InvalidInput
from privml.formats import Boolean, FixedPoint, Integer
from privml.service.inputs import checked_input
from privml.session.identity import parse_address

FIXED = FixedPoint(32, 12)


@pytest.mark.parametrize("value", [
    np.zeros((2, 3), np.float32), np.zeros((5, 3), np.float64), np.zeros((1, 3), np.uint8), torch.zeros(2, 3),
    np.zeros((2, 3), np.float16), np.zeros((2, 3), ">f4"), np.zeros((2, 3), np.uint16), [[1, 2, 3]],
    np.full((1, 3), 2.0**19 - 1), np.full((1, 3), -(2.0**19)),
])  # fmt: skip
def test_accepted(value):
    checked = checked_input(value, (None, 3), FIXED)
    assert np.array_equal(checked.numpy(), np.asarray(value))


@pytest.mark.parametrize("value, words", [
    (np.zeros((2, 4)), "shape (2, 4), but the program expects (any, 3)"),
    (np.zeros(3), "shape (3,)"), (np.zeros((0, 3)), "shape (0, 3) has no elements"),
    (np.zeros((2, 3), complex), "dtype complex128"),
    (np.array([["a", "b", "c"]]), "not a real number type"), (np.array([[0, np.nan, 0]]), "(0, 1)"),
    (np.array([[0, 0, -np.inf]]), "(0, 2)"), (np.array([[0, 0, 0], [0, 2.0**19, 0]]), "(1, 1)"),
    (np.array([[0, 0, 2**64 - 1]], np.uint64), "(0, 2)"), (np.array([[2**20, 0, 0]]), "(0, 0)"),
])  # fmt: skip
def test_refused(value, words):
    with pytest.raises(InvalidInput) as error:
        checked_input(value, (None, 3), FIXED, "image")
    assert str(error.value).startswith("image: ") and words in str(error.value)


def test_kinds_of_formats():
    with pytest.raises(InvalidInput, match="expects integers"):
        checked_input(np.zeros(3), (3,), Integer(32))
    assert checked_input(np.array([True, False]), (2,), Boolean()).tolist() == [1, 0]
    with pytest.raises(InvalidInput):
        checked_input(np.array([0, 2]), (2,), Boolean())


def test_addresses():
    assert parse_address("127.0.0.1:9000") == ("127.0.0.1", 9000)
    assert parse_address("[::1]:0") == ("::1", 0)
    for text in ("9000", ":9000", "host:", "host:x", "host:65536", "host:-1", "host:²"):
        with pytest.raises(ConfigError):
            parse_address(text)
