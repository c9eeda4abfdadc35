"""Trains a small classifier in every worker of a JAXJob.

COORDINATOR_ADDRESS, COORDINATOR_PORT, NUM_PROCESSES and PROCESS_ID of the operator
say who the processes are. Each makes its own share of the points of three spiral
arms; the devices of all form one mesh, over which the points are spread, so that
one compiled step of JAX trains with all of them. Then each process checks that all
have the same weights, to the last bit, and that they are good enough.

Exit codes: 0 done, 1 an error, 3 target missed, 4 the weights differ.

Settings, from the environment: STEPS (300), PAUSE (0; seconds after each tenth
step, to watch or disturb a running job).
"""

import hashlib
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

ARMS = 3
POINTS = 1536  # of all the processes together
TARGET = 0.95  # accuracy on points that no process trains on
RATE = 0.5
KEEP = 0.9  # momentum


def spirals(points, seed):
    """Points on noisy spiral arms, and the arm that each belongs to."""
    rng = np.random.default_rng(seed)
    arm = np.arange(points) % ARMS
    radius = rng.uniform(0.1, 1.0, points)
    angle = 4 * radius + arm * 2 * np.pi / ARMS + rng.normal(0, 0.12, points)
    xy = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return xy.astype(np.float32), arm


def new_model(seed):
    rng = np.random.default_rng(seed)
    sizes = [2, 48, 48, ARMS]
    return [
        (rng.normal(0, into**-0.5, (into, out)).astype(np.float32), np.zeros(out, np.float32))
        for into, out in zip(sizes, sizes[1:])
    ]


def predict(model, x):
    for weights, bias in model[:-1]:
        x = jnp.tanh(x @ weights + bias)
    weights, bias = model[-1]
    return x @ weights + bias


def loss_of(model, x, arm):
    return -jnp.take_along_axis(jax.nn.log_softmax(predict(model, x)), arm[:, None], axis=1).mean()


@jax.jit
def step(model, speed, x, arm):
    """One step; the mean over all points, wherever they are, is what makes the processes talk."""
    loss, slope = jax.value_and_grad(loss_of)(model, x, arm)
    speed = jax.tree.map(lambda v, g: KEEP * v - RATE * g, speed, slope)
    return jax.tree.map(jnp.add, model, speed), speed, loss


def train(rank, ranks):
    mesh = Mesh(np.array(jax.devices()), ["points"])
    spread = NamedSharding(mesh, PartitionSpec("points"))
    everywhere = NamedSharding(mesh, PartitionSpec())
    own = spirals(POINTS // ranks, seed=1 + rank)
    x, arm = (jax.make_array_from_process_local_data(spread, part) for part in own)
    # Every process starts with other values and takes those of process 0.
    model = multihost_utils.broadcast_one_to_all(new_model(seed=rank))
    model = jax.device_put(model, everywhere)
    speed = jax.tree.map(jnp.zeros_like, model)
    for count in range(1, int(os.environ.get("STEPS", "300")) + 1):
        model, speed, loss = step(model, speed, x, arm)
        if count == 1 or count % 50 == 0:
            print(f"step={count} rank={rank} loss={float(loss):.4f}", flush=True)
        if count % 10 == 0:
            time.sleep(float(os.environ.get("PAUSE", "0")))
    print(f"final loss={float(loss):.4f} rank={rank}", flush=True)
    return jax.tree.map(lambda weights: np.asarray(weights.addressable_data(0)), model)


def main():
    rank, ranks = int(os.environ["PROCESS_ID"]), int(os.environ["NUM_PROCESSES"])
    # A single worker needs no barrier.
    if ranks > 1:
        address = f"{os.environ['COORDINATOR_ADDRESS']}:{os.environ['COORDINATOR_PORT']}"
        jax.distributed.initialize(address, ranks, rank)
    model = train(rank, ranks)
    test, expected = spirals(600, seed=0)
    accuracy = float((np.asarray(predict(model, test)).argmax(axis=1) == expected).mean())
    sha = hashlib.sha256(b"".join(part.tobytes() for part in jax.tree.leaves(model))).digest()
    print(f"RESULT rank={rank} of {ranks} accuracy={accuracy:.3f} weights={sha.hex()[:16]}", flush=True)
    own = np.frombuffer(sha, dtype=np.uint8)
    gathered = multihost_utils.process_allgather(own).reshape(ranks, -1)
    if (gathered != own).any():
        return 4
    return 0 if accuracy >= TARGET else 3


if __name__ == "__main__":
    sys.exit(main())
