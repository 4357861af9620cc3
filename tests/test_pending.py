"""Groups between generation and training: they come back from disk as they were, and leave it when consumed."""

import numpy as np
import pytest

from delaysim.policy.rollout import Group, Response
from delaysim.run.pending import OPTIONAL, Pending


def group(number, version=3, size=4, attempt=0, more=()):
    """`more`: what only some runs have of their responses."""
    rng = np.random.default_rng(number)
    prompt = rng.integers(0, 50_000, rng.integers(1, 12)).astype(np.int32)
    responses = tuple(_response(rng, n, len(prompt) + n - 1, more) for n in rng.integers(1, 9, size))
    return Group(number, version, prompt, responses, tuple(rng.random(size).tolist()), attempt)


def _response(rng, length, inputs, more):
    tokens, logp = rng.integers(0, 50_000, length).astype(np.int32), -rng.random(length, np.float32)
    made = {
        "recomputed": -rng.random(length, np.float32),
        "routes": rng.integers(-1, 128, (inputs, 3, 2)).astype(np.int16),
        "recomputed_routes": rng.integers(-1, 128, (inputs, 3, 2)).astype(np.int16),
    }
    return Response(tokens, logp, bool(rng.integers(2)), **{name: made[name] for name in more})


def same(one, other):
    """Equal to the bit, types included."""
    assert (one.group, one.version, one.attempt, one.rewards) == (
        other.group,
        other.version,
        other.attempt,
        other.rewards,
    )
    assert all(type(reward) is float for reward in other.rewards)
    assert one.lengths == other.lengths
    pairs = [(one.prompt, other.prompt)]
    for a, b in zip(one.responses, other.responses, strict=True):
        assert a.finished is b.finished
        pairs += [(getattr(a, name), getattr(b, name)) for name in ("tokens", "logp", *OPTIONAL)]
    for a, b in pairs:
        assert (a is None) == (b is None)
        if a is None:
            continue
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "pending"


def reopened(folder, wanted):
    pending = Pending(folder)
    pending.load(wanted)
    return pending


@pytest.mark.parametrize(
    "more", [(), ("recomputed",), ("routes",), ("recomputed", "recomputed_routes"), OPTIONAL], ids="+".join
)
@pytest.mark.parametrize("size", [1, 2, 8])
def test_groups_come_back_from_disk_as_they_were(folder, size, more):
    chunks = [[group(i, version=i, size=size, attempt=i % 2, more=more) for i in chunk] for chunk in ((0, 1, 2), (3,))]
    pending = Pending(folder)
    for chunk in chunks:
        pending.add(chunk)
    pending.save()
    again = reopened(folder, {0, 1, 2, 3})
    for made, read in zip([group for chunk in chunks for group in chunk], again.take([0, 1, 2, 3]), strict=True):
        same(made, read)


def test_not_a_number_and_signed_zero_survive(folder):
    odd = np.array([np.nan, -np.inf, -0.0], np.float32)
    made = Group(0, 0, np.array([1], np.int32), (Response(np.arange(3, dtype=np.int32), odd, False),), (-0.0,))
    pending = Pending(folder)
    pending.add([made])
    pending.save()
    (read,) = reopened(folder, {0}).take([0])
    same(made, read)
    assert str(read.rewards[0]) == "-0.0"


def test_files_are_one_per_chunk_and_only_once_saved(folder):
    pending = Pending(folder)
    pending.add([group(4), group(5)])
    assert not folder.exists()
    pending.save()
    pending.add([group(6)])
    assert names(folder) == ["00000004.safetensors"]
    pending.save()
    assert names(folder) == ["00000004.safetensors", "00000006.safetensors"]


def test_saving_again_writes_nothing_again(folder):
    pending = Pending(folder)
    pending.add([group(4), group(5)])
    pending.save()
    inode = (folder / "00000004.safetensors").stat().st_ino
    pending.take([4])
    pending.save()
    assert (folder / "00000004.safetensors").stat().st_ino == inode


def test_a_chunk_leaves_the_disk_when_all_of_it_is_consumed_and_forgotten(folder):
    pending = Pending(folder)
    pending.add([group(4), group(5)])
    pending.add([group(6)])
    pending.save()
    pending.take([4, 6])
    assert names(folder) == ["00000004.safetensors", "00000006.safetensors"]
    pending.forget_consumed()
    assert names(folder) == ["00000004.safetensors"]
    pending.take([5])
    pending.forget_consumed()
    assert names(folder) == []


def test_what_is_dropped_leaves_like_what_is_consumed(folder):
    """Also what is not here; what is only read stays."""
    pending = Pending(folder)
    pending.add([group(4), group(5)])
    pending.save()
    assert [g.group for g in pending.get([5, 4])] == [5, 4]
    pending.discard([4, 9])
    pending.forget_consumed()
    assert names(folder) == ["00000004.safetensors"]
    pending.discard([5])
    pending.forget_consumed()
    assert names(folder) == []


def test_groups_are_taken_in_the_order_asked_for_and_once(folder):
    pending = Pending(folder)
    pending.add([group(4), group(5), group(6)])
    assert [g.group for g in pending.take([6, 4])] == [6, 4]
    assert pending.missing({4, 5, 6, 7}) == {4, 6, 7}
    with pytest.raises(KeyError):
        pending.take([6])


def test_a_chunk_consumed_before_it_was_saved_never_reaches_the_disk(folder):
    pending = Pending(folder)
    pending.add([group(0)])
    pending.add([group(1), group(2)])
    pending.take([0, 1])
    pending.save()
    assert names(folder) == ["00000001.safetensors"]
    same(group(2), reopened(folder, {2}).take([2])[0])
    assert reopened(folder, {1, 2}).missing({1, 2}) == {1}


def test_loading_drops_what_no_checkpoint_knows(folder):
    """Files of launches after the checkpoint, and of groups consumed before it, are stale."""
    pending = Pending(folder)
    for chunk in ([group(0), group(1)], [group(2), group(3)], [group(4)]):
        pending.add(chunk)
    pending.save()
    again = reopened(folder, {1, 4})
    assert names(folder) == ["00000000.safetensors", "00000004.safetensors"]
    assert again.missing({0, 1, 2, 3, 4}) == {0, 2, 3}
    again.take([1, 4])
    again.forget_consumed()
    assert names(folder) == []


def test_a_chunk_generated_again_replaces_its_stale_file(folder):
    """Killed after the chunk was written and before the checkpoint named it: it is made again, whole."""
    first = Pending(folder)
    first.add([group(0), group(1)])
    first.take([0])
    first.save()
    second = reopened(folder, set())
    second.add([group(0), group(1)])
    second.save()
    assert reopened(folder, {0, 1}).missing({0, 1}) == set()


def test_part_files_of_a_killed_write_are_ignored(folder):
    folder.mkdir()
    (folder / ".00000004.safetensors.123.part").write_bytes(b"half")
    assert reopened(folder, {4}).missing({4}) == {4}
