"""Small drivers of the clock."""

import numpy as np

from delaysim.clock import Clock


class Table:
    """Lengths from a list, the longest of each group."""

    def __init__(self, longest):
        self._longest = longest

    def longest(self, groups):
        return [self._longest[group % len(self._longest)] for group in groups]

    def sizes(self, groups):
        return np.array(self.longest(groups))

    def answer(self, law, launch):
        return self.longest(launch.groups)


def drive(law, longest):
    """Run the clock to its end; returns it with the steps it asked for."""
    clock, table, asked = Clock(law), Table(longest), []
    steps, answer = clock.steps(), None
    try:
        while True:
            step = steps.send(answer)
            asked.append(step)
            answer = None if step.launch is None else table.longest(step.launch.groups)
    except StopIteration:
        return clock, asked


def rows(clock):
    """Rows in the reference's form."""
    c = clock.ledger.columns()
    names = ("version", "launch", "done", "update", "consumed", "ready_version")
    return [[int(c[name][group]) for name in names] for group in range(len(clock.ledger))]
