"""What a page is made of: sections of paragraphs, tables and figures, as plain data that the template draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

Row = tuple[str, ...]


@dataclass(frozen=True)
class Paragraph:
    """A sentence or two."""

    kind: ClassVar[str] = "paragraph"
    text: str
    tone: str = ""
    """`warning` stands out."""


@dataclass(frozen=True)
class Items:
    """A list."""

    kind: ClassVar[str] = "items"
    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Cells as text; the first `left` columns are names, the last `words` verdicts, those between numbers."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: Row
    rows: tuple[Row, ...]
    left: int = 1
    words: int = 0
    copies: bool = False
    """Whether it is offered as Markdown, CSV and LaTeX too."""

    def is_number(self, column: int) -> bool:
        """Whether a column, counted from 0, is set to the right."""
        return self.left <= column < len(self.columns) - self.words

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"{self.caption}: every row has {len(self.columns)} cells")


@dataclass(frozen=True)
class Panel:
    """One drawing and what it shows in words, for those who do not see it."""

    svg: str
    alt: str
    width: int
    title: str = ""
    narrow: "Panel | None" = None
    """The same drawn for a small screen."""


@dataclass(frozen=True)
class Figure:
    """Panels side by side under one caption."""

    kind: ClassVar[str] = "figure"
    panels: tuple[Panel, ...]
    caption: str


@dataclass(frozen=True)
class Switch:
    """The same figure several ways, one shown at a time."""

    kind: ClassVar[str] = "switch"
    name: str
    label: str
    options: tuple[tuple[str, Figure], ...]


@dataclass(frozen=True)
class Lines:
    """Text as it was typed or printed."""

    kind: ClassVar[str] = "lines"
    text: str


@dataclass(frozen=True)
class Fold:
    """What is there on demand."""

    kind: ClassVar[str] = "fold"
    summary: str
    blocks: "tuple[Block, ...]"


Block = Paragraph | Items | Table | Figure | Switch | Lines | Fold


OPEN = 20
"""Rows of a table of details that stand open."""


def folded(table: Table) -> Table | Fold:
    """A long table on demand."""
    return table if len(table.rows) <= OPEN else Fold(f"Table of {len(table.rows)} cells", (table,))


@dataclass(frozen=True)
class Section:
    """A title that is the measured answer, and what it rests on."""

    key: str
    name: str
    """Two words for the table of contents."""
    title: str
    blocks: Sequence[Block]
