"""From the configuration to the law the clock runs by; the pilot's lengths are asked for only where they are needed."""

from collections.abc import Callable

from numpy.typing import ArrayLike

from delaysim.clock.law import Law
from delaysim.clock.pilot import settle
from delaysim.settings.config import AUTO, Config
from delaysim.settings.identity import needs_pilot


def law_of(cfg: Config, pilot: Callable[[], ArrayLike]) -> Law:
    """The settled law of a run; `pilot` gives the pilot's lengths [groups, G] in tokens."""
    clock = cfg.clock
    eta = None if clock.eta == AUTO else int(clock.eta)
    l_ref = None if clock.L_ref == AUTO else float(clock.L_ref)
    law = Law(
        n_updates=cfg.updates,
        groups_per_update=cfg.B,
        look_ahead=int(clock.C_gen / clock.C_update + 0.5) if eta is None else eta,
        c_gen=clock.C_gen,
        c_update=clock.C_update,
        lam=clock.lam,
        l_ref=1.0 if l_ref is None else l_ref,
        t_min=clock.t_min,
        workers=clock.workers,
    )
    return settle(law, pilot(), l_ref, eta) if needs_pilot(cfg) else law
