"""Hydra's and OmegaConf's errors in one line of ours. No torch."""

import difflib
import re
from dataclasses import fields

from delaysim.presets import discover
from delaysim.settings.config import Config


def translate(error: BaseException) -> str:
    """One line: what is wrong, where, what to type instead."""
    text = _chain(error)
    for pattern, answer in PATTERNS:
        if found := re.search(pattern, text, re.DOTALL):
            return answer(found, text)
    return " ".join(text.split())


def _chain(error: BaseException | None) -> str:
    parts: list[str] = []
    while error is not None:
        parts.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(parts)


def _unknown_key(found: "re.Match[str]", text: str) -> str:
    key = found[1]
    if key.startswith("preset."):
        return _unknown_knob(key.removeprefix("preset."))
    known = [field.name for field in fields(Config)]
    near = difflib.get_close_matches(key.split(".")[0], known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near and near[0] != key else ""
    return f"{key}: there is no such setting; {hint}delaysim --help lists them, --cfg job shows all"


def _unknown_knob(name: str) -> str:
    known = {field.name for module in discover().values() for field in fields(module.Knobs)}
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean preset.{near[0]}? " if near and near[0] != name else ""
    return f"preset.{name}: the preset chosen has no such knob; {hint}docs/presets.md lists them"


def _unknown_choice(found: "re.Match[str]", text: str) -> str:
    options = re.search(r"Available options in '[^']*':\n((?:\s+\S+\n?)+)", text)
    names = ", ".join(options[1].split()) if options else "see delaysim --help"
    group, name = found[1].rsplit("/", 1) if "/" in found[1] else ("", found[1])
    return f"{group}={name}: there is no such {group or 'file'}; choose one of {names}"


def _wrong_type(found: "re.Match[str]", text: str) -> str:
    key = re.search(r"full_key: (\S+)", text)
    return f"{key[1] if key else 'a setting'}={found[1]}: expected {_type_name(found[2])}"


def _type_name(name: str) -> str:
    words = {"Integer": "a whole number", "Float": "a number", "Boolean": "true or false"}
    unions = {"Union[int, str]": "auto or a whole number", "Union[int, float, str]": "auto or a number"}
    return {**words, **unions}.get(name, name)


PATTERNS = (
    (r"Could not override '([^']+)'[.\s]*(?:\n|$)(?!.*No match in the defaults list)", _unknown_key),
    (r"Key '([^']+)' (?:is )?not in (?:struct|')", _unknown_key),
    (r"Could not find '([^']+)'", _unknown_choice),
    (
        r"Could not override '([^']+)'\.\s*No match in the defaults list",
        lambda found, text: f"{found[1]}=...: write +{found[1]}=..., it is not set by default",
    ),
    (r"Value '([^']*)'[^\n]*? could not be converted to (\w+)", _wrong_type),
    (
        r"Value '([^']*)' of type '[^']*' is incompatible with type hint '([^']+)'",
        _wrong_type,
    ),
    (
        r"override ([\w.]+)=(\S+)\s+Invalid value assigned: \w+ is not a ListConfig",
        lambda found, text: f"{found[1]}={found[2]}: give a list: {found[1]}=[{found[2]}]",
    ),
    (
        r"missing mandatory value: \w+\s+full_key: (\S+)",
        lambda found, text: f"{found[1]} is not set: give {found[1]}=...",
    ),
    (
        r"Error parsing override '([^']+)'\s+missing EQUAL",
        lambda found, text: f"{found[1]}: an override is KEY=VALUE",
    ),
    (
        r"Ambiguous value for argument '([^']+)'",
        lambda found, text: f"{found[1]}: several values need a sweep: add -m",
    ),
    (
        r"Multiple values for ([\w/]+)",
        lambda found, text: f"{found[1]} is given twice: keep one +{found[1]}=",
    ),
    (
        r"(?:mismatched input|no viable alternative|token recognition|extraneous input)[^\n]*",
        lambda found, text: (
            "cannot read the override "
            + _quoted(text)
            + ": write KEY=VALUE, quoted for the shell if it has spaces or brackets"
        ),
    ),
    (
        r"Missing mandatory value: (\S+)",
        lambda found, text: f"{found[1]} is not set: give {found[1]}=...",
    ),
)


def _quoted(text: str) -> str:
    found = re.search(r"Error when parsing index: \d+, string: (.*?) out of", text) or re.search(r"string: (.*)", text)
    return found[1] if found else "given"
