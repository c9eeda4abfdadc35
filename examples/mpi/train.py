"""Trains a small classifier in every rank of an MPIJob, with mpi4py's allreduce.

The launcher's `mpirun python train.py` starts the ranks in the workers. Each makes
its own share of the points of two moons, and the slopes are summed over the ranks
in each step. Then each checks that all have the same weights, to the last bit, and
that they are good enough.

Exit codes: 0 done, 1 an error, 3 target missed, 4 the weights differ.

Settings, from the environment: STEPS (400), PAUSE (0; seconds after each tenth
step, to watch or disturb a running job).
"""

import hashlib
import os
import sys
import time
import traceback

import numpy as np
from mpi4py import MPI

POINTS = 2000  # of all the ranks together
TARGET = 0.97  # accuracy on points that no rank trains on
RATE = 2.0


def moons(points, seed):
    """Points on two interleaved half circles, with noise, and the one that each belongs to."""
    rng = np.random.default_rng(seed)
    moon = np.arange(points) % 2
    angle = rng.uniform(0, np.pi, points)
    x = np.where(moon, 1 - np.cos(angle), np.cos(angle))
    y = np.where(moon, 0.5 - np.sin(angle), np.sin(angle))
    return np.stack([x, y], axis=1) + rng.normal(0, 0.12, (points, 2)), moon


def features(xy):
    """All products of the coordinates up to the third degree: a line is not enough for moons."""
    x, y = xy.T
    return np.stack([x**i * y**j for i in range(4) for j in range(4 - i)], axis=1)


def probability(weights, rows):
    return 1 / (1 + np.exp(-rows @ weights))


def train(world):
    xy, moon = moons(POINTS // world.size, seed=1 + world.rank)
    rows = features(xy)
    weights = np.zeros(rows.shape[1])
    for step in range(1, int(os.environ.get("STEPS", "400")) + 1):
        guess = probability(weights, rows)
        loss = -np.log(np.where(moon, guess, 1 - guess)).sum()
        sums = np.append(rows.T @ (guess - moon), loss)
        world.Allreduce(MPI.IN_PLACE, sums)
        weights -= RATE * sums[:-1] / POINTS
        if step == 1 or step % 50 == 0:
            print(f"step={step} rank={world.rank} loss={sums[-1] / POINTS:.4f}", flush=True)
        if step % 10 == 0:
            time.sleep(float(os.environ.get("PAUSE", "0")))
    print(f"final loss={sums[-1] / POINTS:.4f} rank={world.rank}", flush=True)
    return weights


def main():
    world = MPI.COMM_WORLD
    print(f"rank={world.rank} of {world.size} in {os.environ.get('HOSTNAME', '?')}", flush=True)
    weights = train(world)
    xy, moon = moons(1000, seed=0)
    accuracy = np.mean((probability(weights, features(xy)) > 0.5) == moon)
    digest = hashlib.sha256(weights.tobytes()).hexdigest()[:16]
    print(f"RESULT rank={world.rank} of {world.size} accuracy={accuracy:.3f} weights={digest}", flush=True)
    if set(world.allgather(digest)) != {digest}:
        return 4
    return 0 if accuracy >= TARGET else 3


if __name__ == "__main__":
    try:
        code = main()
    except BaseException:
        # An ordinary exit would wait forever for the other ranks, which wait for
        # this one. Exit at once, so that mpirun ends the others.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.exit(code)
