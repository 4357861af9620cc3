"""The clock's rules without an event loop, for a law without a limit on workers: written from the contract alone."""

from math import floor

TICK = 1_000_000


def ticks(units):
    return floor(units * TICK + 0.5)


def reference(law, longest):
    """Rows (version, launch, done, update, consumed, ready_version) of every group, -1 for what did not happen."""
    rows, waiting, publish, publishes = [], [], 0, []
    for n in range(law.n_updates):
        while len(rows) < (law.look_ahead + 1 + n) * law.groups_per_update:
            stretch = max(law.t_min, 1 + law.lam * (longest[len(rows)] / law.l_ref - 1)) if law.lam else 1
            rows.append([n, publish, publish + ticks(law.c_gen * stretch), -1, -1, -1])
            waiting.append(len(rows) - 1)
        waiting.sort(key=lambda g: (rows[g][2], g))
        batch, waiting = waiting[: law.groups_per_update], waiting[law.groups_per_update :]
        poll = max(publish, rows[batch[-1]][2])
        publish = poll + ticks(law.c_update)
        publishes.append(publish)
        for group in batch:
            rows[group][3:5] = [n, poll]
    for row in rows:
        if row[2] < publish:
            row[5] = sum(p <= row[2] for p in publishes)
        else:
            row[2] = -1
    return rows
