"""What one command line did, cell by cell, and what it says of it at the end. No torch."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from delaysim.cli.plan import Planned, print_plan
from delaysim.errors import UserError
from delaysim.run.runner import Ended

LOG_LINES = 5
"""Of a failed cell's log, shown at the end of a sweep."""

Outcome = Ended | UserError | Planned | None
"""How a cell ended, why it could not start, what it would cost; None where it only printed."""


@dataclass
class Session:
    """The cells of one command line."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By the settings that tell a cell from the others."""
    notes: list[str] = field(default_factory=list)
    """What is to be said of the grid as a whole."""
    cells: int = 0
    """Of a sweep that trains, those refused included."""
    interrupted: bool = False

    def tell(self, words: str, outcome: Outcome) -> Outcome:
        """Take in how one cell went."""
        self.outcomes[words] = outcome
        return outcome

    def close(self, console: Console) -> int:
        """Print what was planned and what went wrong; the exit code. Raises UserError where a single run failed."""
        planned = [outcome for outcome in self.outcomes.values() if isinstance(outcome, Planned)]
        if planned:
            print_plan(planned, console)
        for note in self.notes:
            console.print(note, markup=False)
        ended = {words: outcome for words, outcome in self.outcomes.items() if isinstance(outcome, Ended)}
        wrong = {words: outcome for words, outcome in self.outcomes.items() if isinstance(outcome, UserError)}
        failed = [outcome for outcome in ended.values() if outcome.exit_code]
        if len(self.outcomes) == 1:
            for error in [*wrong.values(), *map(as_error, failed)]:
                raise error
        if self.cells > 1:
            console.print(self._counts(list(ended.values()), len(wrong)), markup=False)
        for outcome in failed:
            if not (self.interrupted and outcome.state == "interrupted"):
                _print_failed(outcome, console)
        for line in _not_run(wrong):
            console.print(line, markup=False)
        if self.interrupted:
            raise KeyboardInterrupt
        return max([outcome.exit_code for outcome in failed], default=2 if wrong else 0)

    def _counts(self, ended: list[Ended], wrong: int) -> str:
        counts = Counter(outcome.state for outcome in ended) + Counter({"not run": wrong})
        counts["done"] += counts.pop("skipped", 0)
        counts["not started"] = self.cells - len(ended) - wrong
        parts = [f"{count} {state}" for state, count in counts.items() if count]
        return f"{self.cells} cells: {', '.join(parts)}"


session = Session()


def as_error(ended: Ended) -> UserError:
    """A run that did not end well, as the error of a command that only had this run."""
    error = UserError(ended.message or ended.state)
    error.exit_code = ended.exit_code
    return error


def cell_text(words: str, outcome: Outcome) -> str:
    """One cell of a sweep in one line."""
    from delaysim.run.summary import cell_line

    if not isinstance(outcome, Ended):
        return f"not run: {words}: {outcome}"
    if outcome.exit_code:
        return f"{outcome.path.name}: {outcome.state}: {outcome.message}"
    return cell_line(outcome.path) + " (finished before)" * (outcome.state == "skipped")


def _not_run(wrong: dict[str, UserError]) -> list[str]:
    """One line for each error, with the first of the cells that have it."""
    cells: dict[str, list[str]] = {}
    for words, error in wrong.items():
        cells.setdefault(str(error), []).append(words)
    more = {error: f" and {len(words) - 1} more" * (len(words) > 1) for error, words in cells.items()}
    return [f"not run: {words[0]}{more[error]}: {error}" for error, words in cells.items()]


def _print_failed(ended: Ended, console: Console) -> None:
    console.print(f"{ended.state}: {ended.path}: {ended.message}", markup=False)
    if ended.state == "failed":
        for line in last_lines(ended.path / "run.log"):
            console.print(f"    {line}", markup=False)


def last_lines(log: Path) -> list[str]:
    """The end of a run's log; nothing where it has none."""
    return log.read_text(errors="replace").rstrip().splitlines()[-LOG_LINES:] if log.exists() else []
