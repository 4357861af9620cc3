"""FIELD=VALUE on the command line as fields of the clock's law."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, get_args

from delaysim.clock import Law
from delaysim.clock.ready import ORDERS
from delaysim.errors import UserError

ALIASES = {"eta": "look_ahead", "C_gen": "c_gen", "C_update": "c_update"}
"""Names of the configuration."""
OF_THE_LOG = (
    "n_updates", "groups_per_update", "group_size", "pilot_sizes", "l_cap", "l_ref", "stat", "zero_variance", "speed",
    "slots",
)  # fmt: skip
"""Fields that the log or other options give, or that the longest response of each group is not enough for."""
CHOICES = {
    "order": tuple(ORDERS),
    "coupling": ("affine", "power"),
    "start": ("burst", "stagger", "ramp"),
    "sync_mode": ("blocking", "background"),
}
LARGEST = 1_000_000
KINDS = {int: "a whole number", float: "a number", bool: "true or false", type(None): "none"}


def law_fields(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Values by field of Law. Raises UserError on a field that there is not, or a value that it cannot have."""
    kinds = {field.name: field.type for field in fields(Law) if field.name not in OF_THE_LOG}
    found = {}
    for name, text in pairs:
        field = ALIASES.get(name, name)
        if field not in kinds:
            shown = [next((key for key, of in ALIASES.items() if of == kind), kind) for kind in kinds]
            raise UserError(f"--law {name}={text}: no such field; choose one of {', '.join(shown)}")
        found[field] = _chosen(name, text) if name in CHOICES else _number(name, text, kinds[field])
    if found.get("look_ahead", 0) is None and not (found.get("workers") or found.get("arrivals")):
        raise UserError("--law eta=none: nothing holds generation back; give workers=N or arrivals=RATE too")
    return found


def _chosen(name: str, text: str) -> str:
    if text not in CHOICES[name]:
        raise UserError(f"--law {name}={text}: choose one of {', '.join(CHOICES[name])}")
    return text


def _number(name: str, text: str, kind: Any) -> Any:
    kinds = get_args(kind) or (kind,)
    if text in ("none", "null") and type(None) in kinds:
        return None
    try:
        value = {"true": True, "false": False}[text.lower()] if bool in kinds else _spelled(text, kinds)
    except (ValueError, KeyError):
        value = -1
    if not 0 <= value <= LARGEST:
        wanted = " or ".join(KINDS[kind] for kind in kinds)
        raise UserError(f"--law {name}={text}: give {wanted}" + ("" if bool in kinds else f" from 0 to {LARGEST:,}"))
    return value


def _spelled(text: str, kinds: tuple[Any, ...]) -> float:
    return float(text) if float in kinds else int(text)
