"""The Netflix Prize ratings: 100 million lines in four files, read in blocks without a loop over lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy import sparse

from lgmd._typing import Array, IntArray
from lgmd._validation import check_integer
from lgmd.datasets.containers import SparseRatings
from lgmd.datasets.readers._files import Paths, find_files, malformed, open_text
from lgmd.datasets.readers._progress import byte_progress
from lgmd.exceptions import InvalidDataError

__all__ = ["read_netflix_prize"]

# Small enough for the arrays of a block to stay in the cache: twice as fast as blocks of 32 MB.
_BLOCK = 1 << 22
_NEWLINE, _COLON, _COMMA, _DASH, _ZERO = b"\n:,-0"

# The Prize's folder also has probe.txt and qualifying.txt, which hold no ratings.
_FILES = ("combined_data_*.txt", "mv_*.txt", "combined_data_*.txt.gz", "mv_*.txt.gz")

# What follows the user's number: a comma, the rating, a comma and a date of ten characters.
_TAIL = 13

# Where the digits of the date are, counted from the end of the line.
_DATE_DIGITS = (1, 2, 4, 5, 7, 8, 9, 10)


def read_netflix_prize(paths: Paths, n_users: int | None = None, n_movies: int | None = None) -> SparseRatings:
    """
    Ratings from the Netflix Prize's ``combined_data_1.txt`` to ``combined_data_4.txt``, or its ``mv_*.txt``.

    A line ``17:`` says which film the lines after it rate, each ``user,rating,date``. Reading takes about 21
    bytes a rating at its peak, 2.1 GB for all 100,480,507, and the table 12.

    Parameters
    ----------
    paths : path or sequence of paths
        The files, or folders: then their ``combined_data_*.txt`` and ``mv_*.txt``, compressed by gzip or not; others,
        such as ``probe.txt``, are left aside.
    n_users, n_movies : int, optional
        Keep the dense corner: the `n_movies` films with the most ratings, then the `n_users` users with the most
        ratings of these films; the smaller number wins a tie. Default: all.

    Returns
    -------
    SparseRatings
        Users x films, float32, with the Prize's own numbers of both, ascending. Dates are not kept.

    Raises
    ------
    MissingDataError
        If a file is not there, or a folder has none of these.
    InvalidDataError
        If a line is neither of the two, with its number; if a film or a rating comes twice.
    InvalidParameterError
        If `n_users` or `n_movies` is not a positive integer.
    """
    for name, count in (("n_users", n_users), ("n_movies", n_movies)):
        if count is not None:
            check_integer(count, name, minimum=1)
    files = find_files(paths, _FILES)
    blocks: list[_Block] = []
    with byte_progress("Netflix Prize", sum(path.stat().st_size for path in files)) as advance:
        for path in files:
            for block, n_bytes in _parse_file(path):
                blocks.append(block)
                advance(n_bytes)
    users = np.concatenate([block.users for block in blocks]) if blocks else np.empty(0, dtype=np.int32)
    if not len(users):
        raise InvalidDataError(f"{files[0]} has no ratings, nor has any other file that was passed.")
    movies = np.concatenate([block.movies for block in blocks])
    ratings = np.concatenate([block.ratings for block in blocks])
    blocks.clear()
    _check_repetition(users, movies)
    if n_movies is not None:
        keep = _densest(movies, n_movies)
        users, movies, ratings = users[keep], movies[keep], ratings[keep]
    if n_users is not None:
        keep = _densest(users, n_users)
        users, movies, ratings = users[keep], movies[keep], ratings[keep]
    user_ids, rows = _number(users)
    movie_ids, columns = _number(movies)
    shape = len(user_ids), len(movie_ids)
    table = sparse.coo_array((ratings.astype(np.float32), (rows, columns)), shape=shape)
    return SparseRatings(table, user_ids, movie_ids)


@dataclass(frozen=True, eq=False)
class _Block:
    """Ratings of a stretch of lines."""

    users: IntArray
    movies: IntArray
    ratings: IntArray


def _parse_file(path: Path) -> Iterator[tuple[_Block, int]]:
    """Parse a file block by block; with each come the bytes that it took."""
    movie, n_lines, rest = 0, 0, b""
    with open_text(path) as file:
        while True:
            read = file.read(_BLOCK)
            content = rest + read
            if not read and content and not content.endswith(b"\n"):
                content += b"\n"
            cut = content.rfind(b"\n") + 1
            content, rest = content[:cut], content[cut:]
            if content:
                block, movie = _parse_block(content.replace(b"\r\n", b"\n"), movie, path, n_lines)
                n_lines += content.count(b"\n")
                yield block, len(read)
            if not read:
                return


def _parse_block(content: bytes, movie: int, path: Path, n_before: int) -> tuple[_Block, int]:
    """Parse whole lines; `movie` is the film whose ratings go on from the block before, or 0."""
    characters = np.frombuffer(content, dtype=np.uint8)
    stops = np.flatnonzero(characters == _NEWLINE)
    starts = np.concatenate(([0], stops[:-1] + 1))
    is_header = (characters[stops - 1] == _COLON) & (stops > starts)
    is_rating = ~is_header & (stops > starts)
    begun, headers_fit = _decimals(characters, starts[is_header], stops[is_header] - 1)
    movies = np.concatenate(([movie], begun)).astype(np.int32)[np.cumsum(is_header)[is_rating]]
    starts, stops = starts[is_rating], stops[is_rating]
    # Short lines fail by their length; the clip keeps their look-ups inside the block.
    at = {offset: characters[np.maximum(stops - offset, 0)] for offset in range(1, _TAIL + 1)}
    users, fits = _decimals(characters, starts, stops - _TAIL)
    fits &= (at[13] == _COMMA) & (at[11] == _COMMA) & (at[6] == _DASH) & (at[3] == _DASH)
    for offset in _DATE_DIGITS:
        fits &= at[offset] - _ZERO <= 9  # wraps around below zero
    ratings = at[12] - _ZERO
    fits &= (ratings >= 1) & (ratings <= 5)
    if not (headers_fit.all() and fits.all()):
        bad = np.concatenate((np.flatnonzero(is_header)[~headers_fit], np.flatnonzero(is_rating)[~fits])).min()
        text = content.split(b"\n", int(bad) + 1)[int(bad)][:60].decode("utf-8", "replace")
        raise malformed(
            path,
            n_before + int(bad) + 1,
            f"found {text!r}",
            "'movie:' or 'user,rating,YYYY-MM-DD' with a rating from 1 to 5 was expected",
        )
    if len(movies) and movies[0] == 0:
        line = n_before + int(np.flatnonzero(is_rating)[0]) + 1
        raise malformed(path, line, "there is a rating before any film", "a line such as '1:' was expected first")
    return _Block(users, movies, ratings.view(np.int8)), int(begun[-1]) if len(begun) else movie


def _decimals(characters: Array, starts: IntArray, stops: IntArray) -> tuple[IntArray, Array]:
    """Parse the digits between two positions, all numbers at once; and whether each is a positive number at all."""
    widths = stops - starts
    fits = (widths >= 1) & (widths <= 9)
    numbers = np.zeros(len(starts), dtype=np.int32)
    for place in range(int(np.clip(widths.max(initial=0), 0, 9))):
        inside = widths > place
        digits = characters[np.maximum(stops - 1 - place, 0)] - _ZERO  # wraps around below zero
        fits &= ~inside | (digits <= 9)
        numbers += np.where(inside, digits, 0).astype(np.int32) * np.int32(10**place)
    return numbers, fits & (numbers > 0)


def _check_repetition(users: IntArray, movies: IntArray) -> None:
    """Raise if a film begins twice, as when a file is passed twice, or a user rates a film twice."""
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(movies)) + 1, [len(movies)]))
    heads = movies[bounds[:-1]]
    numbers, counts = np.unique(heads, return_counts=True)
    if counts.max() > 1:
        raise InvalidDataError(f"Film {numbers[counts > 1][0]} comes twice in the files. Pass each file once.")
    last_seen = np.empty(int(users.max()) + 1, dtype=np.int32)
    for begin, end in pairwise(bounds.tolist()):
        raters, positions = users[begin:end], np.arange(end - begin, dtype=np.int32)
        last_seen[raters] = positions
        repeated = last_seen[raters] != positions
        if repeated.any():
            raise InvalidDataError(f"User {raters[repeated][0]} rates film {movies[begin]} twice.")


def _densest(ids: IntArray, n_kept: int) -> Array:
    """Return which ratings belong to the `n_kept` most frequent ids."""
    counts = np.bincount(ids)
    chosen = np.argsort(-counts, kind="stable")[:n_kept]
    is_chosen = np.zeros(len(counts), dtype=bool)
    is_chosen[chosen] = True
    return is_chosen[ids]


def _number(ids: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct ids in ascending order, and the place of each rating's id among them."""
    is_used = np.zeros(int(ids.max()) + 1, dtype=bool)
    is_used[ids] = True
    places = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(is_used), places[ids]
