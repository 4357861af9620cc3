"""A run directory's files: rows whole or dropped, cuts exact, replacements atomic, one writer."""

import errno
import fcntl
import json
import os
import subprocess
import sys

import pytest

from delaysim import files
from delaysim.errors import RunFailed, UserError
from delaysim.files import finite, read_json, write_atomic, write_json
from delaysim.run.records import FILES, ROWS, SCHEMA, RunDir, read_rows


@pytest.fixture
def run(tmp_path):
    made = RunDir(tmp_path)
    made.acquire()
    yield made
    made.release()


def test_rows_come_back_as_written(run):
    run.append("updates", [{"update": 0, "x": 0.1}])
    run.append("updates", [{"update": 1, "x": 1e300}, {"update": 2, "x": [1, 2]}])
    assert run.rows("updates") == [{"update": 0, "x": 0.1}, {"update": 1, "x": 1e300}, {"update": 2, "x": [1, 2]}]
    assert (run.path / "updates.jsonl").read_bytes().startswith(b'{"update":0,"x":0.1}\n{"update":1,')


def test_appended_rows_can_be_read_at_once_by_others(run):
    run.append("evals", [{"a": 1}])
    assert list(read_rows(run.path / "evals.jsonl")) == [{"a": 1}]


def test_numbers_that_are_not_finite_become_null(run):
    run.append("groups", [{"a": float("nan"), "b": float("inf"), "c": [-float("inf"), 2.5], "d": {"e": float("nan")}}])
    assert run.rows("groups") == [{"a": None, "b": None, "c": [None, 2.5], "d": {"e": None}}]
    text = (run.path / "groups.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text


def test_finite_leaves_everything_else_alone():
    value = {"i": 3, "f": -0.0, "s": "nan", "b": True, "n": None, "t": (1.5, float("nan"))}
    assert finite(value) == {"i": 3, "f": -0.0, "s": "nan", "b": True, "n": None, "t": [1.5, None]}


@pytest.mark.parametrize("kept", [0, 1, 5, 13])
def test_a_torn_last_line_is_left_out(run, kept):
    whole = b'{"update":0}\n{"update":1}\n'
    torn = b'{"update":12}'
    (run.path / "updates.jsonl").write_bytes(whole + torn[:kept])
    assert run.rows("updates") == [{"update": 0}, {"update": 1}]


def test_a_file_that_is_not_there_has_no_rows(run):
    assert run.rows("launches") == []


def test_truncate_cuts_every_file_back_to_its_checkpoint(run):
    for name in ROWS:
        run.append(name, [{"row": 0}])
    run.append_bytes("ratios", b"\x00\n\xff\n")
    sizes = run.sizes()
    assert sizes == {**dict.fromkeys(ROWS, len(b'{"row":0}\n')), "ratios": 4}
    for name in ROWS:
        run.append(name, [{"row": 1}])
    run.append_bytes("ratios", b"more")
    run.release()
    again = RunDir(run.path)
    again.acquire()
    again.truncate(sizes)
    for name in ROWS:
        assert again.rows(name) == [{"row": 0}]
        again.append(name, [{"row": 2}])
        assert again.rows(name) == [{"row": 0}, {"row": 2}]
    assert (run.path / "ratios.bin").read_bytes() == b"\x00\n\xff\n"
    again.release()


def test_truncate_to_no_checkpoint_empties_every_file(run):
    run.append("launches", [{"row": 0}])
    run.truncate({})
    assert run.sizes() == dict.fromkeys(FILES, 0)


def test_a_file_shorter_than_its_checkpoint_is_refused_and_named(run):
    run.append("groups", [{"row": 0}])
    with pytest.raises(RunFailed, match=r"groups\.jsonl is shorter than its checkpoint says: resume=never"):
        run.truncate({"groups": 11})
    assert run.rows("groups") == [{"row": 0}]


def test_replacing_a_file_leaves_no_part_behind(tmp_path):
    write_json(tmp_path / "a.json", {"x": 1})
    write_json(tmp_path / "a.json", {"x": [float("nan")]})
    assert read_json(tmp_path / "a.json") == {"x": [None]}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_replacement_that_fails_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "a.json"
    write_json(path, {"x": 1})

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os if step == "fsync" else files.Path, step, full)
    with pytest.raises(OSError, match="No space left"):
        write_json(path, {"x": 2})
    monkeypatch.undo()
    assert read_json(path) == {"x": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


KILLED_WHILE_REPLACING = """
import os, signal, sys
from pathlib import Path
from delaysim import files
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
setattr(files.os if sys.argv[1] == "fsync" else Path, sys.argv[1], die)
files.write_atomic(Path(sys.argv[2]), b"new" * 100000)
"""


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_kill_while_replacing_leaves_the_old_file_whole(tmp_path, step):
    path = tmp_path / "pointer"
    write_atomic(path, b"old")
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_REPLACING, step, str(path)])
    assert done.returncode == -9
    assert path.read_bytes() == b"old"
    write_atomic(path, b"newer")
    assert path.read_bytes() == b"newer"


def test_the_lock_is_refused_to_another_process_and_ends_with_its_holder(tmp_path):
    hold = (
        "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); "
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(UserError, match=f"another process is running {tmp_path}"):
        RunDir(tmp_path).acquire()
    holder.kill()
    holder.communicate()
    run = RunDir(tmp_path)
    run.acquire()
    with (tmp_path / "lock").open("a") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    run.release()
    with (tmp_path / "lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_clear_keeps_the_lock_alone(run):
    run.append("updates", [{"row": 0}])
    run.write("status.json", {})
    (run.path / "checkpoints/00000003").mkdir(parents=True)
    (run.path / "checkpoints/00000003/model.safetensors").write_bytes(b"x")
    run.clear()
    assert [path.name for path in run.path.iterdir()] == ["lock"]


def test_manifests_of_another_schema_and_damaged_ones_are_refused(run):
    assert run.manifest() == {}
    assert not run.exists
    run.write("manifest.json", {"schema": SCHEMA + 1})
    with pytest.raises(UserError, match=f"run-directory schema {SCHEMA + 1}, this delaysim writes {SCHEMA}"):
        run.manifest()
    (run.path / "manifest.json").write_text('{"schema": 1, ')
    with pytest.raises(UserError, match=r"manifest\.json is damaged .*resume=never starts the run over"):
        run.manifest()
    (run.path / "status.json").write_text("")
    with pytest.raises(UserError, match=r"status\.json is damaged"):
        run.status()


def test_rows_are_on_disk_before_their_size_is_told(run, monkeypatch):
    """A pointer may name a size only when those bytes would survive a power cut."""
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino) or fsync(fd))
    for name in ROWS:
        run.append(name, [{"row": 0}])
    run.sizes()
    assert set(synced) == {(run.path / file).stat().st_ino for file in FILES.values()}
    assert json.loads((run.path / "evals.jsonl").read_bytes()) == {"row": 0}
