import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from lgmd.linalg import threads
from lgmd.linalg.threads import available_threads, balanced_blocks, even_blocks, map_blocks


@pytest.fixture(autouse=True)
def two_threads():
    """Whatever the worker has that runs the tests."""
    with threadpool_limits(2):
        yield


def blas_threads():
    return [pool["num_threads"] for pool in ThreadpoolController().info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("user_api", [None, "blas"])
def test_the_number_of_threads_obeys_threadpoolctl(user_api):
    before = available_threads()
    assert before >= 1
    with threadpool_limits(1, user_api=user_api):
        assert available_threads() == 1
    assert available_threads() == before


def test_a_library_built_without_threads_limits_nobody(monkeypatch):
    pools = [
        {"user_api": "blas", "num_threads": 3, "threading_layer": "pthreads"},
        {"user_api": "openmp", "num_threads": 4},
        {"user_api": "blas", "num_threads": 1, "threading_layer": "disabled"},
    ]
    monkeypatch.setattr(threads, "_controller", lambda: SimpleNamespace(info=lambda: pools))
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda process: range(8), raising=False)
    assert available_threads() == 3
    pools[1]["num_threads"] = 2
    assert available_threads() == 2
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda process: range(1), raising=False)
    assert available_threads() == 1


@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 65, 1000])
@pytest.mark.parametrize("n_blocks", [1, 7, 64])
def test_even_blocks_hold_every_row_once_and_differ_by_one_at_most(n_rows, n_blocks):
    boundaries = even_blocks(n_rows, n_blocks)
    lengths = np.diff(boundaries)
    assert (boundaries[0], boundaries[-1]) == (0, n_rows)
    assert len(lengths) == min(n_rows, n_blocks)
    assert lengths.min() >= 1
    assert lengths.max() - lengths.min() <= 1
    # They are remembered.
    with pytest.raises(ValueError, match="read-only"):
        boundaries[0] = 1


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=300), st.integers(1, 64))
@settings(max_examples=100, deadline=None)
def test_balanced_blocks_hold_every_row_once_and_about_equal_work(counts, n_blocks):
    boundaries = balanced_blocks(np.concatenate([[0], np.cumsum(counts)]), n_blocks)
    assert (boundaries[0], boundaries[-1]) == (0, len(counts))
    assert np.all(np.diff(boundaries) > 0)
    assert len(boundaries) <= n_blocks + 1
    work = np.asarray(counts) + 16
    by_block = np.add.reduceat(work, boundaries[:-1])
    assert by_block.sum() == work.sum()
    assert by_block.max() <= work.sum() / n_blocks + work.max()


def test_rows_without_entries_are_in_blocks_too():
    boundaries = balanced_blocks(np.zeros(1001, dtype=np.int64))
    assert (boundaries[0], boundaries[-1]) == (0, 1000)
    assert np.diff(boundaries).max() <= 17


def test_a_table_without_rows_has_no_block():
    assert even_blocks(0).tolist() == [0]
    assert balanced_blocks(np.array([0])).tolist() == [0]
    assert map_blocks(lambda start, stop: (start, stop), even_blocks(0)) == []


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("work", [2e6, 5e6, 30e6, 1e9, np.inf])
def test_blocks_of_little_work_are_joined_and_hold_every_row_once(n_blocks, work):
    blocks = map_blocks(lambda start, stop: (start, stop), even_blocks(100, n_blocks), work=work)
    assert [row for start, stop in blocks for row in range(start, stop)] == list(range(100))
    # Two are left at least, where there were two: the work is enough for a second thread.
    assert min(n_blocks, 2) <= len(blocks) <= max(2, 1 + work / threads._WORTH_A_BLOCK)
    if work >= n_blocks * threads._WORTH_A_BLOCK:
        assert len(blocks) == n_blocks


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("uses_blas", [False, True])
def test_results_come_in_the_order_of_the_blocks(n_threads, uses_blas, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: n_threads)

    def slow_at_first(start, stop):
        time.sleep(0.002 * (10 - start) / 10)
        return start, stop

    boundaries = np.array([0, 1, 4, 6, 10])
    found = map_blocks(slow_at_first, boundaries, uses_blas=uses_blas)
    assert found == [(0, 1), (1, 4), (4, 6), (6, 10)]


def test_a_little_work_is_done_on_the_spot_as_one_block(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 4)
    here = threading.get_ident()
    found = map_blocks(lambda *block: (*block, threading.get_ident()), np.array([0, 3, 9]), work=100.0)
    assert found == [(0, 9, here)]


def test_blocks_run_at_the_same_time(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 3)
    meeting = threading.Barrier(3, timeout=10)
    # Passes only if all three are under way at once.
    assert len(map_blocks(lambda start, stop: meeting.wait(), np.arange(4))) == 3


def test_an_error_in_a_block_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 2)

    def fail(start, stop):
        raise ZeroDivisionError(f"block {start}")

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError, match="block 0"):
            map_blocks(fail, np.arange(5), uses_blas=True)
        assert blas_threads() == before


def test_blas_stays_on_one_thread_inside_blocks_only(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert 2 in before
        inside = map_blocks(lambda start, stop: blas_threads(), np.arange(3), uses_blas=True)
        assert {count for counts in inside for count in counts} == {1}
        assert blas_threads() == before
        assert map_blocks(lambda start, stop: blas_threads(), np.arange(3)) == [before, before]


def test_two_callers_at_once_leave_blas_as_it_was(monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 2)
    first_inside, second_inside, first_done = threading.Event(), threading.Event(), threading.Event()

    def first(start, stop):
        first_inside.set()
        second_inside.wait(0.2)

    def second(start, stop):
        second_inside.set()
        first_done.wait(5)

    def run_first():
        map_blocks(first, np.arange(3), uses_blas=True)
        first_done.set()

    def run_second():
        first_inside.wait(5)
        map_blocks(second, np.arange(3), uses_blas=True)

    before = blas_threads()
    if max(before) == 1:
        pytest.skip("BLAS has but one thread")
    callers = [threading.Thread(target=run_first), threading.Thread(target=run_second)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    assert blas_threads() == before


def test_small_products_keep_blas_on_one_thread_and_leave_the_kernels_theirs():
    outside = threads.available_threads()

    def blas_threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before = blas_threads()
    with threads.blas_threads_worth(1e3):
        assert blas_threads() == {1}
        assert threads.available_threads() == outside
        with threads.blas_threads_worth(1e3):
            assert threads.available_threads() == outside
        assert blas_threads() == {1}
    assert blas_threads() == before
    with threads.blas_threads_worth(1e12):
        assert blas_threads() == before
    with threadpool_limits(1), threads.blas_threads_worth(1e3):
        assert threads.available_threads() == 1
