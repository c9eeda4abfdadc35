"""Tunes a matrix product with Apache TVM, in every role of an MXTune job.

MX_CONFIG, which the operator sets, says which role this replica has and where the
others are:

    tunertracker   knows which servers are free
    tunerserver    runs candidates and measures them, under the key that the
                   annotation tuner-server-key of its template names
    tuner          makes candidates, has them measured, keeps the best

Tracker and servers serve until they are stopped: the job is done when the tuner
is. They may start in any order. POD_IP, if set, is the address that a replica
serves on; without it, all addresses.

The tuner needs a C compiler on PATH as its linker. Its settings: TRIALS (8).
Exit codes: 0 done, 1 an error, 3 no candidate within the bound.
"""

import json
import os
import socket
import sys
import tempfile
import time
import types

SIZE = 128
BOUND = 0.02  # seconds; a naive triple loop in C takes about a tenth of it


def wait_for(address):
    """Waits until something listens there.

    TVM's own waiting is not enough: a server polls each 5 s and gives up forever
    after 60 s, while its process stays; for a name that does not resolve yet (a
    pod's Service may come late) it spins.
    """
    while True:
        try:
            socket.create_connection(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)


def become(module, *args):
    """Replaces this process by a TVM tool, so that signals reach it directly."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", module, *map(str, args)])


def listen_on(replica):
    """The options for this replica's own address and exactly its own port."""
    port = replica["port"]
    host = os.environ.get("POD_IP") or "0.0.0.0"
    return ["--host", host, "--port", port, "--port-end", port + 1]


def serve(replica, tracker, key):
    wait_for(tracker)
    # The tracker would take the server's address from the connection. That is the
    # wrong one where a machine has several, such as one loopback address a pod.
    own = os.environ.get("POD_IP")
    custom = ["--custom-addr", own] if own else []
    address = "%s:%d" % tracker
    become("tvm.exec.rpc_server", *listen_on(replica), *custom, "--tracker", address, "--key", key)


def import_tvm():
    # The tuner imports this module for its side effect: it parses every tensor
    # intrinsic of every GPU, for about 10 s. The CPU needs none of them.
    name = "tvm.s_tir.tensor_intrin"
    sys.modules[name] = types.ModuleType(name)
    import tvm.s_tir

    tvm.s_tir.tensor_intrin = sys.modules[name]
    return tvm


def matrix_product(tvm):
    from tvm import te

    a = te.placeholder((SIZE, SIZE), "float32", "A")
    b = te.placeholder((SIZE, SIZE), "float32", "B")
    k = te.reduce_axis((0, SIZE), "k")
    c = te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return tvm.IRModule({"main": te.create_prim_func([a, b, c])})


def make_builder(tvm, ms, folder):
    """Compiles candidates here: TVM's own builder starts processes, each of which
    pays the import that import_tvm avoids."""

    @tvm.ir.utils.derived_object
    class Builder(ms.builder.PyBuilder):
        def build(self, inputs):
            return [self.build_one(candidate) for candidate in inputs]

        def build_one(self, candidate):
            try:
                # A folder for each: after measuring, TVM deletes the whole folder
                # that the file lies in. And linked here (.so), not on the server
                # (.tar), so that servers need no compiler.
                path = os.path.join(tempfile.mkdtemp(dir=folder), "candidate.so")
                tvm.compile(candidate.mod, candidate.target).export_library(path)
                return ms.builder.BuilderResult(path, None)
            except Exception as error:
                return ms.builder.BuilderResult(None, repr(error))

    return Builder()


def tune(tracker, servers, key, folder):
    tvm = import_tvm()
    import tvm.ir.utils
    from tvm.s_tir import meta_schedule as ms

    rpc = ms.runner.RPCConfig(*tracker, key, session_timeout_sec=60)
    wait_for(tracker)
    while rpc.count_num_servers() < servers:
        time.sleep(0.1)
    print(f"tuner: {servers} servers at the tracker, key {key}", flush=True)

    started = time.time()
    database = ms.tune_tir(
        mod=matrix_product(tvm),
        target=tvm.target.Target({"kind": "llvm", "num-cores": 1}),
        work_dir=os.path.join(folder, "work"),
        max_trials_global=int(os.environ.get("TRIALS", "8")),
        num_trials_per_iter=4,
        builder=make_builder(tvm, ms, folder),
        runner=ms.runner.RPCRunner(
            rpc_config=rpc,
            evaluator_config=ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=5),
            max_workers=servers,
        ),
        cost_model="random",
        strategy="replay-trace",
        num_tuning_cores=1,
        seed=1,
    )
    records = [r for r in database.get_all_tuning_records() if r.run_secs]
    if not records:
        print("FAILED: no candidate ran", flush=True)
        return 3
    best = min(float(min(r.run_secs)) for r in records)
    print(
        f"RESULT records={len(records)} best_us={best * 1e6:.1f} "
        f"gflops={2 * SIZE**3 / best / 1e9:.2f} seconds={time.time() - started:.1f}",
        flush=True,
    )
    if best > BOUND:
        print(f"FAILED: {best:.4f} s is more than {BOUND} s", flush=True)
        return 3
    return 0


def main():
    config = json.loads(os.environ["MX_CONFIG"])
    role, index = config["task"]["type"], config["task"]["index"]
    replica = config["cluster"][role][index]
    first = config["cluster"]["tunertracker"][0]
    tracker = (first["url"], first["port"])
    # A server without a key is rejected, and the annotation is optional.
    key = config["labels"].get("tunerserver") or "default"
    print(f"{role}-{index}: port {replica['port']}, tracker {tracker[0]}:{tracker[1]}", flush=True)

    if role == "tunertracker":
        become("tvm.exec.rpc_tracker", *listen_on(replica))
    elif role == "tunerserver":
        serve(replica, tracker, key)
    elif role == "tuner":
        with tempfile.TemporaryDirectory(prefix="tune-") as folder:
            return tune(tracker, len(config["cluster"]["tunerserver"]), key, folder)
    print(f"tune.py has no role {role}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
