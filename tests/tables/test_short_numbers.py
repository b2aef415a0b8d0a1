"""Numbers with few decimals as text: the same signs as one by one."""

import numpy as np
import pytest

from lgmd.tables._short_numbers import short_numbers


def one_by_one(row, whole, gap, delimiter):
    texts = [
        gap if np.isnan(value) else repr(value).removesuffix(".0") if is_whole else repr(value)
        for value, is_whole in zip(row.tolist(), whole, strict=True)
    ]
    return delimiter.join(texts)


@pytest.mark.parametrize("decimals", range(10))
@pytest.mark.parametrize("size", [1e-3, 1.0, 37.0, 1e5, 1e9])
def test_rounded_numbers_are_written_as_repr_does(rng, decimals, size):
    row = np.round(size * rng.standard_normal(500), decimals)
    # Closer to zero repr writes an exponent.
    row[(np.abs(row) < 1e-4) & (row != 0)] = 0.5
    row[::17] = np.nan
    whole = rng.random(500) < 0.5
    written = short_numbers(row, whole, b"NA", b",")
    if written is None:
        assert size * 10.0**decimals > 1e14
    else:
        assert written == one_by_one(row, whole, "NA", ",")
        values = [float(text) for text in written.split(",") if text != "NA"]
        np.testing.assert_array_equal(values, row[~np.isnan(row)])


def test_limits_signs_and_gaps():
    values = [0.0, -0.0, 1.0, -1.0, 0.1, 0.0001, -0.0001, 999999999999999.0, 1e14, 0.3, 123.456, 5e-4, 1.000000001]
    row = np.array([*values, np.nan])
    for whole in (np.zeros(14, dtype=bool), np.ones(14, dtype=bool)):
        for gap in (b"", b"NA"):
            assert short_numbers(row, whole, gap, b"\t") == one_by_one(row, whole, gap.decode(), "\t")


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e15, 1e300, 9.9e-5, 5e-324, 1 / 3, 0.1 + 0.2, 1.0000000001, np.pi])
def test_what_is_too_long_is_left_to_others(value):
    assert short_numbers(np.array([1.0, value, 2.0]), np.zeros(3, dtype=bool), b"", b",") is None


def test_rows_without_columns_and_rows_that_are_strided():
    assert short_numbers(np.empty(0), np.zeros(0, dtype=bool), b"", b",") == ""
    table = np.arange(12.0).reshape(3, 4)
    assert short_numbers(table[:, 1], np.zeros(3, dtype=bool), b"", b";") == "1.0;5.0;9.0"
