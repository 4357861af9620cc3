"""Estimators on the command line: the checks as a command, recipes, what eps sets, and what is refused."""

import pytest
from settings import make_config

from delaysim.cli.check_estimator import check_estimator
from delaysim.cli.compose import recipe
from delaysim.contract import CHECKS
from delaysim.errors import UserError
from delaysim.estimators import discover
from delaysim.estimators.advantage import ADVANTAGES
from delaysim.estimators.base import AGGREGATIONS
from delaysim.settings.identity import threshold

ALL = discover()
SOFT = """
from dataclasses import dataclass
from math import log
SCOPE, LEVEL, NEEDS, DIAL = "response", "trajectory", (), ("cap",)
@dataclass
class Params:
    cap: float = 8.0
def mass_bound(params):
    return params.cap
def coefficients(batch, params):
    return batch.log_rho.clamp(max=log(params.cap)).exp().unsqueeze(-1) * batch.mask
"""
BROKEN = {
    "shape": ("batch.log_rho.clamp(max=log(params.cap)).exp()", "got torch.Size([3, 4]), expected (3, 4, 6)"),
    "delay_0": ("2 * batch.mask", "off by 1; if that is meant, declare AT_DELAY_0"),
    "padding": ("batch.ratio.clamp(max=params.cap)", "multiply by batch.mask"),
    "scope": ("batch.mask * batch.log_rho.softmax(1).unsqueeze(-1) * 4", "SCOPE is 'response'"),
    "needs": ("batch.mask * (1 + batch.advantage * batch.log_rho.tanh()[:, :, None])", "add it to NEEDS"),
    "extremes": ("batch.mask * batch.log_rho.exp()[:, :, None]", "use base.bounded_exp"),
    "weighted_class": ("batch.mask * batch.log_rho.clamp(max=2 * log(params.cap)).exp()[:, :, None]", "declared 8"),
}


def checked(capsys, *arguments):
    """Exit code, and what stands behind each check's name."""
    code = check_estimator(list(arguments))
    *lines, last = capsys.readouterr().out.strip().splitlines()
    rows = [line.split(maxsplit=2) for line in lines]
    assert [row[1] for row in rows] == [function.__name__ for function in CHECKS]
    return code, {name: (mark, text) for mark, name, text in rows}, last


def test_a_file_that_keeps_the_contract_is_exit_0(capsys, tmp_path):
    (tmp_path / "soft.py").write_text(SOFT)
    code, found, last = checked(capsys, str(tmp_path / "soft.py"))
    assert code == 0
    assert {mark for mark, _ in found.values()} == {"ok"}
    assert last.startswith("soft: scope response, needs log-ratios alone; in GMC-GRPO's weighted class for eps >= 7")


@pytest.mark.parametrize(("setting", "least"), [("cap=3", 2), ("cap=1.28", 0.28), ("eps=0.5", 0.5), ("cap=5e-1", 0)])
def test_its_settings_reach_the_checks(capsys, tmp_path, setting, least):
    (tmp_path / "soft.py").write_text(SOFT)
    code, _, last = checked(capsys, str(tmp_path / "soft.py"), setting)
    assert f"for eps >= {least:g}" in last
    assert code == (1 if setting == "cap=5e-1" else 0), "a cap below 1 is not 1 at delay 0"


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_named_and_exit_1(capsys, tmp_path, name):
    body, message = BROKEN[name]
    (tmp_path / "hard.py").write_text(SOFT[: SOFT.index("    return batch.log_rho")] + f"    return {body}\n")
    code, found, _ = checked(capsys, str(tmp_path / "hard.py"))
    assert code == 1
    assert found[name][0] == "BROKEN"
    assert message in found[name][1]


@pytest.mark.parametrize("name", ALL)
def test_built_ins_are_checked_by_name(capsys, name):
    code, found, last = checked(capsys, name)
    assert code == 0
    assert {mark for mark, _ in found.values()} == {"ok"}
    assert last.startswith(f"{name}: scope {ALL[name].SCOPE}, ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), r"^nope: there is no such estimator; give a \.py file, or one of a3po, cispo"),
        (("nowhere.py",), r"^nowhere\.py is not a file"),
        (("tis", "cup=3"), r"^tis: .*'cup'; docs/estimators/tis\.md lists its settings"),
        (("tis", "cap"), r"^cap: a setting is KEY=VALUE, e\.g\. cap=3"),
        (("is", "eps=0.3"), r"^eps=0\.3: the estimator is has no threshold; drop eps"),
    ],
)
def test_what_cannot_be_checked_is_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        check_estimator(list(arguments))


# recipes


def learner(*overrides):
    conf = make_config(*overrides).learner
    return conf.advantage, conf.aggregation


PUBLISHED = {
    "grpo": ("group_norm", "seq_mean_token_mean"),
    "dapo": ("group_norm", "token_mean"),
    "drgrpo": ("group_mean", "fixed_length"),
    "gspo": ("group_norm", "seq_mean_token_mean"),
    "tic": ("length_norm", "seq_mean_token_sum"),
    "gmc": ("group_norm", "seq_mean_token_sum"),
    "tis": ("group_norm", "seq_mean_token_mean"),
    "topr": ("signed_reward", "seq_mean_token_sum"),
    "cispo": ("group_norm", "token_mean"),
}


@pytest.mark.parametrize("name", ALL)
def test_the_published_recipe_is_each_papers_own(name):
    found = tuple(recipe("published", name, what) for what in ("advantage", "aggregation"))
    assert found == (ALL[name].PUBLISHED.advantage, ALL[name].PUBLISHED.aggregation)
    assert found[0] in ADVANTAGES
    assert found[1] in AGGREGATIONS


@pytest.mark.parametrize("name", PUBLISHED)
def test_and_the_learner_gets_it(name):
    assert learner("recipe=published", f"estimator={name}") == PUBLISHED[name]


def test_by_default_all_share_one_recipe():
    for name in ("grpo", "drgrpo", "topr", "gmc"):
        assert learner(f"estimator={name}") == ("group_norm", "seq_mean_token_mean")


def test_what_is_said_explicitly_wins_over_either_recipe():
    for kind, rest in (
        ("published", ("group_mean", "fixed_length")),
        ("shared", ("group_norm", "seq_mean_token_mean")),
    ):
        chosen = (f"recipe={kind}", "estimator=drgrpo")
        assert learner("learner.aggregation=token_mean", *chosen) == (rest[0], "token_mean")
        assert learner("learner.advantage=leave_one_out", *chosen) == ("leave_one_out", rest[1])


def test_a_users_file_has_no_published_recipe(tmp_path):
    (tmp_path / "soft.py").write_text(SOFT)
    custom = ("estimator=custom", f"estimator.path={tmp_path / 'soft.py'}")
    assert learner(*custom) == ("group_norm", "seq_mean_token_mean")
    with pytest.raises(UserError, match=r"^recipe=published: a user's file has none; give learner\.advantage="):
        make_config(*custom, "recipe=published")


# eps

CAPS = {"tis": 8, "token_tis": 2, "cispo": 5, "icepop": 5, "mis": 3}
PLAIN = {
    "grpo": ("eps",), "tic": ("eps",), "gmc": ("eps",), "opsm": ("delta",), "m2po": ("budget",),
    "gspo": ("eps", "eps_low"), "gmpo": ("eps", "eps_low"), "decoupled": ("eps",), "a3po": ("eps",),
}  # fmt: skip


@pytest.mark.parametrize("name", CAPS)
def test_for_a_cap_eps_is_what_is_above_1(name):
    assert make_config(f"estimator={name}").estimator.cap == CAPS[name]
    cfg = make_config(f"estimator={name}", "eps=0.3")
    assert cfg.estimator.cap == 1.3
    assert threshold(cfg) == pytest.approx(0.3, rel=1e-12)


@pytest.mark.parametrize("name", PLAIN)
def test_elsewhere_eps_is_the_threshold_itself(name):
    cfg = make_config(f"estimator={name}", "eps=0.3")
    assert [getattr(cfg.estimator, field) for field in PLAIN[name]] == [0.3] * len(PLAIN[name])
    assert threshold(cfg) == 0.3


def test_without_eps_each_has_its_published_threshold_and_its_own_key_wins():
    for name in ("grpo", "gspo", "m2po", "reinforce"):
        cfg = make_config(f"estimator={name}")
        assert cfg.estimator == ALL[name].Params()
        assert threshold(cfg) == {"grpo": 0.2, "gspo": 4e-4, "m2po": 0.04, "reinforce": None}[name]
    assert make_config("estimator=tis", "eps=0.3", "estimator.cap=4").estimator.cap == 4
    assert make_config("estimator=gspo", "eps=0.3", "estimator.eps_low=0.1").estimator == ALL["gspo"].Params(
        eps=0.3, eps_low=0.1
    )


@pytest.mark.parametrize("name", ["reinforce", "is", "snis", "sapo", "topr", "vespo"])
def test_eps_is_refused_where_there_is_no_threshold(name):
    with pytest.raises(UserError, match=f"^eps=0.3: the estimator {name} has no threshold; drop eps$"):
        make_config(f"estimator={name}", "eps=0.3")


REFUSED = {
    ("estimator=m2po", "estimator.rule=nonsense"): "estimator.rule=nonsense: choose one of authors, areal",
    ("estimator=a3po", "estimator.method=cubic"): "estimator.method=cubic: choose one of loglinear, linear",
    ("estimator=tis", "eps=-1"): "estimator.cap=0: give a number above 0",
    ("estimator=grpo", "eps=-0.1"): "eps=-0.1: give 0 or more",
    ("estimator=m2po", "eps=-0.1"): "estimator.budget=-0.1: give 0 or more",
    ("rule=gac", "rule.above=jump"): "rule.above=jump: choose one of skip, remove, floor",
    ("rule=vcpo", "rule.ess=some"): "rule.ess=some: choose one of raw, kept",
    ("recipe=secret",): "recipe=secret: choose one of shared, published",
    ("learner.kl_penalty=k1",): "learner.kl_penalty=k1: choose one of k2, k3",
    ("learner.kl=-1",): "learner.kl=-1: give 0 or more",
    ("learner.updates_per_batch=0",): "learner.updates_per_batch=0: give 1 or more",
    ("learner.aggregation=mean",): "learner.aggregation=mean: choose one of seq_mean_token_mean",
    ("record.ratios=some",): "record.ratios=some: choose one of all, sample, none",
    **{(f"estimator={name}", "estimator.cap=0"): "estimator.cap=0: give a number above 0" for name in CAPS},
}


@pytest.mark.parametrize("overrides", REFUSED, ids=" ".join)
def test_refused_in_one_line(overrides):
    with pytest.raises(UserError) as error:
        make_config(*overrides)
    assert str(error.value).startswith(REFUSED[overrides])
    assert "\n" not in str(error.value)


def test_a_custom_estimator_needs_a_path():
    with pytest.raises(UserError, match=r"estimator\.path"):
        make_config("estimator=custom")
