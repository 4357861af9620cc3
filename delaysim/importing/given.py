"""FIELD=VALUE on the command line as fields of the clock's law."""

from collections.abc import Iterable
from dataclasses import fields
from math import isfinite
from typing import Any, get_args

from delaysim.clock import Law
from delaysim.errors import UserError

ALIASES = {"eta": "look_ahead", "C_gen": "c_gen", "C_update": "c_update", "L_ref": "l_ref"}
"""Names of the configuration."""
OF_THE_LOG = ("n_updates", "groups_per_update", "group_size", "pilot_sizes", "speed", "slots")
"""Fields that the log or other options give, or that a log's lengths alone cannot serve."""


def law_fields(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Values by field of Law. Raises UserError on a field that there is not, or a value that it cannot have."""
    kinds = {field.name: field.type for field in fields(Law) if field.name not in OF_THE_LOG}
    found = {}
    for name, text in pairs:
        field = ALIASES.get(name, name)
        if field not in kinds:
            shown = [next((key for key, of in ALIASES.items() if of == kind), kind) for kind in kinds]
            raise UserError(f"--law {name}={text}: no such field; choose one of {', '.join(shown)}")
        found[field] = _value(name, text, kinds[field])
    return found


def _value(name: str, text: str, kind: Any) -> Any:
    kinds = get_args(kind) or (kind,)
    if text in ("none", "null") and type(None) in kinds:
        return None
    try:
        value = _parsed(text, kinds)
    except ValueError:
        value = None
    if (
        value is None
        or (isinstance(value, float) and not isfinite(value))
        or (not isinstance(value, str) and value < 0)
    ):
        wanted = " or ".join("none" if kind is type(None) else kind.__name__ for kind in kinds)
        raise UserError(f"--law {name}={text}: give {wanted}, not negative")
    return value


def _parsed(text: str, kinds: tuple[Any, ...]) -> Any:
    if bool in kinds:
        return {"true": True, "false": False}.get(text.lower())
    if float in kinds:
        return float(text)
    return int(text) if int in kinds else text
