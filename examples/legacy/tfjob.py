"""Trains in a TfJob of mlkube.io, as programs for TensorFlow 1 did: a graph whose variables are on the parameter servers.

TF_CONFIG of the operator says where they are. The points are of the plane z = 2 x - 3 y + 1.

Exit codes: 0 done, 3 target missed, 4 the variables are not on the servers.
"""

import json
import os
import sys

import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()

STEPS = 300
TARGET = 0.001  # mean squared error

config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
server = tf.distribute.Server(cluster, job_name=task["type"], task_index=task["index"])

setter = v1.train.replica_device_setter(worker_device="/job:master/task:0", cluster=cluster)
with v1.device(setter):
    slopes = v1.get_variable("slopes", [2, 1], initializer=v1.zeros_initializer())
    height = v1.get_variable("height", [1], initializer=v1.zeros_initializer())
    xy = v1.random_uniform([256, 2], minval=-1.0)
    z = tf.matmul(xy, tf.constant([[2.0], [-3.0]])) + 1.0
    loss = tf.reduce_mean(tf.square(tf.matmul(xy, slopes) + height - z))
    step = v1.train.GradientDescentOptimizer(0.3).minimize(loss)

places = sorted(variable.device for variable in (slopes, height))
if [place.split("/task:")[0] for place in places] != ["/job:ps", "/job:ps"] or len(set(places)) != len(cluster["ps"]):
    print(f"the variables are on {places}", file=sys.stderr)
    sys.exit(4)

with v1.Session(server.target) as session:  # waits for the servers
    session.run(v1.global_variables_initializer())
    for _ in range(STEPS):
        session.run(step)
    final = session.run(loss)
    found = session.run([slopes, height])

if "LOGS" in os.environ:
    with tf.Graph().as_default():
        v1.summary.FileWriter(os.environ["LOGS"]).close()

print(f"RESULT loss={final:.6f} slopes={found[0].ravel().round(2)} height={found[1].round(2)} servers={places}", flush=True)
sys.exit(0 if final < TARGET else 3)
