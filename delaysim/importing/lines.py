"""Log files line by line. A line is bounded, nothing in it is trusted, and whatever cannot be used is counted."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from delaysim.errors import UserError
from delaysim.importing.row import Row

LONGEST = 64 * 2**20
"""Bytes of the longest line that is read."""
BOM = b"\xef\xbb\xbf"


class Skip(Exception):
    """A line that cannot be used. Its text is the reason, the same words for every line of the kind."""


class Place(NamedTuple):
    """A line of a file, from 1."""

    path: Path
    number: int

    def __str__(self) -> str:
        return f"{self.path}, line {self.number}"


class Tally:
    """What was read and what was not."""

    def __init__(self) -> None:
        self.lines = 0
        """Lines that are not blank."""
        self.reasons: dict[str, tuple[int, Place]] = {}
        """Skipped lines by reason: how many, and the first."""
        self._seen: set[tuple[Any, ...]] = set()
        self._numbers: Counter[str] = Counter()

    @property
    def skipped(self) -> int:
        """Lines skipped."""
        return sum(count for count, _ in self.reasons.values())

    def skip(self, reason: str, place: Place) -> None:
        """Count a line that cannot be used."""
        count, first = self.reasons.get(reason, (0, place))
        self.reasons[reason] = count + 1, first

    def once(self, *key: Any) -> None:
        """Raise Skip where this key has been here before."""
        if key in self._seen:
            raise Skip("id read before")
        self._seen.add(key)

    def has(self, *key: Any) -> bool:
        """Whether this key has been here."""
        return key in self._seen

    def number(self, group: str) -> int:
        """0, 1, 2, ... for the responses of a group in the order that they are read."""
        self._numbers[group] += 1
        return self._numbers[group] - 1


Record = tuple[Place, dict[str, Any]]


def rows(records: Iterable[Record], convert: Callable[[Place, Any], Iterable[Row]], tally: Tally) -> Iterator[Row]:
    """What `convert` makes of each record; a record that it raises Skip on is counted."""
    for place, record in records:
        try:
            yield from list(convert(place, record))
        except Skip as reason:
            tally.skip(str(reason), place)


def objects(files: Sequence[Path], tally: Tally) -> Iterator[Record]:
    """The JSON objects of JSON-lines files."""
    for path in files:
        for place, line in _lines(path, tally):
            try:
                yield place, _parsed(line)
            except Skip as reason:
                tally.skip(str(reason), place)


def table(path: Path, tally: Tally) -> Iterator[Record]:
    """The rows of a CSV file by column name, all of them text. Raises UserError where it has no header."""
    last = [Place(path, 0)]
    reader = csv.reader(_texts(path, tally, last))
    header = _header(reader, path, tally)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            tally.skip(f"not CSV ({error})", last[0])
            continue
        if len(cells) == len(header):
            yield last[0], dict(zip(header, cells, strict=True))
        elif cells:
            tally.skip("another number of cells than the header has", last[0])


def _header(reader: Any, path: Path, tally: Tally) -> list[str]:
    try:
        header = [cell.strip() for cell in next(reader)]
    except (StopIteration, csv.Error):
        raise UserError(f"{path}: no header of columns in its first line") from None
    tally.lines -= 1
    return header


def _texts(path: Path, tally: Tally, last: list[Place]) -> Iterator[str]:
    for place, line in _lines(path, tally):
        last[0] = place
        try:
            yield line.decode()
        except UnicodeDecodeError:
            tally.skip("not UTF-8", place)


def _lines(path: Path, tally: Tally) -> Iterator[tuple[Place, bytes]]:
    """Lines that are not blank and not too long, each with its place."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    with file:
        number = 0
        while line := file.readline(LONGEST + 1):
            number += 1
            place = Place(path, number)
            if len(line) > LONGEST:
                _to_the_end(file, line)
                tally.lines += 1
                tally.skip(f"longer than {LONGEST >> 20} MiB", place)
            elif line.strip():
                tally.lines += 1
                yield place, line.removeprefix(BOM) if number == 1 else line


def _to_the_end(file: BinaryIO, part: bytes) -> None:
    """Of the line that begins with `part`."""
    while part and not part.endswith(b"\n"):
        part = file.readline(LONGEST)


def _parsed(line: bytes) -> dict[str, Any]:
    if b"\0" in line:
        raise Skip("NUL bytes")
    try:
        record = json.loads(line.decode())
    except UnicodeDecodeError:
        raise Skip("not UTF-8") from None
    except ValueError:
        raise Skip("not JSON" if line.endswith(b"\n") else "not JSON, a last line that was cut off") from None
    except RecursionError:
        raise Skip("JSON nested too deeply") from None
    if not isinstance(record, dict):
        raise Skip("not a JSON object")
    return record
