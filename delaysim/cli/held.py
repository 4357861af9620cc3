"""What a grid over group sizes holds constant, in words: the sample budget, the coupling, the mean delay. No torch."""

from collections.abc import Sequence
from typing import Any

from delaysim.settings.config import AUTO, Config


def held(cfgs: Sequence[Config]) -> list[str]:
    """One line where G varies over the grid, none elsewhere."""
    sizes = sorted({cfg.G for cfg in cfgs})
    if len(sizes) < 2:
        return []
    fixed = [text for name, value, text in _quantities(cfgs) if value]
    free = [name for name, value, _ in _quantities(cfgs) if not value]
    end = f"; not {', '.join(free)}" if free else ""
    return [f"G varies ({', '.join(map(str, sizes))}). Held: {', '.join(fixed) or 'nothing'}{end}"]


def _quantities(cfgs: Sequence[Config]) -> list[tuple[str, bool, str]]:
    """Name, whether it is the same for every G at otherwise equal settings, and what to say then."""
    return [
        ("the sample budget", _same(cfgs, lambda c: c.B * c.G), "the sample budget B*G"),
        ("groups per update", _same(cfgs, lambda c: c.B), "groups per update B"),
        ("lam", _same(cfgs, lambda c: c.clock.lam), "lam"),
        ("the mean delay", _delay_is_held(cfgs), "the mean delay"),
    ]


def _same(cfgs: Sequence[Config], of: Any) -> bool:
    """Whether the values that occur are the same for every G."""
    values = {size: {of(cfg) for cfg in cfgs if size == cfg.G} for size in {cfg.G for cfg in cfgs}}
    return len(set(map(frozenset, values.values()))) == 1


def _delay_is_held(cfgs: Sequence[Config]) -> bool:
    """The mean delay is the look-ahead (docs/clock.md); from the pilot it grows with the longest of G lengths."""
    return _same(cfgs, lambda c: c.clock.eta) and not any(c.clock.eta == AUTO and c.clock.lam > 0 for c in cfgs)
