import json
import os
import stat
import zipfile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lgmd import _archive
from lgmd._archive import ArchiveError, add_matrix, read_archive, take_matrix, write_archive

HEADER = {"format": "test", "version": 3, "nested": {"names": ["é", "四"], "share": 0.25}, "nothing": None, "yes": True}


def some_arrays():
    rng = np.random.default_rng(0)
    return {
        "doubles": rng.standard_normal((5, 3)),
        "singles": rng.standard_normal(7).astype(np.float32),
        "integers": np.arange(4),
        "fortran": np.asfortranarray(rng.standard_normal((4, 2))),
        "words": np.array(["one", "zwei", "trois", "四"]),
        "flags": np.array([True, False]),
        "empty": np.empty((0, 3)),
        "scalar": np.array(2.5),
        "dotted.name": np.array([np.nan, np.inf]),
    }


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "model.npz"
    write_archive(path, HEADER, some_arrays())
    return path


def test_header_and_arrays_come_back(archive):
    header, arrays = read_archive(archive)
    assert header == HEADER
    assert list(arrays) == list(some_arrays())
    for name, wanted in some_arrays().items():
        assert arrays[name].dtype == wanted.dtype
        np.testing.assert_array_equal(arrays[name], wanted)


def test_the_path_may_be_text_and_is_taken_as_it_is(tmp_path):
    path = tmp_path / "without suffix"
    write_archive(str(path), {}, {})
    assert os.listdir(tmp_path) == ["without suffix"]
    assert read_archive(str(path)) == ({}, {})


def test_a_header_may_hold_numbers_that_are_not_finite(tmp_path):
    write_archive(tmp_path / "file", {"values": [float("nan"), float("inf"), -float("inf"), 1e-300]}, {})
    nan, *others = read_archive(tmp_path / "file")[0]["values"]
    assert np.isnan(nan)
    assert others == [float("inf"), -float("inf"), 1e-300]


def test_numpy_alone_can_read_the_arrays(archive):
    with np.load(archive, allow_pickle=False) as found:
        np.testing.assert_array_equal(found["doubles"], some_arrays()["doubles"])
        assert json.loads(found["header"].tobytes()) == {**HEADER, "arrays": list(some_arrays())}


def test_a_new_file_replaces_the_old_one(archive):
    write_archive(archive, {"version": 4}, {"only": np.ones(2)})
    header, arrays = read_archive(archive)
    assert header == {"version": 4}
    assert list(arrays) == ["only"]
    assert os.listdir(archive.parent) == [archive.name]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_file_has_the_permissions_of_any_new_file(archive, tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"")
    assert stat.S_IMODE(archive.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def assert_untouched(archive):
    assert os.listdir(archive.parent) == [archive.name]
    assert read_archive(archive)[0] == HEADER


def failing(*arguments, **settings):
    raise OSError("no space left")


@pytest.mark.parametrize("step", ["np.lib.format.write_array", "os.fsync", "os.replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(archive, step, monkeypatch):
    owner, name = _archive, step
    for part in step.split(".")[:-1]:
        owner = getattr(owner, part)
    name = step.rsplit(".", maxsplit=1)[-1]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing)
        with pytest.raises(OSError, match="no space left"):
            write_archive(archive, {"version": 4}, some_arrays())
    assert_untouched(archive)


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(archive, monkeypatch):
    class Interrupting:
        def __array__(self, dtype=None, copy=None):
            assert len(os.listdir(archive.parent)) == 2  # the old file, and the temporary one
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_archive(archive, {}, {"first": np.ones(3), "second": Interrupting()})
    assert_untouched(archive)


def test_a_header_that_is_not_json_is_refused_before_anything_is_written(archive):
    with pytest.raises(TypeError):
        write_archive(archive, {"what": object()}, {})
    assert_untouched(archive)


def test_python_objects_are_not_written(archive):
    with pytest.raises(ValueError, match="allow_pickle=False"):
        write_archive(archive, {}, {"objects": np.array([{}, 1], dtype=object)})
    assert_untouched(archive)


def test_names_that_the_archive_needs_itself_are_refused(archive):
    for header, arrays in (({}, {"header": np.ones(2)}), ({"arrays": 3}, {})):
        with pytest.raises(ValueError, match="'header' and the header key 'arrays' are taken"):
            write_archive(archive, header, arrays)
        assert_untouched(archive)


def test_an_array_that_is_gone_is_missed(archive, tmp_path):
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(tmp_path / "part", "w") as part:
        for name in whole.namelist():
            if name not in ("words.npy", "flags.npy"):
                part.writestr(name, whole.read(name))
    with pytest.raises(ArchiveError, match="it lacks the arrays flags, words"):
        read_archive(tmp_path / "part")


def test_a_missing_file_or_folder_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nothing.npz")
    with pytest.raises(FileNotFoundError):
        write_archive(tmp_path / "no folder" / "model.npz", {}, {})
    with pytest.raises((IsADirectoryError, PermissionError)):
        read_archive(tmp_path)
    assert os.listdir(tmp_path) == []


def write_npy(path):
    with path.open("wb") as file:
        np.save(file, np.ones(3))


def write_npz(path):
    with path.open("wb") as file:
        np.savez(file, first=np.ones(3))


def write_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "nothing of ours")


def write_header(content):
    def write(path):
        with path.open("wb") as file:
            np.savez(file, header=np.frombuffer(content, dtype=np.uint8))

    return write


def write_pickled_header(path):
    with path.open("wb") as file:
        np.savez(file, header=np.array([{"format": "test"}], dtype=object))


FOREIGN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("a,b\n1,2\n"),
    "pickle": lambda path: path.write_bytes(b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01."),
    "npy": write_npy,
    "npz without header": write_npz,
    "zip": write_zip,
    "not json": write_header(b"{version: 1"),
    "not text": write_header(b"\xff\xfe\x00\x80"),
    "no table": write_header(b"[1, 2]"),
    "pickled header": write_pickled_header,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_refused(name, tmp_path):
    path = tmp_path / "file.npz"
    FOREIGN[name](path)
    with pytest.raises(ArchiveError):
        read_archive(path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("npy", "it is a single array"),
        ("npz without header", "it has no header"),
        ("no table", "header is not a table"),
    ],
)
def test_the_error_says_what_is_wrong(name, words, tmp_path):
    path = tmp_path / "file.npz"
    FOREIGN[name](path)
    with pytest.raises(ArchiveError, match=words):
        read_archive(path)


def test_pickled_arrays_are_refused_and_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    header = np.frombuffer(b"{}", dtype=np.uint8)
    with (tmp_path / "file.npz").open("wb") as file:
        np.savez(file, header=header, trap=np.array([Trap()], dtype=object))
    with pytest.raises(ArchiveError, match="allow_pickle=False"):
        read_archive(tmp_path / "file.npz")
    assert not (tmp_path / "sprung").exists()


def test_truncated_files_are_refused(archive):
    content = archive.read_bytes()
    for length in [*range(0, len(content), 97), len(content) - 1]:
        archive.write_bytes(content[:length])
        with pytest.raises(ArchiveError):
            read_archive(archive)


@given(st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_is_refused_or_does_no_harm(archive, data):
    damaged = archive.with_name("damaged.npz")
    content = bytearray(archive.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    damaged.write_bytes(content)
    try:
        header, arrays = read_archive(damaged)
    except ArchiveError:
        return
    assert header == HEADER  # a date, say
    for name, wanted in some_arrays().items():
        np.testing.assert_array_equal(arrays[name], wanted)


def test_changed_numbers_are_noticed(archive):
    content = archive.read_bytes()
    place = content.index(some_arrays()["doubles"].tobytes())
    archive.write_bytes(content[:place] + b"\x00" + content[place + 1 :])
    with pytest.raises(ArchiveError, match="CRC"):
        read_archive(archive)


def some_matrix():
    matrix = scipy.sparse.random_array((6, 4), density=0.4, rng=np.random.default_rng(1), format="csr")
    matrix.data[0] = 0.0
    return matrix


def test_matrices_come_back_with_their_stored_zeros(tmp_path):
    arrays = {}
    for name, form in (("csr", "csr"), ("from.csc", "csc"), ("coo", "coo")):
        add_matrix(arrays, name, some_matrix().asformat(form))
    add_matrix(arrays, "single", some_matrix().astype(np.float32))
    write_archive(tmp_path / "file", {}, arrays)
    _, arrays = read_archive(tmp_path / "file")
    for name in ("csr", "from.csc", "coo", "single"):
        found = take_matrix(arrays, name)
        assert isinstance(found, scipy.sparse.csr_array)
        assert found.shape == (6, 4)
        assert found.nnz == some_matrix().nnz
        assert found.dtype == (np.float32 if name == "single" else np.float64)
        np.testing.assert_allclose(found.toarray(), some_matrix().toarray(), rtol=1e-7)


def test_a_matrix_that_is_not_there_or_not_whole_is_refused():
    arrays = {}
    add_matrix(arrays, "graph", some_matrix())
    with pytest.raises(ArchiveError, match=r"lacks the array 'other\.data'"):
        take_matrix(arrays, "other")
    with pytest.raises(ArchiveError, match=r"lacks the array 'graph\.shape'"):
        take_matrix({name: part for name, part in arrays.items() if name != "graph.shape"}, "graph")


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("data", lambda array: array[:-1]),
        ("indices", lambda array: array + 4),
        ("indices", lambda array: array - 4),
        ("indptr", lambda array: array[::-1]),
        ("indptr", lambda array: array[:-1]),
        ("shape", lambda array: array[:1]),
        ("shape", lambda array: np.array([6, 2])),
        ("shape", lambda array: np.array(["six", "four"])),
    ],
)
def test_a_matrix_whose_parts_do_not_fit_is_refused(part, change):
    arrays = {}
    add_matrix(arrays, "graph", some_matrix())
    arrays[f"graph.{part}"] = change(arrays[f"graph.{part}"])
    with pytest.raises(ArchiveError, match="matrix 'graph' is damaged"):
        take_matrix(arrays, "graph")
