"""What an imported log says, as lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from delaysim.importing.definitions import DEFINITIONS
from delaysim.importing.lines import Tally
from delaysim.importing.resimulate import Resimulated
from delaysim.importing.row import Row

SHOWN = ("look_ahead", "lam", "c_gen")
QUANTITIES = ("mean", "p50", "p90", "max")
BIAS = 0.02
"""Difference of trained from generated mean length beyond which it is called a bias."""
OWN = {
    "areal": {"areal": "areal"},
    "prime_rl": {"prime_rl": "prime_rl", "  in flight": "prime_rl_in_flight", "  in queue": "prime_rl_in_queue"},
    "tinker": {"tinker": "tinker"},
    "vllm": {"newest token": "delay_newest", "by token": "delay_tokens"},
    "csv": {"newest token": "delay_newest", "by token": "delay_tokens"},
}
"""Derived columns shown beside the delay, by format, and their labels."""


def plain(text: str) -> str:
    """A text of the log, short and without control characters."""
    return text[:40].encode("unicode_escape").decode() if not text.isprintable() else text[:40]


def number(value: float) -> str:
    """Up to three digits behind the point, thousands apart."""
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:,.3g}"


def spread_text(spread: Mapping[str, float]) -> str:
    """Mean and quantiles in a line."""
    return f"mean {number(spread['mean'])}, " + ", ".join(
        f"{key} {number(spread[key])}" for key in ("p50", "p90", "max")
    )


def reading(name: str, form: ModuleType, paths: Sequence[Path], tally: Tally, said: Sequence[str]) -> Iterator[str]:
    """What was read, what was not, and which columns the log fills."""
    of = f"{len(paths)} files" if len(paths) > 1 else str(paths[0])
    yield f"log            {form.SYSTEM or name}: {of}"
    yield f"lines          {tally.lines:,} read, {tally.skipped:,} of them skipped"
    for reason, (count, first) in sorted(tally.reasons.items(), key=lambda item: -item[1][0]):
        yield f"               {count:,} {reason} (first: {first})"
    silent = [key for key in Row._fields if key not in said and not key.startswith("reported")]
    yield f"says           {', '.join(said)}"
    if silent:
        yield f"does not say   {', '.join(silent)}"


def delays(name: str, answer: Mapping[str, Any]) -> Iterator[str]:
    """Delays in delaysim's definition and in the system's."""
    groups = "rows" if answer["groups"] is None else "groups"
    if answer["delay"] is None and answer["reported"] is None:
        yield "delay          not in this log" + (": --B infers it from the times" if answer["can_infer"] else "")
        return
    if answer["delay"] is not None:
        kind = ", inferred from times: at least" if answer["inferred"] else ""
        count = answer["rows"] if answer["groups"] is None else answer["groups"]
        yield f"delay          {spread_text(answer['delay'])} updates{kind}"
        yield (
            f"               n - s, of {answer['delay']['count']:,} among {count:,} {groups}, "
            f"in {answer['updates']:,} updates"
        )
        for label, key in OWN[name].items():
            if (found := answer["definitions"].get(key)) is not None:
                yield f"{label:<14} {'the same' if found['same'] else spread_text(found)}: {DEFINITIONS[key]}"
    if answer["reported"] is not None:
        yield from _reported(answer["reported"])


def _reported(said: Mapping[str, Any]) -> Iterator[str]:
    yield f"reported       mean staleness of a step: {spread_text(said['mean'])}"
    if said["max"] is not None:
        yield f"               largest of a step: {spread_text(said['max'])}"
    if said["in_flight"] is not None and said["in_queue"] is not None:
        yield (
            f"               {number(said['in_flight']['mean'])} went by in flight, "
            f"{number(said['in_queue']['mean'])} in the queue"
        )
    if said["dropped"] is not None:
        yield f"               {said['dropped']:,.0f} responses dropped as too old"


def cap(answer: Mapping[str, Any]) -> Iterator[str]:
    """What the cap was in fact."""
    found = answer["cap"]
    if found is None:
        return
    what = "rows were" if answer["groups"] is None else "groups were"
    what = "steps had a response" if answer["delay"] is None else what
    yield (
        f"cap            your cap {number(found['cap'])} was a p90 of {number(found['p90'])}, "
        f"{found['above']:.0%} of {what} above it (max {number(found['max'])})"
    )


def lengths(answer: Mapping[str, Any]) -> Iterator[str]:
    """Lengths or durations, fates, and who was dropped."""
    if answer["tokens"] is not None:
        yield f"lengths        {spread_text(answer['tokens'])} tokens"
    if answer["seconds"] is not None:
        yield f"durations      {spread_text(answer['seconds'])} s from launch to the end"
    if answer["status"]:
        parts = sorted(answer["status"].items(), key=lambda item: -item[1])
        yield "status         " + ", ".join(f"{count:,} {plain(text)}" for text, count in parts[:8])
    lost = answer["drops"]
    if lost is None:
        return
    ratio = lost["mean_trained"] / lost["mean_generated"]
    yield f"drops          {lost['lost']:,} responses ({lost['share']:.1%}) with a length did not reach training"
    yield "               reached, by tenth of length: " + " ".join(f"{share:.0%}" for share in lost["reached"])
    verdict = "" if abs(ratio - 1) <= BIAS else ": LENGTH BIAS"
    yield (f"               trained/generated mean length {ratio:.3f}, KS distance {lost['distance']:.3f}{verdict}")


def clock(found: Resimulated) -> Iterator[str]:
    """Realised and simulated delays next to each other."""
    law = found.law
    eta = "no look-ahead limit" if law.look_ahead is None else f"eta={law.look_ahead}"
    how = " (fitted: mean delay)" if found.fitted else ""
    cost = {"given": "as given", "times": "from the log's times", "balance": "in balance"}[found.cost]
    more = "".join(f", {key}={value}" for key, value in found.given.items() if key not in SHOWN)
    yield f"clock          {eta}{how}, lam={law.lam:g}, B={law.groups_per_update}{more}, sizes in {found.sizes}"
    yield f"               C_gen={law.c_gen:.4g} updates ({cost})"
    yield " " * 27 + "".join(f"{key:>9}" for key in QUANTITIES)
    for name, row in (("realised", found.realised), ("simulated", found.simulated)):
        cells = "".join(f"{number(row[key]):>9}" for key in QUANTITIES)
        yield f"               {name:<12}{cells}"
    yield f"               KS distance {found.distance:.3f}"
    for number_of, note in enumerate(found.notes):
        yield f"{'' if number_of else 'not comparable':<15}{note}"
