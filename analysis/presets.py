"""The page of presets, from the presets themselves: python analysis/presets.py writes docs/presets.md."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from delaysim.cli.export import POLICY, preset_config, simulated
from delaysim.presets import discover, targets
from delaysim.presets.base import bound
from delaysim.run.tracemode import length_law, settled_law
from delaysim.settings.config import Config
from delaysim.settings.identity import DEFAULTS

PAGE = Path(__file__).parent.parent / "docs/presets.md"
SETTING = {"C_gen": 4, "updates": 400}
"""Generation fast enough that the look-ahead binds where slots allow."""
HEAD = """# Real systems by name

<!-- Written by analysis/presets.py; the sources are delaysim/presets/ and conf/preset/. -->

    delaysim mode=trace +preset=areal preset.max_head_offpolicyness=4     a trace under AReaL's rules
    delaysim +preset=trl_async estimator=gmc                              train under TRL's
    delaysim export --to nemo +suite=fixed_delay D=16                     a setting in NeMo RL's words
    delaysim export --to skyrl RUN_DIR                                    a run's

A preset sets the clock's look-ahead, order, drops, slots and weight syncs from the knobs of a system, under the names
and defaults of that system. It is the suite `simulated_async`: costs, lengths and `lam` are set as ever, and `clock.*`
given on the command line wins. A preset leaves no mark on a run: the same clock, however it was set, is the same run.
A trace prints the delay in updates and in the system's own count, which goes into `moments.json` as `NAME_mean` and
`NAME_max`.

Limits on how far generation runs ahead hold the **mean** delay; limits on age hold the **maximum**, and pay for it
with the long responses that go first. Only systems that wait for what comes first hold every delay.

Numbers of samples, groups and tasks are not scaled: a default made for a batch of 1,024 is large beside B=8, G=8.
Concurrency often binds before the staleness setting does, above all where it defaults to one batch.

`delaysim export --to SYSTEM` takes settings as of a run, or a run directory, and prints the knobs that come closest,
what they hold, both delays as simulated, and what differs, as comments. Where even the nearest is off by more than a
factor of two in the mean delay it says so and exits with 2. Systems: {targets}.

With B=8, G=8, C_gen=4, C_update=1, lam=1 and lognormal lengths; steady state of {updates} updates; the last column is
the mean length of trained responses over that of generated ones:

| preset | clock | it holds | mean | max | lengths |
|---|---|---|---|---|---|
"""
UPDATES = 400


def page() -> str:
    """The whole page, of every preset at its defaults."""
    configs = {name: preset_config(name, SETTING, {}) for name in discover()}
    rows = "".join(f"{_row(name, cfg)}\n" for name, cfg in configs.items())
    parts = "\n".join(_section(name, module) for name, module in discover().items())
    return HEAD.format(targets=", ".join(f"`{name}`" for name in targets()), updates=UPDATES) + rows + "\n" + parts


def _row(name: str, cfg: Config) -> str:
    law = settled_law(cfg, length_law(cfg))
    found = simulated(cfg, law)
    clock = ", ".join(f"{key}={value}" for key, value in _clock(cfg))
    return f"| `{name}` | {clock} | {bound(law)} | {found.delay:.2f} | {found.most} | {found.lengths:.2f} |"


def _clock(cfg: Config) -> Iterator[tuple[str, Any]]:
    for key in POLICY:
        value = getattr(cfg.clock, key)
        if value != DEFAULTS[key] or key == "order":
            yield key, str(value).lower() if isinstance(value, bool) else value


def _section(name: str, module: ModuleType) -> str:
    lines = [f"## {name}", "", f"{module.__doc__}", "", f"Read in {module.SOURCE}.", ""]
    if knobs := [f for f in fields(module.Knobs) if f.metadata]:
        lines += ["| knob | default | as it is written | what |", "|---|---|---|---|"]
        lines += [_knob(f) for f in knobs] + [""]
    lines += [f"Its own count: {module.UNIT}, {module.COUNTS}.", "", "What differs:", ""]
    return "\n".join([*lines, *(f"- {text}" for text in module.DIFFERS), ""])


def _knob(field: Any) -> str:
    default = "null" if field.default is None else str(field.default)
    default = default.lower() if isinstance(field.default, bool) else default
    written = field.metadata["written"].replace("{}", "...")
    return f"| `preset.{field.name}` | {default} | `{written}` | {field.metadata['what']} |"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
