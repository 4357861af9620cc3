"""`delaysim moe-noise`: routing noise of a small mixture of experts, apart from engine noise and drift."""

import argparse
import sys
from typing import NoReturn

from rich.console import Console

from delaysim.errors import UserError
from delaysim.moe_noise.setting import ENGINES, GROUP, Setting
from delaysim.run.progress import plain_console

EXAMPLES = """examples:
  delaysim moe-noise                                     one seed, bfloat16 against float32: some minutes
  delaysim moe-noise --seeds 0 1 --format csv > noise.csv
  delaysim moe-noise --engine batched_mm                 the same weights and precision, experts computed otherwise
  delaysim moe-noise --experts 64 --top-k 1              more experts that differ
"""
SHORTEST = 32


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; e.g. delaysim moe-noise --seeds 0 1 --delays 0 4 64")


def moe_noise(arguments: list[str]) -> int:
    """0, or UserError."""
    options = _parser().parse_args(arguments)
    setting = _setting(options)
    import torch

    from delaysim.moe_noise.experiment import experiment
    from delaysim.moe_noise.report import show, write_csv, write_json

    torch.set_num_threads(1)  # so that a seed gives the same numbers
    with Console(stderr=True).status("") as status:

        def progress(what: str, done: int, of: int) -> None:
            status.update(f"{what} {done} of {of}" if of else what)

        found = list(experiment(setting, sorted(set(options.seeds)), progress))
    if options.format == "csv":
        write_csv(found, sys.stdout)
    elif options.format == "json":
        write_json(setting, found, sys.stdout)
    else:
        show(setting, found, plain_console())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="delaysim moe-noise",
        description="Take routing noise of a small mixture of experts apart from engine noise and drift "
        "(docs/moe_noise.md).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--engine", choices=ENGINES, default=Setting.engine,
                        help="who samples: in bfloat16, or in float32 by another way to compute experts")  # fmt: skip
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], metavar="S", help="(default 0)")
    parser.add_argument("--delays", nargs="+", type=int, default=list(Setting.delays), metavar="D",
                        help="updates between sampling and update (default 0 4 64)")  # fmt: skip
    parser.add_argument("--length", type=int, default=Setting.length, metavar="T", help="tokens (default 512)")
    parser.add_argument("--sequences", type=int, default=Setting.sequences, metavar="S",
                        help=f"a multiple of {GROUP} (default 48)")  # fmt: skip
    parser.add_argument("--experts", type=int, default=Setting.experts, metavar="E", help="of a layer (default 16)")
    parser.add_argument("--top-k", type=int, default=Setting.top_k, metavar="K", help="of a token (default 2)")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    return parser


def _setting(options: argparse.Namespace) -> Setting:
    delays = sorted(set(options.delays))
    if min(*options.seeds, *delays) < 0:
        raise UserError("--seeds, --delays: give whole numbers from 0")
    if options.length < SHORTEST:
        raise UserError(f"--length {options.length}: slopes need {SHORTEST} tokens or more")
    if options.sequences < GROUP or options.sequences % GROUP:
        raise UserError(f"--sequences {options.sequences}: give a multiple of {GROUP}, the size of a group")
    if not 1 <= options.top_k <= options.experts:
        raise UserError(f"--top-k {options.top_k}: give 1 to {options.experts}, the number of experts")
    return Setting(
        engine=options.engine,
        delays=tuple(delays),
        sequences=options.sequences,
        length=options.length,
        experts=options.experts,
        top_k=options.top_k,
    )
