"""Trains in a TFJob with parameter servers, with ParameterServerStrategy.

TF_CONFIG of the operator says who is who. Servers and workers wait for the chief's orders and never end by themselves. The chief
keeps the weights on the servers and lets the workers, each when it is ready, bring them nearer to those of a plane.

Exit codes of the chief: 0 done, 1 an error, 3 target missed, 4 the weights are not on the servers.
"""

import os
import sys

import tensorflow as tf

STEPS = 400
RATE = 0.05
TARGET = 0.001  # mean squared error

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("ps", "worker"):
    # The coordinator waits for replicas that have not started yet.
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    ).join()

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    slopes = tf.Variable(tf.zeros([2, 1]))
    height = tf.Variable(tf.zeros([1]))


def loss_of_some_points():
    """On points of the plane z = 2 x - 3 y + 1, other ones at each call."""
    xy = tf.random.uniform([256, 2], minval=-1.0)
    z = xy @ tf.constant([[2.0], [-3.0]]) + 1.0
    return tf.reduce_mean(tf.square(xy @ slopes + height - z))


@tf.function
def step():
    def at_a_worker():
        with tf.GradientTape() as tape:
            loss = loss_of_some_points()
        for weights, gradient in zip((slopes, height), tape.gradient(loss, (slopes, height))):
            weights.assign_sub(RATE * gradient)

    strategy.run(at_a_worker)


for _ in range(STEPS):
    coordinator.schedule(step)
coordinator.join()

loss = float(loss_of_some_points())
places = sorted(weights.device.split("/")[1:4] for weights in (slopes, height))
servers = sorted({f"{job} {task}".replace("job:", "").replace("task:", "") for job, _, task in places})
workers = resolver.cluster_spec().num_tasks("worker")
print(f"RESULT workers={workers} loss={loss:.6f} weights on {', '.join(servers)}", flush=True)
if any(not server.startswith("ps ") for server in servers):
    sys.exit(4)
sys.exit(0 if loss < TARGET else 3)
