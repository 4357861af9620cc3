"""The pages of estimators and rules say what the code does; the example files keep the contract."""

import re
from dataclasses import fields
from math import exp
from pathlib import Path

import pytest
import torch
from estimators.batches import pinned, random_batch
from settings import make_config

from delaysim import rules
from delaysim.contract import check
from delaysim.estimators import discover, make
from delaysim.estimators.advantage import ADVANTAGES
from delaysim.estimators.base import AGGREGATIONS, INPUTS, LEVELS, SCOPES
from delaysim.estimators.interface import dial
from delaysim.settings.chosen import load_estimator

ROOT = Path(__file__).parents[2]
PAGES, EXAMPLES = ROOT / "docs/estimators", ROOT / "examples/estimators"
README = (PAGES / "README.md").read_text()
ESTIMATORS, RULES = discover(), [name for name in rules.discover() if name != "none"]
FILES = ("my_loss", "carm", "sat", "mu_grpo")
READINGS = {"carm": "2610.02039", "sat": "2607.18722", "mu_grpo": "2605.17570"}
PARTS = (
    "# ", "\n    ", "\n**`eps`**", "\n**Needs**", "\n**Delay 0.**", "\n**GMC's class.**", "\n**Deviations",
    "\n**Compared with**", "\n    delaysim +suite=",
)  # fmt: skip
COLUMNS = (
    "ess", "ess_token", "ratio_min", "ratio_median", "ratio_mean", "ratio_max", "hill", "top_share", "kl_mu_pi_k1",
    "kl_mu_pi_k3", "kl_pi_mu", "kept", "removed", "intervention", "clip_fraction", "second_moment",
    "kept_length_corr", "kept_delay_corr", "grad_cos", "saturated",
)  # fmt: skip


def page(name):
    return (PAGES / f"{name}.md").read_text()


def part(name, head):
    """One paragraph of a page, its lines joined."""
    return re.search(rf"\n\*\*{head}\*\*(.*?)\n\n", page(name), re.DOTALL)[1].replace("\n", " ")


def ids(text):
    return set(re.findall(r"\b\d{4}\.\d{5}\b", text))


def rows(text, columns):
    """Cells of every table row with that many of them."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    found = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in found if len(row) == columns]


def commands(text):
    return [line.split() for line in re.findall(r"^    delaysim (\+suite=.*)$", text, re.MULTILINE)]


def example(name, **settings):
    return load_estimator(EXAMPLES / f"{name}.py", settings)


@pytest.mark.parametrize("name", [*ESTIMATORS, *(f"rule_{rule}" for rule in RULES), "penalty"])
def test_every_page_has_the_same_parts_in_the_same_order(name):
    text = page(name)
    where = [text.find(mark) for mark in PARTS]
    assert -1 not in where
    assert where == sorted(where)
    assert 20 <= len(text.splitlines()) <= 40
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_page_names_settings_threshold_needs_and_class(name):
    text, estimator = page(name), make(name)
    assert f"estimator={name} " in f"{' '.join(commands(text)[-1])} "
    assert ids(ESTIMATORS[name].__doc__) <= ids(text)
    assert all(f.name in text for f in fields(estimator.params) if f.name != "name")
    wanted = "is refused" if estimator.eps is None else f"eps = {estimator.eps:g}"
    assert re.search(rf"{re.escape(wanted)}(?![\d.]*\d)", part(name, "`eps`"))
    needs = part(name, "Needs")
    assert f"scope `{estimator.scope}`" in needs
    assert all(f"`{need}`" in needs for need in estimator.needs) if estimator.needs else "log-ratios alone" in needs
    assert ("kappa = 1" in part(name, r"Delay 0\.")) == (estimator.at_delay_0 is None)
    bound = estimator.mass_bound
    member = "For no eps" if bound is None else f"From eps = {bound - 1:.4g}"
    assert re.match(rf" {re.escape(member)}(?![\d.]*\d)", part(name, r"GMC's class\."))


@pytest.mark.parametrize("name", RULES)
def test_page_of_a_rule_names_its_settings_and_paper(name):
    text, module = page(f"rule_{name}"), rules.discover()[name]
    assert f"rule={name}" in commands(text)[-1]
    assert ids(module.__doc__) <= ids(text)
    assert all(f.name in text for f in fields(module.Params) if f.name != "name")
    assert all(choice in text for choices in module.CHOICES.values() for choice in choices)
    assert ("*reconstruction*" in text) == ("*reconstruction*" in module.__doc__)


@pytest.mark.parametrize("path", [*PAGES.glob("*.md"), EXAMPLES / "README.md"], ids=lambda path: path.stem)
@pytest.mark.slow
def test_commands_compose_and_links_lead_somewhere(path, monkeypatch):
    monkeypatch.chdir(EXAMPLES if path.parent == PAGES else ROOT)
    text = path.read_text()
    for command in commands(text):
        make_config(*command[1:], suite=command[0].removeprefix("+suite="))
    for link in re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", text):
        assert not link or (path.parent / link).exists(), link


def test_table_has_every_estimator_with_its_threshold_and_its_class():
    wanted = {}
    for name in ESTIMATORS:
        estimator = make(name)
        eps = "" if estimator.eps is None else f"{estimator.eps:g}"
        star = "" if estimator.level == "trajectory" else " *"
        member = "none" if estimator.mass_bound is None else f"{estimator.mass_bound - 1:.4g}{star}"
        wanted[f"`{name}`"] = (eps, member, f"[{name}]({name}.md)")
    table = [row for row in rows(README, 6) if row[0].startswith("`")]
    assert {row[0]: tuple(row[3:]) for row in table} == wanted
    assert [row[0] for row in table] == [f"`{name}`" for name in ESTIMATORS]
    for name, _, sets, *_ in table:
        fields_set = dial(ESTIMATORS[name.strip("`")], make(name.strip("`")).params)
        assert bool(fields_set) == bool(sets)
        assert ("cap" in fields_set) == (sets == "cap = 1 + eps")


def test_recipes_are_those_of_the_files():
    found = {}
    for advantage, aggregation, names in rows(README, 3):
        if aggregation.strip("`") in AGGREGATIONS:
            found |= {name: (advantage.strip("`"), aggregation.strip("`")) for name in names.split(", ")}
    assert found == {name: (m.PUBLISHED.advantage, m.PUBLISHED.aggregation) for name, m in ESTIMATORS.items()}


def test_readme_explains_every_word_of_the_interface():
    explained = {cell for row in rows(README, 2) for cell in re.findall(r"`(\w+)`", row[0])}
    assert {*ADVANTAGES, *AGGREGATIONS, *COLUMNS} <= explained
    assert all(f"`{word}`" in README for word in (*INPUTS, *SCOPES, *LEVELS))
    assert all(f"`rule={name}`" in README for name in rules.discover())


def test_code_of_the_readme_is_the_example_file():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert code == (EXAMPLES / "my_loss.py").read_text()


VARIANTS = [
    *((name, {}) for name in FILES),
    *(("sat", {"kernel": kernel, "start": start}) for kernel in ("hill", "gaussian") for start in ("zero", "quantile")),
    *(("mu_grpo", {"side": side, "inclusive": inclusive}) for side in ("above", "either") for inclusive in (True,)),
]


@pytest.mark.parametrize(("name", "settings"), VARIANTS)
def test_examples_keep_the_contract(name, settings):
    assert [finding for finding in check(example(name, **settings)) if finding.broken] == []


def test_there_is_a_page_for_every_example_and_readings_say_so():
    listed = (EXAMPLES / "README.md").read_text()
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(FILES)
    assert all(f"`{name}.py`" in listed and f"estimators/{name}.py" in listed for name in FILES)
    for name, paper in READINGS.items():
        said = example(name).module.__doc__.replace("\n", " ")
        assert "A reading of third-party notes: the paper's text was not available" in said
        assert "Open, hence settings:" in said
        assert ids(said) == {paper}


def test_my_loss_by_hand():
    """Ratios 1.419, .819, 4.482, .368; caps 2 where A > 0 and 1.28 elsewhere."""
    found = example("my_loss").coefficients(pinned())[0, :, 0].tolist()
    assert found == pytest.approx([exp(0.35), exp(-0.2), 1.28, exp(-1)], rel=1e-12)
    found = example("my_loss", cap=1.2).at(0.1).coefficients(pinned())[0, :, 0].tolist()
    assert found == pytest.approx([1.2, exp(-0.2), 1.1, exp(-1)], rel=1e-12)


def test_carm_keeps_responses_whose_mean_drift_is_small():
    """Mean |log r| .15, .3, .5, 1 against log 1.2 = .182 and log 1.5 = .405; signs do not cancel."""
    batch, carm = pinned(), example("carm")
    assert carm.module.drift(batch)[0].tolist() == pytest.approx([0.15, 0.3, 0.5, 1.0], rel=1e-12)
    plain = make("grpo").coefficients(batch)
    for eps, count in ((0.2, 1), (0.5, 2), (2.0, 4)):
        found = carm.at(eps).coefficients(batch)
        assert torch.equal(found[:, :count], plain[:, :count])
        assert not found[:, count:].any()


@pytest.mark.parametrize(
    ("start", "low"), [("zero", 1 - 0.2 * 0.4624 / 1.4624), ("quantile", 1 - 0.2 * 0.4624 / 0.5648)]
)
def test_sat_on_the_pinned_group(start, low):
    """The .9 quantile of |log r| is .6 + .2 * .4 = .68; only -1 lies beyond, so only its lower end moves."""
    sat, batch = example("sat", start=start), pinned()
    ends = [end.expand_as(batch.mask)[batch.mask > 0].tolist() for end in sat.module.interval(batch, sat.params)]
    assert ends[0] == pytest.approx([0.8] * 8 + [low], rel=1e-9)
    assert ends[1] == pytest.approx([1.2] * 9, rel=1e-12)


@pytest.mark.parametrize("kernel", ["hill", "gaussian"])
@pytest.mark.parametrize("start", ["zero", "quantile"])
def test_sats_interval_lies_inside_ppos(kernel, start):
    for seed in range(10):
        batch = random_batch(seed)
        sat = example("sat", kernel=kernel, start=start)
        low, high = sat.module.interval(batch, sat.params)
        assert bool((low >= 0.8).all() & (low <= 1).all() & (high >= 1).all() & (high <= 1.2).all())
        moved = ((low > 0.8) | (high < 1.2)) & (batch.mask > 0)
        assert not ((low > 0.8) & (high < 1.2)).any(), "only the end on the token's side"
        assert 0 < int(moved.sum()) <= 0.1 * int(batch.mask.sum()) + 1
        base = example("sat", quantile=1.0).coefficients(batch)
        assert torch.equal(base, make("grpo").coefficients(batch)), "nothing beyond the largest: GRPO"


@pytest.mark.parametrize(
    ("settings", "second", "third"),
    [
        ({"trigger": exp(0.3)}, [1, 0], [1, 1, 1]),
        ({"trigger": exp(0.3), "inclusive": True}, [0, 0], [1, 1, 1]),
        ({"trigger": exp(0.55), "side": "above"}, [1, 1], [1, 0, 0]),
        ({"trigger": exp(0.55), "side": "above", "inclusive": True}, [1, 1], [0, 0, 0]),
        ({"trigger": exp(0.39), "side": "either"}, [1, 0], [1, 0, 0]),
        ({"trigger": 2.0}, [1, 1], [1, 1, 1]),
    ],
)
def test_mu_grpo_silences_what_follows_the_first_crossing(settings, second, third):
    """Responses 2 and 3 have A < 0 and log-ratios -.4, .2 and .6, .5, .4; the fourth, at -1, has A > 0."""
    batch = pinned()
    found = example("mu_grpo", **settings).coefficients(batch)[0]
    kept = (found > 0).int().tolist()
    assert kept == [[1, 1, 1], [*second, 0], third, [1, 0, 0]]
    assert torch.equal(found[found > 0], (batch.ratio[0] * batch.mask[0])[found > 0])


def test_mu_grpos_clip_is_relaxed():
    batch = random_batch(1, spread=0.9)
    found = example("mu_grpo", trigger=1e9).coefficients(batch)
    assert torch.equal(found, make("grpo", eps=0.5).coefficients(batch))
