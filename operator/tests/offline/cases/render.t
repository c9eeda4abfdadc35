A job becomes its service and its pod.

  $ training-operator render cases/single-worker.yaml
  ---
  # Service single-worker-0
  apiVersion: v1
  kind: Service
  metadata:
    labels:
      training.kubeflow.org/job-name: single
      training.kubeflow.org/operator-name: mxjob-controller
      training.kubeflow.org/replica-index: "0"
      training.kubeflow.org/replica-type: worker
    name: single-worker-0
    namespace: default
    ownerReferences:
    - apiVersion: kubeflow.org/v1
      blockOwnerDeletion: true
      controller: true
      kind: MXJob
      name: single
      uid: 00000000-0000-0000-0000-000000000000
  spec:
    clusterIP: None
    ports:
    - name: mxjob-port
      port: 9091
    publishNotReadyAddresses: true
    selector:
      training.kubeflow.org/job-name: single
      training.kubeflow.org/operator-name: mxjob-controller
      training.kubeflow.org/replica-index: "0"
      training.kubeflow.org/replica-type: worker
  ---
  # Pod single-worker-0
  apiVersion: v1
  kind: Pod
  metadata:
    labels:
      training.kubeflow.org/job-name: single
      training.kubeflow.org/operator-name: mxjob-controller
      training.kubeflow.org/replica-index: "0"
      training.kubeflow.org/replica-type: worker
    name: single-worker-0
    namespace: default
    ownerReferences:
    - apiVersion: kubeflow.org/v1
      blockOwnerDeletion: true
      controller: true
      kind: MXJob
      name: single
      uid: 00000000-0000-0000-0000-000000000000
  spec:
    containers:
    - env:
      - name: MX_CONFIG
        value: '{"cluster":{"worker":[{"url":"single-worker-0","port":9091}]},"labels":{"worker":""},"task":{"type":"worker","index":0}}'
      - name: DMLC_PS_ROOT_PORT
        value: "0"
      - name: DMLC_PS_ROOT_URI
      - name: DMLC_NUM_SERVER
        value: "0"
      - name: DMLC_NUM_WORKER
        value: "1"
      - name: DMLC_ROLE
        value: worker
      - name: DMLC_USE_KUBERNETES
        value: "1"
      - name: DMLC_WORKER_ID
        value: "0"
      image: mxnet/python:1.9.1
      name: mxnet
      ports:
      - containerPort: 9091
        name: mxjob-port
      terminationMessagePolicy: FallbackToLogsOnError
    enableServiceLinks: false
    restartPolicy: Never

Standard input reads as a file does.

  $ training-operator render cases/single-worker.yaml > single
  $ training-operator render - < cases/single-worker.yaml | cmp - single

A directory is read in the order of names, and the output is equal byte for byte in repeated runs.

  $ training-operator render cases > all
  $ training-operator render cases | cmp - all
  $ training-operator render cases/* | cmp - all

Other objects are skipped with a note. The items of a list are jobs.

  $ (printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\n'; cat cases/single-worker.yaml; echo ---) |
  >     training-operator render - | grep '^# '
  # Service single-worker-0
  # Pod single-worker-0
  ! <stdin>:1:1: note: ConfigMap settings of v1 is not a training job and is skipped
  $ for list in v1/List kubeflow.org/v1/MXJobList; do
  >     (printf "apiVersion: ${list%/*}\nkind: ${list##*/}\nitems:\n-\n"; sed 's/^/  /' cases/single-worker.yaml) |
  >         training-operator render - | grep '^# '
  > done
  # Service single-worker-0
  # Pod single-worker-0
  # Service single-worker-0
  # Pod single-worker-0

The source of the launcher's remote shell affects nothing else, so running launchers are kept.

  $ training-operator render examples/mpi/train.yaml --mpi-kubectl-delivery-image=example.com/kubectl:2 > kubectl
  $ training-operator render examples/mpi/train.yaml --mpi-remote-shell-image=example.com/training-operator:1 |
  >     diff -U0 kubectl - | tail -n +3
  @@ -83,0 +84 @@
  +  - get
  @@ -168,6 +169,5 @@
  -  - env:
  -    - name: TARGET_DIR
  -      value: /opt/kube
  -    - name: NAMESPACE
  -      value: default
  -    image: example.com/kubectl:2
  +  - args:
  +    - remote-shell
  +    - install
  +    - /opt/kube
  +    image: example.com/training-operator:1
  @@ -175 +175 @@
  -    name: kubectl-delivery
  +    name: remote-shell
  @@ -179,2 +179,2 @@
  -        ephemeral-storage: 5Gi
  -        memory: 512Mi
  +        ephemeral-storage: 256Mi
  +        memory: 128Mi
  @@ -183,2 +183,2 @@
  -        ephemeral-storage: 5Gi
  -        memory: 512Mi
  +        ephemeral-storage: 256Mi
  +        memory: 128Mi
  @@ -189,0 +190 @@
  +      readOnlyRootFilesystem: true
  @@ -195,2 +195,0 @@
  -    - mountPath: /etc/mpi
  -      name: mpi-job-config
  [1]

A replica and a part can be chosen.

  $ training-operator render cases/sidecar-and-init.yaml --replica worker-0 | grep '^# '
  # Service sidecar-worker-0
  # Pod sidecar-worker-0
  $ training-operator render cases/sidecar-and-init.yaml --replica Scheduler-0 --only pods | grep '^# '
  # Pod sidecar-scheduler-0
  $ training-operator render cases/sidecar-and-init.yaml --only services | grep '^# '
  # Service sidecar-scheduler-0
  # Service sidecar-worker-0
  $ training-operator render cases/sidecar-and-init.yaml --replica worker-0 --only env -o json
  {
    "apiVersion": "v1",
    "items": [
      {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
          "name": "sidecar-worker-0",
          "namespace": "default"
        },
        "spec": {
          "containers": [
            {
              "env": [
                {
                  "name": "MX_CONFIG",
                  "value": "{\"cluster\":{\"scheduler\":[{\"url\":\"sidecar-scheduler-0\",\"port\":9091}],\"worker\":[{\"url\":\"sidecar-worker-0\",\"port\":9091}]},\"labels\":{\"scheduler\":\"\",\"worker\":\"\"},\"task\":{\"type\":\"worker\",\"index\":0}}"
                },
                {
                  "name": "DMLC_PS_ROOT_PORT",
                  "value": "9091"
                },
                {
                  "name": "DMLC_PS_ROOT_URI",
                  "value": "sidecar-scheduler-0"
                },
                {
                  "name": "DMLC_NUM_SERVER",
                  "value": "0"
                },
                {
                  "name": "DMLC_NUM_WORKER",
                  "value": "1"
                },
                {
                  "name": "DMLC_ROLE",
                  "value": "worker"
                },
                {
                  "name": "DMLC_USE_KUBERNETES",
                  "value": "1"
                },
                {
                  "name": "DMLC_WORKER_ID",
                  "value": "0"
                }
              ],
              "name": "mxnet"
            },
            {
              "env": [
                {
                  "name": "PORT",
                  "value": "6006"
                },
                {
                  "name": "MX_CONFIG",
                  "value": "{\"cluster\":{\"scheduler\":[{\"url\":\"sidecar-scheduler-0\",\"port\":9091}],\"worker\":[{\"url\":\"sidecar-worker-0\",\"port\":9091}]},\"labels\":{\"scheduler\":\"\",\"worker\":\"\"},\"task\":{\"type\":\"worker\",\"index\":0}}"
                },
                {
                  "name": "DMLC_PS_ROOT_PORT",
                  "value": "9091"
                },
                {
                  "name": "DMLC_PS_ROOT_URI",
                  "value": "sidecar-scheduler-0"
                },
                {
                  "name": "DMLC_NUM_SERVER",
                  "value": "0"
                },
                {
                  "name": "DMLC_NUM_WORKER",
                  "value": "1"
                },
                {
                  "name": "DMLC_ROLE",
                  "value": "worker"
                },
                {
                  "name": "DMLC_USE_KUBERNETES",
                  "value": "1"
                },
                {
                  "name": "DMLC_WORKER_ID",
                  "value": "0"
                }
              ],
              "name": "tensorboard"
            }
          ]
        }
      }
    ],
    "kind": "List"
  }

`explain` prints these names of a replica: the role of a launcher, its key in the status, and names of pods.

  $ for name in moons-launcher launcher LAUNCHER launcher-0 moons-worker-0 worker-0 moons-worker-1 WORKER-1; do
  >     echo $name: $(training-operator render examples/mpi/train.yaml --only pods --replica $name | grep '^# ')
  > done
  moons-launcher: # Pod moons-launcher
  launcher: # Pod moons-launcher
  LAUNCHER: # Pod moons-launcher
  launcher-0: # Pod moons-launcher
  moons-worker-0: # Pod moons-worker-0
  worker-0: # Pod moons-worker-0
  moons-worker-1: # Pod moons-worker-1
  WORKER-1: # Pod moons-worker-1

A replica that no job has is an error.

  $ training-operator render cases/sidecar-and-init.yaml --replica worker-3
  ! training-operator: --replica: no job has the replica worker-3; use one of scheduler-0, worker-0
  [2]
  $ training-operator render cases/sidecar-and-init.yaml --replica worker
  ! training-operator: --replica: no job has the replica worker; use one of scheduler-0, worker-0
  [2]
  $ training-operator render examples/mpi/train.yaml --replica worker-9
  ! training-operator: --replica: no job has the replica worker-9; use one of launcher, worker-0 to worker-1
  [2]

A summary counts the requested resources. It has the ports of replicas alone: TensorBoard's belongs to no role.

  $ training-operator render --summary cases/rich-template.yaml examples/mxnet/gpu.yaml
  JOB           ROLE       REPLICAS  CPU  MEMORY  GPUS  PORTS                IMAGES
  default/rich  worker     1         0.5  4Gi     1     9091/TCP mxjob-port  mxnet/python:1.9.1
  default/rich  total      1         0.5  4Gi     1     -                    -
  default/gpu   scheduler  1         -    -       -     9991/TCP mxjob-port  kubeflow/mxnet-gpu:latest
  default/gpu   server     1         -    -       -     9991/TCP mxjob-port  kubeflow/mxnet-gpu:latest
  default/gpu   worker     1         -    -       1     9991/TCP mxjob-port  kubeflow/mxnet-gpu:latest
  default/gpu   total      3         -    -       1     -                    -
  $ training-operator render --summary -o json cases/rich-template.yaml
  {
    "jobs": [
      {
        "name": "rich",
        "namespace": "default",
        "roles": [
          {
            "role": "worker",
            "images": [
              "mxnet/python:1.9.1"
            ],
            "ports": [
              "9091/TCP mxjob-port"
            ],
            "replicas": 1,
            "requests": {
              "cpu": "0.5",
              "memory": "4Gi",
              "nvidia.com/gpu": "1"
            },
            "gpus": 1
          }
        ],
        "total": {
          "replicas": 1,
          "requests": {
            "cpu": "0.5",
            "memory": "4Gi",
            "nvidia.com/gpu": "1"
          },
          "gpus": 1
        }
      }
    ]
  }
  $ training-operator render --summary examples/legacy/tfjob.yaml
  JOB            ROLE    REPLICAS  PORTS             IMAGES
  default/plane  master  1         2222/TCP tf-port  example.com/tensorflow-train:2.19.1
  default/plane  ps      2         2222/TCP tf-port  example.com/tensorflow-train:2.19.1
  default/plane  total   3         -                 -

A container that requests a device gets the additions of the file. The older name of the flag means the same.

  $ sed 's/- name: mxnet/&\n            resources: {limits: {alpha.kubernetes.io\/nvidia-gpu: "1"}}/' \
  >     cases/single-worker.yaml > device.yaml
  $ training-operator render device.yaml > without
  $ training-operator render device.yaml --controller_config_file accelerators/config.yaml | diff -U0 without - | tail -n +3
  @@ -52,0 +53,2 @@
  +    - name: LD_LIBRARY_PATH
  +      value: /usr/local/nvidia/lib64
  @@ -76,0 +79,5 @@
  +    volumeMounts:
  +    - mountPath: /usr/local/nvidia/lib64
  +      name: nvidia-libraries
  +    - mountPath: /usr/local/bin/nvidia
  +      name: nvidia-debug-tools
  @@ -78,0 +86,7 @@
  +  volumes:
  +  - hostPath:
  +      path: /home/kubernetes/bin/nvidia/lib
  +    name: nvidia-libraries
  +  - hostPath:
  +      path: /home/kubernetes/bin/nvidia/bin
  +    name: nvidia-debug-tools
  ! accelerators/config.yaml:3:1: warning: grpcServerFilePath: has no effect: this operator adds no default program to replicas; remove it
  [1]
  $ training-operator render device.yaml --controller_config_file accelerators/config.yaml 2>/dev/null > with
  $ training-operator render device.yaml --controller-config-file accelerators/config.yaml 2>/dev/null | cmp - with
  $ training-operator render device.yaml --controller_config_file no/such/file.yaml
  ! training-operator: no/such/file.yaml: no such file
  [2]
  $ training-operator render device.yaml --controller_config_file cases/single-worker.yaml
  ! training-operator: --controller_config_file: cases/single-worker.yaml:2:1: apiVersion: unknown field; use one of accelerators, grpcServerFilePath, or remove it
  ! cases/single-worker.yaml:3:1: kind: unknown field; use one of accelerators, grpcServerFilePath, or remove it
  ! cases/single-worker.yaml:4:1: metadata: unknown field; use one of accelerators, grpcServerFilePath, or remove it
  ! cases/single-worker.yaml:6:1: spec: unknown field; use one of accelerators, grpcServerFilePath, or remove it
  [2]

The jobs of docs/users/gangs.md are valid. With a gang scheduler the second one gets a group.

  $ awk '/^```yaml/ { n++; inside = 1; next } /^```/ { inside = 0 } inside { print > "gang" n ".yaml" }' docs/users/gangs.md
  $ ls gang*
  gang1.yaml
  gang2.yaml
  $ training-operator render gang1.yaml | grep '^# '
  # Service in-turn-worker-0
  # Service in-turn-worker-1
  # Pod in-turn-worker-0
  # Pod in-turn-worker-1
  $ training-operator render gang2.yaml --gang-scheduler-name= > alone
  $ training-operator render gang2.yaml --gang-scheduler-name=Volcano | diff -U0 alone - | tail -n +3
  @@ -1,0 +2,24 @@
  +# PodGroup together
  +apiVersion: scheduling.volcano.sh/v1beta1
  +kind: PodGroup
  +metadata:
  +  labels:
  +    training.kubeflow.org/job-name: together
  +    training.kubeflow.org/operator-name: mxjob-controller
  +  name: together
  +  namespace: default
  +  ownerReferences:
  +  - apiVersion: kubeflow.org/v1
  +    blockOwnerDeletion: true
  +    controller: true
  +    kind: MXJob
  +    name: together
  +    uid: 00000000-0000-0000-0000-000000000000
  +spec:
  +  minMember: 3
  +  minResources:
  +    cpu: "4"
  +    nvidia.com/gpu: "1"
  +  priorityClassName: high
  +  queue: default
  +---
  @@ -124,0 +149,3 @@
  +  annotations:
  +    scheduling.k8s.io/group-name: together
  +    volcano.sh/task-spec: scheduler
  @@ -166,0 +194 @@
  +  schedulerName: volcano
  @@ -171,0 +200,3 @@
  +  annotations:
  +    scheduling.k8s.io/group-name: together
  +    volcano.sh/task-spec: server
  @@ -214,0 +246 @@
  +  schedulerName: volcano
  @@ -219,0 +252,3 @@
  +  annotations:
  +    scheduling.k8s.io/group-name: together
  +    volcano.sh/task-spec: worker
  @@ -265,0 +301 @@
  +  schedulerName: volcano
  @@ -270,0 +307,3 @@
  +  annotations:
  +    scheduling.k8s.io/group-name: together
  +    volcano.sh/task-spec: worker
  @@ -316,0 +356 @@
  +  schedulerName: volcano
  [1]
  $ training-operator render gang2.yaml --gang-scheduler-name mine | diff -U0 alone - | tail -n +3
  @@ -1,0 +2,22 @@
  +# PodGroup together
  +apiVersion: scheduling.x-k8s.io/v1alpha1
  +kind: PodGroup
  +metadata:
  +  labels:
  +    training.kubeflow.org/job-name: together
  +    training.kubeflow.org/operator-name: mxjob-controller
  +  name: together
  +  namespace: default
  +  ownerReferences:
  +  - apiVersion: kubeflow.org/v1
  +    blockOwnerDeletion: true
  +    controller: true
  +    kind: MXJob
  +    name: together
  +    uid: 00000000-0000-0000-0000-000000000000
  +spec:
  +  minMember: 3
  +  minResources:
  +    cpu: "4"
  +    nvidia.com/gpu: "1"
  +---
  @@ -125,0 +148 @@
  +    scheduling.x-k8s.io/pod-group: together
  @@ -166,0 +190 @@
  +  schedulerName: mine
  @@ -172,0 +197 @@
  +    scheduling.x-k8s.io/pod-group: together
  @@ -214,0 +240 @@
  +  schedulerName: mine
  @@ -220,0 +247 @@
  +    scheduling.x-k8s.io/pod-group: together
  @@ -265,0 +293 @@
  +  schedulerName: mine
  @@ -271,0 +300 @@
  +    scheduling.x-k8s.io/pod-group: together
  @@ -316,0 +346 @@
  +  schedulerName: mine
  [1]

Help has examples and exit codes.

  $ for command in "" render validate snapshot diff explain completions man crds "local run"; do
  >     echo $command: $(training-operator $command --help | grep -E '^(Examples|Exit codes):')
  > done
  : Examples: Exit codes:
  render: Examples: Exit codes:
  validate: Examples: Exit codes:
  snapshot: Examples: Exit codes:
  diff: Examples: Exit codes:
  explain: Examples: Exit codes:
  completions: Examples: Exit codes:
  man: Examples: Exit codes:
  crds: Examples: Exit codes:
  local run: Examples: Exit codes:
  $ training-operator --version | sed 's/ 0\..*/ 0/'
  training-operator 0
