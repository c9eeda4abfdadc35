"""Trains a small classifier in every replica of a PaddleJob, with DataParallel.

Start it with `python -m paddle.distributed.launch train.py`: the launcher meets those
of the other pods at PADDLE_MASTER, as the operator says, and starts this program
with the variables of Paddle's collectives. Each trainer makes its own share of the
points of three spiral arms, and all gradients are averaged over the trainers. Then
each checks that all have the same weights, to the last bit, and that they are good
enough.

Exit codes: 0 done, 1 an error, 3 target missed, 4 the weights differ.

Settings, from the environment: EPOCHS (60), PAUSE (0; seconds after each epoch, to
watch or disturb a running job).
"""

import hashlib
import os
import sys
import time

import numpy as np
import paddle
import paddle.distributed as dist
from paddle import nn

ARMS = 3
POINTS = 1536  # of all the trainers together
TARGET = 0.95  # accuracy on points that no trainer trains on


def spirals(points, seed):
    """Points on noisy spiral arms, and the arm that each belongs to."""
    rng = np.random.default_rng(seed)
    arm = np.arange(points) % ARMS
    radius = rng.uniform(0.1, 1.0, points)
    angle = 4 * radius + arm * 2 * np.pi / ARMS + rng.normal(0, 0.12, points)
    xy = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return paddle.to_tensor(xy.astype(np.float32)), paddle.to_tensor(arm)


def digest(model):
    """What the weights are: 32 numbers below 256."""
    sha = hashlib.sha256()
    for weights in model.parameters():
        sha.update(weights.numpy().tobytes())
    return list(sha.digest())


def train(rank, ranks):
    data, labels = spirals(POINTS // ranks, seed=1 + rank)
    paddle.seed(rank)  # other values in each rank, so that only DataParallel makes them agree
    network = nn.Sequential(nn.Linear(2, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, ARMS))
    model = paddle.DataParallel(network)
    optimizer = paddle.optimizer.Adam(0.02, parameters=model.parameters())
    for epoch in range(1, int(os.environ.get("EPOCHS", "60")) + 1):
        loss = nn.functional.cross_entropy(model(data), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if epoch == 1 or epoch % 10 == 0:
            print(f"epoch={epoch} rank={rank} loss={float(loss):.4f}", flush=True)
        time.sleep(float(os.environ.get("PAUSE", "0")))
    print(f"final loss={float(loss):.4f} rank={rank}", flush=True)
    return network


def main():
    dist.init_parallel_env()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model = train(rank, ranks)
    test, expected = spirals(600, seed=0)
    accuracy = float((model(test).argmax(axis=1) == expected).astype("float32").mean())
    own = digest(model)
    weights = bytes(own).hex()[:16]
    print(f"RESULT rank={rank} of {ranks} accuracy={accuracy:.3f} weights={weights}", flush=True)
    digests = []
    dist.all_gather(digests, paddle.to_tensor(own))
    if any(other.tolist() != own for other in digests):
        return 4
    return 0 if accuracy >= TARGET else 3


if __name__ == "__main__":
    sys.exit(main())
