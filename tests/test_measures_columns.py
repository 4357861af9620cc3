"""The columns of a run are these measures of its own ratios.bin, update by update, group by group, bin by bin."""

import numpy as np
import pytest
import torch
from rebuilt import rebuilt
from settings import rows, run, small_config

from delaysim import measures
from delaysim.analysis import by_delay, load_runs
from delaysim.estimators import make
from delaysim.estimators.base import saturated
from delaysim.ratios import read_frames

CASES = {
    "gmc": ({"eps": 0.02}, ("eps=0.02",)),
    "grpo": ({"eps": 0.05}, ("eps=0.05",)),
    "gspo": ({"eps": 0.02, "eps_low": 0.02}, ("eps=0.02",)),
    "reinforce": ({}, ("sampler.temperature=0.8",)),
    "decoupled": ({"eps": 0.05}, ("eps=0.05", "learner.updates_per_batch=2")),
}
RUN = ("D=5", "updates=8", "lr=3e-3", "learner.warmup=0", "evaluation.every=null")


@pytest.fixture(scope="module", params=CASES)
def recorded(request, base_cache, tmp_path_factory):
    """A run's directory, and its mini-batches read back with what its estimator makes of them."""
    settings, overrides = CASES[request.param]
    path = tmp_path_factory.mktemp("run") / request.param
    assert run(small_config(f"estimator={request.param}", *RUN, *overrides), path).state == "done"
    estimator = make(request.param, **settings)
    batches = [rebuilt(frame) for frame in read_frames(path / "ratios.bin")]
    return path, estimator, [(batch, estimator.coefficients(batch)) for batch in batches]


def touched(batch, kappa, level):
    """[B, G, T] by the definition: off its plain ratio by more than 1 %."""
    s = (batch.log_rho / batch.lengths).exp()[:, :, None]
    plain = {"token": batch.log_ratio.exp(), "sequence": s, "trajectory": batch.log_rho.exp()[:, :, None], "none": 1.0}
    return ((kappa - plain[level]).abs() > 0.01 * plain[level]) & (batch.mask > 0)


def spread(values):
    """Minimum, lower median, mean and maximum."""
    ordered = np.sort(values.numpy().ravel())
    return [float(ordered[0]), float(ordered[(len(ordered) - 1) // 2]), float(ordered.mean()), float(ordered[-1])]


def update_columns(batch, kappa, level):
    kept, off, flat = measures.kept(batch, kappa), touched(batch, kappa, level), batch.log_rho.flatten()
    low, median, mean, high = spread(batch.rho)
    return {
        "reward_mean": float(batch.rewards.mean()),
        "delay_mean": float(np.mean(batch.delays.numpy())),
        "delay_p50": float(np.quantile(batch.delays.numpy(), 0.5)),
        "delay_p95": float(np.quantile(batch.delays.numpy(), 0.95)),
        "delay_max": int(batch.delays.max()),
        "length_mean": float(batch.lengths.mean()),
        "mixed": float(np.mean([len(set(row)) > 1 for row in batch.rewards.tolist()])),
        "ess": float(measures.ess(flat)),
        "ess_token": measures.ess_token(batch.log_rho, batch.lengths),
        "ratio_min": low,
        "ratio_median": median,
        "ratio_mean": mean,
        "ratio_max": high,
        "hill": measures.hill(flat),
        "top_share": float(measures.top_share(flat)),
        "log_ratio_sd": float(np.std(flat.numpy())),
        "kl_mu_pi_k1": float(measures.kl_mu_pi_k1(batch).mean()),
        "kl_mu_pi_k3": float(measures.kl_mu_pi_k3(batch).mean()),
        "kl_pi_mu": float(measures.kl_pi_mu(batch).mean()),
        "kept": float(kept.mean()),
        "removed": float(measures.removed(batch, kept).mean()),
        "intervention": float(off.any(-1).double().mean()),
        "clip_fraction": float(off.sum() / batch.mask.sum()),
        "second_moment": float(((kept * batch.advantages) ** 2).mean()),
        "kept_length_corr": measures.correlation(kept, batch.lengths),
        "kept_delay_corr": measures.correlation(kept, batch.delays[:, None].expand_as(kept)),
        "saturated": saturated(kappa),
        "tokens": int(batch.mask.sum()),
    }


def group_columns(batch, kappa, level, b):
    kept, off, mask = measures.kept(batch, kappa)[b], touched(batch, kappa, level)[b], batch.mask[b]
    low, median, mean, high = spread(batch.rho[b])
    return {
        "delay": int(batch.delays[b]),
        "version": int(batch.versions[b]),
        "length_max": int(mask.sum(-1).max()),
        "length_mean": float(mask.sum(-1).mean()),
        "reward_mean": float(batch.rewards[b].mean()),
        "ess": float(measures.ess(batch.log_rho[b])),
        "ratio_min": low,
        "ratio_median": median,
        "ratio_mean": mean,
        "ratio_max": high,
        "top_share": float(measures.top_share(batch.log_rho[b])),
        "kl_mu_pi_k1": float(measures.kl_mu_pi_k1(batch)[b].mean()),
        "kl_mu_pi_k3": float(measures.kl_mu_pi_k3(batch)[b].mean()),
        "kl_pi_mu": float(measures.kl_pi_mu(batch)[b].mean()),
        "kept": float(kept.mean()),
        "removed": float((batch.rho[b] - kept).clamp(min=0).mean()),
        "intervention": float(off.any(-1).double().mean()),
        "clip_fraction": float(off.sum() / mask.sum()),
        "second_moment": float(((kept * batch.advantages[b]) ** 2).mean()),
    }


def same(row, wanted):
    for name, value in wanted.items():
        assert row[name] == (None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)), name


UNREAD = {"update", "truncated", "fresh_log_ratio", "entropy", "grad_norm", "grad_cos", "lr", "sim_time", "wait"}
"""Columns that ratios.bin does not hold."""


def test_every_row_of_updates(recorded):
    path, estimator, batches = recorded
    found = rows(path, "updates")
    assert len(found) == len(batches) == 8
    for row, (batch, kappa) in zip(found, batches, strict=True):
        wanted = update_columns(batch, kappa, estimator.level)
        same(row, wanted)
        assert set(row) - set(wanted) == UNREAD


def test_every_row_of_groups(recorded):
    path, estimator, batches = recorded
    found = iter(rows(path, "groups"))
    for batch, kappa in batches:
        for b in range(2):
            row, wanted = next(found), group_columns(batch, kappa, estimator.level, b)
            same(row, wanted)
            assert set(row) - set(wanted) == {"update", "group"}
    assert next(found, None) is None


def test_the_run_was_worth_reading(recorded):
    """Delays 0 to 5; something was stale, and an estimator that cuts did."""
    path, estimator, batches = recorded
    assert [int(batch.delays.max()) for batch, _ in batches] == [0, 1, 2, 3, 4, 5, 5, 5]
    assert max(row["log_ratio_sd"] for row in rows(path, "updates")) > 0.1
    touched_at_all = max(row["clip_fraction"] for row in rows(path, "updates"))
    assert (touched_at_all > 0) == (estimator.name != "reinforce")


def test_delay_bins(recorded):
    """Means of every column of `groups` over delays 0, 1, 2-3 and 4-7, as analysis shows them."""
    path, estimator, batches = recorded
    table = by_delay(load_runs(path).groups).set_index("delay_from")
    bins = {}
    for batch, kappa in batches:
        for b, delay in enumerate(batch.delays.tolist()):
            lower = next(low for low, high in ((0, 0), (1, 1), (2, 3), (4, 7)) if low <= delay <= high)
            bins.setdefault(lower, []).append(group_columns(batch, kappa, estimator.level, b))
    assert table.index.tolist() == sorted(bins) == [0, 1, 2, 4]
    for lower, found in bins.items():
        assert table.loc[lower, "groups"] == len(found)
        for name in set(found[0]) - {"version"}:
            assert table.loc[lower, name] == pytest.approx(np.mean([row[name] for row in found]), rel=1e-9, abs=1e-12)


def test_a_fresh_mini_batch_is_all_at_its_plain_values(recorded):
    path, estimator, batches = recorded
    if estimator.name == "decoupled":  # its second step is recorded, where what was fresh may have moved
        assert torch.equal(batches[0][0].behaviour, batches[0][0].proximal)
        return
    row = rows(path, "updates")[0]
    values = {"ess": 1.0, "ratio_min": 1.0, "ratio_max": 1.0, "kept": 1.0, "removed": 0.0, "intervention": 0.0}
    values |= {"kl_mu_pi_k1": 0.0, "kl_mu_pi_k3": 0.0, "kl_pi_mu": 0.0, "log_ratio_sd": 0.0, "saturated": 0}
    assert {name: row[name] for name in values} == pytest.approx(values, rel=1e-12, abs=0)
    assert row["hill"] is row["kept_length_corr"] is row["kept_delay_corr"] is None
