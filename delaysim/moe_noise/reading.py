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
    yield (
        f"D={found[0].delay}: routing noise goes as T^{value('slope_routing_mean'):+.2f} in the sequence mean, as "
        f"T^{value('slope_routing_product'):+.2f} in the product: std {value('std_routing_product'):.2f} at {length} "
        "tokens."
    )
    acts = {
        name: f"{value(f'acts_{name}_alone'):.0%}".replace("%", " %") for name in ("grpo", "gspo", "tic", "gmc", "tis")
    }
    yield (
        f"  Alone it is acted on by GRPO in {acts['grpo']} of tokens, by GSPO in {acts['gspo']}, TIC {acts['tic']}, "
        f"GMC {acts['gmc']}, VCPO (tis) {acts['tis']} of responses."
    )
    yield (
        f"  It is {value('std_routing_product') ** 2 / value('std_total_product') ** 2:.0%} ".replace("%", " %")
        + f"of the product's variance; the whole log-ratio's mean goes as T^{value('slope_total_mean'):+.2f}."
    )
