"""Numbers in few characters: rounded to 8 or 16 bits and written in base 64, which the page's script reads back."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from lgmd._typing import Array, FloatArray

__all__ = ["pack_integers", "pack_numbers", "plain_number"]


def pack_integers(values: Array) -> dict[str, Any]:
    """Integers from 0, exactly."""
    largest = int(values.max(initial=0))
    kind = "uint8" if largest < 2**8 else "uint16" if largest < 2**16 else "uint32"
    return {"type": kind, "data": _text(values.astype(f"<{np.dtype(kind).str[1:]}"))}


def pack_numbers(values: FloatArray, bits: int = 16) -> dict[str, Any]:
    """Numbers rounded to so many steps between the smallest and the largest; 0 stands for what is not finite."""
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values)
    low, high = (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
    steps = 2**bits - 2
    # Halves, so that the range of very large numbers stays within that of floating point.
    width = high / 2 - low / 2
    with np.errstate(invalid="ignore"):
        share = (values / 2 - low / 2) / width if width > 0 else np.zeros_like(values)
    levels = np.where(finite, 1 + np.rint(np.where(finite, share, 0.0) * steps), 0)
    kind = f"uint{bits}"
    return {"type": kind, "data": _text(levels.astype(f"<u{bits // 8}")), "low": low, "high": high}


def plain_number(value: Any, digits: int = 6) -> float | None:
    """A number for JSON, rounded; None for what is not finite."""
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None


def _text(array: Array) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
