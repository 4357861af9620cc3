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
INSTEAD = {
    "queue": "raise it, or lower clock.eta instead: that bounds the mean delay, drops nothing",
    "age": "raise it, or lower clock.eta instead: that bounds the mean delay, drops nothing",
    "aborted": "raise it, or lower clock.eta instead: that bounds the mean delay, drops nothing",
    "timeout": "raise it, or cap the responses themselves (sampler.max_new_tokens)",
    "filtered": "clock.zero_variance=kept trains on flat groups too",
    "never": "more updates, a smaller clock.eta or clock.start=stagger make it less",
}
KNOBS = {
    "look-ahead": "clock.eta sets the mean delay",
    "workers": "clock.workers sets the mean delay, about workers / B",
    "look-ahead and workers": "clock.eta and clock.workers set the mean delay together",
    "slots": "clock.slots sets the mean delay, about slots / (B * G)",
    "arrivals": "clock.arrivals and the durations set the mean delay",
    "start": "the ramp lasts too long for this run: more updates, or clock.start=burst",
}
"""What to turn, by what holds generation for most of the time; where much is dropped, the drop policy beside it."""


def account_lines(found: Numbers, law: Numbers) -> list[str]:
    """Everything that an account says of a run with this law (both as they are written)."""
    if not found:
        return []
    lines = [*asked_for(found, law), *held_by(found), *knob(found), *_system(found, law), *_tokens(found)]
    return [*lines, *_in_flight(found), *_lengths(found), *warnings(found, law)]


def closing_lines(found: Numbers, law: Numbers) -> list[str]:
    """What the summary of a training run says of its account: what held it, what was dropped, what is biased."""
    if not found:
        return []
    moved = asked_for(found, law) if law["lam"] or law.get("steps", 1) > 1 else []
    return [*moved, *held_by(found), *_dropped(found), *warnings(found, law)]


def asked_for(found: Numbers, law: Numbers) -> list[str]:
    """The delay that came, next to the look-ahead and the age that were asked for."""
    delay, eta = found["delay"], law["look_ahead"]
    asked = "no look-ahead" if eta is None else f"a look-ahead of {eta}"
    oldest = law.get("age_max") if law.get("abort_age") is None else law["abort_age"]
    asked += "" if oldest is None else f", nothing older than {oldest}"
    mean = f"mean {delay['mean']:.1f}, p90 {delay['p90']:g}, max {delay['max']}"
    lines = [f"asked for      {asked}; {'steady state' if delay['steady'] else 'whole run'}: {mean}"]
    if eta is not None and delay["older"]:
        lines.append(f"               {delay['older']:.0%} of the groups were older than {eta}: "
                     "it bounds the mean, not the maximum")  # fmt: skip
    if law.get("steps", 1) > 1:
        lines.append(f"               in optimiser steps, {law['steps']} on each mini-batch: "
                     f"mean {delay['steps_mean']:.1f}, max {delay['steps_max']}")  # fmt: skip
    return lines


def held_by(found: Numbers) -> list[str]:
    """What held generation, and what the learner did."""
    if "held" not in found:
        return []
    return [f"held by        {_shares(found['held'])} of the time; learner {_shares(found['learner'])}"]


def knob(found: Numbers) -> list[str]:
    """The setting that would change the mean delay."""
    binding = max(found.get("held", {}), key=lambda name: float(found["held"][name]), default="nothing")
    books = found["tokens"]
    drops = [setting for kind, setting in SETTINGS.items() if kind != "filtered" and books[kind]["groups"]]
    also = f", less what clock.{' and clock.'.join(drops)} drops" if drops else ""
    return [f"               {KNOBS[binding]}{also}"] if binding in KNOBS else []


def _shares(parts: Mapping[str, float]) -> str:
    ordered = sorted(parts.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {share:.1%}" for name, share in ordered if share >= 0.0005) or "nothing"


def _system(found: Numbers, law: Numbers) -> list[str]:
    if "filled" not in found:
        return []
    groups = sum(found["filled"].values())
    parts = ", ".join(
        f"{count:,.1f} {place}" for place, count in found["filled"].items() if count or place != "scoring"
    )
    return [f"in system      {parts} groups, mean over time: {groups / law['groups_per_update']:.1f} mini-batches"]


def _tokens(found: Numbers) -> list[str]:
    books = found["tokens"]
    inside = sum(books[kind]["tokens"] for kind in ("generating", "ready"))
    dropped = sum(entry["tokens"] for kind, entry in books.items() if kind in SETTINGS)
    trained = books["trained"]["tokens"]
    total = trained + dropped + inside
    return [
        f"tokens         {total:,} generated = {trained:,} trained + {dropped:,} dropped",
        f"               + {inside:,} in the system when the run ended",
        *_dropped(found),
    ]


def _dropped(found: Numbers) -> list[str]:
    """One line per policy that dropped something."""
    books, lines = found["tokens"], []
    total = {unit: sum(entry[unit] for entry in books.values()) for unit in ("groups", "tokens")}
    for kind, setting in SETTINGS.items():
        groups, tokens, made = (books[kind][unit] for unit in ("groups", "tokens", "made"))
        if groups:
            wasted = f", {made / tokens:.0%} of them made" if made < tokens else ""
            lines.append(f"dropped        by {setting} {groups:,} groups ({groups / total['groups']:.1%}), "
                         f"{tokens / total['tokens']:.1%} of the tokens{wasted}")  # fmt: skip
    return lines


def _in_flight(found: Numbers) -> list[str]:
    if "token_lags" not in found:
        return []
    lags = found["token_lags"]
    return [
        f"in flight      swapped while generating: lag {lags['token']:.1f} by token (from the start"
        f" {lags['token_start']:.1f}),",
        f"               {lags['response']:.1f} by response ({lags['group_start']:.1f}), "
        f"{lags['newest']:.1f} for a group's last token",
    ]


def _lengths(found: Numbers) -> list[str]:
    """Trained over generated mean: the run as a whole, and where its start and end do not count."""
    lengths, longest = found["lengths"], found["longest"]
    policy = lengths[lengths["policy"]]
    where = "in the steady state" if lengths["policy"] == "steady" else "of what was decided"
    survival = longest[longest["policy"]]["survival"]
    return [
        f"lengths        trained/generated {_ratio(lengths['run'])} (whole run), {_ratio(policy)} {where};"
        f" KS {policy['ks']:.3f}",
        f"               trained of the tenth of groups that is shortest {survival[0]:.0%}, longest {survival[-1]:.0%}",
    ]


def _ratio(tilt: Numbers) -> str:
    return "-" if tilt["ratio"] is None else f"{tilt['ratio']:.3f}"


def warnings(found: Numbers, law: Numbers) -> list[str]:
    """A bias of more than 2 % by a drop policy, in lengths and in rewards; and one by start and end of the run."""
    lines: list[str] = []
    for name, title, more, less in (
        ("lengths", "LENGTH BIAS", "longer", "shorter"),
        ("rewards", "REWARD BIAS", "higher", "lower"),
    ):
        if name in found:
            lines += _biased(found[name], law, title, (less, more))
    return lines


def _biased(values: Numbers, law: Numbers, title: str, words: tuple[str, str]) -> list[str]:
    policy, run = values[values["policy"]], values["run"]
    if _off(policy) and (fate := _culprit(policy)) in SETTINGS:
        setting = SETTINGS[fate]
        cause = f"clock.{setting}={law[setting]} dropped {policy['shares'][fate]:.1%} of the groups, " + _compared(
            policy, fate, words
        )
        return _warning(title, policy, words, cause, INSTEAD[fate])
    if _off(run) and _culprit(run) == "never":
        cause = f"{run['shares']['never']:.1%} of the groups were left when the run ended, " + _compared(
            run, "never", words
        )
        return _warning(title, run, words, cause, INSTEAD["never"])
    return []


def _off(tilt: Numbers) -> bool:
    return tilt["ratio"] is not None and abs(tilt["ratio"] - 1.0) > BEYOND


def _culprit(tilt: Numbers) -> str:
    parts = tilt["parts"]
    return max(parts, key=lambda fate: abs(parts[fate] or 0.0), default="")


def _compared(tilt: Numbers, fate: str, words: tuple[str, str]) -> str:
    times = tilt["means"][fate] / tilt["generated"]
    return f"on average {abs(times - 1):.0%} {words[times > 1]}"


def _warning(title: str, tilt: Numbers, words: tuple[str, str], cause: str, instead: str) -> list[str]:
    off = tilt["ratio"] - 1.0
    chance = f"; chance alone: ±{2 * tilt['chance']:.1%}" if 2 * tilt["chance"] > abs(off) / 2 else ""
    return [
        f"{title:<15}trained {abs(off):.1%} {words[off > 0]} than generated{chance}",
        f"               {cause}",
        f"               {instead}",
    ]
