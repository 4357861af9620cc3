"""Grading with algebra: exact rules in this process, everything else in killable workers."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from delaysim.grading.extract import extract
from delaysim.grading.golds import Gold, GoldError, make_gold
from delaysim.grading.latex import plain
from delaysim.grading.scalar import UndecidedError, literally
from delaysim.grading.verdict import Status, Verdict, judge, right, verdict
from delaysim.grading.workers import Pool, WorkerDiedError, WorkerTimeoutError, now_ms

REMEMBERED = 20_000
"""Answers whose outcome is kept."""
Item = tuple[Gold, str] | tuple[Gold, str, bool]


def grade(gold: Gold, response: str, finished: bool = True, mode: str = "strict") -> Verdict:
    """Judge a response in this process. Raises UndecidedError where algebra is needed: use a Grader there."""
    start = now_ms()
    judged = judge(gold, response, finished, mode)
    if isinstance(judged, str):
        raise UndecidedError(f"{judged!r} against {gold.text!r}")
    return replace(judged, ms=now_ms() - start)


class Grader:
    """Grades responses; workers start when the first answer needs one. Use as a context manager, from any thread."""

    def __init__(self, workers: int = 1, deadline_s: float = 8.0) -> None:
        """Raises ValueError on fewer than one worker or a deadline that is not above 0."""
        if not deadline_s > 0:
            raise ValueError(f"deadline_s={deadline_s}: give seconds above 0")
        self.workers = workers
        self.pool = Pool(workers, deadline_s)
        self.lock = threading.Lock()
        self.known: OrderedDict[tuple[Gold, str], bool | Status] = OrderedDict()

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        self.pool.close()

    def grade(self, gold: Gold, response: str, finished: bool = True, mode: str = "strict") -> Verdict:
        """Judge one response. `finished`: it ended by itself, not at the length limit."""
        start = now_ms()
        judged = judge(gold, response, finished, mode)
        if isinstance(judged, str):
            found = extract(response, flexible=mode == "flexible")
            assert found is not None
            judged = self._asked(gold, found.text, found.method)
        return replace(judged, ms=now_ms() - start)

    def grade_many(self, items: Iterable[Item], mode: str = "strict") -> list[Verdict]:
        """Judge (gold, response) or (gold, response, finished) items; the verdicts in their order."""
        work = [(item[0], item[1], item[2] if len(item) > 2 else True, mode) for item in items]
        if self.workers == 1:
            return [self.grade(*item) for item in work]
        with ThreadPoolExecutor(self.workers) as threads:
            futures = [threads.submit(self.grade, *item) for item in work]
            try:
                return [future.result() for future in futures]
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise

    def classes(self, gold: Gold, texts: Sequence[str | None]) -> list[int]:
        """Equivalence classes of extracted answers, for votes: equal numbers are equal answers; -1 for None.

        Every answer that is right for the gold is in one class. Classes are numbered in order of appearance.
        """
        heads: list[tuple[str, bool]] = []
        seen: dict[str, int] = {}
        found = []
        for text in texts:
            name = None if text is None else literally(plain(text))
            if name is not None and name not in seen:
                seen[name] = self._class(gold, str(text), heads)
            found.append(-1 if name is None else seen[name])
        return found

    def _class(self, gold: Gold, text: str, heads: list[tuple[str, bool]]) -> int:
        correct = self._right(gold, text)
        for number, (head, head_correct) in enumerate(heads):
            if correct == head_correct and (correct or self._alike(gold, head, text)):
                return number
        heads.append((text, correct))
        return len(heads) - 1

    def _alike(self, gold: Gold, one: str, other: str) -> bool:
        """Whether two wrong answers say the same."""
        try:
            return self._right(make_gold(one, unit=gold.unit, rel_tol=gold.rel_tol, tolerance=gold.tolerance), other)
        except GoldError:
            return False

    def _right(self, gold: Gold, text: str) -> bool:
        try:
            return right(gold, text)
        except UndecidedError:
            return self._asked(gold, text, "").status == "correct"

    def _asked(self, gold: Gold, text: str, method: str) -> Verdict:
        outcome = self._recalled(gold, text)
        if isinstance(outcome, bool):
            return verdict(outcome, method, text)
        return Verdict(outcome, 0, method, text)

    def _recalled(self, gold: Gold, text: str) -> bool | Status:
        name = (gold, text)
        with self.lock:
            if name in self.known:
                self.known.move_to_end(name)
                return self.known[name]
        outcome = self._worked(gold, text)
        if outcome != "worker_died":
            with self.lock:
                self.known[name] = outcome
                if len(self.known) > REMEMBERED:
                    self.known.popitem(last=False)
        return outcome

    def _worked(self, gold: Gold, text: str) -> bool | Status:
        try:
            return bool(self.pool.ask("judged", gold, text))
        except WorkerTimeoutError:
            return "timeout"
        except WorkerDiedError:
            return "worker_died"
