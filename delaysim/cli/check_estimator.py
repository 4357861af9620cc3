"""`delaysim check-estimator FILE`: the contract, on a user's loss or on one of ours."""

import argparse
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from delaysim.errors import UserError
from delaysim.run.progress import plain_console


def check_estimator(arguments: list[str]) -> int:
    """0 where every check holds, 1 where one is broken. Raises UserError where the file cannot be used."""
    parser = argparse.ArgumentParser(
        prog="delaysim check-estimator",
        description="Run the contract of estimators on a Python file, or on a built-in.",
    )
    parser.add_argument("estimator", help="a .py file with coefficients(batch, params), or the name of a built-in")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings of its Params, e.g. cap=3")
    options = parser.parse_args(arguments)
    settings = dict(parse_setting(text) for text in options.settings)
    return _report(named_estimator(options.estimator, settings))


def parse_setting(text: str) -> tuple[str, Any]:
    """KEY=VALUE with the value read as YAML reads it."""
    from omegaconf import OmegaConf

    key, equals, _ = text.partition("=")
    if not equals or not key:
        raise UserError(f"{text}: a setting is KEY=VALUE, e.g. cap=3")
    return key, OmegaConf.to_container(OmegaConf.from_dotlist([text]))[key]  # type: ignore[index,call-overload]


def named_estimator(name: str, settings: dict[str, Any]) -> Any:
    """A built-in by name, or a user's file, with settings; `eps` sets the dial of either."""
    from delaysim.estimators import discover, make
    from delaysim.settings.chosen import load_estimator

    eps = settings.pop("eps", None)
    if name.endswith(".py"):
        return load_estimator(Path(name), settings, eps)
    if name not in discover():
        raise UserError(f"{name}: there is no such estimator; give a .py file, or one of {', '.join(discover())}")
    try:
        estimator = make(name, **settings)
    except TypeError as error:
        raise UserError(f"{name}: {error}; docs/estimators/{name}.md lists its settings") from None
    if eps is not None and estimator.eps is None:
        raise UserError(f"eps={eps}: the estimator {name} has no threshold; drop eps")
    return estimator if eps is None else estimator.at(eps)


def _report(estimator: Any) -> int:
    from delaysim.contract import check

    console, findings = plain_console(), list(check(estimator))
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        mark = Text("ok", "green") if finding.broken is None else Text("BROKEN", "bold red")
        table.add_row(mark, Text(finding.name), Text(finding.says if finding.broken is None else finding.broken))
    console.print(table)
    bound = estimator.mass_bound
    member = "for no eps" if bound is None else f"for eps >= {max(bound - 1, 0):.4g}"
    console.print(
        f"{estimator.name}: scope {estimator.scope}, needs {', '.join(estimator.needs) or 'log-ratios alone'}; "
        f"in GMC-GRPO's weighted class {member} "
        "(one-token responses)",
        markup=False,
    )
    return 0 if all(finding.broken is None for finding in findings) else 1
