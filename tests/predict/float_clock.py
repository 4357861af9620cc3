"""The clock of a prediction as one loop over floats: responses in slots that share a speed, one learner, eta, sync.

Written without the clock's modules. What ends first happens first; at equal times the learner's update does.
"""

from collections import deque
from heapq import heappop, heappush


def speed(points, count):
    """Tokens/s of `count` responses together."""
    before = [p for p in ((0, 0.0), *points) if p[0] <= count]
    after = [p for p in points if p[0] > count]
    if not after:
        return before[-1][1]
    (x0, y0), (x1, y1) = before[-1], after[0]
    return y0 + (y1 - y0) * (count - x0) / (x1 - x0)


def run(law, lengths):
    """Columns by group (launch, done, version, update) and by update (poll, publish), in seconds."""
    now, version, progress = 0.0, 0, 0.0
    launch, done, born, update, poll, publish = [], {}, [], {}, [], []
    working, waiting, left, ready = [], deque(), {}, []
    training_ends = None
    while version < law.n_updates:
        # the learner
        if training_ends is None and len(ready) >= law.groups_per_update:
            wanted = range(version * law.groups_per_update, (version + 1) * law.groups_per_update)
            batch = list(wanted) if law.order == "in_order" else ready[: law.groups_per_update]
            if set(batch) <= set(ready):
                ready = [group for group in ready if group not in set(batch)]
                update.update(dict.fromkeys(batch, version))
                poll.append(now)
                training_ends = now + law.c_update + law.sync_time
        # admission, then slots
        while (
            len(launch) < (law.look_ahead + 1 + version) * law.groups_per_update
            and len(working) + len(waiting) < law.slots
        ):
            group = len(launch)
            launch.append(now)
            born.append(version)
            left[group] = law.group_size
            waiting.extend((group, length) for length in lengths[group])
            while waiting and len(working) < law.slots:
                owner, length = waiting.popleft()
                heappush(working, (progress + length, owner))
        # what comes next
        rate = speed(law.speed, len(working)) / len(working) if working else 0.0
        next_end = now + (working[0][0] - progress) / rate if working else float("inf")
        if training_ends is not None and training_ends <= next_end:
            progress, now, training_ends = progress + rate * (training_ends - now), training_ends, None
            publish.append(now)
            version += 1
            continue
        progress, now = working[0][0], next_end
        while working and working[0][0] <= progress:
            _, owner = heappop(working)
            left[owner] -= 1
            if not left[owner]:
                done[owner] = now
                ready.append(owner)
        while waiting and len(working) < law.slots:
            owner, length = waiting.popleft()
            heappush(working, (progress + length, owner))
    return {"launch": launch, "done": done, "version": born, "update": update, "poll": poll, "publish": publish}
