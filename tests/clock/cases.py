"""Laws to test on: small whole lengths and few costs, so that many events fall on one tick."""

from hypothesis import strategies as st

from delaysim.clock import Law

WORKED_LAW = Law(4, 2, 1, 4.0, 1.0, 1.0, 2.0)
WORKED_LENGTHS = [3, 1, 2, 5, 1, 2, 4, 1, 2, 2]
"""The worked example of clock.md section 2."""

LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=60)
WORKERS = st.one_of(st.none(), st.integers(1, 9))


def laws(workers=WORKERS, lam=(0.0, 0.5, 1.0, 1.5)):
    """Laws that a configuration accepts; C_gen = 0 only without coupling, as there."""

    def build(c_gen, coupling, **rest):
        return Law(c_gen=c_gen if coupling else c_gen - 0.5, lam=coupling, **rest)

    return st.builds(
        build,
        n_updates=st.integers(1, 12),
        groups_per_update=st.integers(1, 4),
        look_ahead=st.integers(0, 6),
        c_gen=st.sampled_from([0.5, 1.0, 4.0, 7.3]),
        c_update=st.sampled_from([0.3, 1.0, 2.0]),
        coupling=st.sampled_from(lam),
        l_ref=st.sampled_from([1.0, 2.0, 3.7]),
        workers=workers,
    )


def random_law(rng, **given):
    """A larger law than hypothesis would draw, and its lengths, from seeded noise."""
    n, b, eta = (int(rng.integers(low, high)) for low, high in ((1, 60), (1, 9), (0, 20)))
    lam = float(rng.choice([0.0, 0.25, 1.0, 2.0]))
    c_gen = float(rng.choice([0.0, 1.0, 10.0] if lam == 0 else [1.0, 10.0, 33.3]))
    law = Law(n, b, eta, c_gen, float(rng.choice([0.1, 1.0, 3.0])), lam, float(rng.choice([1.0, 2.5, 4.0])), **given)
    return law, rng.integers(1, int(rng.choice([3, 9, 200])), size=(eta + n) * b).tolist()
