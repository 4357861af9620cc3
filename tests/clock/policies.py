"""Laws with policies to test on, and a driver that answers by prompt and attempt."""

from dataclasses import fields, replace
from unittest.mock import patch

from clock.cases import laws
from clock.policy_reference import PolicyReference, Starved
from hypothesis import strategies as st

from delaysim.clock import Clock, Stalled, loop
from delaysim.clock.law import Law
from delaysim.clock.ready import ORDERS
from delaysim.clock.steps import Answer

PILOT = (1.0, 2.0, 2.0, 3.0, 5.0)
STARVED = 300
DEFAULTS = {field.name: field.default for field in fields(Law)}
CHOICES = {
    "order": st.sampled_from(sorted(ORDERS)),
    "queue_drop": st.sampled_from([1.0, 1.5, 2.0, 3.0]),
    "age_max": st.integers(0, 4),
    "abort_age": st.integers(0, 4),
    "timeout": st.sampled_from([0.5, 1.0, 2.0, 4.0, 10.0]),
    "requeue": st.booleans(),
    "attempts": st.integers(1, 3),
    "zero_variance": st.just("replaced"),
    "arrivals": st.sampled_from([0.5, 1.0, 3.0]),
    "start": st.sampled_from(["stagger", "ramp"]),
    "noise": st.sampled_from([0.1, 1.0]),
    "coupling": st.sampled_from(["power", "exp", "cap", "rank"]),
    "sync_time": st.sampled_from([0.3, 1.0, 5.0]),
    "sync_mode": st.just("background"),
    "sync_every": st.integers(2, 4),
    "steps": st.integers(2, 3),
    "reward_lag": st.sampled_from([0.5, 1.0, 4.0]),
    "replay": st.sampled_from([0.25, 0.5, 0.75]),
    "replay_window": st.integers(1, 4),
}
"""What each setting may be when it is not its default."""


@st.composite
def policies(draw, **given):
    """A small law with a few of the policies, all of which a configuration accepts; `given` holds throughout."""
    law = draw(laws())
    names = draw(st.sets(st.sampled_from(sorted(CHOICES)), max_size=6)) | given.keys()
    chosen = {name: draw(given.get(name, CHOICES[name])) for name in sorted(names)}
    law = replace(law, l_cap=6.0, pilot_sizes=PILOT, **{"replay_window": 2} | chosen)
    b = law.groups_per_update
    return law if not law.replay or (law.replay * b) >= 1 else replace(law, replay=0.0)


def size(prompt, attempt):
    """Tokens of a group: small, and another number for another attempt."""
    return 1 + (prompt * 7 + prompt // 5 + attempt * 3) % 6


def flat(prompt, attempt):
    return (prompt + attempt) % 4 == 1


def play(law, size=size, flat=flat, seed=0):
    """Run the clock to its end, answering by prompt and attempt; returns it with the steps it asked for."""
    clock, asked = Clock(law, seed), []
    steps, answer = clock.steps(), None
    try:
        while True:
            step = steps.send(answer)
            asked.append(step)
            answer = None if step.launch is None else _answer(law, step.launch, size, flat)
    except StopIteration:
        return clock, asked


def _answer(law, launch, size, flat):
    keys = list(zip(launch.prompts, launch.attempts, strict=True))
    sizes = [size(*key) for key in keys]
    if law.zero_variance == "kept":
        return sizes
    return Answer(sizes, [group for group, key in zip(launch.groups, keys, strict=True) if flat(*key)])


def outcome(law):
    """What the clock's ledger says, None where the run starves."""
    with patch.object(loop, "STARVED", STARVED):
        try:
            ledger = play(law)[0].ledger
        except Stalled:
            return None
    columns = {name: column.tolist() for name, column in ledger.columns().items()}
    return columns | {"poll": list(ledger.poll), "publish": list(ledger.publish), "replays": ledger.replays}


def by_the_rules(law):
    """What the reference says, None where the run starves."""
    try:
        run = PolicyReference(law, size, flat, starved=STARVED).run()
    except Starved:
        return None
    return run.columns() | {"poll": run.polls, "publish": run.publishes, "replays": run.replays}
