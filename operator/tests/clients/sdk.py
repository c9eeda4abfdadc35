"""A life of an MXJob through the Python SDK of the Go operator, which does not know who runs it.

    sdk.py NAMESPACE    with KUBECONFIG set; this script is the kubelet, too
"""

import sys
import time
from datetime import datetime, timezone

from kubernetes import client
from kubeflow.training import (
    KubeflowOrgV1MXJob,
    KubeflowOrgV1MXJobSpec,
    KubeflowOrgV1ReplicaSpec,
    KubeflowOrgV1RunPolicy,
    TrainingClient,
)

PATIENCE = 60
NAME = "from-python"
WORKERS = [f"{NAME}-worker-0", f"{NAME}-worker-1"]
ALL = {f"{NAME}-scheduler-0", f"{NAME}-server-0", *WORKERS}


def role(replicas):
    container = client.V1Container(name="mxnet", image="example.com/mxnet:1", command=["python3", "train.py"])
    template = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container]))
    return KubeflowOrgV1ReplicaSpec(replicas=replicas, restart_policy="Never", template=template)


def job():
    spec = KubeflowOrgV1MXJobSpec(
        job_mode="MXTrain",
        run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
        mx_replica_specs={"Scheduler": role(1), "Server": role(1), "Worker": role(2)},
    )
    meta = client.V1ObjectMeta(name=NAME)
    return KubeflowOrgV1MXJob(api_version="kubeflow.org/v1", kind="MXJob", metadata=meta, spec=spec)


def until(what, look):
    """Asks until the answer is right: the SDK has nothing that could wait for it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not in {PATIENCE} s; the last answer: {found!r}")
        time.sleep(0.1)


def equal(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found!r}, expected {expected!r}")


class Kubelet:
    def __init__(self, api, namespace):
        self.api, self.namespace = api, namespace

    def set(self, pod, phase, state):
        status = {
            "name": "mxnet", "image": "i", "imageID": "i", "restartCount": 0,
            "ready": phase == "Running", "started": phase == "Running", "state": state,
        }
        body = {"status": {"phase": phase, "containerStatuses": [status]}}
        self.api.patch_namespaced_pod_status(pod, self.namespace, body)

    def runs(self, pod):
        self.set(pod, "Running", {"running": {"startedAt": now()}})

    def succeeds(self, pod):
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}
        self.set(pod, "Succeeded", {"terminated": ended})


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def told(sdk):
    """Whether the events, which come with the logs, name all pods. Nothing has run, so there are no logs."""
    logs, events = sdk.get_job_logs(NAME, is_master=False, verbose=True)
    equal("logs", logs, {})
    texts = " ".join(events.get(f"mxjob/{NAME}", []))
    return all(pod in texts for pod in ALL)


def main(namespace):
    sdk = TrainingClient(namespace=namespace, job_kind="MXJob")
    kubelet = Kubelet(sdk.core_api, namespace)
    wait = {"wait_timeout": PATIENCE, "polling_interval": 1}

    sdk.create_job(job())
    sdk.wait_for_job_conditions(NAME, expected_conditions={"Created"}, **wait)
    until("pods", lambda: set(sdk.get_job_pod_names(NAME)) == ALL)
    equal("workers", sorted(sdk.get_job_pod_names(NAME, replica_type="worker")), WORKERS)
    equal("worker 1", sdk.get_job_pod_names(NAME, replica_type="worker", replica_index=1), WORKERS[1:])
    equal("masters", sdk.get_job_pod_names(NAME, is_master=True), [f"{NAME}-server-0"])
    until("events", lambda: told(sdk))
    print("created", flush=True)

    for pod in ALL:
        kubelet.runs(pod)
    running = sdk.wait_for_job_conditions(NAME, expected_conditions={"Running"}, **wait)
    equal("active workers", running.status.replica_statuses["Worker"].active, 2)
    equal("is_job_running", sdk.is_job_running(NAME), True)
    equal("is_job_succeeded", sdk.is_job_succeeded(NAME), False)
    equal("list_jobs", [item.metadata.name for item in sdk.list_jobs()], [NAME])

    print("running", flush=True)

    # A change of the job: it sleeps, and wakes up.
    changed = sdk.get_job(NAME)
    changed.spec.run_policy.suspend = True
    sdk.update_job(changed, NAME)
    until("no pods", lambda: not sdk.get_job_pod_names(NAME))
    changed = sdk.get_job(NAME)
    equal("suspended", [c.type for c in changed.status.conditions if c.status == "True"], ["Created", "Suspended"])
    changed.spec.run_policy.suspend = False
    sdk.update_job(changed, NAME)
    until("pods again", lambda: set(sdk.get_job_pod_names(NAME)) == ALL)
    for pod in ALL:
        kubelet.runs(pod)
    sdk.wait_for_job_conditions(NAME, expected_conditions={"Running"}, **wait)

    print("resumed", flush=True)

    for pod in [*WORKERS, f"{NAME}-scheduler-0"]:
        kubelet.succeeds(pod)
    done = sdk.wait_for_job_conditions(NAME, **wait)
    equal("succeeded workers", done.status.replica_statuses["Worker"].succeeded, 2)
    equal("is_job_succeeded", sdk.is_job_succeeded(NAME), True)
    equal("is_job_failed", sdk.is_job_failed(NAME), False)

    sdk.delete_job(NAME)
    until("no job", lambda: not sdk.list_jobs())
    until("no pods", lambda: not sdk.get_job_pod_names(NAME))
    print("deleted", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
