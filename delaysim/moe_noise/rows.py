"""The rows of a seed's table: what each is called, which number it shows and how. No torch."""

from typing import NamedTuple

from delaysim.moe_noise.numbers import Number


class RowOf(NamedTuple):
    """A number's name is None in the title of a section."""

    label: str
    name: str | None = None
    form: str = "{:.3f}"
    """Of the value, or one of PERCENT, SLOPE, MILLI."""


PERCENT, SLOPE, MILLI = "percent", "slope", "milli"
K3 = "{:.1e}"
PARTS = ("engine", "drift", "routing", "total")
REPLAYED = (("none", "none"), ("R2", "r2"), ("R3", "r3"))

FLIPS = (
    RowOf("experts chosen otherwise"),
    RowOf("  A/B, of (token, layer) pairs", "flips_ab", PERCENT),
    RowOf("  A/B, of tokens", "flips_ab_tokens", PERCENT),
    RowOf("  B/C, of (token, layer) pairs", "flips_bc", PERCENT),
    RowOf("  B/C, of tokens", "flips_bc_tokens", PERCENT),
    RowOf("  A/C, of (token, layer) pairs", "flips_ac", PERCENT),
    RowOf("  A/C, of tokens", "flips_ac_tokens", PERCENT),
)
TAILS = (
    RowOf("log-ratio of a token, A to B"),
    RowOf("  k3, none = R2", "k3_ab_none", K3),
    RowOf("  k3, R3", "k3_ab_r3", K3),
    RowOf("  largest, none = R2", "max_ab_none"),
    RowOf("  largest, R3", "max_ab_r3"),
    RowOf("log-ratio of a token, B to C"),
    *(RowOf(f"  largest, {label}", f"max_bc_{key}") for label, key in REPLAYED),
    RowOf("log-ratio of a token, A to C"),
    *(RowOf(f"  99 % lie below, {label}", f"p99_ac_{key}") for label, key in REPLAYED),
    *(RowOf(f"  largest, {label}", f"max_ac_{key}") for label, key in REPLAYED),
)
SPREADS = (
    RowOf("A to C in parts: std of a token"),
    *(RowOf(f"  {part}", f"std_{part}_token", "{:.4f}") for part in PARTS),
    RowOf("  of a sequence's mean [1e-3]"),
    *(RowOf(f"  {part}", f"std_{part}_sequence", MILLI) for part in PARTS),
    RowOf("  the mean itself, total [1e-3]", "mean_total", MILLI),
    RowOf("  of a trajectory's product"),
    *(RowOf(f"  {part}", f"std_{part}_product") for part in PARTS),
    RowOf("std of the product, replayed"),
    *(RowOf(f"  A to C, {label}", f"product_ac_{key}") for label, key in REPLAYED),
    *(RowOf(f"  B to C, {label}", f"product_bc_{key}") for label, key in REPLAYED),
)
SLOPES = (
    RowOf("slope of log std over log length"),
    RowOf("  routing, mean", "slope_routing_mean", SLOPE),
    RowOf("  routing, product", "slope_routing_product", SLOPE),
    RowOf("  drift, mean", "slope_drift_mean", SLOPE),
    RowOf("  total, mean", "slope_total_mean", SLOPE),
    RowOf("  total, product", "slope_total_product", SLOPE),
    RowOf("of the root mean square, about 0"),
    RowOf("  routing, mean", "slope_routing_rms", SLOPE),
    RowOf("  drift, mean", "slope_drift_rms", SLOPE),
    RowOf("  total, mean", "slope_total_rms", SLOPE),
)
MIXTURE = (*FLIPS, *TAILS, *SPREADS, *SLOPES)
CONTROL = (
    RowOf("dense control"),
    RowOf("  k3, A to B", "k3_ab_none", K3),
    RowOf("  largest of a token, B to C", "max_bc_none"),
    RowOf("  std of the product, routing", "std_routing_product"),
    RowOf("  std of the product, total", "std_total_product"),
    RowOf("  slope, total, mean", "slope_total_mean", SLOPE),
)


def cells(row: RowOf, number: Number | None) -> tuple[str, str]:
    """The value as text, and its interval; empty where there is none."""
    if row.name is None:
        return "", ""
    if number is None:
        return "-", ""
    if row.form == PERCENT:
        return f"{number.value:.1%}".replace("%", " %"), ""
    if row.form == MILLI:
        return f"{1000 * number.value:.3f}", ""
    if row.form == SLOPE:
        return f"{number.value:+.2f}", f"[{number.low:+.2f}, {number.high:+.2f}]"
    return row.form.format(number.value), ""
