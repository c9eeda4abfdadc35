"""Trains in every worker of a TFJob, with MultiWorkerMirroredStrategy.

TF_CONFIG of the operator says who the workers are and which one this is. Each makes its own share of the points on a plane, and
all gradients are averaged over the workers in each step. Then each checks that all have the same weights, to the last bit, and that
they are those of the plane.

Exit codes: 0 done, 1 an error, 3 target missed, 4 the weights differ.
"""

import json
import os
import sys

import tensorflow as tf

STEPS = 200
RATE = 0.1
TARGET = 0.001  # mean squared error

# A single worker has no TF_CONFIG.
task = json.loads(os.environ.get("TF_CONFIG", '{"task": {"index": 0}}'))["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    # Gradients are averaged over all replicas.
    weights = tf.Variable(tf.zeros([3, 1]), aggregation=tf.VariableAggregation.MEAN)


def points():
    """Points on the plane z = 2 x - 3 y + 1, as rows (x, y, 1) and z: other ones in each worker."""
    xy = tf.random.stateless_uniform([256, 2], seed=[task, 0], minval=-1.0)
    rows = tf.concat([xy, tf.ones([256, 1])], axis=1)
    return rows, rows @ tf.constant([[2.0], [-3.0], [1.0]])


def loss_of(rows, z):
    return tf.reduce_mean(tf.square(rows @ weights - z))


def step(rows, z):
    with tf.GradientTape() as tape:
        loss = loss_of(rows, z)
    weights.assign_sub(RATE * tape.gradient(loss, weights))
    return loss


def everybodys():
    """The weights of all workers, a row for each."""
    row = tf.reshape(tf.identity(weights), [1, 3])
    return tf.distribute.get_replica_context().all_gather(row, axis=0)


rows, z = points()
train = tf.function(lambda: strategy.run(step, (rows, z)))
for _ in range(STEPS):
    loss = train()
loss = float(strategy.reduce("MEAN", loss, axis=None))
gathered = tf.function(lambda: strategy.run(everybodys))()
gathered = strategy.experimental_local_results(gathered)[0].numpy()
own = gathered[0].tobytes().hex()
workers = strategy.num_replicas_in_sync
print(f"RESULT worker={task} of {workers} loss={loss:.6f} weights={own}", flush=True)
if len(gathered) != workers or any(row.tobytes().hex() != own for row in gathered):
    sys.exit(4)
sys.exit(0 if loss < TARGET else 3)
