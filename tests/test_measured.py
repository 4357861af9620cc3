"""The suite measured: delays that really happen, bounded by admission, with every group's version as it was drawn."""

import pandas as pd
import pytest
from settings import fingerprint, rows, run, small_config

from delaysim.errors import UserError
from delaysim.run.summary import read_summary
from delaysim.train.learner import Learner

COLUMNS = ("launches", "groups", "evals", "weights", "optimiser", "ratios.bin")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(base_cache, tmp_path_factory):
    """Mini-batches of two groups, generated one at a time, up to three updates ahead."""
    path = tmp_path_factory.mktemp("measured") / "run"
    assert run(small_config("clock.eta=3", "updates=12", suite="measured"), path).state == "done"
    return path


def test_every_group_is_trained_once_in_the_order_of_generation(measured):
    found = rows(measured, "groups")
    assert [row["group"] for row in found] == list(range(24))
    assert [row["update"] for row in found] == [n for n in range(12) for _ in range(2)]
    assert [row["group"] for row in rows(measured, "launches")] == list(range(24))


def test_no_group_is_older_than_admission_allows(measured):
    found = rows(measured, "groups")
    assert all(0 <= row["delay"] <= 3 for row in found)
    assert max(row["delay"] for row in found) > 0, "the sampler runs ahead while the first update trains"
    versions = [row["version"] for row in found]
    assert versions == sorted(versions)


def test_a_group_has_the_version_it_was_drawn_with(measured):
    """At delay 0 the learner finds the sampler's log-probabilities to rounding; later it does not."""
    fresh = {row["update"] for row in rows(measured, "groups") if row["delay"] == 0}
    updates = rows(measured, "updates")
    assert all(row["fresh_log_ratio"] < 1e-4 for row in updates if row["update"] in fresh)
    stale = [row for row in updates if row["update"] not in fresh]
    assert not stale or max(row["ratio_max"] for row in stale) > 1.001


def test_times_are_in_order(measured):
    trace = pd.read_parquet(measured / "trace.parquet")
    assert (trace["launch"] < trace["done"]).all()
    assert (trace["done"] <= trace["consumed"]).all()
    times = [row["sim_time"] for row in rows(measured, "updates")]
    assert times == sorted(times)
    assert "simulated: +suite=simulated_async lam=0 clock.eta=3 clock.workers=1 C_gen=" in "\n".join(
        read_summary(measured).lines()
    )


@pytest.mark.slow
def test_without_look_ahead_it_is_synchronous_training(base_cache, tmp_path):
    """Two processes that wait for each other leave what the clock leaves at D=0, but for times."""
    assert run(small_config("clock.eta=0", suite="measured"), tmp_path / "real").state == "done"
    assert run(small_config("D=0"), tmp_path / "clock").state == "done"
    real, clock = fingerprint(tmp_path / "real"), fingerprint(tmp_path / "clock")
    assert {name: real[name] for name in COLUMNS} == {name: clock[name] for name in COLUMNS}


@pytest.mark.slow
def test_an_interrupted_one_starts_over(base_cache, tmp_path, monkeypatch):
    update, cfg = Learner.update, small_config("clock.eta=2", suite="measured")

    def broken(self, n, groups):
        if n == 3:
            raise KeyboardInterrupt
        return update(self, n, groups)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "update", broken)
        assert run(cfg, tmp_path / "run").state == "interrupted"
    with pytest.raises(UserError, match="resume=must: a measured run cannot go on"):
        run(small_config("clock.eta=2", "resume=must", suite="measured"), tmp_path / "run")
    assert run(cfg, tmp_path / "run").state == "done"
    assert [row["group"] for row in rows(tmp_path / "run", "groups")] == list(range(16))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("devices=[cpu]",), r"devices=\[cpu\]: the suite measured runs two processes"),
        (("lam=1",), "the suite measured couples nothing by rule"),
        (("D=3",), "the suite measured ignores D"),
        (("clock.eta=auto",), "needs a look-ahead"),
        (("mode=trace",), "mode=trace: the suite measured really runs"),
    ],
)
def test_what_it_cannot_do_is_one_line(overrides, message):
    with pytest.raises(UserError, match=message):
        small_config(*overrides, suite="measured")
