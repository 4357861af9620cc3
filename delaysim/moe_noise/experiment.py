"""The whole experiment: seeds, the mixture and its dense control, delays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from delaysim.moe_noise.chain import MarkovChain
from delaysim.moe_noise.crossings import ALONE, crossings, with_threshold
from delaysim.moe_noise.model import Progress, advantages_of
from delaysim.moe_noise.numbers import Number, numbers
from delaysim.moe_noise.parts import Passes
from delaysim.moe_noise.passes import evaluated, passes
from delaysim.moe_noise.setting import Setting
from delaysim.moe_noise.slopes import lengths

MOE, DENSE = "moe", "dense"


@dataclass(frozen=True)
class Found:
    """The numbers of one seed, model and delay."""

    seed: int
    model: str
    """MOE | DENSE."""
    delay: int
    numbers: dict[str, Number]


def experiment(setting: Setting, seeds: Sequence[int], progress: Progress) -> Iterator[Found]:
    """Seed by seed, the mixture first, by delay."""
    for seed in seeds:
        for model in (MOE, DENSE):

            def told(what: str, done: int, of: int, where: str = f"seed {seed}, {model}") -> None:
                progress(f"{where}: {what}", done, of)

            for delay, found in passes(setting, seed, model == DENSE, told):
                told(f"delay {delay}: intervals and estimators", 0, 0)
                acts = _acts(setting, seed, delay, found) if model == MOE else ()
                said = [*numbers(found, seed), *acts]
                yield Found(seed, model, delay, {number.name: number for number in said})


def _acts(setting: Setting, seed: int, delay: int, found: Passes) -> Iterator[Number]:
    """Shares acted on; at shorter lengths on routing noise alone."""
    chain, estimators = MarkovChain(seed), with_threshold()
    advantages = advantages_of(chain.rewards(evaluated(setting, chain)[:, 1:])).numpy()
    for name, shares in crossings(found, estimators, advantages, delay).items():
        yield from (Number(f"acts_{name}_{case}", share) for case, share in shares.items())
    for length in lengths(setting.length):
        for name, shares in crossings(found, estimators, advantages, delay, length).items():
            yield Number(f"acts_{name}_{ALONE}_{length}", shares[ALONE])
