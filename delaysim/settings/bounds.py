"""A setting that must be among some values or within bounds; each error says what to give. No torch."""

from delaysim.errors import UserError


def one_of(key: str, value: str, known: tuple[str, ...]) -> None:
    """Raise UserError unless the value is one of those known."""
    if value not in known:
        raise UserError(f"{key}={value}: choose one of {', '.join(known)}")


def at_least(key: str, value: float, low: float) -> None:
    """Raise UserError below `low`."""
    if value < low:
        raise UserError(f"{key}={value:g}: give {low:g} or more")


def above(key: str, value: float, low: float) -> None:
    """Raise UserError at or below `low`."""
    if value <= low:
        raise UserError(f"{key}={value:g}: give a number above {low:g}")


def between(key: str, value: float, low: float, high: float, open_above: bool = False) -> None:
    """Raise UserError outside low..high; `open_above` leaves `high` itself out."""
    if not low <= value <= high or (open_above and value == high):
        raise UserError(f"{key}={value:g}: give a number from {low:g} to {'below ' if open_above else ''}{high:g}")
