"""Engine mismatch apart from delay: which log-probabilities the estimator sees, and what their difference would do."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from settings import fingerprint, rows, run, small_config

from delaysim import measures
from delaysim.errors import UserError
from delaysim.estimators import make
from delaysim.estimators.base import GroupBatch
from delaysim.estimators.interface import Estimator
from delaysim.ratios import read_frames
from delaysim.run import experiment
from delaysim.screening.sources import read
from delaysim.settings.identity import run_id
from delaysim.train.behaviour import alone, intervened

EPS = 0.004
"""About the size of a token's mismatch in bfloat16, so that some responses are beyond it and some are not."""
SHORT = ("D=3", "updates=6", "evaluation.every=null", "lr=3e-3", "learner.warmup=0", f"eps={EPS}")
APART = ("sampler.dtype=bfloat16", *SHORT)


@pytest.fixture(scope="module")
def runs(base_cache, tmp_path_factory):
    """A bfloat16 copy samples for a float32 learner, and the estimator sees either side."""
    folder = tmp_path_factory.mktemp("apart")
    for which in ("recomputed", "sampler"):
        assert run(small_config(*APART, f"behaviour={which}"), folder / which).state == "done"
    assert run(small_config(*SHORT), folder / "together").state == "done"
    return folder


def frames(path):
    return list(read_frames(path / "ratios.bin"))


def fresh_tokens(frame):
    return np.repeat(frame.delays == 0, frame.lengths.sum(1))


@pytest.mark.slow
def test_recomputed_is_what_the_learner_gives_at_delay_0(runs):
    for which in ("recomputed", "sampler"):
        first = frames(runs / which)[0]
        assert fresh_tokens(first).all()
        assert np.abs(first.recomputed - first.logp).max() < 1e-5
        assert np.abs(first.sampler - first.logp).max() > 1e-3


@pytest.mark.slow
def test_the_estimator_sees_the_chosen_side(runs):
    for frame in frames(runs / "recomputed"):
        fresh = fresh_tokens(frame)
        assert np.array_equal(frame.behaviour[~fresh], frame.recomputed[~fresh])
        assert np.array_equal(frame.behaviour[fresh], frame.logp[fresh]), "exactly no log-ratio without delay"
    for frame in frames(runs / "sampler"):
        assert np.array_equal(frame.behaviour, frame.sampler), "at delay 0 too"


@pytest.mark.slow
def test_delay_0_is_measured_before_it_is_set(runs):
    recomputed, sampler = (rows(runs / which, "updates")[0]["fresh_log_ratio"] for which in ("recomputed", "sampler"))
    assert 0 <= recomputed < 1e-5
    first = frames(runs / "sampler")[0]
    assert sampler == pytest.approx(float(np.abs(first.logp - first.sampler).max()), abs=1e-6)


def by_response(frame):
    """Difference and advantage of each response, group by group."""
    difference = np.split(frame.recomputed.astype(float) - frame.sampler, np.cumsum(frame.lengths)[:-1])
    return list(zip(difference, np.repeat(np.arange(len(frame.groups)), 4), frame.advantages.ravel(), strict=True))


def columns(responses):
    """By their definitions; GRPO clips r > 1 + eps where the advantage is positive, r < 1 - eps where negative."""
    tokens = np.abs(np.concatenate([d for d, _, _ in responses]))
    over = [
        bool(np.any(np.exp(d) > 1 + EPS) if a > 0 else a < 0 and np.any(np.exp(d) < 1 - EPS)) for d, _, a in responses
    ]
    whole = [abs(d.sum()) for d, _, _ in responses]
    return {"mismatch_mean": tokens.mean(), "mismatch_max": tokens.max(), "mismatch_response": np.mean(whole),
            "mismatch_over": np.mean(over)}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("which", ["recomputed", "sampler"])
def test_the_columns_are_the_difference_at_launch(runs, which):
    updates, groups = (rows(runs / which, name) for name in ("updates", "groups"))
    for n, frame in enumerate(frames(runs / which)):
        responses = by_response(frame)
        assert {k: v for k, v in updates[n].items() if k.startswith("mismatch")} == pytest.approx(columns(responses))
        for b, row in enumerate(groups[2 * n : 2 * n + 2]):
            own = columns([response for response in responses if response[1] == b])
            assert {k: v for k, v in row.items() if k.startswith("mismatch")} == pytest.approx(own)
    shares = [row["mismatch_over"] for row in updates]
    assert max(shares) > 0
    assert min(shares) < 1


@pytest.mark.slow
def test_other_methods_are_asked_afterwards(runs):
    """screen --mismatch sees the difference at launch as the only log-ratio, at delay 0."""
    estimator = make("grpo", eps=EPS)
    updates = rows(runs / "recomputed", "updates")
    for n, batch in enumerate(read([runs / "recomputed"], 8, mismatch=True)):
        share = (measures.touched(batch.data, estimator.coefficients(batch.data), "token") > 0).double().mean()
        assert float(share) == pytest.approx(updates[n]["mismatch_over"])
        assert batch.data.delays.tolist() == [0, 0]
    with pytest.raises(UserError, match="run with behaviour=recomputed"):
        list(read([runs / "together"], 8, mismatch=True))


@pytest.mark.slow
def test_one_engine_spends_no_second_pass(runs):
    together = rows(runs / "together", "updates", clocks=True)
    assert all(row["rescore_s"] == 0 for row in together)
    assert not any(name.startswith("mismatch") for name in together[0])
    assert all(frame.recomputed is None for frame in frames(runs / "together"))


@pytest.mark.slow
def test_recomputing_with_one_engine_changes_rounding_only(runs, tmp_path):
    run(small_config(*SHORT, "behaviour=recomputed"), tmp_path)
    assert all(row["mismatch_max"] < 1e-5 for row in rows(tmp_path, "updates"))
    first, second = rows(runs / "together", "launches"), rows(tmp_path, "launches")
    assert [row["lengths"] for row in first[:8]] == [row["lengths"] for row in second[:8]]


@pytest.mark.slow
def test_killed_and_resumed_with_both_sides_pending(runs, tmp_path, monkeypatch):
    train = experiment.Experiment._train

    def stop_then_train(self, asked, *meanwhile):
        self.stopping = asked.update == 3
        train(self, asked, *meanwhile)

    monkeypatch.setattr(experiment.Experiment, "_train", stop_then_train)
    assert run(small_config(*APART), tmp_path / "run").state == "interrupted"
    monkeypatch.undo()
    assert run(small_config(*APART, "resume=must"), tmp_path / "run").state == "done"
    assert fingerprint(tmp_path / "run") == fingerprint(runs / "recomputed")


def test_ids_follow_what_the_estimator_sees():
    base = run_id(small_config())
    assert run_id(small_config("behaviour=recomputed")) != base
    assert run_id(small_config("behaviour=sampler")) != base
    for own in ("sampler.dtype=bfloat16", "sampler=vllm"):
        seen = {which: run_id(small_config(own, f"behaviour={which}")) for which in ("auto", "recomputed", "sampler")}
        assert seen["auto"] == seen["recomputed"] != seen["sampler"]


def batch_of(difference, advantages):
    """One group, delay 5, whose learner and sampler differ by these nats per token."""
    logp = torch.full((1, len(advantages), len(difference[0])), -1.0, dtype=torch.float64)
    return GroupBatch(
        logp=logp - 3, behaviour=logp, mask=torch.ones_like(logp), rewards=torch.zeros(1, len(advantages)),
        advantages=torch.tensor([advantages], dtype=torch.float64), delays=torch.tensor([5]),
        versions=torch.tensor([0]),
    ), logp, logp - torch.tensor([difference], dtype=torch.float64)  # fmt: skip


DIFFERENCE = [[0.3, 0.0], [-0.3, 0.0], [0.3, -0.3], [0.1, 0.1], [-0.15, -0.15]]
ADVANTAGES = [1.0, 1.0, -1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "settings", "wanted"),
    [
        ("grpo", {"eps": 0.2}, [True, False, True, False, False]),
        ("tic", {"eps": 0.2}, [True, False, False, True, False]),  # rho = 1.35, 0.74, 1, 1.22, 0.74
        ("reinforce", {}, [False] * 5),
        ("is", {}, [False] * 5),
    ],
)
def test_each_method_has_its_own_threshold(name, settings, wanted):
    batch, learner, sampler = batch_of(DIFFERENCE, ADVANTAGES)
    assert intervened(alone(batch, learner, sampler), make(name, **settings)).tolist() == [wanted]


def test_what_an_estimator_does_anyway_is_not_the_mismatch():
    halved = SimpleNamespace(coefficients=lambda batch, _: 0.5 * batch.ratio * batch.mask)
    batch, learner, sampler = batch_of(DIFFERENCE, ADVANTAGES)
    assert not intervened(alone(batch, learner, sampler), Estimator("half", halved, SimpleNamespace())).any()
