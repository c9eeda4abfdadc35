"""Jobs of each kind that the Go operator's Python SDK supports, from creation to deletion, as processes of `local cluster`.

    local_sdk.py NAMESPACE    with KUBECONFIG set
"""

import sys

from kubernetes import client, config, watch
from kubernetes.stream import stream
from kubeflow.training import KubeflowOrgV1ReplicaSpec, KubeflowOrgV1RunPolicy, TrainingClient, models

WAIT = {"wait_timeout": 60, "polling_interval": 0.2}

# A kind: the container that the SDK reads logs of, and the roles.
KINDS = {
    "MXJob": ("mxnet", ["Scheduler", "Server", "Worker"]),
    "TFJob": ("tensorflow", ["Chief", "Worker"]),
    "XGBoostJob": ("xgboost", ["Master", "Worker"]),
    "PyTorchJob": ("pytorch", ["Master", "Worker"]),
    "PaddleJob": ("paddle", ["Worker"]),
    "JAXJob": ("jax", ["Worker"]),
    "MPIJob": ("mpi", ["Launcher", "Worker"]),
}


def equal(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {found!r}, expected {expected!r}")


def job(kind, name):
    container, roles = KINDS[kind]
    Spec = getattr(models, f"KubeflowOrgV1{kind}Spec")
    field = next(field for field in Spec.openapi_types if field.endswith("_replica_specs"))

    def role(role_name):
        # The workers of MPI wait for the launcher's shell.
        script = "sleep 1000" if kind == "MPIJob" and role_name == "Worker" else f"echo from {role_name}"
        one = client.V1Container(name=container, image="none", command=["sh", "-c", script])
        template = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[one], termination_grace_period_seconds=0))
        return KubeflowOrgV1ReplicaSpec(replicas=1, restart_policy="Never", template=template)

    more = {"job_mode": "MXTrain"} if "job_mode" in Spec.openapi_types else {}
    spec = Spec(run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"), **{field: {r: role(r) for r in roles}}, **more)
    meta = client.V1ObjectMeta(name=name)
    return getattr(models, f"KubeflowOrgV1{kind}")(api_version="kubeflow.org/v1", kind=kind, metadata=meta, spec=spec)


def live(kind, namespace):
    name = f"from-sdk-{kind.lower()}"
    sdk = TrainingClient(namespace=namespace, job_kind=kind)
    sdk.create_job(job(kind, name))
    sdk.wait_for_job_conditions(name, **WAIT)
    equal("is_job_succeeded", sdk.is_job_succeeded(name), True)
    equal("list_jobs", [item.metadata.name for item in sdk.list_jobs()], [name])
    logs, _ = sdk.get_job_logs(name, is_master=False)
    role = KINDS[kind][1][0]
    found = [text for text in logs.values() if text == f"from {role}\n"]
    equal("logs", len(found), 1)
    # The plain client follows what the SDK does.
    listing = client.CustomObjectsApi().list_namespaced_custom_object
    of = {"group": "kubeflow.org", "version": "v1", "namespace": namespace, "plural": f"{kind.lower()}s"}
    version = listing(**of)["metadata"]["resourceVersion"]
    sdk.delete_job(name)
    events = watch.Watch().stream(listing, **of, resource_version=version, timeout_seconds=60)
    equal("the event after the deletion", next(events)["type"], "DELETED")
    equal("list_jobs", sdk.list_jobs(), [])


def pass_text(namespace):
    """Passes a text to a command in a pod. The client sends it in a text message, and bytes in a binary one."""
    core = client.CoreV1Api()
    container = client.V1Container(name="c", image="none", command=["sleep", "1000"])
    spec = client.V1PodSpec(containers=[container], termination_grace_period_seconds=0)
    meta = client.V1ObjectMeta(name="reader")
    core.create_namespaced_pod(namespace, client.V1Pod(metadata=meta, spec=spec))
    pods = watch.Watch().stream(
        core.list_namespaced_pod, namespace, field_selector="metadata.name=reader", timeout_seconds=60
    )
    next(event for event in pods if event["object"].status.phase == "Running")
    command = {"command": ["head", "-n", "1"], "stdin": True, "stdout": True, "stderr": True, "tty": False}
    session = stream(core.connect_get_namespaced_pod_exec, "reader", namespace, **command, _preload_content=False)
    session.write_stdin("text\n")
    session.run_forever(timeout=60)
    equal("the command's output", session.read_stdout(), "text\n")
    core.delete_namespaced_pod("reader", namespace)


if __name__ == "__main__":
    config.load_kube_config()
    pass_text(sys.argv[1])
    for kind in KINDS:
        if hasattr(models, f"KubeflowOrgV1{kind}"):
            live(kind, sys.argv[1])
            print(f"lived: {kind}", flush=True)
