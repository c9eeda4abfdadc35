"""Lives of jobs of each kind through the Python SDK of the Go operator, which does not know who runs them.

    sdk.py NAMESPACE CERTIFICATE KEY    with KUBECONFIG set; this script is the kubelet, too, and serves logs with these
"""

import sys
import time
import types
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

from kubernetes import client
from kubernetes.client.rest import ApiException
from kubeflow.training import (
    KubeflowOrgV1ReplicaSpec,
    KubeflowOrgV1RunPolicy,
    TrainingClient,
    models,
)

import node

PATIENCE = 60
WAIT = {"wait_timeout": PATIENCE, "polling_interval": 0.2}

# A kind of job: the container that the SDK reads logs of, how many of each role, the pods that its master label is at,
# those that come when all others run, and those whose success is the job's.
Kind = namedtuple("Kind", "name container roles masters late deciding")
KINDS = [
    Kind("MXJob", "mxnet", {"Scheduler": 1, "Server": 1, "Worker": 2}, ["server-0"], [],
         ["worker-0", "worker-1", "scheduler-0"]),
    Kind("TFJob", "tensorflow", {"Chief": 1, "PS": 1, "Worker": 1}, ["chief-0"], [], ["chief-0"]),
    Kind("XGBoostJob", "xgboost", {"Master": 1, "Worker": 1}, ["master-0"], [], ["master-0"]),
    Kind("PyTorchJob", "pytorch", {"Master": 1, "Worker": 2}, ["master-0"], [], ["master-0"]),
    Kind("PaddleJob", "paddle", {"Worker": 2}, [], [], ["worker-0", "worker-1"]),
    Kind("MPIJob", "mpi", {"Launcher": 1, "Worker": 2}, ["launcher"], ["launcher"], ["launcher"]),
    Kind("JAXJob", "jax", {"Worker": 2}, ["worker-0"], [], ["worker-0", "worker-1"]),
]
# SDK 1.8 has no JAXJob, SDK 1.9 no MXJob.
KINDS = [kind for kind in KINDS if hasattr(models, f"KubeflowOrgV1{kind.name}")]
PYTORCH = next(kind for kind in KINDS if kind.name == "PyTorchJob")


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


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """Does what a kubelet does to the pods of its node, when it is told to."""

    def __init__(self, api, namespace, certificate, key):
        self.api, self.namespace = api, namespace
        self.node = node.start(api, namespace, certificate, key)

    def set(self, pod, phase, state):
        names = [c.name for c in self.api.read_namespaced_pod(pod, self.namespace).spec.containers]
        runs = phase == "Running"
        status = {"image": "i", "imageID": "i", "restartCount": 0, "ready": runs, "started": runs, "state": state}
        body = {"status": {"phase": phase, "containerStatuses": [{"name": name, **status} for name in names]}}
        self.api.patch_namespaced_pod_status(pod, self.namespace, body)

    def runs(self, pod):
        target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        # The answer is none that the client could read.
        self.api.create_namespaced_pod_binding(pod, self.namespace, body, _preload_content=False)
        self.set(pod, "Running", {"running": {"startedAt": now()}})

    def exits(self, pod, code):
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now(), "finishedAt": now()}
        self.set(pod, "Failed" if code else "Succeeded", {"terminated": ended})

    def lets_go(self, pods):
        """Ends what is being deleted. Whatever has gone meanwhile has."""
        for pod in pods:
            if pod.metadata.deletion_timestamp:
                try:
                    self.api.delete_namespaced_pod(pod.metadata.name, self.namespace, grace_period_seconds=0)
                except ApiException as error:
                    if error.status != 404:
                        raise


class Life:
    """A job under a name, what it has, and what is done to it."""

    def __init__(self, kind, name, kubelet):
        self.kind, self.name, self.kubelet = kind, name, kubelet
        self.sdk = TrainingClient(namespace=kubelet.namespace, job_kind=kind.name)
        of = lambda role, n: role.lower() if role == "Launcher" else f"{role.lower()}-{n}"
        self.all = sorted(self.pod(of(role, n)) for role, count in kind.roles.items() for n in range(count))
        self.workers = [pod for pod in self.all if "-worker-" in pod]
        self.first = [pod for pod in self.all if pod not in map(self.pod, kind.late)]

    def pod(self, replica):
        return f"{self.name}-{replica}"

    def job(self):
        container = client.V1Container(name=self.kind.container, image="example.com/train:1", command=["train"])
        template = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container]))
        # What the policy says of 137 is a restart, of 1 the end.
        role = lambda count: KubeflowOrgV1ReplicaSpec(replicas=count, restart_policy="ExitCode", template=template)
        specs = {role_name: role(count) for role_name, count in self.kind.roles.items()}
        Spec = getattr(models, f"KubeflowOrgV1{self.kind.name}Spec")
        field = next(field for field in Spec.openapi_types if field.endswith("_replica_specs"))
        more = {"job_mode": "MXTrain"} if "job_mode" in Spec.openapi_types else {}
        spec = Spec(run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"), **{field: specs}, **more)
        Job = getattr(models, f"KubeflowOrgV1{self.kind.name}")
        meta = client.V1ObjectMeta(name=self.name)
        return Job(api_version="kubeflow.org/v1", kind=self.kind.name, metadata=meta, spec=spec)

    def names(self, **which):
        return sorted(self.sdk.get_job_pod_names(self.name, **which))

    def awaits(self, *conditions):
        return self.sdk.wait_for_job_conditions(self.name, expected_conditions=set(conditions), **WAIT)

    def true(self):
        """The conditions that the SDK's questions say yes to, but for Created, which always holds."""
        equal("is_job_created", self.sdk.is_job_created(self.name), True)
        asked = ["running", "restarting", "succeeded", "failed"]
        return [word for word in asked if getattr(self.sdk, f"is_job_{word}")(self.name)]

    def run(self):
        """Has all pods run that do not, until there are all, and awaits that the job says so."""

        def all_run():
            pods = self.sdk.get_job_pods(self.name)
            self.kubelet.lets_go(pods)
            for pod in pods:
                if pod.status.phase == "Pending" and not pod.metadata.deletion_timestamp:
                    self.kubelet.runs(pod.metadata.name)
            run = sorted(pod.metadata.name for pod in pods if pod.status.phase == "Running")
            return run == self.all

        until(f"{self.name} with all pods", all_run)
        return self.awaits("Running")

    def gone(self):
        def none():
            pods = self.sdk.get_job_pods(self.name)
            self.kubelet.lets_go(pods)
            return not pods

        until(f"{self.name} without pods", none)

    def told(self):
        """Whether the events, which come with the logs, name all pods that there are. Nothing has run, so no logs."""
        logs, events = self.sdk.get_job_logs(self.name, is_master=False, verbose=True)
        equal("logs", logs, {})
        texts = " ".join(events.get(f"{self.kind.name.lower()}/{self.name}", []))
        return all(pod in texts for pod in self.first)

    def expect_logs(self):
        log = lambda pod: f"{pod} {self.kind.container}: a line\nand one more\n"
        masters = [self.pod(master) for master in self.kind.masters]
        logs, _ = self.sdk.get_job_logs(self.name)
        equal("logs of the master", logs, {pod: log(pod) for pod in masters})
        logs, _ = self.sdk.get_job_logs(self.name, is_master=False)
        equal("logs of all", logs, {pod: log(pod) for pod in self.all})
        logs, _ = self.sdk.get_job_logs(self.name, is_master=False, replica_type="worker", follow=True)
        equal("logs that are followed", logs, {pod: log(pod).replace("\n", "") for pod in self.workers})

    def begin(self):
        """From the job that was just created to one that runs."""
        self.awaits("Created")
        until("the first pods", lambda: self.names() == self.first)
        equal("workers", self.names(replica_type="worker"), self.workers)
        equal("worker 0", self.names(replica_type="worker", replica_index=0), self.workers[:1])
        until("events", self.told)
        running = self.run()
        equal("masters", self.names(is_master=True), [self.pod(master) for master in self.kind.masters])
        equal("active", {role: s.active for role, s in running.status.replica_statuses.items()}, self.kind.roles)
        equal("true", self.true(), ["running"])
        equal("list_jobs", [item.metadata.name for item in self.sdk.list_jobs()], [self.name])
        self.expect_logs()

    def sleep_and_wake(self):
        """A change of the job: it sleeps, and wakes up."""
        changed = self.sdk.get_job(self.name)
        changed.spec.run_policy.suspend = True
        self.sdk.update_job(changed, self.name)
        self.gone()
        changed = self.sdk.get_job(self.name)
        holds = [c.type for c in changed.status.conditions if c.status == "True"]
        equal("suspended", holds, ["Created", "Suspended"])
        changed.spec.run_policy.suspend = False
        self.sdk.update_job(changed, self.name)
        self.run()

    def restart(self):
        self.kubelet.exits(self.workers[0], 137)
        self.awaits("Restarting")
        equal("true", self.true(), ["restarting"])
        self.run()

    def succeed(self):
        for replica in self.kind.deciding:
            self.kubelet.exits(self.pod(replica), 0)
        done = self.sdk.wait_for_job_conditions(self.name, **WAIT)
        equal("true", self.true(), ["succeeded"])
        role = "Launcher" if self.kind.late else self.kind.deciding[0].split("-")[0].capitalize()
        count = self.kind.roles[role]
        equal(f"succeeded of {role}", done.status.replica_statuses[role].succeeded, count)

    def fail(self):
        self.kubelet.exits(self.workers[0], 1)
        try:
            self.sdk.wait_for_job_conditions(self.name, **WAIT)
        except RuntimeError as error:
            if "is Failed" not in str(error):
                raise
        else:
            sys.exit("who waits for success is not told of a failure")
        equal("true", self.true(), ["failed"])

    def delete(self):
        self.sdk.delete_job(self.name)
        until("no job", lambda: not self.sdk.list_jobs())
        self.gone()


def step(rate=0.1):
    """What a user trains with; it is read, never called."""
    print("a step of", rate)


def optional_modules():
    """Stands for packages of some gigabytes, of which `train` reads names and settings."""
    kinds = ["SequenceClassification", "TokenClassification", "QuestionAnswering", "CausalLM", "MaskedLM",
             "ImageClassification"]
    transformers = types.ModuleType("transformers")
    for kind in kinds:
        setattr(transformers, f"AutoModelFor{kind}", type(f"AutoModelFor{kind}", (), {}))
    settings = lambda self: {"output_dir": "out"}
    transformers.TrainingArguments = type("TrainingArguments", (), {"to_dict": settings})
    peft = types.ModuleType("peft")
    peft.LoraConfig = type("LoraConfig", (), {
        "__init__": lambda self: setattr(self, "target_modules", {"q"}),
        "to_dict": lambda self: self.__dict__,
    })
    sys.modules.update(transformers=transformers, peft=peft)
    return transformers


def variables(life, replica):
    container = life.kubelet.api.read_namespaced_pod(life.pod(replica), life.kubelet.namespace).spec.containers[0]
    return {v.name: v.value for v in container.env}


def from_function(kubelet):
    """`create_job` with a function: a PyTorchJob of which the user writes nothing but the number of workers."""
    life = Life(PYTORCH, "function", kubelet)
    life.sdk.create_job(name=life.name, train_func=step, parameters={"rate": 0.2}, num_workers=3,
                        packages_to_install=["six"], resources_per_worker={"cpu": "1", "gpu": 1})
    life.begin()
    master = variables(life, "master-0")
    equal("size and rank", [master["WORLD_SIZE"], master["RANK"]], ["3", "0"])
    equal("rank of the last", variables(life, "worker-1")["RANK"], "2")
    life.succeed()
    life.delete()


def fine_tuned(kubelet):
    """`train`, whose master has an init container that fills the volume of all."""
    transformers = optional_modules()
    from kubeflow.storage_initializer.hugging_face import (
        HuggingFaceDatasetParams,
        HuggingFaceModelParams,
        HuggingFaceTrainerParams,
    )

    life = Life(PYTORCH, "fine-tuned", kubelet)
    model = HuggingFaceModelParams("hf://example/model", transformers.AutoModelForSequenceClassification, num_labels=2)
    life.sdk.train(
        name=life.name, num_workers=3, num_procs_per_worker=2, resources_per_worker={"memory": "1Gi"},
        model_provider_parameters=model, dataset_provider_parameters=HuggingFaceDatasetParams("example/data"),
        trainer_parameters=HuggingFaceTrainerParams(),
    )
    life.begin()
    inits = {pod.metadata.name: [c.name for c in pod.spec.init_containers or []]
             for pod in life.sdk.get_job_pods(life.name)}
    own = {life.pod("master-0"): ["storage-initializer"], **{worker: [] for worker in life.workers}}
    equal("init containers", inits, own)
    master = variables(life, "master-0")
    equal("size", [master["WORLD_SIZE"], master["PET_NPROC_PER_NODE"], master["PET_NNODES"]], ["6", "2", "3"])
    life.succeed()
    life.delete()


def live(kind, kubelet):
    life = Life(kind, f"from-python-{kind.container}", kubelet)
    life.sdk.create_job(life.job())
    life.begin()
    life.sleep_and_wake()
    life.restart()
    life.succeed()
    life.delete()
    life.sdk.create_job(life.job())
    life.run()
    life.fail()
    life.delete()


def main(namespace, certificate, key):
    api = TrainingClient(namespace=namespace).core_api
    kubelet = Kubelet(api, namespace, certificate, key)
    # One job of each kind at a time: it is listed alone.
    with ThreadPoolExecutor(len(KINDS)) as pool:
        for kind, _ in zip(KINDS, pool.map(lambda kind: live(kind, kubelet), KINDS)):
            print(f"lived: {kind.name}", flush=True)
    from_function(kubelet)
    print("lived: create_job", flush=True)
    fine_tuned(kubelet)
    print("lived: train", flush=True)
    api.delete_node(kubelet.node)


if __name__ == "__main__":
    main(*sys.argv[1:])
