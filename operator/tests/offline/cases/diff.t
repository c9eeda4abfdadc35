Equal jobs have no differences. A difference in form only is none.

  $ sed 's/kind: MXJob/& # a comment/' cases/sidecar-and-init.yaml > comment.yaml
  $ training-operator diff cases/sidecar-and-init.yaml comment.yaml
  $ training-operator diff cases/sidecar-and-init.yaml comment.yaml --output markdown
  ### Training jobs

  Nothing changes in the rules and objects of the jobs.

A changed image is shown in its pods only.

  $ sed 's/tensorboard:2/tensorboard:3/' cases/sidecar-and-init.yaml > image.yaml
  $ training-operator diff cases/sidecar-and-init.yaml image.yaml
  MXJob sidecar: changed
    worker.containers.tensorboard.image: tensorboard:2 → tensorboard:3
  Pod sidecar-worker-0: changed
  @@ -59,7 +59,7 @@
         value: "1"
       - name: DMLC_WORKER_ID
         value: "0"
  -    image: tensorboard:2
  +    image: tensorboard:3
       name: tensorboard
     enableServiceLinks: false
     initContainers:
  Jobs that differ: 1. Objects: 1 changed, 0 added, 0 removed.
  [1]

Replicas that change alike stand together.

  $ sed 's/    Worker:/&\n      replicas: 3/' cases/sidecar-and-init.yaml > three.yaml
  $ sed 's/tensorboard:2/tensorboard:3/' three.yaml > image-of-three.yaml
  $ training-operator diff three.yaml image-of-three.yaml | tail -1
  Jobs that differ: 1. Objects: 3 changed, 0 added, 0 removed.
  [1]
  $ training-operator diff three.yaml image-of-three.yaml --output markdown
  ### Training jobs

  Jobs that differ: 1. Objects: 3 changed, 0 added, 0 removed.

  | Job | Change |
  |---|---|
  | MXJob sidecar | worker.containers.tensorboard.image `tensorboard:2` → `tensorboard:3` |

  <details><summary>MXJob sidecar: changed</summary>

  | Rule or value | Before | After |
  |---|---|---|
  | worker.containers.tensorboard.image | tensorboard:2 | tensorboard:3 |

  **Pod sidecar-worker-0 … sidecar-worker-2 (3 alike)**: changed

  ```diff
  @@ -59,7 +59,7 @@
         value: "1"
       - name: DMLC_WORKER_ID
         value: "0"
  -    image: tensorboard:2
  +    image: tensorboard:3
       name: tensorboard
     enableServiceLinks: false
     initContainers:
  ```

  </details>

  [1]

Replicas come and go.

  $ sed 's/    Worker:/&\n      replicas: 2/' cases/sidecar-and-init.yaml > two.yaml
  $ training-operator diff cases/sidecar-and-init.yaml two.yaml
  MXJob sidecar: changed
    worker.replicas: 1 → 2
  Pod sidecar-scheduler-0: changed
  @@ -19,7 +19,7 @@
     containers:
     - env:
       - name: MX_CONFIG
  -      value: '{"cluster":{"scheduler":[{"url":"sidecar-scheduler-0","port":9091}],"worker":[{"url":"sidecar-worker-0","port":9091}]},"labels":{"scheduler":"","worker":""},"task":{"type":"scheduler","index":0}}'
  +      value: '{"cluster":{"scheduler":[{"url":"sidecar-scheduler-0","port":9091}],"worker":[{"url":"sidecar-worker-0","port":9091},{"url":"sidecar-worker-1","port":9091}]},"labels":{"scheduler":"","worker":""},"task":{"type":"scheduler","index":0}}'
       - name: DMLC_PS_ROOT_PORT
         value: "9091"
       - name: DMLC_PS_ROOT_URI
  @@ -27,7 +27,7 @@
       - name: DMLC_NUM_SERVER
         value: "0"
       - name: DMLC_NUM_WORKER
  -      value: "1"
  +      value: "2"
       - name: DMLC_ROLE
         value: scheduler
       - name: DMLC_USE_KUBERNETES
  Pod sidecar-worker-0: changed
  @@ -19,7 +19,7 @@
     containers:
     - env:
       - name: MX_CONFIG
  -      value: '{"cluster":{"scheduler":[{"url":"sidecar-scheduler-0","port":9091}],"worker":[{"url":"sidecar-worker-0","port":9091}]},"labels":{"scheduler":"","worker":""},"task":{"type":"worker","index":0}}'
  +      value: '{"cluster":{"scheduler":[{"url":"sidecar-scheduler-0","port":9091}],"worker":[{"url":"sidecar-worker-0","port":9091},{"url":"sidecar-worker-1","port":9091}]},"labels":{"scheduler":"","worker":""},"task":{"type":"worker","index":0}}'
       - name: DMLC_PS_ROOT_PORT
         value: "9091"
       - name: DMLC_PS_ROOT_URI
  @@ -27,7 +27,7 @@
       - name: DMLC_NUM_SERVER
         value: "0"
       - name: DMLC_NUM_WORKER
  -      value: "1"
  +      value: "2"
       - name: DMLC_ROLE
         value: worker
       - name: DMLC_USE_KUBERNETES
  @@ -44,7 +44,7 @@
       - name: PORT
         value: "6006"
       - name: MX_CONFIG
  -      value: '{"cluster":{"scheduler":[{"url":"sidecar-scheduler-0","port":9091}],"worker":[{"url":"sidecar-worker-0","port":9091}]},"labels":{"scheduler":"","worker":""},"task":{"type":"worker","index":0}}'
  +      value: '{"cluster":{"scheduler":[{"url":"sidecar-scheduler-0","port":9091}],"worker":[{"url":"sidecar-worker-0","port":9091},{"url":"sidecar-worker-1","port":9091}]},"labels":{"scheduler":"","worker":""},"task":{"type":"worker","index":0}}'
       - name: DMLC_PS_ROOT_PORT
         value: "9091"
       - name: DMLC_PS_ROOT_URI
  @@ -52,7 +52,7 @@
       - name: DMLC_NUM_SERVER
         value: "0"
       - name: DMLC_NUM_WORKER
  -      value: "1"
  +      value: "2"
       - name: DMLC_ROLE
         value: worker
       - name: DMLC_USE_KUBERNETES
  Service sidecar-worker-1: added, like Service sidecar-worker-0
  Pod sidecar-worker-1: added, like Pod sidecar-worker-0
  Jobs that differ: 1. Objects: 2 changed, 2 added, 0 removed.
  [1]
  $ training-operator diff two.yaml cases/sidecar-and-init.yaml | grep -v '^[-+ @]'
  MXJob sidecar: changed
  Pod sidecar-scheduler-0: changed
  Pod sidecar-worker-0: changed
  Service sidecar-worker-1: removed
  Pod sidecar-worker-1: removed
  Jobs that differ: 1. Objects: 2 changed, 0 added, 2 removed.
  [1]
  $ training-operator diff cases/sidecar-and-init.yaml /dev/null | grep -v '^[-+ @]'
  MXJob sidecar: removed (2 pods)
  Service sidecar-scheduler-0: removed
  Service sidecar-worker-0: removed
  Pod sidecar-scheduler-0: removed
  Pod sidecar-worker-0: removed
  Jobs that differ: 1. Objects: 0 changed, 0 added, 4 removed.
  [1]

The settings of the operator are those of both sides.

  $ training-operator diff cases/sidecar-and-init.yaml two.yaml --gang-scheduler-name volcano | grep -A9 PodGroup
  PodGroup sidecar: changed
  @@ -14,6 +14,6 @@
       name: sidecar
       uid: 00000000-0000-0000-0000-000000000000
   spec:
  -  minMember: 2
  +  minMember: 3
     minResources: {}
     queue: default
  Pod sidecar-scheduler-0: changed
  [1]

A failed comparison exits with 2.

  $ training-operator diff cases/sidecar-and-init.yaml no/such.yaml
  ! no/such.yaml: no such file
  [2]
  $ training-operator diff cases/sidecar-and-init.yaml bad/no-worker.yaml
  ! bad/no-worker.yaml:8:3: spec.mxReplicaSpecs: must have a Worker, because an MXTrain job without one never ends; add a Worker
  [2]
  $ training-operator diff cases/sidecar-and-init.yaml HEAD:no/such.yaml
  ! HEAD:no/such.yaml: no such file, and none in git: fatal: not a git repository (or any of the parent directories): .git
  [2]
  $ training-operator diff no-such-revision:jobs cases/sidecar-and-init.yaml
  ! no-such-revision:jobs: no such file, and none in git: fatal: not a git repository (or any of the parent directories): .git
  [2]
  $ training-operator diff cases/sidecar-and-init.yaml
  ! training-operator: diff: two sides must be given; add one, or set --cluster
  [2]

Changed rules are differences, though no object changes. The first policy has the values that are the defaults.

  $ policy() { sed "s|  jobMode:|  runPolicy: $1\n&|" cases/sidecar-and-init.yaml; }
  $ for policy in '{cleanPodPolicy: Running, suspend: false}' '{backoffLimit: 3}' '{activeDeadlineSeconds: 60}' \
  >     '{cleanPodPolicy: All}' '{ttlSecondsAfterFinished: 9}'; do
  >     policy "$policy" > new.yaml
  >     echo "$policy"; training-operator diff cases/sidecar-and-init.yaml new.yaml; echo "exit code $?"
  > done
  {cleanPodPolicy: Running, suspend: false}
  exit code 0
  {backoffLimit: 3}
  MXJob sidecar: changed
    backoffLimit: unset → 3
    any role: evicted by the kubelet; pod deleted, drained or preempted, or its node lost: the whole job restarts without limit → the whole job restarts up to 3 times; after that, the job fails
  Jobs that differ: 1. Objects: 0 changed, 0 added, 0 removed.
  exit code 1
  {activeDeadlineSeconds: 60}
  MXJob sidecar: changed
    activeDeadlineSeconds: unset → 60
    Deadline: unset → the job fails if it still runs 60 s after its start.
  Jobs that differ: 1. Objects: 0 changed, 0 added, 0 removed.
  exit code 1
  {cleanPodPolicy: All}
  MXJob sidecar: changed
    cleanPodPolicy: Running → All
    End: running pods are deleted with their services; finished pods are kept, with their logs. → running pods are deleted with their services; finished pods are deleted with their services.
  Jobs that differ: 1. Objects: 0 changed, 0 added, 0 removed.
  exit code 1
  {ttlSecondsAfterFinished: 9}
  MXJob sidecar: changed
    ttlSecondsAfterFinished: unset → 9
    End: running pods are deleted with their services; finished pods are kept, with their logs. → running pods are deleted with their services; finished pods are kept, with their logs. 9 s later, the job is deleted with all its objects.
  Jobs that differ: 1. Objects: 0 changed, 0 added, 0 removed.
  exit code 1
  $ policy '{suspend: true}' > suspended.yaml
  $ training-operator diff suspended.yaml cases/sidecar-and-init.yaml --output markdown
  ### Training jobs

  Jobs that differ: 1. Objects: 0 changed, 0 added, 0 removed.

  | Job | Change |
  |---|---|
  | MXJob sidecar | suspend `true` → `false` |

  <details><summary>MXJob sidecar: changed</summary>

  | Rule or value | Before | After |
  |---|---|---|
  | suspend | true | false |

  </details>

  [1]
  $ sed 's/restartPolicy: Never/restartPolicy: ExitCode/' cases/sidecar-and-init.yaml > by-code.yaml
  $ training-operator diff cases/sidecar-and-init.yaml by-code.yaml --output markdown
  ### Training jobs

  Jobs that differ: 1. Objects: 0 changed, 0 added, 0 removed.

  | Job | Change |
  |---|---|
  | MXJob sidecar | scheduler.restartPolicy `Never` → `ExitCode` · worker.restartPolicy `Never` → `ExitCode` · rules: any role: exit codes 128 and above |

  <details><summary>MXJob sidecar: changed</summary>

  | Rule or value | Before | After |
  |---|---|---|
  | scheduler.restartPolicy | Never | ExitCode |
  | worker.restartPolicy | Never | ExitCode |
  | any role: exit codes 128 and above | the job fails | the whole job restarts without limit |

  </details>

  [1]

A comment on a pull request has a row and a section for each job.

  $ tfjob() {
  >     cat <<END
  > apiVersion: kubeflow.org/v1
  > kind: TFJob
  > metadata: {name: resnet, namespace: ml}
  > spec:
  >   runPolicy: {backoffLimit: $1}
  >   tfReplicaSpecs:
  >     Worker:
  >       replicas: $2
  >       template:
  >         spec:
  >           containers:
  >           - {name: tensorflow, image: x, env: [{name: LR, value: "$3"}], resources: {limits: {nvidia.com/gpu: 1}}}
  > END
  > }
  $ (tfjob 3 200 0.1; echo ---; cat cases/sidecar-and-init.yaml) > old.yaml
  $ tfjob 1 300 0.05 > new.yaml
  $ training-operator diff old.yaml new.yaml --output markdown
  ### Training jobs

  Jobs that differ: 2. Objects: 200 changed, 200 added, 4 removed.

  | Job | Change |
  |---|---|
  | TFJob ml/resnet | backoffLimit `3` → `1` · worker.replicas `200` → `300` · GPUs `200` → `300` · worker.env.LR `0.1` → `0.05` · rules: worker: evicted by the kubelet; pod deleted, drained or preempted, or its node lost |
  | MXJob sidecar | removed (2 pods) |

  <details><summary>TFJob ml/resnet: changed</summary>

  | Rule or value | Before | After |
  |---|---|---|
  | backoffLimit | 3 | 1 |
  | worker.replicas | 200 | 300 |
  | GPUs | 200 | 300 |
  | worker.env.LR | 0.1 | 0.05 |
  | worker: evicted by the kubelet; pod deleted, drained or preempted, or its node lost | the whole job restarts up to 3 times; after that, the job fails | the whole job restarts once; after that, the job fails |

  **Pod resnet-worker-0 … resnet-worker-199 (200 alike)**: changed

  ```diff
  @@ -20,9 +20,9 @@
     containers:
     - env:
       - name: LR
  -      value: "0.1"
  +      value: "0.05"
       - name: TF_CONFIG
  -      value: '{"cluster":{"worker":["resnet-worker-0.ml.svc:2222","resnet-worker-1.ml.svc:2222","resnet-worker-2.ml.svc:2222","resnet-worker-3.ml.svc:2222","resnet-worker-4.ml.svc:2222","resnet-worker-5.ml.svc:2222","resnet-worker-6.ml.svc:2222","resnet-worker-7.ml.svc:2222","resnet-worker-8.ml.svc:2222","resnet-worker-9.ml.svc:2222","resnet-worker-10.ml.svc:2222","resnet-worker-11.ml.svc:2222","… (6387 characters)
  +      value: '{"cluster":{"worker":["resnet-worker-0.ml.svc:2222","resnet-worker-1.ml.svc:2222","resnet-worker-2.ml.svc:2222","resnet-worker-3.ml.svc:2222","resnet-worker-4.ml.svc:2222","resnet-worker-5.ml.svc:2222","resnet-worker-6.ml.svc:2222","resnet-worker-7.ml.svc:2222","resnet-worker-8.ml.svc:2222","resnet-worker-9.ml.svc:2222","resnet-worker-10.ml.svc:2222","resnet-worker-11.ml.svc:2222","… (9587 characters)
       image: x
       name: tensorflow
       ports:
  ```

  **Service resnet-worker-200 … resnet-worker-299 (100 alike)**: added, like Service resnet-worker-199

  **Pod resnet-worker-200 … resnet-worker-299 (100 alike)**: added, like Pod resnet-worker-199

  </details>

  <details><summary>MXJob sidecar: removed</summary>

  **Service sidecar-scheduler-0**: removed

  **Service sidecar-worker-0**: removed

  **Pod sidecar-scheduler-0**: removed

  **Pod sidecar-worker-0**: removed

  </details>

  [1]

GitHub refuses comments of more than 65,536 characters.

  $ for image in one two; do
  >     for n in {0..999}; do
  >         echo '---'
  >         echo '{apiVersion: kubeflow.org/v1, kind: JAXJob, metadata: {name: a'$n'}, spec: {jaxReplicaSpecs:'
  >         echo '  {Worker: {template: {spec: {containers: [{name: jax, image: '$image'}]}}}}}}'
  >     done > $image.yaml
  > done
  $ training-operator diff one.yaml two.yaml --output markdown > comment.md
  [1]
  $ [ $(wc -m < comment.md) -lt 65536 ]
  $ grep -c '^| JAXJob a[0-9]* | worker.image `one` → `two` |$' comment.md
  1000
  $ tail -1 comment.md
  _A comment has space for 1000 of these 1000 jobs, and for the details of 49. Run `training-operator diff` for all._
