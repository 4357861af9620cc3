"""Costs from values as people write them: a yaml file, flags, what calibration found. Errors name the key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from delaysim.clock.lengths import Empirical, LengthLaw, Lognormal
from delaysim.data import read_lengths
from delaysim.errors import UserError
from delaysim.predict.costs import Costs, Points, Rollout, Trainer, Work
from delaysim.predict.tables import read_points

LAW = {"mean": None, "sigma": 0.7, "prompt_share": 0.5, "cap": None}
"""Keys of lognormal lengths and their defaults; mean has none, cap is eight times the mean."""
MOST = 1e12
NEEDED = {
    "gpus": "--gpus 32",
    "B": "--B 64",
    "G": "--G 8",
    "lengths": "--lengths mean=600",
    "speed": "--speed 1=60 64=2200 256=3600",
    "trainer": "--trainer 8=60",
}  # fmt: skip
"""What every prediction needs, and a flag that gives it."""
KEYS = (*NEEDED, "slots", "scaling", "sync", "eta", "trainer_gpus", "unit", "price")


@dataclass(frozen=True)
class Question:
    """What is predicted: costs, and the grid they are asked for."""

    costs: Costs
    gpus: int
    trainer_gpus: tuple[int, ...]
    """GPUs that train, one split each; the rest generate."""
    look_aheads: tuple[int, ...]
    """eta of the fully asynchronous operations."""
    price: float | None
    """Money per GPU-hour."""


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The values of a costs file. Raises UserError; nothing in it is executed or looked up."""
    try:
        values = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None
    except (OmegaConfBaseException, ValueError, RecursionError) as error:
        raise UserError(f"{path}: not a yaml file of costs: {_first_line(error)}") from None
    except Exception as error:  # the parser's own errors share no public base class with OmegaConf's
        if type(error).__module__.partition(".")[0] != "yaml":
            raise
        raise UserError(f"{path}: not yaml: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: not KEY: VALUE lines; the keys are {', '.join(KEYS)}")
    for key in values:
        if key not in KEYS:
            raise UserError(f"{path}: no key {key!r}; the keys are {', '.join(KEYS)}")
    return {str(key): _beside(path, str(key), value) for key, value in values.items() if value is not None}


def _beside(path: str | Path, key: str, value: Any) -> Any:
    """Files are named relative to the yaml file."""
    folder = Path(path).parent
    if key in ("speed", "trainer") and isinstance(value, str):
        return str(folder / value)
    if key == "lengths" and isinstance(value, dict) and isinstance(value.get("path"), str):
        return {**value, "path": str(folder / value["path"])}
    return value


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def question(values: Mapping[str, Any], sources: Mapping[str, str]) -> Question:
    """Check every value and put the question together. Raises UserError naming the key and what to type."""
    for key, flag in NEEDED.items():
        if values.get(key) is None:
            raise UserError(f"no {key}: give it in the yaml file or as {flag}; delaysim predict --help shows all")
    gpus = whole("gpus", values["gpus"], 1)
    costs = Costs(
        work=Work(whole("B", values["B"], 1), whole("G", values["G"], 1), length_law(values["lengths"])),
        rollout=_rollout(values),
        trainer=Trainer(
            points("trainer", values["trainer"], ("GPUs", "seconds of an update")),
            number("scaling", values.get("scaling", 1.0), least=0.0, most=1.0),
        ),
        sync=number("sync", values.get("sync", 0.0), least=0.0),
        sources=sources,
    )
    look_aheads = tuple(dict.fromkeys(whole("eta", eta, 1) for eta in listed(values.get("eta", (4, 16)))))
    price = None if values.get("price") is None else number("price", values["price"], least=0.0)
    return Question(costs, gpus, _splits(values, gpus), look_aheads, price)


def _rollout(values: Mapping[str, Any]) -> Rollout:
    speed = points("speed", values["speed"], ("responses at once", "tokens/s"))
    slots = values.get("slots")
    return Rollout(speed, round(speed[-1][0]) if slots is None else whole("slots", slots, 1))


def _splits(values: Mapping[str, Any], gpus: int) -> tuple[int, ...]:
    """The numbers of GPUs that train: as given, or every multiple of `unit`, an eighth of all GPUs unless it is set."""
    if gpus < 2:
        return ()
    given = values.get("trainer_gpus")
    if given is not None:
        counts = tuple(dict.fromkeys(whole("trainer_gpus", count, 1) for count in listed(given)))
        if max(counts) >= gpus:
            raise UserError(f"trainer_gpus={max(counts)} leaves no GPU of gpus={gpus} to generate; give fewer")
        return counts
    unit = whole("unit", values.get("unit", max(1, gpus // 8)), 1)
    if unit >= gpus:
        raise UserError(f"unit={unit} leaves no split of gpus={gpus}; give a smaller unit, or --trainer-gpus")
    return tuple(range(unit, gpus, unit))


def length_law(value: Any) -> LengthLaw:
    """`{mean, sigma, prompt_share, cap}` or `{path, column}`, or the recorded lengths themselves."""
    if isinstance(value, Lognormal | Empirical):  # from calibration
        return value
    if not isinstance(value, Mapping):
        raise UserError(f"lengths={value!r}: give mean=600 [sigma=, prompt_share=, cap=], or path=FILE column=NAME")
    keys = ("path", "column") if "path" in value or "column" in value else tuple(LAW)
    for key in value:
        if key not in keys:
            raise UserError(f"lengths.{key}: no such key; give mean, sigma, prompt_share, cap, or path and column")
    if "path" in keys:
        if None in (value.get("path"), value.get("column")):
            raise UserError("lengths: a recorded file needs both path=FILE and column=NAME")
        return Empirical(read_lengths(str(value["path"]), str(value["column"])))
    if value.get("mean") is None:
        raise UserError("lengths: no mean; give e.g. mean=600 [tokens]")
    mean = number("lengths.mean", value["mean"], least=1.0)
    return Lognormal(
        mean,
        number("lengths.sigma", value.get("sigma", LAW["sigma"]), least=0.0, most=5.0),
        number("lengths.prompt_share", value.get("prompt_share", LAW["prompt_share"]), least=0.0, most=1.0),
        whole("lengths.cap", value.get("cap", round(8 * mean)), 1),
    )


def points(key: str, value: Any, columns: tuple[str, str]) -> Points:
    """A table of two columns, both above 0, the first growing: a mapping, or a csv file with a header."""
    if isinstance(value, str):
        rows: Sequence[tuple[Any, Any]] = read_points(value)
    elif isinstance(value, Mapping):
        rows = list(value.items())
    else:
        rows = [tuple(row) for row in value] if _is_pairs(value) else []
    if not rows:
        raise UserError(f"{key}={value!r}: give a table of {columns[0]} and {columns[1]}, as {NEEDED[key]} or FILE.csv")
    table = tuple(sorted((above_zero(f"{key} {columns[0]}", x), above_zero(f"{key} {columns[1]}", y)) for x, y in rows))
    twice = [x for (x, _), (after, _) in pairwise(table) if x == after]
    if twice:
        raise UserError(f"{key}: {twice[0]:g} {columns[0]} stands there twice; give one row for each")
    return table


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(row, list | tuple) and len(row) == 2 for row in value)


def listed(value: Any) -> list[Any]:
    """A value or a list of them as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def above_zero(key: str, value: Any) -> float:
    """A number above 0. Raises UserError."""
    found = number(key, value)
    if found <= 0:
        raise UserError(f"{key}: {value!r} is not above 0")
    return found


def number(key: str, value: Any, least: float | None = None, most: float = MOST) -> float:
    """A finite number in its bounds. Raises UserError."""
    try:
        found = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = float("nan")
    low = -MOST if least is None else least
    if not isfinite(found) or not low <= found <= most:
        bounds = f"from {low:g}" + (f" to {most:g}" if most < MOST else "")
        raise UserError(f"{key}={value!r}: give a number" + (f" {bounds}" if least is not None else ""))
    return found


def whole(key: str, value: Any, least: int) -> int:
    """A whole number of at least so much. Raises UserError."""
    found = number(key, value, least=float(least), most=1e9)
    if found != int(found):
        raise UserError(f"{key}={value!r}: give a whole number from {least}")
    return int(found)
