"""A parallel map over a stream: results in order, and only a few items in memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def ordered(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in the order of the items; at most two items a thread are under way.

    Tensor operations release the interpreter's lock, so threads suffice. Raises what `function` raises.
    """
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[tuple[Item, Future[Result]]] = deque()
        for item in items:
            waiting.append((item, pool.submit(function, item)))
            if len(waiting) >= 2 * threads:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()
