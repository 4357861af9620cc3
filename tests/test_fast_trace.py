"""clock=fast as a user types it: the same files, one line that says which engine ran, and numba only then."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from settings import make_config

from delaysim.clock import Law
from delaysim.errors import UserError
from delaysim.run.progress import Display
from delaysim.run.tracemode import trace
from delaysim.settings.identity import run_id

NEEDS = "numba is not installed: pip install 'delaysim[fast]'"
SETTINGS = ("mode=trace", "updates=60", "clock.workers=100")


def traced(path, capsys, *words):
    """The lines printed for a trace written to `path`."""
    cfg = make_config(*SETTINGS, *words, suite="simulated_async")
    trace(cfg, path, Console(width=200))
    return capsys.readouterr().out.splitlines()


def test_both_engines_write_the_same_trace(tmp_path, capsys):
    pytest.importorskip("numba", reason=NEEDS)
    reference = traced(tmp_path / "simpy", capsys)
    fast = traced(tmp_path / "fast", capsys, "clock=fast")
    for name in ("trace.parquet", "moments.json"):
        assert (tmp_path / "simpy" / name).read_bytes() == (tmp_path / "fast" / name).read_bytes()
    other = [line.split("  ") for line in fast if line not in reference]
    assert [words[0] for words in other] == ["engine", "trace"]
    assert "engine         fast" in fast
    assert "engine         SimPy, the reference" in reference


def test_the_engine_is_no_part_of_what_a_trace_is(tmp_path, capsys):
    pytest.importorskip("numba", reason=NEEDS)
    simpy, fast = (make_config(*SETTINGS, f"clock={name}", suite="simulated_async") for name in ("simpy", "fast"))
    assert run_id(simpy) == run_id(fast)
    assert {simpy.clock.engine, fast.clock.engine} == {"simpy", "fast"}
    traced(tmp_path, capsys)
    kept = traced(tmp_path, capsys, "clock=fast")
    assert "engine         SimPy, the reference" in kept


def test_an_engine_that_is_none():
    with pytest.raises(UserError, match=r"clock\.engine=heapq: choose one of simpy, fast"):
        make_config("clock.engine=heapq")


def test_without_numba_a_trace_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "delaysim.clock.compiled", raising=False)
    with pytest.raises(UserError, match=r"clock=fast needs numba: pip install 'delaysim\[fast\]'") as error:
        traced(tmp_path / "run", capsys, "clock=fast")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("engine", "said"), [("simpy", 0), ("fast", 1)])
def test_training_says_in_one_line_that_it_keeps_the_reference(capsys, engine, said):
    Display("plain", Console(width=200)).begin(
        make_config(f"clock={engine}"), Law(1, 1, 0, 1.0, 1.0), Path("run"), False
    )
    assert capsys.readouterr().out.count("clock=fast is for mode=trace") == said


def test_where_numba_may_write_nowhere_it_compiles_anew():
    """Its only way to a cache is one for zip files, which this is not; the process then compiles for itself."""
    pytest.importorskip("numba", reason=NEEDS)
    code = "from delaysim.clock.compiled import advance; print(type(advance._cache).__name__)"
    environment = os.environ | {"NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("NullCache\n", "")
