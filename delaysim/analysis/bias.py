"""What drop policies do, run by run and over seeds: a table from the accounts that runs and traces leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delaysim.accuracy import half_width, mean_se, summarise
from delaysim.analysis.footing import filled
from delaysim.analysis.grid import ordered, setting
from delaysim.analysis.settings import run_settings, with_drop
from delaysim.errors import UserError
from delaysim.files import read_json
from delaysim.run.account import FILE
from delaysim.run.records import read_rows
from delaysim.settings.identity import POLICIES

MEASURES = {
    "ratio": "trained/generated length",
    "fresh": "trained length/that of the prompts' first groups",
    "shortest": "trained of the shortest tenth of groups",
    "longest": "trained of the longest tenth of groups",
    "ks": "KS distance of trained from generated lengths",
    "dropped": "groups dropped",
    "delay_mean": "mean delay",
    "delay_max": "largest delay",
    "reward_ratio": "trained/generated reward",
    "accuracy": "pass@1 after the last update",
}
"""What a run is asked; the last two only training can tell."""


@dataclass(frozen=True)
class Biased:
    """One run."""

    settings: Mapping[str, Any]
    """Every setting but the seed, flat."""
    seed: int
    window: str
    """steady or decided: the groups that the comparisons are about (docs/length_bias.md)."""
    measures: Mapping[str, float]
    """By MEASURES, without those it cannot tell."""


@dataclass(frozen=True)
class Cell:
    """The runs that differ in the seed alone."""

    label: str
    """The settings in which the cells differ."""
    runs: Sequence[Biased]

    def mean(self, measure: str) -> tuple[float, float] | None:
        """Over the seeds, and half its 95 % interval (NaN for one seed); None where a run cannot tell."""
        values = [run.measures[measure] for run in self.runs if measure in run.measures]
        if len(values) < len(self.runs):
            return None
        mean, se = mean_se(values)
        return mean, half_width(se, len(values))


def load_biased(root: Path) -> list[Biased]:
    """Every run and trace with an account at or below `root`. Raises UserError where there is none."""
    found = [file.parent for file in sorted(root.rglob(FILE))]
    if not found:
        raise UserError(
            f"{root}: no account here or below; runs leave one at their end: delaysim mode=trace +sweep=length_bias"
        )
    return [_biased(run) for run in found]


def _biased(run: Path) -> Biased:
    account, identity = read_json(run / FILE), read_json(run / "manifest.json")["identity"]
    known = measured(account)
    if history := summarise(list(read_rows(run / "evals.jsonl"))):
        known["accuracy"] = float(history[-1].pass1)
    return Biased(run_settings(run, identity) if "estimator" in identity else _traced(identity), identity["seed"],
                  account["lengths"]["policy"], known)  # fmt: skip


def measured(account: Mapping[str, Any]) -> dict[str, float]:
    """By MEASURES, what an account can tell."""
    lengths, longest = (window(account[name]) for name in ("lengths", "longest"))
    measures = {
        "ratio": lengths["ratio"],
        "fresh": account["lengths"].get("fresh_ratio"),
        "shortest": longest["survival"][0],
        "longest": longest["survival"][-1],
        "ks": lengths["ks"],
        "dropped": sum(share for fate, share in lengths["shares"].items() if fate not in ("trained", "never")),
        "delay_mean": account["delay"]["mean"],
        "delay_max": account["delay"]["max"],
    }
    if "rewards" in account:
        measures["reward_ratio"] = window(account["rewards"])["ratio"]
    return {name: float(value) for name, value in measures.items() if value is not None}


def window(compared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The population by which a policy is judged: the steady state, in a short run what was decided."""
    return dict(compared[compared["policy"]])


def _traced(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a trace: it has no estimator."""
    flat = {key: value for key, value in identity.items() if not isinstance(value, Mapping) and key != "seed"}
    clock = {f"clock.{key}" if key in POLICIES else key: value for key, value in identity["clock"].items()}
    nested = with_drop(clock) | identity["lengths"]
    return flat | {key: tuple(value) if isinstance(value, list) else value for key, value in nested.items()}


def cells(runs: Sequence[Biased]) -> list[Cell]:
    """The runs by what they differ in but the seed, in order of that."""
    tables = filled([run.settings for run in runs])
    keys = sorted({key for table in tables for key in table})
    apart = [key for key in keys if len({repr(table.get(key)) for table in tables}) > 1]
    grouped: dict[tuple[Any, ...], list[Biased]] = {}
    for run, table in zip(runs, tables, strict=True):
        grouped.setdefault(tuple(table.get(key) for key in apart), []).append(run)
    in_order = sorted(grouped.items(), key=lambda item: [ordered(value) for value in item[0]])
    return [Cell(_label(apart, values), members) for values, members in in_order]


def _label(keys: Sequence[str], values: Sequence[Any]) -> str:
    named = {key.removeprefix("clock."): value for key, value in zip(keys, values, strict=True) if value is not None}
    parts = [setting(key, value) for key, value in named.items()]
    return " ".join(parts) or "all"
