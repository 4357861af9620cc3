"""What the user sees while a run goes on: a live panel on a terminal, plain lines elsewhere. No torch."""

import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from delaysim.accuracy import Accuracy
from delaysim.clock.law import Law
from delaysim.presets.base import in_words
from delaysim.run.status import StatusFile
from delaysim.settings.config import MEASURED, REPLAY, Config
from delaysim.settings.replay import replay_text

log = logging.getLogger("delaysim")
PLAIN_EVERY_S = 10.0
WIDTH = 80
PAGE = 140
RECENT = 20
"""Updates over which the display averages."""


@dataclass
class View:
    """The state that both displays draw from."""

    updates: int
    requested: str = ""
    what: str = ""
    row: dict[str, Any] = field(default_factory=dict)
    rewards: list[float] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    paced_since: float = 0.0
    first_update: int = 0
    trained: int = 0
    tokens: int = 0
    history: list[Accuracy] = field(default_factory=list)

    def update(self, row: dict[str, Any]) -> None:
        """Take in one row of `updates`."""
        if self.row:
            self.tokens += row["tokens"]
        else:  # what came before the first update, the pool's generation above all, says nothing of the pace
            self.paced_since, self.first_update = time.monotonic(), row["update"] + 1
        self.row, self.what = row, ""
        self.trained = row["update"] + 1
        self.rewards = [*self.rewards[-(RECENT - 1) :], row["reward_mean"]]

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float | None:
        """Seconds to go at the pace so far."""
        done = self.trained - self.first_update
        return self._paced / done * (self.updates - self.trained) if done else None

    @property
    def _paced(self) -> float:
        return time.monotonic() - self.paced_since

    def fields(self) -> dict[str, str]:
        """The numbers by name, in the order of the summary."""
        row = self.row
        last = self.history[-1] if self.history else None
        accuracy = f"{last.pass1:.3f} ±{last.half_width:.3f} at update {last.update}" if last else "-"
        if not row:
            return {"accuracy": accuracy}
        return {
            "accuracy": accuracy,
            "reward": f"{sum(self.rewards) / len(self.rewards):.3f} (mean of {len(self.rewards)})",
            "delay": f"p50 {row['delay_p50']:g}, p95 {row['delay_p95']:g} (requested {self.requested})",
            "ratio": f"mean {row['ratio_mean']:.3g}, max {row['ratio_max']:.3g}",
            "ESS": f"{row['ess']:.2f}",
            "speed": f"{self.tokens / max(self._paced, 1e-9):,.0f} tokens/s",
        }

    def line(self) -> str:
        """The plain form."""
        if not self.row:
            return self.what
        f, row = self.fields(), self.row
        accuracy = f"{self.history[-1].pass1:.3f}" if self.history else "-"
        return (
            f"update {self.trained}/{self.updates}  accuracy {accuracy}  reward {f['reward'].split()[0]}  "
            f"delay {row['delay_p50']:g}/{row['delay_p95']:g}  "
            f"ratio {row['ratio_mean']:.3g} (max {row['ratio_max']:.3g})  "
            f"ESS {row['ess']:.2f}  {f['speed']}  left {clock_time(self.left)}"
        )

    def panel(self) -> RenderableType:
        """The live form, within 80 columns."""
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            f"update {self.trained}/{self.updates}",
            ProgressBar(total=self.updates, completed=self.trained, width=30),
            f"{clock_time(self.elapsed)} gone, {clock_time(self.left)} left",
        )
        table = Table.grid(padding=(0, 2))
        for name, value in self.fields().items():
            table.add_row(Text(name, style="bold"), value)
        return Group(bar, table, Text(self.what, style="dim"))


class RunWatcher:
    """Tells the status file, the log and the display what happens in one run."""

    def __init__(self, view: View, status: StatusFile, display: "Display") -> None:
        self._view, self._status, self._display = view, status, display

    def updated(self, row: dict[str, Any]) -> None:
        self._view.update(row)
        self._status.tick(update=row["update"] + 1, reward=row["reward_mean"], left_s=self._view.left)
        self._display.refresh(self._view)

    def evaluated(self, accuracy: Accuracy) -> None:
        self._view.history.append(accuracy)
        known = {"base_pass1": accuracy.pass1} if accuracy.update == 0 else {}
        self._status.tick(pass1=accuracy.pass1, **known)
        log.info("update %d: accuracy %.4f, greedy %.4f", accuracy.update, accuracy.pass1, accuracy.greedy)
        self._display.refresh(self._view)

    def working(self, what: str, done: int, total: int) -> None:
        self._view.what = f"{what}: {done}/{total}"
        self._status.tick(what=self._view.what)
        self._display.refresh(self._view)

    def warn(self, line: str) -> None:
        """Something beside the run went wrong."""
        self._display.say(line)

    def close(self) -> None:
        pass


class Display:
    """Where a run is shown: `live`, `plain` or `quiet`; auto is live on a terminal."""

    def __init__(self, mode: str, console: Console | None = None) -> None:
        self.console = console or Console(width=WIDTH if mode != "plain" else None, highlight=False, soft_wrap=True)
        self.mode = mode if mode != "auto" else ("live" if self.console.is_terminal else "plain")
        self._live: Live | None = None
        self._printed = 0.0

    def watcher(self, cfg: Config, status: StatusFile) -> RunWatcher:
        """The watcher of one run."""
        return RunWatcher(View(cfg.updates, requested_delay(cfg)), status, self)

    def begin(self, cfg: Config, law: Law, path: Path, resumed: bool) -> None:
        """Announce a run."""
        verb = "resuming" if resumed else "running"
        self.say(
            f"{verb} {cfg.suite_name}, delay {requested_delay(cfg)}, {cfg.estimator.name}, N={cfg.updates}: {path}"
        )
        if cfg.suite_name == REPLAY:
            self.say(f"delays: {replay_text(cfg)}")
        if cfg.preset is not None:
            self.say(f"preset {in_words(cfg.preset)}")
        if cfg.clock.engine == "fast":
            self.say("clock=fast is for mode=trace: training runs the reference, which gives the same delays")
        if law.lam:
            ahead = "no look-ahead" if law.look_ahead is None else f"look-ahead {law.look_ahead} updates"
            self.say(f"{ahead}, L_ref {law.l_ref:.4g} tokens")

    def say(self, line: str) -> None:
        """One line, above the live panel where there is one."""
        log.info("%s", line)
        if self.mode != "quiet":
            self.console.print(line, markup=False)

    def refresh(self, view: View) -> None:
        """Show the current state, at most every ten seconds as plain lines."""
        if self.mode == "live":
            if self._live is None:
                self._live = Live(console=self.console, refresh_per_second=4, transient=True, get_renderable=view.panel)
                self._live.start()
        elif self.mode == "plain" and time.monotonic() - self._printed > PLAIN_EVERY_S:
            self._printed = time.monotonic()
            self.console.print(view.line(), markup=False)

    def close(self) -> None:
        """Take the live panel away."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def plain_console() -> Console:
    """A console for lines and tables: the terminal's width, or a wide page where the output is a file."""
    console = Console(highlight=False, soft_wrap=True)
    return console if console.is_terminal else Console(highlight=False, soft_wrap=True, width=PAGE)


def requested_delay(cfg: Config) -> str:
    """The delay a configuration asks for, in words."""
    if cfg.suite_name == "fixed_delay":
        return f"{cfg.D}"
    if cfg.suite_name == MEASURED:
        return f"as it comes, look-ahead {cfg.clock.eta}"
    if cfg.suite_name == REPLAY:
        return f"as recorded, {cfg.delays.column} of {Path(str(cfg.delays.path)).name}"
    if cfg.preset is not None:
        return f"as in {cfg.preset.name}, lam={cfg.clock.lam:g}"
    return "0" if cfg.suite_name == "no_delay" else f"by length, lam={cfg.clock.lam:g}"


def clock_time(seconds: float | None) -> str:
    """h:mm:ss, or m:ss."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
