"""The clock's rules with every policy, without a queue of events: written from clock.md and docs/clock.md alone.

At every tick the first rule that applies is applied, in the contract's order, until none does; then time jumps to the
next tick at which one can. Keyed draws come from `delaysim.clock.draws`, so that both sides see the same chance.
"""

from math import exp, floor, inf, log
from statistics import fmean, pstdev

from delaysim.clock.draws import Draws

TICK = 1_000_000
FATES = ("trained", "never", "queue", "age", "aborted", "timeout", "filtered")


def ticks(units):
    return floor(units * TICK + 0.5)


class Starved(Exception):
    """The learner waits for ever."""


class Group:
    def __init__(self, **known):
        self.done = self.ready = self.consumed = self.dropped = self.ready_version = self.update = -1
        self.fate, self.state = "never", "generating"
        self.__dict__.update(known)


class PolicyReference:
    """`size(prompt, attempt)`: tokens of a group; `flat(prompt, attempt)`: whether its rewards are all equal."""

    def __init__(self, law, size, flat=lambda prompt, attempt: False, seed=0, starved=inf):
        self.law, self.size, self.flat, self.draws, self.starved = law, size, flat, Draws(seed), starved
        self.now, self.groups, self.ready, self.batch, self.publish_at = 0, [], [], (), None
        self.polls, self.publishes, self.replays = [], [], []
        self.fresh, self.again, self.arrived, self.arrivals = 0, [], [], 0
        self.sampler, self.sync, self.wanted = 0, None, False
        self.in_vain = 0
        self.next_arrival = self.gap()

    def run(self):
        rules = (self.arrive, self.publish, self.end, self.score, self.give_up, self.come_in, self.admit, self.poll)
        while True:
            while any(rule() for rule in rules):
                if len(self.publishes) == self.law.n_updates:
                    return self
                if self.in_vain > self.starved:
                    raise Starved
            self.now = min(tick for tick in self.times() if tick > self.now)
            if self.now == inf:
                raise Starved

    def times(self):
        """Ticks at which a rule can come to apply."""
        yield from (tick for tick in (self.publish_at, self.sync and self.sync[0], self.next_arrival) if tick)
        for group in self.groups:
            if group.state == "generating":
                yield from (group.due, group.limit)
            if group.state == "scoring":
                yield group.due + ticks(self.law.reward_lag)
        if self.law.start == "ramp":
            yield from self.ramp()
        yield inf

    # The learner's side.

    def arrive(self):
        """Weights that were under way in the background are the sampler's."""
        if self.sync is None or self.sync[0] > self.now:
            return False
        self.sampler, self.sync = self.sync[1], None
        return True

    def publish(self):
        if self.publish_at != self.now:
            return False
        law, version = self.law, len(self.publishes) + 1
        self.publishes.append(self.now)
        self.publish_at = None
        self.wanted = self.wanted or version % law.sync_every == 0
        if self.wanted and law.sync_mode == "blocking":
            self.sampler, self.wanted = version, False
        elif self.wanted and self.sync is None:
            self.sync, self.wanted = (self.now + ticks(law.sync_time), version), False
        if law.abort_age is not None:
            old = [g for g in self.groups if g.state in ("generating", "scoring", "ready")]
            self.drop([g for g in old if version - g.version > law.abort_age], "aborted")
        return True

    def poll(self):
        law, update = self.law, len(self.publishes)
        if self.publish_at is not None or len(self.ready) < self.needed():
            return False
        old = [] if law.age_max is None else [g for g in self.ready if update - g.version > law.age_max]
        self.drop(old, "age")
        batch = self.first(self.needed(), update)
        if batch is None:
            return bool(old)
        if law.replay and self.needed() < law.groups_per_update:
            picked = self.draws.pick("replay", update, self.consumed(), law.groups_per_update - self.needed())
            self.replays += [(update, group) for group in sorted(picked)]
        for group in batch:
            self.ready.remove(group)
            group.update, group.consumed, group.fate, group.state = update, self.now, "trained", "gone"
        waits = law.sync_mode == "blocking" and (update + 1) % law.sync_every == 0
        self.polls.append(self.now)
        self.publish_at = self.now + ticks(law.steps * law.c_update) + (ticks(law.sync_time) if waits else 0)
        self.in_vain = 0
        return True

    def needed(self):
        """Groups of the next mini-batch that were not consumed before."""
        b = self.law.groups_per_update
        share = floor(self.law.replay * b + 1e-6)
        return b - share if share and len(self.consumed()) >= share else b

    def consumed(self):
        """Groups that the next mini-batch may draw again, by update and id."""
        version = len(self.publishes)
        open_to = range(max(0, version - self.law.replay_window), version)
        again = [(g.update, g.id) for g in self.groups if g.update in open_to]
        return [group for _, group in sorted(again)]

    def first(self, count, update):
        """The groups to train on, None where the learner waits."""
        order, ready = self.law.order, self.ready
        if len(ready) < count:
            return None
        if order == "random":
            return [self.groups[g] for g in self.draws.pick("order", update, [g.id for g in ready], count)]
        keys = {
            "completion": lambda g: 0,
            "submit": lambda g: g.id,
            "in_order": lambda g: g.id,
            "version": lambda g: g.version,
            "version_in_order": lambda g: g.version,
            "freshest": lambda g: -g.version,
            "shortest": lambda g: g.size,
            "lifo": lambda g: -ready.index(g),
        }
        batch = sorted(ready, key=keys[order])[:count]  # a stable sort: ties go by completion
        if order.endswith("in_order"):
            last = keys[order](batch[-1])
            if any(g.state in ("generating", "scoring") and keys[order](g) < last for g in self.groups):
                return None
        return batch

    # The generation's side.

    def end(self):
        due = [g for g in self.groups if g.state == "generating" and g.due == self.now]
        for group in due:
            group.done, group.state = self.now, "scoring"
            if not self.law.reward_lag:
                self.finish(group)
        return bool(due)

    def score(self):
        lag = ticks(self.law.reward_lag)
        due = [g for g in self.groups if g.state == "scoring" and g.due + lag == self.now]
        for group in due:
            self.finish(group)
        return bool(due)

    def finish(self, group):
        law = self.law
        group.ready, group.ready_version = self.now, len(self.publishes)
        if law.zero_variance == "replaced" and self.flat(group.prompt, group.attempt):
            self.drop([group], "filtered")
            return
        group.state = "ready"
        self.ready.append(group)
        if law.queue_drop is not None and len(self.ready) > law.queue_drop * law.groups_per_update:
            self.drop([self.ready[0]], "queue")

    def give_up(self):
        late = [g for g in self.groups if g.state == "generating" and g.limit == self.now]
        self.drop(late, "timeout")
        return bool(late)

    def drop(self, groups, fate):
        for group in groups:
            if group.state == "ready":
                self.ready.remove(group)
            group.fate, group.dropped, group.state = fate, self.now, "gone"
            again = self.law.requeue and fate != "filtered"
            if again and (self.law.attempts is None or group.attempt + 1 < self.law.attempts):
                self.again.append((group.prompt, group.attempt + 1, self.now))
            self.in_vain += self.publish_at is None

    def come_in(self):
        """A prompt arrives."""
        if self.next_arrival != self.now:
            return False
        self.arrived.append(self.now)
        self.arrivals += 1
        self.next_arrival += self.gap() or 0
        return True

    def gap(self):
        rate = self.law.arrivals
        return None if rate is None else ticks(self.draws.exponential("arrivals", self.arrivals) / rate)

    def ramp(self):
        eta = self.law.look_ahead
        return [ticks(self.law.c_gen) * step // (eta + 1) for step in range(1, eta + 1)]

    def admit(self):
        """Launch one group, where the gate, the workers and the prompts allow it."""
        law = self.law
        generating = [g for g in self.groups if g.state == "generating"]
        if law.workers is not None and len(generating) >= law.workers:
            return False
        if law.look_ahead is not None and self.in_system() >= self.allowed():
            return False
        if self.again:
            prompt, attempt, since = self.again.pop(0)
        elif law.arrivals is None or self.arrived:
            prompt, attempt, since = self.fresh, 0, self.arrived.pop(0) if law.arrivals is not None else self.now
            self.fresh += 1
        else:
            return False
        size, known = self.size(prompt, attempt), {"id": len(self.groups), "prompt": prompt, "attempt": attempt}
        due = self.now + self.duration(size, **known)
        limit = inf if law.timeout is None else self.now + ticks(law.timeout)
        when = {"submit": since, "launch": self.now, "due": due, "limit": limit}
        self.groups.append(Group(version=self.sampler, size=size, **known, **when))
        return True

    def in_system(self):
        """Groups launched that are neither dropped nor in a published mini-batch."""
        gone = [g for g in self.groups if g.dropped >= 0 or 0 <= g.update < len(self.publishes)]
        return len(self.groups) - len(gone)

    def allowed(self):
        law = self.law
        eta = sum(tick <= self.now for tick in self.ramp()) if law.start == "ramp" else law.look_ahead
        fresh = law.groups_per_update - floor(law.replay * law.groups_per_update + 1e-6)
        return max((eta + 1) * fresh, self.needed())

    def duration(self, size, id, prompt, attempt):
        law, span = self.law, ticks(self.law.c_gen * self.stretch(size))
        if law.noise:
            span += ticks(law.noise * law.c_gen * self.draws.exponential("noise", prompt, attempt))
        if law.start == "stagger" and self.now == 0:
            span = round(span * (1 - self.draws.uniform("start", id)))
        return span

    def stretch(self, size):
        law = self.law
        if not law.lam:
            return 1
        logs = [log(x) for x in law.pilot_sizes]
        rank = (
            (sum(x < size for x in law.pilot_sizes) + sum(x <= size for x in law.pilot_sizes) + 1)
            / 2
            / (len(law.pilot_sizes) + 1)
        )
        spread = pstdev(logs) if logs else 0
        formulas = {
            "affine": lambda: 1 + law.lam * (size / law.l_ref - 1),
            "power": lambda: (size / law.l_ref) ** law.lam,
            "exp": lambda: exp(law.lam * (log(size) - fmean(logs)) / spread) if spread else 1,
            "cap": lambda: 1 + law.lam * size / law.l_cap,
            "rank": lambda: -log(1 - rank) / law.lam,
        }
        return max(law.t_min, formulas[law.coupling]())

    def columns(self):
        """The ledger's columns."""
        names = [
            "prompt",
            "attempt",
            "version",
            "submit",
            "launch",
            "done",
            "ready",
            "ready_version",
            "update",
            "consumed",
            "dropped",
        ]
        columns = {name: [getattr(group, name) for group in self.groups] for name in names}
        return columns | {"fate": [FATES.index(group.fate) for group in self.groups]}
