"""A disk that fills up anywhere: exit code 1, one line that says so, nothing lost. A file-size limit plays the disk."""

import contextlib
import io
import os
import resource
import signal
from pathlib import Path

import pytest
from settings import SMALL, fingerprint, run, small_config

pytestmark = pytest.mark.slow
WORDS = ("+suite=fixed_delay", *SMALL, "D=3")


@pytest.fixture(scope="module")
def whole(base_cache, tmp_path_factory):
    """An uninterrupted run."""
    path = tmp_path_factory.mktemp("whole") / "run"
    assert run(small_config("D=3"), path).state == "done"
    return fingerprint(path)


def limited(folder, cache, words, size, sender):
    """The command line, where no file may grow beyond `size` bytes."""
    from delaysim.__main__ import entry

    os.environ["DELAYSIM_CACHE"] = cache
    os.chdir(folder)
    out, err = io.StringIO(), io.StringIO()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = entry(list(words))
        except Exception as error:
            code = repr(error)
    sender.send((code, err.getvalue()))


def run_limited(context, folder, cache, words, size):
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=limited, args=(folder, str(cache), words, size, sender))
    process.start()
    sender.close()
    answer = receiver.recv()
    process.join()
    return answer


def says_so(answer):
    code, err = answer
    return (code, len(err.splitlines()), "the disk is full" in err, "Traceback" in err) == (1, 1, True, False)


SIZES = {
    "config": 500,
    "manifest": 1200,
    "rows": 2500,
    "first evaluation": 3800,
    "weights": 100_000,
    "moments": 600_000,
}
"""Bytes at which the first write to fail is one of these."""


@pytest.mark.parametrize("what", SIZES)
def test_a_full_disk_is_one_line_and_loses_nothing(whole, base_cache, context, tmp_path, what):
    answer = run_limited(context, tmp_path, base_cache, WORDS, SIZES[what])
    assert says_so(answer), answer
    cfg = small_config("D=3", f"runs_dir={tmp_path / 'runs'}")
    paths = list(tmp_path.glob("runs/fixed_delay/*"))
    path = paths[0] if paths else tmp_path / "run"
    assert run(cfg, path).state == "done"
    assert fingerprint(path) == whole
    parts = list(path.rglob("*.part"))
    assert parts == []


def test_a_log_that_cannot_be_written_does_not_end_the_run(whole, base_cache, context, tmp_path):
    """All that grows beyond its limit here is run.log: training goes on without it, silently."""
    cfg = small_config("D=3", f"runs_dir={tmp_path / 'runs'}")
    from delaysim.settings.identity import run_path

    path = Path(run_path(cfg))
    path.mkdir(parents=True)
    (path / "run.log").write_bytes(b"x" * 2_000_000)
    code, err = run_limited(context, tmp_path, base_cache, (*WORDS, "display=quiet"), 1_900_000)
    assert code == 0
    assert err == ""
    assert fingerprint(path) == whole


def test_a_full_cache_is_one_line_too(base_cache, context, tmp_path):
    """The base weights do not fit; the next start builds them."""
    words = (*WORDS, "model.sft_steps=1", "updates=1")
    answer = run_limited(context, tmp_path, tmp_path / "cache", words, 100_000)
    assert says_so(answer), answer
    assert not list(tmp_path.glob("cache/base/*/model.safetensors"))
