"""What the fork server loads, so that a cell of a sweep finds it there."""

import subprocess
import sys

import pytest
from settings import run, small_config


def test_a_forked_cell_imports_no_package_anew(base_cache, context, tmp_path):
    """A run in a process of the fork server adds no module of torch, transformers or ours: all were preloaded."""
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=imported_while_running, args=(tmp_path / "run", sender))
    process.start()
    sender.close()
    before, added = receiver.recv()
    process.join()
    assert {"torch", "transformers", "delaysim.run.experiment", "delaysim.train.learner"} <= before
    heavy = {
        name for name in added if name.split(".")[0] == "delaysim" or name in ("torch", "transformers", "accelerate")
    }
    assert heavy == set()


def imported_while_running(path, sender):
    before = set(sys.modules)
    run(small_config("D=1", "updates=2"), path)
    sender.send((before, set(sys.modules) - before))


@pytest.mark.slow
def test_the_preload_module_imports_what_it_names():
    names = {"torch", "transformers", "delaysim.run.experiment"}
    code = f"import sys, delaysim.run.preload; sys.exit(bool({names} - set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
