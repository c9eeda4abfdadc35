"""Trains a small classifier with Apache MXNet, in every role of an MXJob.

The same file runs as scheduler, server and worker, as the DMLC_* variables of
the operator say; examples/mxnet/train.yaml starts it five times. Each worker
makes its own share of the points of three interleaved spiral arms, and all train
one network through the key-value store. Then they check that their weights are
the same to the last bit and that the target is reached.

Exit codes: 0 done, 1 an error, 3 target missed, 4 the weights differ.

Settings, from the environment: KV (dist_sync; `local` trains alone), STEPS (60),
PAUSE (0; seconds after each step, to watch or disturb a running job).
"""

import hashlib
import os
import sys
import time
import traceback

# In a scheduler or server this line does the whole work: the import serves until
# all the workers are done, then exits. Only workers get past it.
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

CLASSES = 3
POINTS = 1536  # of all the workers together
TARGET = 0.95  # accuracy on points that no worker trains on
LEARNING_RATE = 0.5
DIGEST_KEY = 1000  # in the store; the trainer's keys are the parameters' indexes


def spirals(points, seed):
    """Points on three noisy spiral arms, and the arm that each belongs to."""
    rng = np.random.RandomState(seed)
    arm = np.arange(points) % CLASSES
    radius = rng.uniform(0.1, 1.0, points)
    angle = 4.0 * radius + arm * 2 * np.pi / CLASSES + rng.normal(0, 0.12, points)
    xy = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return mx.nd.array(xy), mx.nd.array(arm)


def digest(net):
    """SHA-256 over all the weights that this worker holds."""
    sha = hashlib.sha256()
    for param in net.collect_params().values():
        sha.update(param.data().asnumpy().tobytes())
    return sha


def same_as_first(kv, sha):
    """Whether worker 0 holds the same weights.

    kv.init stores the value of rank 0 and ignores those of the others, and waits
    until all have come: so worker 0 publishes its digest and the others read it.
    One byte an element, since the store holds floats, which are exact up to 2**24.
    """
    own = mx.nd.array(list(sha.digest()))
    first = mx.nd.zeros_like(own)
    kv.init(DIGEST_KEY, own)
    kv.pull(DIGEST_KEY, out=first)
    return (own == first).asnumpy().all()


def main():
    steps = int(os.environ.get("STEPS", "60"))
    pause = float(os.environ.get("PAUSE", "0"))
    kv = mx.kv.create(os.environ.get("KV", "dist_sync"))
    # MXNet hands out the ranks in any order: a rank is not a replica's index.
    rank, workers = kv.rank, kv.num_workers
    print(f"worker rank={rank} of {workers} kvstore={kv.type}", flush=True)

    data, label = spirals(POINTS, seed=1)
    data, label = data[rank::workers], label[rank::workers]
    test_data, test_label = spirals(600, seed=2)

    # Each worker starts with other values, so that only the store makes them agree.
    mx.random.seed(rank)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(48, activation="tanh", in_units=2))
    net.add(gluon.nn.Dense(48, activation="tanh", in_units=48))
    net.add(gluon.nn.Dense(CLASSES, in_units=48))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(
        net.collect_params(),
        "sgd",
        {"learning_rate": LEARNING_RATE, "momentum": 0.9},
        kvstore=kv,
        update_on_kvstore=True,  # the servers hold the weights and the optimizer
    )
    cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()

    for step in range(1, steps + 1):
        with autograd.record():
            loss = cross_entropy(net(data), label)
        loss.backward()
        trainer.step(POINTS)
        if step % 20 == 0 or step in (1, steps):
            print(f"step={step} rank={rank} loss={loss.mean().asscalar():.4f}", flush=True)
        time.sleep(pause)

    right = net(test_data).argmax(axis=1) == test_label
    accuracy = float(right.mean().asscalar())
    final_loss = loss.mean().asscalar()
    sha = digest(net)
    print(
        f"RESULT rank={rank} loss={final_loss:.4f} accuracy={accuracy:.4f} weights={sha.hexdigest()}",
        flush=True,
    )
    if not same_as_first(kv, sha):
        print(f"FAILED rank={rank}: its weights differ from those of rank 0", flush=True)
        return 4
    if accuracy < TARGET:
        print(f"FAILED rank={rank}: accuracy {accuracy:.4f} is below {TARGET}", flush=True)
        return 3
    print(f"ok rank={rank}: accuracy >= {TARGET}, the same weights in all {workers} workers", flush=True)
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except BaseException:
        # An ordinary exit would wait forever for the other workers, which wait
        # for this one. Exit at once, so that the operator sees the failure.
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.exit(code)
