"""joblib and submitit, Hydra's own launchers: the same rows as one cell after another."""

import pytest
from launched import finished, needs, rows_of, start, typed_in

from delaysim.run.overview import overview

pytestmark = pytest.mark.launcher


@needs("joblib", "hydra_plugins.hydra_joblib_launcher")
def test_joblib(serial, tmp_path):
    said = finished(start(tmp_path, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"))
    assert "4 cells: 4 done" in said
    assert rows_of(tmp_path) == serial()
    assert typed_in(tmp_path) == {"delaysim -m +suite=fixed_delay"}
    assert overview(tmp_path / "runs").sweeps[0].counts == {"done": 4}


@needs("submitit", "hydra_plugins.hydra_submitit_launcher")
def test_submitit_and_what_its_jobs_say_of_cells_that_cannot_start(serial, tmp_path):
    launcher = "hydra/launcher=submitit_local"
    assert "2 cells: 2 done" in finished(start(tmp_path, launcher, grid=("D=0,2", "seed=0")))
    assert rows_of(tmp_path) == serial(seeds=(0,))
    said = finished(start(tmp_path, launcher, "resume=must", grid=("D=1", "seed=0,1")), code=2)
    assert "2 cells: 2 not run" in said
    assert "not run: seed=0: resume=must, but there is no run in" in said
