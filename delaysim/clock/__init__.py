"""The discrete-event clock: when each group is launched, completed and consumed. Imports no torch."""

from delaysim.clock.law import TICKS, Law, to_ticks
from delaysim.clock.loop import Clock, Stalled
from delaysim.clock.steps import Launch, Lengths, Step, Train

__all__ = ["TICKS", "Clock", "Launch", "Law", "Lengths", "Stalled", "Step", "Train", "to_ticks"]
