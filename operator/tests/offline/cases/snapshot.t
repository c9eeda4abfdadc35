Snapshots use the settings of the operator.

  $ training-operator snapshot examples/mxnet/train.yaml --dir gang --gang-scheduler-name=volcano
  $ grep '^# Pod' gang/train.yaml
  # PodGroup spirals
  # Pod spirals-scheduler-0
  # Pod spirals-server-0
  # Pod spirals-server-1
  # Pod spirals-worker-0
  # Pod spirals-worker-1
  $ training-operator snapshot examples/mxnet/train.yaml --dir gang --check
  gang/train.yaml: stale
  @@ -57,27 +57,6 @@
   #     backoffLimit: 3
   #     cleanPodPolicy: Running
   ---
  -# PodGroup spirals
  -apiVersion: scheduling.volcano.sh/v1beta1
  -kind: PodGroup
  -metadata:
  -  labels:
  -    training.kubeflow.org/job-name: spirals
  -    training.kubeflow.org/operator-name: mxjob-controller
  -  name: spirals
  -  namespace: default
  -  ownerReferences:
  -  - apiVersion: kubeflow.org/v1
  -    blockOwnerDeletion: true
  -    controller: true
  -    kind: MXJob
  -    name: spirals
  -    uid: 00000000-0000-0000-0000-000000000000
  -spec:
  -  minMember: 5
  -  minResources: {}
  -  queue: default
  ----
   # Service spirals-scheduler-0
   apiVersion: v1
   kind: Service
  @@ -231,9 +210,6 @@
   apiVersion: v1
   kind: Pod
   metadata:
  -  annotations:
  -    scheduling.k8s.io/group-name: spirals
  -    volcano.sh/task-spec: scheduler
     labels:
       training.kubeflow.org/job-name: spirals
       training.kubeflow.org/operator-name: mxjob-controller
  @@ -278,16 +254,12 @@
       terminationMessagePolicy: FallbackToLogsOnError
     enableServiceLinks: false
     restartPolicy: Never
  -  schedulerName: volcano
     terminationGracePeriodSeconds: 5
   ---
   # Pod spirals-server-0
   apiVersion: v1
   kind: Pod
   metadata:
  -  annotations:
  -    scheduling.k8s.io/group-name: spirals
  -    volcano.sh/task-spec: server
     labels:
       training.kubeflow.org/job-name: spirals
       training.kubeflow.org/job-role: master
  @@ -333,16 +305,12 @@
       terminationMessagePolicy: FallbackToLogsOnError
     enableServiceLinks: false
     restartPolicy: Never
  -  schedulerName: volcano
  … 52 more lines
  ! training-operator: 1 snapshot in gang is outdated; run the same command without --check and review the changes
  [1]

A check finds missing, stale and surplus snapshots, and writes nothing.

  $ mkdir -p jobs/team && cp cases/single-worker.yaml jobs/a.yaml && cp cases/sidecar-and-init.yaml jobs/team/b.yml
  $ training-operator snapshot jobs --dir out/deep --check
  out/deep/a.yaml: missing
  out/deep/team/b.yaml: missing
  ! training-operator: 2 snapshots in out/deep are outdated; run the same command without --check and review the changes
  [1]
  $ ls out
  ! ls: cannot access 'out': No such file or directory
  [2]
  $ training-operator snapshot jobs --dir out/deep
  $ sed '/^---/,$d' out/deep/a.yaml
  # Objects of jobs/a.yaml. Made by `training-operator snapshot`.
  #
  # apiVersion: kubeflow.org/v1
  # kind: MXJob
  # metadata:
  #   name: single
  # spec:
  #   jobMode: MXTrain
  #   mxReplicaSpecs:
  #     Worker:
  #       template:
  #         spec:
  #           containers:
  #           - image: mxnet/python:1.9.1
  #             name: mxnet
  $ sed -n '/^---/,$p' out/deep/a.yaml | diff - <(training-operator render jobs/a.yaml)
  $ grep -E '^# (kind|Pod)' out/deep/team/b.yaml
  # kind: MXJob
  # Pod sidecar-scheduler-0
  # Pod sidecar-worker-0
  $ training-operator snapshot jobs --dir out/deep --check
  $ sed -i 's|image: |&registry.example.com/|' jobs/a.yaml
  $ rm jobs/team/b.yml
  $ echo 'kind: Kustomization' > out/deep/own.yaml
  $ training-operator snapshot jobs --dir out/deep --check
  out/deep/a.yaml: stale
  @@ -11,7 +11,7 @@
   #       template:
   #         spec:
   #           containers:
  -#           - image: mxnet/python:1.9.1
  +#           - image: registry.example.com/mxnet/python:1.9.1
   #             name: mxnet
   ---
   # Service single-worker-0
  @@ -80,7 +80,7 @@
         value: "1"
       - name: DMLC_WORKER_ID
         value: "0"
  -    image: mxnet/python:1.9.1
  +    image: registry.example.com/mxnet/python:1.9.1
       name: mxnet
       ports:
       - containerPort: 9091
  out/deep/team/b.yaml: belongs to no job
  ! training-operator: 2 snapshots in out/deep are outdated; run the same command without --check and review the changes
  [1]

Another run removes the surplus ones. Somebody's own file stays.

  $ training-operator snapshot jobs --dir out/deep
  $ training-operator snapshot jobs --dir out/deep --check
  $ find out -type f
  out/deep/own.yaml
  out/deep/a.yaml

Jobs of one file get a file each.

  $ (cat cases/single-worker.yaml; echo ---; cat cases/sidecar-and-init.yaml) > all.yaml
  $ training-operator snapshot all.yaml --dir several
  $ find several -type f | sort
  several/all/sidecar.yaml
  several/all/single.yaml
  $ (echo ---; cat cases/sidecar-and-init.yaml) >> all.yaml
  $ training-operator snapshot all.yaml --dir several
  ! all.yaml:48:3: metadata.name: duplicate job: sidecar is also at all.yaml:17; keep one of them
  [2]

Foreign files are not overwritten.

  $ training-operator snapshot jobs --dir jobs
  ! training-operator: jobs/a.yaml: must be a snapshot of this command; move the file, or choose another --dir
  [2]
  $ grep kind: jobs/a.yaml
  kind: MXJob
  $ training-operator snapshot bad/no-worker.yaml --dir jobs --check
  ! bad/no-worker.yaml:8:3: spec.mxReplicaSpecs: must have a Worker, because an MXTrain job without one never ends; add a Worker
  [2]
