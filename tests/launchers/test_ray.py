"""A Ray cluster of two nodes on this machine: the same rows, from both nodes, also when one is killed."""

import json
import os
import signal
import time

import pytest
from launched import ENVIRONMENT, finished, needs, rows_of, start, typed_in

from delaysim.run.overview import overview

pytestmark = [pytest.mark.launcher, needs("ray")]


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one core each; the last test kills the second."""
    os.environ |= ENVIRONMENT  # read where Ray is imported
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    cluster.second = cluster.add_node(**node)
    cluster.wait_for_nodes()
    yield cluster
    cluster.shutdown()


def on_ray(cluster, folder, *words, **grid):
    return start(folder, "hydra/launcher=ray", f"hydra.launcher.address={cluster.address}", *words, **grid)


def nodes(folder):
    """The nodes that ran the legs of each run."""
    manifests = [json.loads(path.read_text()) for path in folder.glob("runs/fixed_delay/*/manifest.json")]
    return [[leg["machine"]["ray_node"] for leg in manifest["legs"]] for manifest in manifests]


def test_a_sweep_on_two_nodes_leaves_the_rows_of_a_serial_one(serial, cluster, tmp_path):
    said = finished(on_ray(cluster, tmp_path))
    assert "4 cells: 4 done" in said
    assert rows_of(tmp_path) == serial()
    assert typed_in(tmp_path) == {"delaysim -m +suite=fixed_delay"}
    ran = nodes(tmp_path)
    assert [len(legs) for legs in ran] == [1] * 4
    assert len({legs[0] for legs in ran}) == 2
    assert overview(tmp_path / "runs").sweeps[0].counts == {"done": 4}


def two_running(process, folder):
    """Wait until two cells of a sweep have trained a few updates."""
    end = time.monotonic() + 300
    while sum(path.stat().st_size > 2000 for path in folder.glob("runs/*/*/updates.jsonl")) < 2:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.1)


def test_ctrl_c_lets_the_cells_of_a_cluster_save_their_state(cluster, tmp_path):
    process = on_ray(cluster, tmp_path, "updates=100000", grid=("D=0,2,4", "seed=0"))
    two_running(process, tmp_path)
    process.send_signal(signal.SIGINT)
    assert "3 cells: 2 interrupted, 1 not started" in finished(process, code=130)
    assert [run.state for run in overview(tmp_path / "runs").runs.values()] == ["interrupted"] * 2


def test_the_cell_of_a_killed_node_goes_on_elsewhere(serial, cluster, tmp_path):
    words = ("updates=80", "evaluation.every=40")
    process = on_ray(cluster, tmp_path, *words, grid=("D=0,2", "seed=0"))
    two_running(process, tmp_path)
    assert {run.state for run in overview(tmp_path / "runs").runs.values()} == {"running"}
    cluster.remove_node(cluster.second, allow_graceful=False)
    assert "2 cells: 2 done" in finished(process)
    assert rows_of(tmp_path) == serial(*words, seeds=(0,))
    legs = sorted(nodes(tmp_path), key=len)
    assert [len(ran) for ran in legs] == [1, 2]
    assert legs[1][0] != legs[1][1] == legs[0][0]


def test_without_a_cluster_the_error_says_what_to_type(tmp_path):
    process = start(tmp_path, "hydra/launcher=ray", "hydra.launcher.address=127.0.0.1:1")
    said, errors = process.communicate(timeout=200)
    assert process.returncode == 2, said + errors
    assert "start one with ray start --head" in errors
