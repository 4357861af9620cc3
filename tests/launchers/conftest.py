"""What the grid leaves when its cells run one after another in this process."""

from itertools import product

import pytest
from settings import fingerprint, run, small_config

from delaysim.settings.identity import run_path


@pytest.fixture(scope="session")
def serial(base_cache, tmp_path_factory):
    """Fingerprints of cells run one after another, by run id; made when first asked for."""
    made = {}

    def rows(*words, delays=(0, 2), seeds=(0, 1)):
        wanted = {}
        for delay, seed in product(delays, seeds):
            cfg = small_config(f"D={delay}", f"seed={seed}", *words)
            name = run_path(cfg).name
            if name not in made:
                path = tmp_path_factory.mktemp("serial") / name
                assert run(cfg, path).state == "done"
                made[name] = fingerprint(path)
            wanted[name] = made[name]
        return wanted

    return rows
