"""A table as text to paste: Markdown, CSV, LaTeX."""

import csv
import io
from collections.abc import Sequence

from delaysim.analysis.report.blocks import Table

TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "\N{MINUS SIGN}": "$-$", "°": r"$^\circ$",
    "–": "--",
}  # fmt: skip


def markdown(table: Table) -> str:
    """With the caption below."""
    rule = ["---:" if table.is_number(i) else "---" for i in range(len(table.columns))]
    lines = [_pipes(cells) for cells in (table.columns, rule, *table.rows)]
    return "\n".join([*lines, "", table.caption])


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"


def comma_separated(table: Table) -> str:
    """RFC 4180, without the caption."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([table.columns, *table.rows])
    return file.getvalue().rstrip()


def latex(table: Table) -> str:
    """A tabular of booktabs."""
    form = "".join("r" if table.is_number(i) else "l" for i in range(len(table.columns)))
    head, *body = [" & ".join(_escaped(cell) for cell in cells) + r" \\" for cells in (table.columns, *table.rows)]
    rules = (rf"\begin{{tabular}}{{{form}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}")
    return "\n".join([*rules, f"% {table.caption}"])


def _escaped(cell: str) -> str:
    return "".join(TEX.get(character, character) for character in cell)
