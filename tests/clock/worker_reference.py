"""The clock's rules with a limit on workers, without a queue of events: written from the contract alone.

At every tick the first rule that applies is applied, in the contract's order (publish, completion, admission, poll),
until none does; then time jumps to the next publish or completion.
"""

from clock.reference import ticks


class WorkerReference:
    def __init__(self, law, longest):
        self.law, self.longest = law, longest
        self.now, self.rows, self.polls, self.publishes = 0, [], [], []
        self.out, self.ready, self.publish_at = {}, [], None

    def run(self):
        """Rows (version, launch, done, update, consumed, ready_version) of every group, -1 for what never happened."""
        while True:
            if not (self.publish() or self.complete() or self.admit() or self.poll()):
                self.now = min(t for t in [self.publish_at, *self.out.values()] if t is not None)
            if len(self.publishes) == self.law.n_updates:
                return self.rows

    def publish(self):
        if self.publish_at != self.now:
            return False
        self.publishes.append(self.now)
        self.publish_at = None
        return True

    def complete(self):
        due = sorted(group for group, tick in self.out.items() if tick == self.now)
        for group in due:
            self.rows[group][2], self.rows[group][5] = self.out.pop(group), len(self.publishes)
        self.ready += due
        return bool(due)

    def admit(self):
        law, version, launched = self.law, len(self.publishes), len(self.rows)
        allowed = (law.look_ahead + 1 + version) * law.groups_per_update
        if launched >= allowed or (law.workers is not None and len(self.out) >= law.workers):
            return False
        stretch = max(law.t_min, 1 + law.lam * (self.longest[launched] / law.l_ref - 1)) if law.lam else 1
        self.out[launched] = self.now + ticks(law.c_gen * stretch)
        self.rows.append([version, self.now, -1, -1, -1, -1])
        return True

    def poll(self):
        size = self.law.groups_per_update
        if self.publish_at is not None or len(self.ready) < size:
            return False
        batch, self.ready = self.ready[:size], self.ready[size:]
        for group in batch:
            self.rows[group][3:5] = [len(self.publishes), self.now]
        self.publish_at = self.now + ticks(self.law.c_update)
        return True
