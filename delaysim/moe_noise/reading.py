"""What the numbers say of the claim that averaging cures routing noise, in sentences. No torch."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delaysim.moe_noise.experiment import Found


def mean(found: Sequence["Found"], name: str) -> float | None:
    """Over the seeds that have it."""
    values = [f.numbers[name].value for f in found if name in f.numbers]
    return fmean(values) if values else None


def reading(found: Sequence["Found"], length: int) -> Iterator[str]:
    """`found`: the mixture at one delay, all seeds. Nothing is said where there is no routing noise."""

    def value(name: str) -> float:
        return mean(found, name) or 0.0

    if mean(found, "slope_routing_mean") is None:
        return
    yield f"D={found[0].delay}, {length} tokens: what routing noise does"
    yield (
        f"  std goes as T^{value('slope_routing_mean'):+.2f} in the sequence mean, as "
        f"T^{value('slope_routing_product'):+.2f} in the product"
    )
    share = value("std_routing_product") ** 2 / value("std_total_product") ** 2
    yield f"  product: std {value('std_routing_product'):.2f}, {_percent(share)} of the log-ratio's variance"
    yield (
        f"  root mean square of the mean: T^{value('slope_routing_rms'):+.2f}, of the whole log-ratio's "
        f"T^{value('slope_total_rms'):+.2f}"
    )
    acts = {name: _percent(value(f"acts_{name}_alone")) for name in ("grpo", "gspo", "tic", "gmc", "tis")}
    yield f"  alone it moves GRPO on {acts['grpo']} of tokens; GSPO on {acts['gspo']} of responses,"
    yield f"  TIC on {acts['tic']}, GMC on {acts['gmc']}, VCPO's cap (tis) on {acts['tis']}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.01 else f"{100 * share:.0f} %"
