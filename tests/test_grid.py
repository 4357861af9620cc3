"""A grid's cells: composed as Hydra composes them, each run once, with what they hold constant said."""

import pytest
from hydra._internal.hydra import Hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import open_dict
from omegaconf.errors import OmegaConfBaseException
from settings import make_config

from delaysim.cli.compose import to_config
from delaysim.cli.grid import Composer
from delaysim.cli.held import held
from delaysim.cli.hydra_errors import translate
from delaysim.settings.places import conf_dir


@pytest.fixture(scope="module")
def hydra():
    """A loader and a configuration to sweep from, as Hydra makes them for -m."""
    GlobalHydra.instance().clear()
    app = Hydra.create_main_hydra_file_or_module(None, None, str(conf_dir()), "delaysim")
    GlobalHydra.instance().clear()  # what settings.make_config opens must not be open
    return app.config_loader, app.compose_config("config", ["+suite=fixed_delay"], RunMode.MULTIRUN)


JOBS = (
    ("+suite=fixed_delay", "D=3", "estimator=gmc", "eps=0.1", "seed=2"),
    ("+suite=fixed_delay", "D=4", "estimator=gmc", "estimator.eps=0.3", "lr=1e-4"),
    ("+suite=simulated_async", "lam=0.5", "clock.eta=7", "clock.workers=3", "devices=[cpu,cpu]"),
    ("+suite=simulated_async", "G=4", "responses=32", "recipe=published", "estimator=dapo", "runs_dir='a b'"),
    (
        "+suite=no_delay",
        "estimator=custom",
        "estimator.path=x.py",
        "+estimator.settings.cap=3",
        "evaluation.every=null",
    ),
    ("+sweep=lr_by_delay", "lr=0.001", "rule=vcpo", "learner.schedule=cosine", "updates=10"),
)


@pytest.mark.parametrize("words", JOBS, ids=" ".join)
@pytest.mark.slow
def test_a_cell_is_what_hydra_composes(hydra, words):
    """Also after other cells with the same files were composed from the same base."""
    loader, master = hydra
    composer = Composer(loader, master)
    for changed in (("seed=9", "C_gen=3"), ()):
        whole = loader.load_sweep_config(master, [*words, *changed])
        with open_dict(whole):
            del whole["hydra"]
        assert composer.compose([*words, *changed]) == whole


@pytest.mark.parametrize("word", ["updtaes=1", "D=abc", "estimator.epss=1", "estimator=foo", "learner.lr=[1]"])
def test_what_hydra_refuses_is_refused_in_its_words(hydra, word):
    loader, master = hydra
    said = []
    for compose in (Composer(loader, master).compose, lambda words: loader.load_sweep_config(master, words)):
        with pytest.raises((HydraException, OmegaConfBaseException)) as error:
            to_config(compose(["+suite=fixed_delay", word]))
        said.append(translate(error.value))
    assert said[0] == said[1]


GROUPS = {
    ("responses=64",): "Held: the sample budget B*G, lam; not groups per update, the mean delay",
    (): "Held: groups per update B, lam; not the sample budget, the mean delay",
    ("clock.eta=85",): "Held: groups per update B, lam, the mean delay; not the sample budget",
    ("responses=32", "clock.eta=85"): "Held: the sample budget B*G, lam, the mean delay; not groups per update",
}


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_grid_of_group_sizes_says_what_it_holds(words):
    cfgs = [make_config(f"G={size}", *words, suite="simulated_async") for size in (4, 16)]
    assert held(cfgs) == [f"G varies (4, 16). {GROUPS[words]}"]
    assert held(cfgs[:1]) == []
    if "responses=64" in words:
        assert [cfg.B for cfg in cfgs] == [16, 4]


def test_a_fixed_delay_is_the_mean_delay_of_every_group_size():
    grid = [make_config(f"G={size}", f"D={delay}") for size in (4, 8) for delay in (1, 9)]
    assert "the mean delay;" in held(grid)[0]
    assert "not the sample budget, the mean delay" in held(grid[1:])[0].replace("lam, groups per update, ", "")
