"""The account of a run in words, within 80 columns: for traces, and for the closing words of a training run."""

from collections.abc import Mapping
from typing import Any

Numbers = Mapping[str, Any]

BEYOND = 0.02
"""A trained mean that is off by more than this share is told as a bias."""
SETTINGS = {
    "queue": "queue_drop", "age": "age_max", "aborted": "abort_age", "timeout": "timeout", "filtered": "zero_variance",
}  # fmt: skip
"""The setting of the clock behind each way to be dropped."""
AGE = "raise it, or drop nothing and lower clock.eta for the mean delay"
INSTEAD = {
    "queue": AGE,
    "age": AGE,
    "aborted": AGE,
    "timeout": "raise it, or cap the responses (sampler.max_new_tokens)",
    "filtered": "clock.zero_variance=kept trains on flat groups too",
    "never": "more updates or a smaller clock.eta make it less",
}
"""What to do about a bias, by what makes it."""
KNOBS = {
    "look-ahead": "the look-ahead (clock.eta, or D) sets the mean delay",
    "workers": "clock.workers sets the mean delay, about workers / B",
    "look-ahead and workers": "clock.eta and clock.workers set the mean delay together",
    "slots": "clock.slots sets the mean delay, about slots / (B * G)",
    "arrivals": "clock.arrivals and the durations set the mean delay",
    "start": "the ramp is most of this run: more updates, or clock.start=burst",
}
"""What to turn, by what holds generation for most of the time."""


def account_lines(found: Numbers, law: Numbers, recorded: bool = False) -> list[str]:
    """Everything that an account says of a run with this law (both as they are written).

    `recorded` delays were not asked for by a look-ahead, and no rule held them.
    """
    if not found:
        return []
    rules = [] if recorded else [*asked_for(found, law), *held_by(found)]
    delay = [*rules, *_system(found, law)]
    return [*delay, *_tokens(found), *_in_flight(found), *_lengths(found), *warnings(found, law)]


def closing_lines(found: Numbers, law: Numbers, recorded: bool = False) -> list[str]:
    """What the summary of a training run says of its account: what held it, what was dropped, what is biased."""
    if not found or recorded:
        return []
    moved = asked_for(found, law) if law["lam"] or law.get("steps", 1) > 1 else []
    return [*moved, *held_by(found), *_dropped(found), *warnings(found, law)]


def asked_for(found: Numbers, law: Numbers) -> list[str]:
    """The delay that came, next to the look-ahead and the age that were asked for; empty where no clock was asked."""
    if "held" not in found:
        return []
    delay, eta, steps = found["delay"], law["look_ahead"], law.get("steps", 1)
    ages = [law[name] for name in ("age_max", "abort_age") if law.get(name) is not None]
    asked = "no look-ahead" if eta is None else f"a look-ahead of {eta}"
    came = f"mean {delay['mean']:.1f}, p90 {delay['p90']:g}, max {delay['max']}"
    came += " (steady)" if delay["steady"] else " (whole run)"
    lines = [f"{asked}, nothing older than {min(ages)}:", came] if ages else [f"{asked}: {came}"]
    if eta is not None and delay["older"]:
        lines.append(f"{delay['older']:.0%} were older than {eta}: it bounds the mean, not the maximum")
    if steps > 1:
        lines.append(f"in optimiser steps, {steps} an update: mean {delay['steps_mean']:.1f}, max {delay['steps_max']}")
    return _titled("asked for", lines)


def held_by(found: Numbers) -> list[str]:
    """What held generation, the setting that would change the mean delay, and what the learner did."""
    if "held" not in found:
        return []
    held = found["held"]
    lines = [f"{_shares(held)} of the time"]
    if (knob := KNOBS.get(max(held, key=lambda name: float(held[name])))) is not None:
        dropping = [f"clock.{SETTINGS[kind]}" for kind in SETTINGS if found["tokens"][kind]["groups"]]
        lines.append(knob)
        lines += [f"what {' and '.join(dropping)} drops makes it less"] if dropping else []
    return [*_titled("held by", lines), *_titled("learner", [_shares(found["learner"])])]


def warnings(found: Numbers, law: Numbers) -> list[str]:
    """A bias of more than 2 % by a drop policy, or by start and end of the run: in lengths, and in rewards."""
    said = {"lengths": ("LENGTH BIAS", ("shorter", "longer")), "rewards": ("REWARD BIAS", ("lower", "higher"))}
    lines = [line for name, words in said.items() if name in found for line in _biased(found[name], law, *words)]
    return list(dict.fromkeys(lines))  # the same advice for both is given once


def _titled(title: str, lines: list[str]) -> list[str]:
    return [f"{name:<15}{line}" for name, line in zip([title, *[""] * len(lines)], lines, strict=False)]


def _shares(parts: Mapping[str, float]) -> str:
    ordered = sorted(parts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {share:.1%}" for name, share in ordered if share >= 0.0005)


def _system(found: Numbers, law: Numbers) -> list[str]:
    if "filled" not in found:
        return []
    filled = found["filled"]
    parts = ", ".join(f"{filled[place]:,.1f} {place}" for place in filled if filled[place] or place != "scoring")
    batches = sum(filled.values()) / law["groups_per_update"]
    return _titled("in system", [f"{parts}: {batches:.1f} mini-batches of groups (mean)"])


def _tokens(found: Numbers) -> list[str]:
    books = found["tokens"]
    inside = sum(books[kind]["tokens"] for kind in ("generating", "ready"))
    dropped = sum(books[kind]["tokens"] for kind in SETTINGS)
    trained = books["trained"]["tokens"]
    total = f"{trained + dropped + inside:,} generated = {trained:,} trained + {dropped:,} dropped"
    return [*_titled("tokens", [total, f"+ {inside:,} in the system at the end"]), *_dropped(found)]


def _dropped(found: Numbers) -> list[str]:
    """One line per policy that dropped something."""
    books, lines = found["tokens"], []
    total = {unit: sum(entry[unit] for entry in books.values()) for unit in ("groups", "tokens")}
    for kind in (kind for kind in SETTINGS if books[kind]["groups"]):
        share = {unit: books[kind][unit] / total[unit] for unit in total}
        made = books[kind]["made"] / books[kind]["tokens"]
        cut = f" ({made:.0%} of them made)" if made < 1 else ""
        lines.append(f"{share['groups']:.1%} of groups by {SETTINGS[kind]}: {share['tokens']:.1%} of tokens{cut}")
    return _titled("dropped", lines)


def _in_flight(found: Numbers) -> list[str]:
    if "token_lags" not in found:
        return []
    lags = found["token_lags"]
    return _titled("in flight", [
        "lags, were weights swapped during generation (not at the start):",
        f"by token {lags['token']:.1f} (not {lags['token_start']:.1f}), by response {lags['response']:.1f} "
        f"({lags['group_start']:.1f}),",
        f"last token of a group {lags['newest']:.1f}",
    ])  # fmt: skip


def _lengths(found: Numbers) -> list[str]:
    """Trained over generated mean: the run as a whole, and where its start and end do not count."""
    lengths, longest = found["lengths"], found["longest"]
    policy, survival = lengths[lengths["policy"]], longest[longest["policy"]]["survival"]
    ratios = f"{_ratio(lengths['run'])} (whole run), {_ratio(policy)} ({lengths['policy']}); KS {policy['ks']:.3f}"
    tenths = f"the shortest tenth of groups: {survival[0]:.0%} trained; the longest: {survival[-1]:.0%}"
    lines = [f"trained/generated {ratios}", tenths]
    if (fresh := lengths.get("fresh_ratio")) is not None and fresh != policy["ratio"]:
        lines.append(f"trained/first groups of the prompts {fresh:.3f}: some were launched again")
    return _titled("lengths", lines)


def _ratio(tilt: Numbers) -> str:
    return "-" if tilt["ratio"] is None else f"{tilt['ratio']:.3f}"


def _biased(values: Numbers, law: Numbers, title: str, words: tuple[str, str]) -> list[str]:
    policy, run = values[values["policy"]], values["run"]
    if _off(policy) and (fate := _culprit(policy)) in SETTINGS:
        by = f"clock.{SETTINGS[fate]}={law[SETTINGS[fate]]} dropped {policy['shares'][fate]:.1%} of groups"
        return _warning(title, policy, fate, by, words)
    if _off(run) and _culprit(run) == "never":
        by = f"{run['shares']['never']:.1%} of groups were left at the end"
        return _warning(title, run, "never", by, words)
    return []


def _off(tilt: Numbers) -> bool:
    return tilt["ratio"] is not None and abs(tilt["ratio"] - 1.0) > BEYOND


def _culprit(tilt: Numbers) -> str:
    parts = tilt["parts"]
    return max(parts, key=lambda fate: abs(parts[fate] or 0.0), default="")


def _warning(title: str, tilt: Numbers, fate: str, by: str, words: tuple[str, str]) -> list[str]:
    off, lost = tilt["ratio"] - 1.0, tilt["means"][fate] / tilt["generated"] - 1.0
    chance = f"; chance alone: ±{2 * tilt['chance']:.1%}" if 4 * tilt["chance"] > abs(off) else ""
    return _titled(title, [
        f"trained {abs(off):.1%} {words[off > 0]} than generated{chance}",
        f"{by}, on average {abs(lost):.0%} {words[lost > 0]}",
        INSTEAD[fate],
    ])  # fmt: skip
