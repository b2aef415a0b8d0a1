"""Refusing to fill the memory."""

from __future__ import annotations

import os

from lgmd.exceptions import InvalidDataError

__all__ = ["available_bytes", "refuse_oversized"]


def available_bytes() -> int | None:
    """Memory that can be had without swapping; None where the system does not say."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def refuse_oversized(n: int, p: int, item_size: int) -> None:
    """Raise before a dense (n, p) array would take more than 80 % of what is free."""
    needed, free = n * p * item_size, available_bytes()
    if free is not None and needed > 0.8 * free:
        raise InvalidDataError(
            f"The full table of {n:,} x {p:,} entries would take {needed / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB "
            "are free. Use predict(rows, columns) for the entries you need."
        )
