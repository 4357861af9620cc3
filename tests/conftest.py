"""What every test shares: one cache of base weights, one thread."""

import multiprocessing
import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def base_cache(tmp_path_factory):
    """A cache of base weights and pilots of this test session, shared by its worker processes."""
    root = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        root = root.parent
    os.environ["DELAYSIM_CACHE"] = str(root / "delaysim-cache")
    return root / "delaysim-cache"


@pytest.fixture(scope="session")
def shared():
    """The folder of real data that stands beside the checkout, not in it."""
    folder = Path(os.environ.get("DELAYSIM_SHARED") or Path(__file__).parents[2] / "shared")
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}: set DELAYSIM_SHARED")
    return folder


@pytest.fixture(scope="session")
def context():
    """A fork server with torch loaded, to start runs that are killed or limited."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["delaysim.run.preload"])
    return context
