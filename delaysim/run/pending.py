"""Groups that are generated and still needed, one file per chunk of a launch."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from delaysim.files import write_atomic
from delaysim.policy.rollout import Group, Response

OPTIONAL = ("recomputed", "routes", "recomputed_routes")
"""What all responses of a run have, or none."""
Arrays = dict[str, NDArray[Any]]


class Pending:
    """The pool between generation and training. Chunks reach the disk when `save` is called, and leave it there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._groups: dict[int, Group] = {}
        self._chunks: dict[int, list[int]] = {}
        self._saved: set[int] = set()

    def add(self, groups: Sequence[Group]) -> None:
        """Put a newly generated chunk in."""
        self._chunks[groups[0].group] = [group.group for group in groups]
        self._groups.update({group.group: group for group in groups})

    def get(self, groups: Sequence[int]) -> list[Group]:
        """Groups that are here, in the order asked for."""
        return [self._groups[group] for group in groups]

    def discard(self, groups: Iterable[int]) -> None:
        """Let groups go that are not needed any more, where they are here."""
        for group in groups:
            self._groups.pop(group, None)

    def take(self, groups: Sequence[int]) -> list[Group]:
        """Take groups out, in the order asked for."""
        taken = self.get(groups)
        self.discard(groups)
        return taken

    def save(self) -> None:
        """Write what is pending and not yet on disk; name the files by their first group."""
        self._folder.mkdir(exist_ok=True)
        for first, members in self._chunks.items():
            waiting = [self._groups[group] for group in members if group in self._groups]
            if waiting and first not in self._saved:
                write_atomic(self._path(first), save(_pack(waiting)))
                self._saved.add(first)

    def forget_consumed(self) -> None:
        """Delete the files of chunks that are consumed whole; call once the checkpoint no longer needs them."""
        gone = [first for first, members in self._chunks.items() if not any(g in self._groups for g in members)]
        for first in gone:
            del self._chunks[first]
            if first in self._saved:
                self._saved.discard(first)
                self._path(first).unlink(missing_ok=True)

    def load(self, wanted: set[int]) -> None:
        """Read back the groups in `wanted`; delete files that hold none of them."""
        for path in sorted(self._folder.glob("*.safetensors")):
            groups = [group for group in _unpack(load_file(path)) if group.group in wanted]
            if groups:
                first = int(path.stem)
                self._chunks[first] = [group.group for group in groups]
                self._groups.update({group.group: group for group in groups})
                self._saved.add(first)
            else:
                path.unlink()

    def missing(self, wanted: set[int]) -> set[int]:
        """Groups of `wanted` that are not here."""
        return wanted - self._groups.keys()

    def _path(self, first: int) -> Path:
        return self._folder / f"{first:08d}.safetensors"


def _pack(groups: Sequence[Group]) -> Arrays:
    responses = [response for group in groups for response in group.responses]
    optional = {name: [getattr(r, name) for r in responses] for name in OPTIONAL}
    return {
        **{name: np.concatenate(parts) for name, parts in optional.items() if parts[0] is not None},
        "group": np.array([[g.group, g.version, g.attempt, len(g.prompt)] for g in groups], np.int64),
        "prompt": np.concatenate([g.prompt for g in groups]),
        "rewards": np.array([g.rewards for g in groups], np.float64),
        "length": np.array([len(r.tokens) for r in responses], np.int64),
        "finished": np.array([r.finished for r in responses], np.bool_),
        "tokens": np.concatenate([r.tokens for r in responses]),
        "logp": np.concatenate([r.logp for r in responses]),
    }


def _unpack(arrays: Arrays) -> list[Group]:
    size = arrays["rewards"].shape[1]
    lengths = arrays["length"]
    inputs = lengths + np.repeat(arrays["group"][:, 3], size) - 1
    columns = (
        _split(arrays, "tokens", lengths), _split(arrays, "logp", lengths), arrays["finished"].tolist(),
        _split(arrays, "recomputed", lengths), _split(arrays, "routes", inputs),
        _split(arrays, "recomputed_routes", inputs),
    )  # fmt: skip
    responses = [Response(*values) for values in zip(*columns, strict=True)]
    prompts = np.split(arrays["prompt"], np.cumsum(arrays["group"][:, 3])[:-1])
    return [
        Group(
            int(group), int(version), prompt, tuple(responses[b * size : (b + 1) * size]), tuple(rewards), int(attempt)
        )
        for b, ((group, version, attempt, _), prompt, rewards) in enumerate(
            zip(arrays["group"], prompts, arrays["rewards"].tolist(), strict=True)
        )
    ]


def _split(arrays: Arrays, name: str, sizes: NDArray[np.int64]) -> list[Any]:
    """By response, of this many tokens each; all None where the run does not have it."""
    return np.split(arrays[name], np.cumsum(sizes)[:-1]) if name in arrays else [None] * len(sizes)
