"""
Numbers with few decimals as text, many times faster than one by one.

Rounded results and most tables that people type hold nothing else. What is written is what ``repr`` writes: the
shortest decimal that reads back as the same double.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from lgmd._typing import Array, FloatArray

__all__ = ["short_numbers"]

# Decimals up to 15 digits are told apart by doubles; more than nine behind the point are rare.
_LARGEST, _MOST_DECIMALS = 1e15, 9
_POWERS = 10.0 ** np.arange(_MOST_DECIMALS + 1)

# Below this repr writes an exponent.
_SMALLEST = 1e-4

# Sign, 15 digits, a zero and a point before them or behind, a delimiter.
_WIDTH = 20

_MINUS, _POINT, _ZERO = ord("-"), ord("."), ord("0")


def short_numbers(row: FloatArray, whole: Array, gap: bytes, delimiter: bytes) -> str | None:
    """
    A row of text, or None if a number in it is too long.

    Parameters
    ----------
    row : ndarray of float64 of shape (p,)
        NaN is a gap.
    whole : ndarray of bool of shape (p,)
        Where whole numbers are written without a decimal point.
    gap, delimiter : bytes
    """
    if not len(row):
        return ""
    out = np.empty(len(row) * (_WIDTH + len(gap)), dtype=np.uint8)
    gap_signs, separator = np.frombuffer(gap, dtype=np.uint8), delimiter[0]
    length = _write_row(np.ascontiguousarray(row), whole, gap_signs, separator, out)
    return None if length < 0 else out[: length - 1].tobytes().decode("ascii")


@numba.njit(cache=True)
def _write_row(row: FloatArray, whole: Array, gap: Array, delimiter: int, out: Array) -> int:
    at = 0
    for j in range(len(row)):
        value = row[j]
        if np.isnan(value):
            for sign in gap:
                out[at] = sign
                at += 1
        else:
            at = _write_number(value, whole[j], out, at)
            if at < 0:
                return -1
        out[at] = delimiter
        at += 1
    return at


@numba.njit(cache=True)
def _write_number(value: float, whole: bool, out: Array, at: int) -> int:
    """The place behind the number, or -1 if it is too long."""
    size = abs(value)
    if size >= _LARGEST or (size < _SMALLEST and size != 0.0):
        return -1
    digits, decimals = 0.0, -1
    for d in range(_MOST_DECIMALS + 1):
        digits = np.rint(size * _POWERS[d])
        if digits >= _LARGEST:
            return -1
        if digits / _POWERS[d] == size:
            decimals = d
            break
    if decimals < 0:
        return -1
    if math.copysign(1.0, value) < 0:
        out[at] = _MINUS
        at += 1
    number, n_digits = int(digits), 1
    rest = number // 10
    while rest > 0:
        rest //= 10
        n_digits += 1
    n_digits = max(n_digits, decimals + 1)
    end = at + n_digits + (1 if decimals else 0)
    place = end - 1
    for written in range(n_digits):
        if written == decimals and decimals:
            out[place] = _POINT
            place -= 1
        out[place] = _ZERO + number % 10
        number //= 10
        place -= 1
    if decimals == 0 and not whole:
        out[end], out[end + 1] = _POINT, _ZERO
        end += 2
    return end
