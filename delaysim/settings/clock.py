"""The settings of the clock, typed, with their units. The rules between them: clock_checks. No torch."""

from dataclasses import dataclass, field
from typing import Any, Union

from omegaconf import MISSING

AUTO = "auto"
"""In place of a number: taken from the pilot."""
FREE = "none"
"""In place of a look-ahead: no such limit."""


@dataclass
class ClockConf:
    """The delay law (docs/clock.md)."""

    C_gen: float = MISSING
    """Cost of a response of reference length [sim units]."""
    C_update: float = MISSING
    """Cost of one update [sim units]."""
    lam: float = MISSING
    """Coupling of a group's duration to its longest response, 0 = none."""
    eta: Union[int, str] = AUTO  # noqa: UP007 - OmegaConf reads typing.Union only
    """Look-ahead: how many updates generation may run ahead of the learner; auto = pilot (lam>0) or C_gen/C_update;
    none = no such limit."""
    L_ref: Union[int, float, str] = AUTO  # noqa: UP007
    """Reference length [tokens]; auto = the pilot's mean response length."""
    t_min: float = 0.05
    """Shortest duration of a group [units of C_gen]."""
    pilot: int = 128
    """Groups in the pilot, never trained on; run only with lam>0 and something auto."""
    workers: int | None = None
    """Generation slots [groups]; null = no such limit."""
    coupling: str = "affine"
    """affine | power | exp | cap | rank: how a duration follows the size of a group."""
    stat: str = "max"
    """max | mean | sum of a group's lengths: its size."""
    L_cap: Union[int, float, str] = AUTO  # noqa: UP007
    """Longest possible size, for coupling=cap [tokens]; auto = sampler.max_new_tokens, in a trace lengths.cap."""
    noise: float = 0.0
    """Mean of an exponential addition to every duration [units of C_gen]."""
    order: str = "completion"
    """completion | submit | version | lifo | freshest | random | shortest | in_order | version_in_order: which finished
    groups the learner takes first; the in_order ones wait for unfinished groups that come first."""
    queue_drop: float | None = None
    """Finished groups kept at most [mini-batches], the oldest completion goes; null = all."""
    age_max: int | None = None
    """Finished groups older than this go when the learner would take a mini-batch [updates]; null = none."""
    abort_age: int | None = None
    """Groups older than this go at a publish, in generation or finished [updates]; null = none."""
    timeout: float | None = None
    """Groups still in generation so long after their launch go [sim units]; null = none."""
    requeue: bool = False
    """Launch the prompt of a dropped group again."""
    attempts: int | None = None
    """Launches of one prompt at most, with requeue; null = no such limit."""
    zero_variance: str = "kept"
    """kept | replaced: groups whose rewards are all equal (dynamic sampling)."""
    slots: int | None = None
    """Generation slots [responses] that share a throughput, in place of durations by length; null = none."""
    speed: list[Any] = field(default_factory=list)
    """With slots: pairs of responses at once and their tokens per sim unit together; [] = L_ref/C_gen for each."""
    arrivals: float | None = None
    """Prompts per sim unit, at random (Poisson); null = there is always one."""
    start: str = "burst"
    """burst | stagger | ramp: all first groups at once; partly done already; launched evenly over C_gen."""
    sync_time: float = 0.0
    """Cost of bringing weights to the sampler [sim units]."""
    sync_mode: str = "blocking"
    """blocking | background: whether the learner waits for it."""
    sync_every: int = 1
    """Updates from one weight sync to the next."""
    reward_lag: float = 0.0
    """From the end of generation until the rewards are there [sim units]."""
    replay: float = 0.0
    """Share of each mini-batch drawn from groups that were consumed before, 0..1."""
    replay_window: int = 8
    """Updates for which a consumed group can be drawn again."""
    in_flight: str = "none"
    """none | account: tell what the lags would be if weights were swapped during generation."""
    engine: str = "simpy"
    """simpy | fast: what mode=trace runs the clock with; the trace is the same (docs/clock.md)."""
