"""`delaysim report`: finished runs as one page."""

import argparse
from pathlib import Path

from delaysim.cli.selection import condition
from delaysim.errors import UserError
from delaysim.files import write_atomic

EXAMPLES = """examples:
  delaysim report runs/ -o report.html                      every finished run below a folder
  delaysim report runs/fixed_delay/gmc-D128-...             one run's own page
  delaysim report runs/ --where D=0,64 estimator=gmc,tic    some of them
"""


def report(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    _check(options)
    from delaysim.analysis.report import Asked, page_of

    asked = Asked(options.tolerance, options.alpha)
    page = page_of([Path(text) for text in options.runs], dict(map(condition, options.where)), asked).encode()
    try:
        write_atomic(options.out, page)
    except OSError as error:
        raise UserError(f"-o {options.out}: {error.strerror}; give a file that can be written") from None
    print(f"{options.out}: {len(page) / 1e6:.2f} MB, complete by itself; open it in a browser")
    return 0


def _check(options: argparse.Namespace) -> None:
    """Before anything is read."""
    if options.tolerance <= 0:
        raise UserError(f"--tolerance {options.tolerance:g}: give the loss you accept, above 0, e.g. --tolerance 0.02")
    if not 0 < options.alpha < 1:
        raise UserError(f"--alpha {options.alpha:g}: give a chance of error between 0 and 1, e.g. --alpha 0.05")
    if options.out.is_dir() or not options.out.parent.is_dir():
        raise UserError(f"-o {options.out}: give a file in a folder that is there, e.g. -o report.html")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delaysim report",
        description="Finished runs as one page that needs no network and no scripts (docs/report.md).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", metavar="RUNS", help="folders of runs, or run directories")
    parser.add_argument("-o", "--out", type=Path, default=Path("report.html"), help="the page (default: report.html)")
    parser.add_argument("--where", nargs="+", action="extend", default=[], metavar="KEY=VALUE[,VALUE]",
                        help="only the runs with these settings")  # fmt: skip
    parser.add_argument("--tolerance", type=float, default=0.02, help="the loss of accuracy you accept (default 0.02)")
    parser.add_argument("--alpha", type=float, default=0.05, help="chance of any false verdict (default 0.05)")
    return parser
