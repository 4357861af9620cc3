"""Fields of one record, checked. Each raises Skip with a reason that names the field and not its value."""

from datetime import UTC, datetime
from typing import Any, TypeVar

from delaysim.importing.lines import Skip

T = TypeVar("T")
LARGEST = 2**53
"""Whole numbers below it are exact as floats."""


def whole(record: dict[str, Any], key: str) -> int | None:
    """A whole number from 0; None where the field is missing or null."""
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value != value // 1:
        raise Skip(f"{key} is not a whole number")
    if not 0 <= value < LARGEST:
        raise Skip(f"{key} is below 0 or too large")
    return int(value)


def number(record: dict[str, Any], key: str) -> float | None:
    """A finite number; None where the field is missing or null."""
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
        raise Skip(f"{key} is not a finite number below 2^53")
    return float(value)


def needed(value: T | None, key: str) -> T:
    """The value; Skip where it is None."""
    if value is None:
        raise Skip(f"{key} is missing")
    return value


def listed(record: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of objects; empty where the field is missing or null."""
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Skip(f"{key} is not a list of objects")
    return value


def nested(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    """An object inside objects; empty where one of them is missing or null."""
    for key in keys:
        value = record.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise Skip(f"{key} is not an object")
        record = value
    return record


def name(record: dict[str, Any], key: str) -> str | None:
    """A text or a whole number as text; None where the field is missing, null or empty."""
    value = record.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int) or (isinstance(value, str) and len(value) > 1000):
        raise Skip(f"{key} is not a name")
    return str(value)


def typed(cell: Any) -> Any:
    """A cell of a CSV file as the number it spells, None where it is empty, else as it is."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    try:
        value = float(text) if len(text) < 40 and "_" not in text else text
    except ValueError:
        value = text
    return None if value == "" else value


def moment(record: dict[str, Any], key: str) -> float | None:
    """A time [s]: a number, or a date and time in ISO 8601, taken as UTC where it has no zone."""
    value = record.get(key)
    if not isinstance(value, str) or not value:
        return number(record, key) if value != "" else None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise Skip(f"{key} is neither a number nor a date and time") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
