"""Real systems as settings of the clock. One per file; every other file found here is a preset.

A file defines

    Knobs                                    the settings of the system, by its names and with its defaults
    SYSTEM, SOURCE, DIFFERS                  its name, where that was read, what it does that the clock does not
    FIXED                                    what else belongs into its configuration; {R} is {B} times {G}
    UNIT, COUNTS                             its own count of staleness: the unit, and what is subtracted from what
    staleness(update, version, knobs, B, G)  that count, from arrays over consumed groups
    nearest(law)                             the knobs that come closest to a law; raises UserError where none do

and a function of (knobs, B, G) for each number of the clock that `conf/preset/` takes as ${own:NUMBER}.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

SHARED = ("base",)


@cache
def discover() -> dict[str, ModuleType]:
    """Every preset by name, sorted."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    names = [stem for stem in files if not stem.startswith("__") and stem not in SHARED]
    return {name: import_module(f"{__name__}.{name}") for name in names}


def family(target: str) -> list[str]:
    """The presets that are meant by a target of an export: one of that name, or all that begin with it."""
    names = list(discover())
    return [target] if target in names else [name for name in names if name.startswith(f"{target}_")]


def targets() -> list[str]:
    """What can be exported to: systems, some of them with several presets."""
    short = {name.split("_")[0] for name in discover() if name.startswith(("nemo_", "verl_", "trl_"))}
    rest = {name for name in discover() if not name.startswith(tuple(f"{s}_" for s in short))}
    return sorted(short | rest)
