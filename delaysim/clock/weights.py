"""Which weights the sampler has: the learner's, or older ones where they are synced seldom or in the background."""

from collections.abc import Callable

from simpy import Event

from delaysim.clock.events import PUBLISH, Events
from delaysim.clock.law import Law
from delaysim.clock.steps import Sync


class Weights:
    """The sampler's version, and syncs under way. In the background one goes at a time and begins at a publish."""

    def __init__(self, law: Law, events: Events, arrived: Callable[[Sync], None]) -> None:
        self._law, self._events, self._arrived = law, events, arrived
        self._wanted = self._moving = False
        self.version = 0
        """Updates behind the sampler's weights."""

    def publish(self, version: int) -> Sync | None:
        """The learner has new weights; what the driver has to do about the sampler's, if they can differ."""
        if not self._law.lags:
            self.version = version
            return None
        self._wanted = self._wanted or self._law.syncs_after(version - 1)
        if not self._wanted or self._moving:
            return None
        self._wanted = False
        if self._law.sync_mode == "blocking":
            self.version = version
            return Sync(version, arrived=True)
        self._moving = True
        self._events.after(self._law.sync_ticks, PUBLISH, self._arrive, version)
        return Sync(version, arrived=False)

    def _arrive(self, event: Event) -> None:
        self._moving, self.version = False, event._value
        self._arrived(Sync(self.version, arrived=True))
