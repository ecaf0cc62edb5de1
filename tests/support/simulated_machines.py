"""Programs in a process of their own, and clusters of simulated machines that they can lose."""

import os
import subprocess
import sys
from pathlib import Path


def run_program(program, limit=200, **variables):
    """Run a program in a new process; return its standard output and standard error."""
    root = Path(__file__).parents[2]
    paths = [str(root / "tests" / "support"), str(root / "src"), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | variables
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=limit,
        env=environment,
        check=False,
    )
    return done.stdout.strip(), done.stderr


SIMULATED = """
import numpy as np, ray, sys, threading, time
from ray.cluster_utils import Cluster as Machines
from spanboost import *
from spanboost.parallel import cluster
from spanboost.errors import ClusterError
from spanboost.parallel.team import Team
machines = Machines(initialize_head=True, head_node_args={"num_cpus": 0})
nodes = [machines.add_node(num_cpus=1) for _ in range(2)]
executor = cluster.Cluster(machines.address)
machines.wait_for_nodes()
rng = np.random.default_rng(0)
X = rng.normal(size=(60_000, 20)); y = X[:, 0] - X[:, 1]
def team(executor): return Team(SpanBoost(Network(), n=16, label_range="auto"), 2, 10_000, executor)
def lose(lost, after):
    time.sleep(after)
    for node in lost: machines.remove_node(node)
"""
