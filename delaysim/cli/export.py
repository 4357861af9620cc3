"""`delaysim export`: the knobs of a real system that come closest to a setting, and what will differ. No torch."""

import argparse
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from delaysim.cli.hydra_errors import translate
from delaysim.clock.law import IN_TURN, Law
from delaysim.clock.lengths import KeyedLengths
from delaysim.clock.loop import Stalled
from delaysim.clock.ready import STRICT
from delaysim.clock.trace import group_rows, run_alone
from delaysim.errors import UserError
from delaysim.files import read_json
from delaysim.presets import discover, family, targets
from delaysim.presets.base import age_limit, bound, knobs_of, written
from delaysim.run.drawn import length_law, settled_law
from delaysim.run.progress import requested_delay
from delaysim.settings.config import Config
from delaysim.settings.configfile import load_config
from delaysim.settings.laws import law_from
from delaysim.settings.places import conf_dir

EXAMPLES = """examples:
  delaysim export --to areal +suite=fixed_delay D=16
  delaysim export --to trl +suite=simulated_async clock.age_max=8
  delaysim export --to nemo +preset=verl_one_step              one system's setting in another's words
  delaysim export --to skyrl RUN_DIR                           the setting of a run
"""
POLICY = ("eta", "order", "queue_drop", "age_max", "abort_age", "timeout", "requeue", "attempts", "zero_variance",
          "workers", "slots", "speed", "arrivals", "sync_every", "replay", "in_flight")  # fmt: skip
"""Settings of the clock that a system decides; costs and durations belong to the machine."""
FAR = 2
"""A mean delay more than so many times the other, and one update, is not close."""
SUITES = ("fixed_delay", "simulated_async", "no_delay")
"""Suites whose delays follow from rules."""
LEAST, MOST = 400, 4000
"""Updates of the traces that are compared."""


@dataclass(frozen=True)
class Exported:
    """The nearest setting of one system."""

    name: str
    knobs: Any
    law: Law
    differences: list[str]


def export(arguments: list[str]) -> int:
    """0, or UserError where nothing comes close."""
    options = _parser().parse_args(arguments)
    cfg, law = _asked(options.setting)
    found = nearest_of(options.to, cfg, law)
    asked, got = simulated(cfg, law), simulated(cfg, found.law)
    if not asked.delay / FAR - 1 <= got.delay <= asked.delay * FAR + 1:
        raise UserError(
            f"{found.name}: comes no closer than a mean delay of {got.delay:.2f} to {asked.delay:.2f} "
            f"({'; '.join(found.differences)})"
        )
    for line in lines(cfg, law, found, asked, got):
        print(line)
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; e.g. delaysim export --to areal +suite=fixed_delay D=16")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="delaysim export",
        description="The knobs of a real system that come closest to a setting (docs/presets.md).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--to", required=True, metavar="SYSTEM", help=f"one of {', '.join(targets())}, or a preset")
    parser.add_argument("setting", nargs="+", metavar="SETTING", help="settings as of a run, or a run directory")
    return parser


# what is asked


def _asked(words: list[str]) -> tuple[Config, Law]:
    """The configuration and its law, of settings or of a run directory."""
    from delaysim.cli.compose import to_config

    if len(words) == 1 and "=" not in words[0]:
        cfg, manifest = load_config(Path(words[0]) / "config.yaml"), Path(words[0]) / "manifest.json"
        known = cfg.suite_name in SUITES and manifest.exists()
        if known and (law := read_json(manifest).get("law")):
            return cfg, law_from(law)
    else:
        cfg = to_config(composed(words))
    if cfg.suite_name not in SUITES:
        raise UserError(f"the suite {cfg.suite_name} has no rules to export: choose one of {', '.join(SUITES)}")
    return cfg, settled_law(cfg, length_law(cfg))


def composed(words: list[str]) -> DictConfig:
    """Hydra's composition of some settings, as a trace. Raises UserError."""
    import delaysim.cli.compose  # noqa: F401 - registers schemas and resolvers

    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            return compose("config", [*words, "mode=trace"])
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(translate(error)) from error


composed_preset = cache(lambda name: composed([f"+preset={name}"]))


def preset_config(name: str, settings: dict[str, Any], knobs: dict[str, Any]) -> Config:
    """The configuration of a preset with some knobs and other settings. Raises UserError."""
    from delaysim.cli.compose import to_config

    changed = deepcopy(composed_preset(name))
    for key, value in {**settings, **{f"preset.{key}": value for key, value in knobs.items()}}.items():
        OmegaConf.update(changed, key, value)
    return to_config(changed)


# the nearest


def nearest_of(target: str, cfg: Config, law: Law) -> Exported:
    """The preset of a system with the fewest differences. Raises UserError where there is none."""
    names = family(target)
    if not names:
        raise UserError(f"--to {target}: choose one of {', '.join(targets())}")
    found, refused = [], []
    for name in names:
        try:
            found.append(_try(name, cfg, law))
        except UserError as error:
            refused.append(error)
    if not found:
        raise refused[-1]
    return min(found, key=lambda export: _distance(law, export))


def _try(name: str, cfg: Config, law: Law) -> Exported:
    exact = law.consumable is not None and law.order in IN_TURN
    asked = replace(law, order="in_order") if exact else law
    knobs = discover()[name].nearest(asked)
    got = settled_law(with_preset(cfg, knobs), length_law(cfg))
    return Exported(name, knobs, got, list(_differences(asked, got, exact)))


def _distance(law: Law, export: Exported) -> tuple[int, bool]:
    exact = law.consumable is not None
    return len(export.differences), (export.law.order in STRICT) != (exact or law.order in STRICT)


def with_preset(cfg: Config, knobs: Any) -> Config:
    """The configuration with the clock's policy of a preset, and durations that follow lengths as real ones do."""
    theirs = preset_config(knobs.name, {"B": cfg.B, "G": cfg.G}, knobs_of(knobs))
    policy = {name: getattr(theirs.clock, name) for name in POLICY}
    clock = replace(cfg.clock, **policy, lam=cfg.clock.lam or 1.0)
    return replace(cfg, mode="trace", suite_name=theirs.suite_name, D=None, preset=knobs, clock=clock)


def _differences(asked: Law, got: Law, exact: bool) -> Iterator[str]:
    """What a preset's law has otherwise than the law asked for."""
    mine, theirs = _policy(asked), _policy(got)
    for name, value in mine.items():
        if theirs[name] != value:
            wanted = "one delay for all" if exact and name == "order" else _word(value)
            yield f"{name}: {wanted} was asked for, it has {_word(theirs[name])}"


def _policy(law: Law) -> dict[str, Any]:
    most = None if law.look_ahead is None else (law.look_ahead + 1) * law.groups_per_update
    unlimited = law.workers is None or (most is not None and law.workers >= most)
    return {
        "look-ahead": law.look_ahead,
        "order": law.order,
        "oldest group trained on": age_limit(law),
        "queue that drops": law.queue_drop,
        "timeout": law.timeout,
        "requeue": law.requeue,
        "groups of equal rewards": law.zero_variance,
        "groups in generation": None if unlimited else law.workers,
        "updates between syncs": law.sync_every,
        "share replayed": law.replay,
        "arrivals": law.arrivals,
    }


def _word(value: Any) -> str:
    if value is None:
        return "no limit"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


# what is printed


def lines(cfg: Config, law: Law, found: Exported, asked_for: "Simulated", got: "Simulated") -> Iterator[str]:
    """The knobs as the system writes them, and as comments what will differ."""
    system = discover()[found.name]
    asked = f"delay {requested_delay(cfg)}, look-ahead {_word(law.look_ahead)}, order {law.order}"
    yield f"# {system.SYSTEM}: closest to {asked}, with B={cfg.B}, G={cfg.G}"
    yield from written(found.knobs)
    yield from (line.format(B=cfg.B, G=cfg.G, R=cfg.B * cfg.G) for line in system.FIXED)
    yield "#"
    yield f"# it holds      {bound(found.law)}"
    yield f"# asked         {asked_for}"
    yield f"# these knobs   {got}"
    yield f"# it counts     {system.UNIT}: {system.COUNTS}"
    for text in (*found.differences, *system.DIFFERS):
        yield f"# differs       {text}"


class Simulated(NamedTuple):
    """The steady half of a trace."""

    delay: float
    """Mean [updates]."""
    most: int
    """Largest delay [updates]."""
    lengths: float
    """Mean length of trained groups over that of generated ones."""

    def __str__(self) -> str:
        delays = f"mean {self.delay:.2f}, max {self.most}"
        return f"{delays} (simulated, steady); trained/generated length {self.lengths:.3f}"


def simulated(cfg: Config, law: Law) -> Simulated:
    """Delays and lengths of a trace by the law. Raises UserError where the learner starves."""
    updates = min(MOST, max(LEAST, 8 * ((law.look_ahead or 0) + 1)))
    law = replace(law, n_updates=updates)
    lengths = KeyedLengths(length_law(cfg), cfg.G, cfg.seed, stat=law.stat, flat=cfg.lengths.flat)
    try:
        ledger = run_alone(law, lengths, cfg.seed).ledger
    except Stalled as error:
        raise UserError(f"with these knobs the learner starves: {error}") from None
    rows = group_rows(ledger)
    delays = rows["delay"][rows["update"] >= updates // 2]
    table = lengths.of_ledger(ledger, min(len(ledger), law.consumable or len(ledger)))
    trained = rows["update"][: len(table)] >= 0
    return Simulated(float(delays.mean()), int(delays.max()), float(table[trained].mean() / table.mean()))
