"""Trains a classifier with XGBoost in every replica of an XGBoostJob.

The same file runs as master and worker, as MASTER_ADDR, MASTER_PORT, WORLD_SIZE
and RANK of the operator say. The master is rank 0; beside its share of the work
it runs the tracker, where the ranks meet. Each rank makes its own share of the
points of two moons, and the ranks build every tree together. Then each checks
that all have the same model, to the byte, and that it is good enough.

Exit codes: 0 done, 1 an error, 3 target missed, 4 the models differ.

Settings, from the environment: ROUNDS (40), PAUSE (0; seconds after each round,
to watch or disturb a running job).
"""

import hashlib
import os
import socket
import sys
import time

import numpy as np
import xgboost as xgb
from xgboost import collective
from xgboost.tracker import RabitTracker

POINTS = 3000  # of all the ranks together
TARGET = 0.95  # accuracy on points that no rank trains on
START_TIMEOUT = 90  # seconds for names to resolve and a port to be free again


def moons(points, seed):
    """Points on two interleaved half circles, with noise, and the one that each belongs to."""
    rng = np.random.RandomState(seed)
    moon = np.arange(points) % 2
    angle = rng.uniform(0, np.pi, points)
    x = np.where(moon, 1 - np.cos(angle), np.cos(angle))
    y = np.where(moon, 0.5 - np.sin(angle), np.sin(angle))
    return np.stack([x, y], axis=1) + rng.normal(0, 0.15, (points, 2)), moon


def patiently(attempt):
    """What attempt() gives once it works."""
    give_up = time.monotonic() + START_TIMEOUT
    while True:
        try:
            return attempt()
        except OSError as error:
            if time.monotonic() > give_up:
                raise
            print(f"waiting: {error}", flush=True)
            time.sleep(1)


def start_tracker(host, port, ranks):
    """The tracker, listening. The port of an earlier run is not free for a minute."""

    def probe():
        with socket.socket() as listener:
            listener.bind((host, port))

    patiently(probe)
    tracker = RabitTracker(n_workers=ranks, host_ip=host, port=port, sortby="task")
    tracker.start()
    return tracker


class Progress(xgb.callback.TrainingCallback):
    """A line after each tenth round."""

    def __init__(self, rank, pause):
        self.rank, self.pause = rank, pause

    def after_iteration(self, model, epoch, evals_log):
        if epoch % 10 == 0:
            print(f"round={epoch} rank={self.rank}", flush=True)
        time.sleep(self.pause)
        return False


def train(rank, ranks):
    data, labels = moons(POINTS // ranks, seed=1 + rank)
    booster = xgb.train(
        {"objective": "binary:logistic", "tree_method": "hist", "max_depth": 4, "nthread": 1},
        xgb.DMatrix(data, labels),
        num_boost_round=int(os.environ.get("ROUNDS", "40")),
        callbacks=[Progress(rank, float(os.environ.get("PAUSE", "0")))],
    )
    test, expected = moons(1000, seed=0)
    accuracy = np.mean((booster.predict(xgb.DMatrix(test)) > 0.5) == expected)
    digest = hashlib.sha256(booster.save_raw("json")).hexdigest()[:16]
    first = collective.broadcast(digest, 0)
    print(f"RESULT rank={rank} of {ranks} accuracy={accuracy:.3f} model={digest}", flush=True)
    if digest != first:
        return 4
    return 0 if accuracy >= TARGET else 3


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    port = int(os.environ["MASTER_PORT"])
    host = patiently(lambda: socket.gethostbyname(os.environ["MASTER_ADDR"]))
    tracker = None
    if rank == 0:
        tracker = start_tracker(host, port, ranks)
    else:
        time.sleep(1)  # a rank that starts before the tracker retries only after six seconds
    with collective.CommunicatorContext(
        dmlc_tracker_uri=host,
        dmlc_tracker_port=port,
        dmlc_task_id=f"{rank:06}",
        dmlc_retry=20,
    ):
        if collective.get_rank() != rank:
            raise RuntimeError(f"rank {rank} has become rank {collective.get_rank()}")
        code = train(rank, ranks)
    if tracker:
        tracker.wait_for()
    return code


if __name__ == "__main__":
    sys.exit(main())
