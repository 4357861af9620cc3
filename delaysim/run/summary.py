"""The closing words of a run, from its directory. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delaysim.accuracy import Accuracy, has_collapsed, paired_gain, summarise
from delaysim.files import read_json
from delaysim.run.account import read_account
from delaysim.run.account_lines import closing_lines
from delaysim.run.progress import clock_time, requested_delay
from delaysim.run.records import read_rows
from delaysim.run.stopwatch import PARTS
from delaysim.settings.config import MEASURED, REPLAY, Config
from delaysim.settings.configfile import load_config
from delaysim.settings.identity import DEFAULTS, POLICIES
from delaysim.settings.replay import replay_command
from delaysim.settings.routing import NONE
from delaysim.theory import fourth_moment, growth_exponent, rate_exponent

FLIPS = {"engine": "sampler/launch", "drift": "launch/update", "live": "replayed/live"}
"""Between whom experts are compared."""


@dataclass(frozen=True)
class Summary:
    """What a run directory says, in the order the display says it."""

    path: Path
    cfg: Config
    status: dict[str, Any]
    updates: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    evals: list[dict[str, Any]]
    moments: dict[str, float]
    law: dict[str, Any]
    """As the manifest has it."""
    account: dict[str, Any]

    @property
    def history(self) -> list[Accuracy]:
        """Every evaluation."""
        return summarise(self.evals)

    @property
    def collapsed(self) -> bool:
        """By the rule, or because a number stopped being finite."""
        rule = self.cfg.evaluation
        by_rule = has_collapsed(self.history, rule.collapse_looks, rule.collapse_se)
        return by_rule or self.status.get("state") == "collapsed"

    @property
    def gain(self) -> tuple[float, float]:
        """Of pass@1 from the base to the last evaluation, and half its 95 % interval."""
        last = self.history[-1].update
        return paired_gain(
            [row for row in self.evals if row["update"] == 0], [row for row in self.evals if row["update"] == last]
        )

    def lines(self) -> list[str]:
        """The summary as text, within 80 columns but for the paths and commands."""
        parts = (self._accuracy(), self._training(), self._delay(), self._theory(), self._time())
        return [*(line for part in parts for line in part), f"run directory  {self.path}"]

    def _accuracy(self) -> list[str]:
        if not self.history:
            return []
        before, after = self.history[0], self.history[-1]
        lines = [f"accuracy       {_pm(before)} before, {_pm(after)} after {after.update} updates"]
        if after.update:
            gain, half = self.gain
            lines.append(f"gain           {gain:+.3f} ±{half:.3f} (95 %, paired over {before.problems} problems)")
        lines.append(f"greedy         {before.greedy:.3f} before, {after.greedy:.3f} after")
        lines.append(
            f"responses      {before.length_mean:.1f} tokens before, {after.length_mean:.1f} after;"
            f" {after.truncated:.0%} truncated"
        )
        if self.collapsed:
            lines.append(f"COLLAPSED      {self.status.get('error') or 'fell below the base and stayed there'}")
        return lines

    def _training(self) -> list[str]:
        if not self.updates:
            return []
        last, ratio_max = self.updates[-1], max(_numbers(self.updates, "ratio_max"))
        return [
            f"reward         {_mean(self.updates[-20:], 'reward_mean'):.3f} (last 20 updates)",
            f"ratio          mean {_mean(self.updates, 'ratio_mean'):.3g}, max {ratio_max:.3g}"
            f"   ESS {_mean(self.updates, 'ess'):.2f}   kept {_mean(self.updates, 'kept'):.3g}"
            f"   entropy {last['entropy']:.3f}",
            *self._experts(),
        ]

    def _experts(self) -> list[str]:
        """Of a mixture: shares of (token, layer) pairs with other experts, over the run (docs/moe.md)."""
        known = {
            between: [row[f"flips_{name}"] for row in self.updates if f"flips_{name}" in row]
            for name, between in FLIPS.items()
            if name != "live" or self.cfg.routing.replay != NONE
        }
        said = [f"{sum(shares) / len(shares):.1%} {between}" for between, shares in known.items() if shares]
        return [f"experts        flips {', '.join(said)}"] if said else []

    def _delay(self) -> list[str]:
        m = self.moments
        if not m:
            return []
        steady = m.get("delay_mean_steady")
        never = "not generated: too late" if self._in_turn else "never trained"
        text = "" if steady is None else f", {steady:.1f} in the steady state"
        lines = [
            f"delay          mean {m['delay_mean']:.1f}{text}, p95 {m['delay_p95']:g}, max {m['delay_max']:g} updates"
            f" (requested {requested_delay(self.cfg)})",
            f"               {m['version0_share']:.0%} of the trained groups came from the base policy;"
            f" {m['never_trained_share']:.0%} of launches {never}",
        ]
        share = m["version0_share"]
        if share > 0.25:
            lines.append(
                f"               a short run for this delay: {share:.0%} is learning from a frozen policy's data"
            )
        return [*lines, *closing_lines(self.account, self.law, self.cfg.suite_name == REPLAY)]

    @property
    def _in_turn(self) -> bool:
        """Whether groups are consumed in the order of their launch, so that late ones need no generation."""
        changed = [name for name in POLICIES if getattr(self.cfg.clock, name) != DEFAULTS[name]]
        return self.cfg.clock.lam == 0 and not changed

    def _theory(self) -> list[str]:
        """The convergence rate that 2610.01896 guarantees for the delays that happened, next to its best."""
        delays = [row["delay"] for row in self.groups]
        n = len({row["update"] for row in self.groups})
        if n < 2 or not any(delays):
            return []
        tau4 = fourth_moment(delays)
        p = growth_exponent(tau4, n)
        rate = f"N^-{rate_exponent(p) or 0.0:.2f}"
        return [f"theory         mean delay^4 {tau4:.3g} = N^{p:.2f}: guarantees rate {rate}, without delay N^-0.50"]

    def _time(self) -> list[str]:
        lines = []
        if self.moments and self.cfg.suite_name == MEASURED:
            lines += self._measured()
        elif self.moments:
            sim, n = self.moments["sim_time"], self.cfg.updates
            cost = "generation in time" if self.cfg.suite_name == REPLAY else f"C_gen={self.cfg.clock.C_gen:g}"
            lines.append(f"sim time       {sim:,.0f} units, {sim / n:.2f} per update ({cost})")
            d = self.cfg.D
            update = self.cfg.clock.C_update * self.cfg.learner.updates_per_batch
            if d is not None and d * update > self.cfg.clock.C_gen:
                enough = int(self.cfg.clock.C_gen / update)
                lines.append(f"               beyond D={enough} more delay buys no time")
        wall = sum(_numbers(self.updates, "wall_s"))
        if wall:
            parts = {part: sum(_numbers(self.updates, f"{part}_s")) / wall for part in (*PARTS, "rest")}
            shares = ", ".join(f"{part} {share:.0%}" for part, share in parts.items() if share >= 0.005)
            tokens = sum(_numbers(self.updates, "tokens"))
            lines.append(f"wall time      {clock_time(wall)}: {shares}; {tokens / wall:,.0f} tokens/s")
        return lines

    def _measured(self) -> list[str]:
        """What two processes took, and the simulation that has the same ratio of costs."""
        conf, n, chunk = self.cfg, self.cfg.updates, self.cfg.sampler.chunk
        generation = sum(_numbers(self.updates, "sampler_s")) * chunk / (n * conf.B)
        update = (sum(_numbers(self.updates, "wall_s")) - sum(_numbers(self.updates, "generate_s"))) / n
        return [
            f"measured       {self.moments['sim_time']:,.0f} s:"
            f" {generation:.2g} s for {chunk} groups, {update:.2g} s for an update",
            f"               simulated: +suite=simulated_async lam=0 clock.eta={conf.clock.eta} clock.workers={chunk}"
            f" C_gen={generation / update:.2g}",
        ]


def read_summary(path: Path) -> Summary:
    """Read a run directory. Raises UserError where it is none."""
    moments, status, manifest = (path / f"{name}.json" for name in ("moments", "status", "manifest"))
    return Summary(
        path=path,
        cfg=load_config(path / "config.yaml"),
        status=read_json(status) if status.exists() else {},
        updates=list(read_rows(path / "updates.jsonl")),
        groups=list(read_rows(path / "groups.jsonl")),
        evals=list(read_rows(path / "evals.jsonl")),
        moments=read_json(moments) if moments.exists() else {},
        law=read_json(manifest).get("law", {}) if manifest.exists() else {},
        account=read_account(path),
    )


def next_commands(cfg: Config) -> list[str]:
    """What to try after this run."""
    name = cfg.estimator.name
    other = "gmc" if name != "gmc" else "grpo"
    if cfg.suite_name == "fixed_delay":
        third = cfg.D if cfg.D not in (0, 32) else 128
        return [
            f"delaysim +suite=fixed_delay D={cfg.D} estimator={other}",
            f"delaysim -m +suite=fixed_delay D=0,32,{third} estimator={name},{other} seed=0,1,2",
            f"delaysim +suite=simulated_async lam=1 estimator={name}",
        ]
    if cfg.suite_name == MEASURED:
        return [
            f"delaysim +suite=measured clock.eta={2 * int(cfg.clock.eta)} estimator={name}",
            f"delaysim -m +suite=measured clock.eta=2,8,32 estimator={name},{other} seed=0,1,2",
            f"delaysim +suite=simulated_async lam=1 estimator={name}",
        ]
    if cfg.suite_name == REPLAY:
        again = replay_command(cfg)
        return [
            f"delaysim -m {again} estimator={name},{other} seed=0,1,2",
            f"delaysim mode=trace {again}",
            f"delaysim +suite=fixed_delay D=128 estimator={name}",
        ]
    return [
        f"delaysim -m +suite={cfg.suite_name} estimator={name},{other} seed=0,1,2",
        f"delaysim mode=trace +suite={cfg.suite_name} updates=100000",
        f"delaysim +suite=fixed_delay D=128 estimator={name}",
    ]


def cell_line(path: Path) -> str:
    """One run in one line."""
    summary = read_summary(path)
    if not summary.history:
        return f"{path.name}: nothing evaluated yet"
    before, after = summary.history[0], summary.history[-1]
    wall = clock_time(sum(_numbers(summary.updates, "wall_s")))
    mark = "  COLLAPSED" if summary.collapsed else ""
    delay = summary.moments.get("delay_mean")
    text = "-" if delay is None else f"{delay:.1f}"
    return f"{path.name}: accuracy {before.pass1:.3f} -> {_pm(after)}, delay {text}, {wall}{mark}"


def _pm(accuracy: Accuracy) -> str:
    return f"{accuracy.pass1:.3f} ±{accuracy.half_width:.3f}"


def _numbers(rows: Sequence[dict[str, Any]], key: str) -> list[float]:
    return [row[key] for row in rows if row.get(key) is not None] or [0.0]


def _mean(rows: Sequence[dict[str, Any]], key: str) -> float:
    numbers = _numbers(rows, key)
    return sum(numbers) / len(numbers)
