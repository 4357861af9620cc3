"""`delaysim compare`: who beats whom, by how much, and where nobody can say."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delaysim.cli.selection import FEW, NO_SEEDS, add_arguments, heading, level_of_look, selected, write_rows
from delaysim.errors import UserError
from delaysim.run.progress import plain_console

if TYPE_CHECKING:
    from delaysim.analysis.compare import Contrast
    from delaysim.analysis.grid import Stratum

EXAMPLES = """examples:
  delaysim compare runs/ --by estimator --at D              every pair of estimators, delay by delay
  delaysim compare runs/ --by estimator --at D=128 --against gmc
  delaysim compare runs/ --by eps --at estimator,D --where estimator=tic,gmc
  delaysim compare runs/ --margin 0.01                      also say where two are alike within a point
  delaysim compare runs/ --endpoint until=0.9               updates until an accuracy, in place of that at the end
  delaysim compare runs/evaluate --benchmarks               six sets, item-weighted and macro side by side
  delaysim compare runs/ --looks 3,5,8                      looked at after 3, 5 and 8 seeds: the error is spent on all
"""


def compare(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    at, conditions = _at(options.at)
    options.where += conditions
    if options.benchmarks and options.endpoint != "final":
        raise UserError(f"--endpoint {options.endpoint}: an evaluation has no curve; leave it out with --benchmarks")
    found = selected(options)
    from delaysim.analysis.compare import Rule
    from delaysim.analysis.compare import compare as contrasts
    from delaysim.analysis.endpoints import endpoint
    from delaysim.analysis.grid import arrange, varying

    strata = arrange(found.runs, options.by, varying(found.runs, (options.by,)) if at is None else at)
    against = _level(options.against, strata)
    alpha = level_of_look(options.alpha, options.looks, found.runs)
    rule = Rule(alpha, options.margin, endpoint(options.endpoint), options.endpoint.startswith("until"))
    rows = contrasts(strata, rule, against)
    if not rows:
        raise UserError(f"nothing to compare: no two values of {options.by} share {_held(strata)} and a seed")
    primary = _primary(strata, rule, against)
    if options.format != "table":
        write_rows([_row(options.by, contrast) for contrast in (*primary, *rows)], options.format)
    else:
        _print(options.by, strata, primary, rows, [*heading(found, options.endpoint), *found.notes], rule)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim compare",
        description="Paired differences between runs over shared seeds and problems (docs/compare.md).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.add_argument("--by", default="estimator", metavar="KEY", help="the setting to compare (default: estimator)")
    parser.add_argument("--at", metavar="KEY[=VALUE,...]", action="append",
                        help="compare at each value of it, or at these (default: of all that vary)")  # fmt: skip
    parser.add_argument("--benchmarks", action="store_true",
                        help="compare what delaysim evaluate found; RUNS are folders of evaluations")  # fmt: skip
    parser.add_argument("--against", metavar="VALUE", help="compare each with this one only")
    parser.add_argument("--endpoint", default="final", metavar="final|area|until=LEVEL",
                        help="its end, the area under its curve, or the updates until an accuracy")  # fmt: skip
    parser.add_argument("--margin", type=float, help="differences within it count as none")
    return parser


def _at(texts: list[str] | None) -> tuple[list[str] | None, list[str]]:
    """The keys of --at, and its conditions: `D=64,128` is both; `estimator,D` are two keys."""
    if texts is None:
        return None, []
    keys = [key for text in texts for key in text.partition("=")[0].split(",")]
    return keys, [text for text in texts if "=" in text]


def _level(text: str | None, strata: "Sequence[Stratum]") -> Any:
    from delaysim.analysis.grid import spelled

    levels = {spelled(level): level for stratum in strata for level in stratum.cells}
    if text is not None and spelled(text) not in levels:
        raise UserError(f"--against {text}: none of {', '.join(levels)}")
    return None if text is None else levels[spelled(text)]


def _held(strata: "Sequence[Stratum]") -> str:
    return " and ".join(strata[0].at) or "their settings"


def _primary(strata: "Sequence[Stratum]", rule: Any, against: Any) -> "list[Contrast]":
    """Areas over the held setting, where there is one and it is a number with several values."""
    from delaysim.analysis.compare import over_grid

    keys = list(strata[0].at)
    numeric = len(keys) == 1 and all(isinstance(stratum.at[keys[0]], int | float) for stratum in strata)
    return over_grid(strata, keys[0], rule, against) if numeric and len(strata) > 1 else []


def _row(by: str, contrast: "Contrast") -> dict[str, Any]:
    """A contrast as one flat row."""
    difference = contrast.difference
    matched = {f"difference_at_equal_{axis}": e and e.mean for axis, e in contrast.matched.items()}
    return {
        "by": by, **contrast.at, "a": contrast.a, "b": contrast.b, "mean_a": contrast.mean_a, "mean_b": contrast.mean_b,
        "difference": difference.mean, "low": difference.low, "high": difference.high, "se": difference.se,
        "df": difference.df, "p": difference.p, "p_holm": contrast.p_holm, "verdict": contrast.verdict,
        "seeds": len(contrast.seeds), "clusters": difference.clusters, "confidence": difference.confidence,
        "collapsed_a": contrast.collapsed_a, "collapsed_b": contrast.collapsed_b, "more_seeds": contrast.more_seeds,
        "iqm_a": contrast.iqm_a, "iqm_b": contrast.iqm_b, "improvement": contrast.improvement,
        **_sides(contrast), **matched,
    }  # fmt: skip


def _sides(contrast: "Contrast") -> dict[str, Any]:
    """Over several sets: the macro difference, and that of each set."""
    macro = contrast.macro
    ends = {} if macro is None else {"macro": macro.mean, "macro_low": macro.low, "macro_high": macro.high}
    return ends | {f"difference_{name}": alone.mean for name, alone in contrast.by_set.items()}


def _print(
    by: str, strata: Any, primary: "list[Contrast]", rows: "list[Contrast]", lines: Sequence[str], rule: Any
) -> None:
    from delaysim.cli.compare_tables import accuracies, contrasts, footnotes

    console = plain_console()
    for line in lines:
        console.print(line, markup=False)
    for table in accuracies(by, strata, rule):
        console.print(table)
    if primary:
        ((key, values),) = primary[0].at.items()
        title = f"\narea over {key} {values}: the primary endpoint"
        console.print(contrasts(primary, rule, title))
    console.print(contrasts(rows, rule, "\ndifferences"))
    for line in footnotes(rows, rule):
        console.print(line, markup=False)
    least = min(len(contrast.seeds) for contrast in rows)
    if least < 3:
        console.print(f"no ranking: {NO_SEEDS}" if least == 1 else FEW, markup=False)
