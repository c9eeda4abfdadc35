  $ training-operator explain examples/mxnet/train.yaml examples/mxnet/tune.yaml
  MXJob spirals

  Start: 5 services, then 5 pods in this order: spirals-scheduler-0, spirals-server-0, spirals-server-1, spirals-worker-0, spirals-worker-1.
  Order: no pod waits for another.
  Success: when scheduler-0 has ended with exit code 0, regardless of the others.
  Deadline: the job fails if it still runs 600 s after its start.
  End: running pods are deleted with their services; finished pods are kept, with their logs.

  Events of a replica, and their consequences:

  ROLE      EVENT                                                                                                  CONSEQUENCE
  any role  exit codes 1–127                                                                                       the job fails
  any role  exit codes 128 and above; evicted by the kubelet; pod deleted, drained or preempted, or its node lost  the whole job restarts up to 3 times; after that, the job fails

  MXJob matmul

  Start: 4 services, then 4 pods in this order: matmul-tunertracker-0, matmul-tunerserver-0, matmul-tunerserver-1, matmul-tuner-0.
  Order: no pod waits for another.
  Success: when tuner-0 has ended with exit code 0, regardless of the others.
  Deadline: the job fails if it still runs 600 s after its start.
  End: running pods are deleted with their services; finished pods are kept, with their logs.

  Events of a replica, and their consequences:

  ROLE      EVENT                                                CONSEQUENCE
  any role  exit codes 1–127                                     the job fails
  any role  exit codes 128 and above; evicted by the kubelet     only the replica restarts up to 3 times; after that, the job fails
  any role  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit

Each restart policy has its own ends.

  $ single() {
  >     sed "s|Worker:|&\n      restartPolicy: $1|; s|  jobMode|  $2\n&|" cases/single-worker.yaml |
  >         training-operator explain -
  > }
  $ events() { sed 1,/^ROLE/d; }
  $ single Never 'runPolicy: {}' | events
  worker  any exit code except 0                               the job fails
  worker  evicted by the kubelet                               only the replica restarts without limit
  worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
  $ single ExitCode 'runPolicy: {backoffLimit: 3}' | events
  worker  exit codes 1–127                                     the job fails
  worker  exit codes 128 and above; evicted by the kubelet     only the replica restarts up to 3 times; after that, the job fails
  worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit

The kubelet has already restarted the container when the operator observes it, so one restart less is allowed.

  $ single OnFailure 'runPolicy: {backoffLimit: 2}' | events
  worker  any exit code except 0                               only the container restarts once; after that, the job fails
  worker  evicted by the kubelet                               only the replica restarts up to 2 times; after that, the job fails
  worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
  $ single Always 'runPolicy: {}' | events
  worker  any exit code except 0                               only the container restarts without limit
  worker  evicted by the kubelet                               only the replica restarts without limit
  worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
  $ single Always 'runPolicy: {backoffLimit: 0}' | events
  worker  any exit code except 0; evicted by the kubelet       the job fails
  worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
  $ single ExitCode 'runPolicy: {restartScope: Role}' | events
  worker  exit codes 1–127                                                                                       the job fails
  worker  exit codes 128 and above; evicted by the kubelet; pod deleted, drained or preempted, or its node lost  the whole role restarts without limit

Exit codes are listed as the rule that the kind applies.

  $ single Never 'runPolicy: {failurePolicy: {rules: [{action: Ignore, onExitCodes: {values: [3, 200]}}]}}' | events
  worker  exit codes 1, 2, 4–199, 201 and above                the job fails
  worker  exit codes 3, 200; evicted by the kubelet            only the replica restarts without limit
  worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
  $ training-operator explain examples/pytorch/policies.yaml | events
  any role  exit codes 1, 4 and above                                                    the whole job restarts up to 10 times within an hour; after that, the job fails
  any role  exit codes 2, 3                                                              the job fails
  any role  evicted by the kubelet; pod deleted, drained or preempted, or its node lost  the whole job restarts without limit

A kind of 2017 does not restart a replica that was killed for its memory.

  $ cat > mlkube.yaml <<END
  > apiVersion: mlkube.io/v1beta1
  > kind: TfJob
  > metadata: {name: a}
  > spec:
  >   replicaSpecs:
  >   - tfReplicaType: MASTER
  >     template: {spec: {restartPolicy: OnFailure, containers: [{name: tensorflow, image: x}]}}
  > END
  $ training-operator explain mlkube.yaml | events
  master  exit codes 1–127; out of memory (OOMKilled)          the job fails
  master  exit codes 128 and above; evicted by the kubelet     only the replica restarts without limit
  master  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit

The operator whose rules apply is named. A job is as the API server stores it: an older version has the field set by default.

  $ version() {
  >     sed "s|kubeflow.org/v1|kubeflow.org/$1|; s|Worker:|&\n      restartPolicy: ExitCode|; s|  jobMode|  $2\n&|" \
  >         cases/single-worker.yaml | training-operator explain - | sed -n '/^Compatibility/p; /^worker/p'
  > }
  $ version v1 'runPolicy: {}'
  worker  exit codes 1–127                                     the job fails
  worker  exit codes 128 and above; evicted by the kubelet     only the replica restarts without limit
  worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit
  $ version v1beta1 'runPolicy: {}'
  Compatibility: Rules of the stand-alone mxnet-operator apply, because it was written under v1beta1: under restart policy ExitCode, the exit codes 130, 137, 138 and 143 restart a replica; the default cleanPodPolicy is All.
  worker  exit codes 1–129, 131–136, 139–142, 144 and above      the job fails
  worker  exit codes 130, 137, 138, 143; evicted by the kubelet  only the replica restarts without limit
  worker  pod deleted, drained or preempted, or its node lost    the replica gets a new pod, without limit
  $ version v1 'cleanPodPolicy: None'
  Compatibility: Rules of the stand-alone mxnet-operator apply, because cleanPodPolicy is at the top of the spec: under restart policy ExitCode, the exit codes 130, 137, 138 and 143 restart a replica; the default cleanPodPolicy is All.
  worker  exit codes 1–129, 131–136, 139–142, 144 and above      the job fails
  worker  exit codes 130, 137, 138, 143; evicted by the kubelet  only the replica restarts without limit
  worker  pod deleted, drained or preempted, or its node lost    the replica gets a new pod, without limit
  $ version v1 'compatibility: MXNetOperator'
  Compatibility: Rules of the stand-alone mxnet-operator apply, because spec.compatibility is MXNetOperator: under restart policy ExitCode, the exit codes 130, 137, 138 and 143 restart a replica; the default cleanPodPolicy is All.
  worker  exit codes 1–129, 131–136, 139–142, 144 and above      the job fails
  worker  exit codes 130, 137, 138, 143; evicted by the kubelet  only the replica restarts without limit
  worker  pod deleted, drained or preempted, or its node lost    the replica gets a new pod, without limit
  $ version v1alpha2 'compatibility: TrainingOperator'
  Compatibility: Rules of the training operator apply, because spec.compatibility is TrainingOperator: under restart policy ExitCode, exit codes of 128 or more restart a replica; the default cleanPodPolicy is the operator's.
  worker  exit codes 1–127                                     the job fails
  worker  exit codes 128 and above; evicted by the kubelet     only the replica restarts without limit
  worker  pod deleted, drained or preempted, or its node lost  the replica gets a new pod, without limit

Limits and suspension are named.

  $ single Never 'runPolicy: {}' | grep Deadline
  [1]
  $ single Never 'runPolicy: {activeDeadlineSeconds: 60}' | grep Deadline
  Deadline: the job fails if it still runs 60 s after its start.
  $ single Never 'runPolicy: {suspend: true}' | tail -1
  Start: the job is suspended: nothing is created until it is resumed.

The pods that the clean-up policy keeps are listed, and services where there are any. TensorBoard remains.

  $ single Never 'runPolicy: {cleanPodPolicy: All, ttlSecondsAfterFinished: 60}' | grep End
  End: running pods are deleted with their services; finished pods are deleted with their services. 60 s later, the job is deleted with all its objects.
  $ single Never 'runPolicy: {cleanPodPolicy: None}' | grep End
  End: running pods keep running; finished pods are kept, with their logs.
  $ for policy in Running All None; do
  >     sed "s|^spec:|&\n  runPolicy: {cleanPodPolicy: $policy}|" <<END | training-operator explain - | grep End
  > apiVersion: kubeflow.org/v1
  > kind: MPIJob
  > metadata: {name: a}
  > spec:
  >   mpiReplicaSpecs:
  >     Launcher: &role {template: {spec: {containers: [{name: mpi, image: x}]}}}
  >     Worker: *role
  > END
  > done
  End: running pods are deleted; finished pods are kept, with their logs.
  End: running pods are deleted; finished pods are deleted.
  End: running pods keep running; finished pods are kept, with their logs.
  $ training-operator explain examples/legacy/tfjob.yaml | grep -E 'End|master-0 has ended'
  Success: when master-0 has ended with exit code 0, regardless of the others.
  End: running pods are deleted with their services; finished pods are kept, with their logs.

An explanation has forms for programs and for comments.

  $ training-operator explain examples/mpi/train.yaml -o json
  {
    "jobs": [
      {
        "events": [
          {
            "consequence": "only the container restarts up to 2 times; after that, the job fails",
            "event": "any exit code except 0",
            "role": "launcher"
          },
          {
            "consequence": "the whole job restarts up to 3 times; after that, the job fails",
            "event": "evicted by the kubelet",
            "role": "launcher"
          },
          {
            "consequence": "the whole job restarts up to 3 times; after that, the job fails",
            "event": "pod deleted, drained or preempted, or its node lost",
            "role": "launcher"
          },
          {
            "consequence": "the whole job restarts up to 3 times; after that, the job fails",
            "event": "any exit code except 0",
            "role": "worker"
          },
          {
            "consequence": "the whole job restarts up to 3 times; after that, the job fails",
            "event": "evicted by the kubelet",
            "role": "worker"
          },
          {
            "consequence": "the whole job restarts up to 3 times; after that, the job fails",
            "event": "pod deleted, drained or preempted, or its node lost",
            "role": "worker"
          }
        ],
        "kind": "MPIJob",
        "name": "moons",
        "rules": [
          {
            "text": "a ServiceAccount, then a ConfigMap, then a Role, then a RoleBinding, then 3 pods in this order: moons-worker-0, moons-worker-1, moons-launcher.",
            "topic": "Start"
          },
          {
            "text": "launcher starts when all pods of worker run.",
            "topic": "Order"
          },
          {
            "text": "when launcher-0 has ended with exit code 0, regardless of the others.",
            "topic": "Success"
          },
          {
            "text": "the job fails if it still runs 600 s after its start.",
            "topic": "Deadline"
          },
          {
            "text": "running pods are deleted; finished pods are kept, with their logs. A pod whose container its kubelet restarts still runs at the limit of restarts: it is deleted with its log, whose end is in status.failure.",
            "topic": "End"
          }
        ]
      }
    ]
  }
  $ training-operator explain examples/mpi/train.yaml -o markdown
  ### MPIJob moons

  | Rule | Text |
  |---|---|
  | Start | a ServiceAccount, then a ConfigMap, then a Role, then a RoleBinding, then 3 pods in this order: moons-worker-0, moons-worker-1, moons-launcher. |
  | Order | launcher starts when all pods of worker run. |
  | Success | when launcher-0 has ended with exit code 0, regardless of the others. |
  | Deadline | the job fails if it still runs 600 s after its start. |
  | End | running pods are deleted; finished pods are kept, with their logs. A pod whose container its kubelet restarts still runs at the limit of restarts: it is deleted with its log, whose end is in status.failure. |

  | Role | Event | Consequence |
  |---|---|---|
  | launcher | any exit code except 0 | only the container restarts up to 2 times; after that, the job fails |
  | launcher | evicted by the kubelet; pod deleted, drained or preempted, or its node lost | the whole job restarts up to 3 times; after that, the job fails |
  | worker | any exit code except 0; evicted by the kubelet; pod deleted, drained or preempted, or its node lost | the whole job restarts up to 3 times; after that, the job fails |

Every case can be explained, and no bad job.

  $ training-operator explain cases > all; grep -c '^Success: ' all
  17
  $ training-operator explain bad/no-worker.yaml
  ! bad/no-worker.yaml:8:3: spec.mxReplicaSpecs: must have a Worker, because an MXTrain job without one never ends; add a Worker
  [2]

Gangs, queues and the start order are listed.

  $ for scheduler in "" volcano gangs; do
  >     training-operator explain examples/mpi/train.yaml --gang-scheduler-name "$scheduler" | grep -E '^(Order|Queue|Gang)'
  > done
  Order: launcher starts when all pods of worker run.
  Order: launcher starts when all pods of worker run.
  Gang: no pod is created before volcano has capacity for 3 pods at once (100m cpu, 5Gi ephemeral-storage, 512Mi memory). A restart of the whole job waits for the same capacity.
  Order: launcher starts when all pods of worker run.
  Gang: gangs assigns no pod to a node before it has capacity for 3 pods at once (100m cpu, 5Gi ephemeral-storage, 512Mi memory).
  $ sed 's|metadata:|&\n  labels: {kueue.x-k8s.io/queue-name: team-a}|' cases/single-worker.yaml |
  >     training-operator explain - | grep Queue
  Queue: nothing is created before Kueue admits the job to team-a. If Kueue preempts the job, all its pods are deleted, which does not count as a restart.
  $ single Never 'runPolicy: {}' | grep Queue
  [1]

The explained success agrees with the plan.

  $ pytorch() {
  >     cat <<END
  > apiVersion: kubeflow.org/v1
  > kind: PyTorchJob
  > metadata: {name: digits}
  > spec:
  >   $1
  >   pytorchReplicaSpecs:
  >     Worker:
  >       ${2:-replicas: 2}
  >       template: {spec: {containers: [{name: pytorch, image: x, command: ["true"]}]}}
  > END
  > }
  $ pytorch 'runPolicy: {}' | training-operator explain - | grep Success
  Success: when all 2 replicas of worker have ended with exit code 0.
  $ pytorch 'elasticPolicy: {minReplicas: 1, maxReplicas: 3}' | training-operator explain - | grep Success
  Success: when any one of the 2 replicas of worker has ended with exit code 0, regardless of the others.
  $ pytorch 'runPolicy: {successPolicy: {operator: Any, roles: [Worker]}}' | training-operator explain - | grep Success
  Success: when any one of the 2 replicas of worker has ended with exit code 0, regardless of the others.
  $ pytorch 'runPolicy: {}' 'restartPolicy: Always' | training-operator explain - | grep Success
  Success: by a rule of the kind only, if at all: exit code 0 of all replicas does not end the job.

A name that the API server generates has a stand-in.

  $ pytorch 'runPolicy: {}' | sed 's/name: digits/generateName: run-/' | training-operator explain - | sed -n 1p
  PyTorchJob run-xxxxx
  ! <stdin>:3:12: note: metadata.generateName: the API server generates the end of the name, so run-xxxxx is used instead

A job of another controller is explained and not run.

  $ ours='managedBy: kubeflow.org/training-operator' other='managedBy: kueue.x-k8s.io/multikueue'
  $ managed() { pytorch "$1"$'\n  '"runPolicy: {$2}"; }
  $ for fields in "$other|" "|$other" "$other|$other"; do
  >     managed "${fields%|*}" "${fields#*|}" | training-operator explain - | tail -1
  >     managed "${fields%|*}" "${fields#*|}" | training-operator local run - || echo "exit code $?"
  > done
  Controller: spec.managedBy names another controller, kueue.x-k8s.io/multikueue: this operator ignores the job. It creates no pods, writes no status, and sends no events.
  exit code 2
  Controller: spec.runPolicy.managedBy names another controller, kueue.x-k8s.io/multikueue: this operator ignores the job. It creates no pods, writes no status, and sends no events.
  exit code 2
  Controller: spec.runPolicy.managedBy names another controller, kueue.x-k8s.io/multikueue: this operator ignores the job. It creates no pods, writes no status, and sends no events.
  exit code 2
  ! training-operator: local run: PyTorchJob digits: spec.managedBy: kueue.x-k8s.io/multikueue runs the job, and does not exist here; remove the field to run the job on this machine
  ! training-operator: local run: PyTorchJob digits: spec.runPolicy.managedBy: kueue.x-k8s.io/multikueue runs the job, and does not exist here; remove the field to run the job on this machine
  ! training-operator: local run: PyTorchJob digits: spec.runPolicy.managedBy: kueue.x-k8s.io/multikueue runs the job, and does not exist here; remove the field to run the job on this machine

Either field may name this operator, and both must agree.

  $ for fields in "$ours|" "|$ours" "$ours|$ours" "managedBy: ''|$ours" "managedBy: ''|" "$ours|$other" "$other|$ours"; do
  >     echo "$fields"
  >     managed "${fields%|*}" "${fields#*|}" | training-operator validate -
  >     managed "${fields%|*}" "${fields#*|}" | training-operator explain - 2>/dev/null | grep Success
  > done
  managedBy: kubeflow.org/training-operator|
  1 valid job, 0 errors, 0 warnings
  Success: when all 2 replicas of worker have ended with exit code 0.
  |managedBy: kubeflow.org/training-operator
  1 valid job, 0 errors, 0 warnings
  Success: when all 2 replicas of worker have ended with exit code 0.
  managedBy: kubeflow.org/training-operator|managedBy: kubeflow.org/training-operator
  1 valid job, 0 errors, 0 warnings
  Success: when all 2 replicas of worker have ended with exit code 0.
  managedBy: ''|managedBy: kubeflow.org/training-operator
  1 valid job, 0 errors, 0 warnings
  Success: when all 2 replicas of worker have ended with exit code 0.
  managedBy: ''|
  1 valid job, 0 errors, 0 warnings
  Success: when all 2 replicas of worker have ended with exit code 0.
  managedBy: kubeflow.org/training-operator|managedBy: kueue.x-k8s.io/multikueue
  <stdin>:5:3: spec.managedBy: must have the same value as spec.runPolicy.managedBy; change or remove one of them
  0 valid jobs, 1 error, 0 warnings
  managedBy: kueue.x-k8s.io/multikueue|managedBy: kubeflow.org/training-operator
  <stdin>:5:3: spec.managedBy: must have the same value as spec.runPolicy.managedBy; change or remove one of them
  0 valid jobs, 1 error, 0 warnings
  [1]
  $ pytorch 'managedBy: me' | training-operator validate -
  <stdin>:5:3: spec.managedBy: unknown value "me"; use one of kubeflow.org/training-operator, kueue.x-k8s.io/multikueue
  0 valid jobs, 1 error, 0 warnings
  [1]
