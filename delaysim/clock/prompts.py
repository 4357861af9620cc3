"""Which prompt the next launched group answers: one that goes again, or a fresh one."""

from collections import deque


class Prompts:
    """Fresh prompts without end, and before them those of dropped groups, in the order in which they were dropped."""

    def __init__(self) -> None:
        self._fresh = 0
        self._again: deque[tuple[int, int, int]] = deque()

    def again(self, prompt: int, attempt: int, now: int) -> None:
        """Launch a prompt once more, from tick `now` on."""
        self._again.append((prompt, attempt, now))

    @property
    def waiting(self) -> int:
        """Prompts that go again."""
        return len(self._again)

    def fresh(self, count: int) -> range:
        """The next fresh prompts."""
        first, self._fresh = self._fresh, self._fresh + count
        return range(first, self._fresh)

    def take(self, count: int, submitted: list[int]) -> tuple[range | list[int], list[int], list[int]]:
        """Prompts, attempts and submission ticks of the next groups; `submitted` holds the fresh ones'."""
        repeats = min(count, len(self._again))
        fresh = self.fresh(count - repeats)
        if not repeats:
            return fresh, [0] * count, submitted
        prompts, attempts, since = zip(*(self._again.popleft() for _ in range(repeats)), strict=True)
        return [*prompts, *fresh], [*attempts, *[0] * len(fresh)], [*since, *submitted]
