Fields that this operator does not support are removed only on request.

  $ training-operator convert convert/cases/lossy.yaml
  ! convert/cases/lossy.yaml:1:1: note: spec.jobMode: set to MXTrain, the former default
  ! convert/cases/lossy.yaml:1:1: note: spec.runPolicy.cleanPodPolicy: set to All, the stand-alone operator's default
  ! convert/cases/lossy.yaml:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  ! convert/cases/lossy.yaml:6:3: spec.terminationPolicy: the job ended with SERVER 1, but now it ends with the scheduler or the workers; make the scheduler end when that replica ends, or remove the field with --lossy
  ! convert/cases/lossy.yaml:7:3: note: spec.replicaSpecs: moved to spec.mxReplicaSpecs
  ! convert/cases/lossy.yaml:8:22: note: spec.replicaSpecs[0].template.spec.restartPolicy: moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before
  ! convert/cases/lossy.yaml:10:13: note: apiVersion: changed from mlkube.io/v1beta1 to kubeflow.org/v1
  ! convert/cases/lossy.yaml:11:7: note: kind: changed from TfJob to TFJob
  ! convert/cases/lossy.yaml:14:3: spec.tensorboard: a TFJob does not run TensorBoard; run TensorBoard as a separate Deployment, or remove the field with --lossy
  ! convert/cases/lossy.yaml:15:3: note: spec.replicaSpecs: moved to spec.tfReplicaSpecs
  ! convert/cases/lossy.yaml:16:46: note: spec.replicaSpecs[0].template.spec.restartPolicy: moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before
  ! convert/cases/lossy.yaml:17:5: spec.replicaSpecs[1].template: the former operator ran its own server in a replica without a template; add a template that runs the server, or remove the field with --lossy
  [1]
  $ training-operator convert convert/cases/lossy.yaml --lossy
  apiVersion: kubeflow.org/v1
  kind: MXJob
  metadata:
    name: chief
  spec:
    jobMode: MXTrain
    mxReplicaSpecs:
      Worker:
        restartPolicy: ExitCode
        template:
          spec:
            containers:
            - name: mxnet
              image: a
    runPolicy:
      cleanPodPolicy: All
  ---
  apiVersion: kubeflow.org/v1
  kind: TFJob
  metadata:
    name: board
  spec:
    tfReplicaSpecs:
      Master:
        restartPolicy: ExitCode
        template:
          spec:
            containers:
            - name: tensorflow
              image: a
  ! convert/cases/lossy.yaml:1:1: note: spec.jobMode: set to MXTrain, the former default
  ! convert/cases/lossy.yaml:1:1: note: spec.runPolicy.cleanPodPolicy: set to All, the stand-alone operator's default
  ! convert/cases/lossy.yaml:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  ! convert/cases/lossy.yaml:5:3: note: the comment was removed with its field: # The server's end.
  ! convert/cases/lossy.yaml:6:3: warning: spec.terminationPolicy: the job ended with SERVER 1, but now it ends with the scheduler or the workers: removed
  ! convert/cases/lossy.yaml:7:3: note: spec.replicaSpecs: moved to spec.mxReplicaSpecs
  ! convert/cases/lossy.yaml:8:22: note: spec.replicaSpecs[0].template.spec.restartPolicy: moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before
  ! convert/cases/lossy.yaml:10:13: note: apiVersion: changed from mlkube.io/v1beta1 to kubeflow.org/v1
  ! convert/cases/lossy.yaml:11:7: note: kind: changed from TfJob to TFJob
  ! convert/cases/lossy.yaml:14:3: warning: spec.tensorboard: a TFJob does not run TensorBoard: removed
  ! convert/cases/lossy.yaml:15:3: note: spec.replicaSpecs: moved to spec.tfReplicaSpecs
  ! convert/cases/lossy.yaml:16:46: note: spec.replicaSpecs[0].template.spec.restartPolicy: moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before
  ! convert/cases/lossy.yaml:17:5: warning: spec.replicaSpecs[1].template: the former operator ran its own server in a replica without a template: removed

So are unknown fields. A misspelled field is a mistake.

  $ cat > odd.yaml <<END
  > apiVersion: kubeflow.org/v1alpha2
  > kind: MPIJob
  > metadata: {name: a}
  > spec:
  >   odd: 1
  >   mpiReplicaSpecs:
  >     Launcher: &role
  >       template:
  >         spec:
  >           imagePullPolicy: Always
  >           containers: [{name: mpi, image: x, securityContext: {fsGroup: 1}}]
  >     Worker: *role
  > END
  $ training-operator convert odd.yaml
  ! odd.yaml:1:1: note: spec.runPolicy.cleanPodPolicy: set to None, the mpi-operator's default
  ! odd.yaml:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  ! odd.yaml:1:13: note: apiVersion: changed from kubeflow.org/v1alpha2 to kubeflow.org/v1
  ! odd.yaml:5:3: spec.odd: unknown field; remove the field with --lossy
  ! odd.yaml:8:7: note: spec.mpiReplicaSpecs.Launcher.restartPolicy: set to OnFailure, the mpi-operator's default
  ! odd.yaml:8:7: note: spec.mpiReplicaSpecs.Worker.restartPolicy: set to Always, the mpi-operator's default
  ! odd.yaml:10:11: spec.mpiReplicaSpecs.Launcher.template.spec.imagePullPolicy: unknown field; move it to spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].imagePullPolicy, or remove the field with --lossy
  ! odd.yaml:10:11: spec.mpiReplicaSpecs.Worker.template.spec.imagePullPolicy: unknown field; move it to spec.mpiReplicaSpecs.Worker.template.spec.containers[0].imagePullPolicy, or remove the field with --lossy
  ! odd.yaml:11:64: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].securityContext.fsGroup: unknown field; move it to spec.mpiReplicaSpecs.Launcher.template.spec.securityContext.fsGroup, or remove the field with --lossy
  ! odd.yaml:11:64: spec.mpiReplicaSpecs.Worker.template.spec.containers[0].securityContext.fsGroup: unknown field; move it to spec.mpiReplicaSpecs.Worker.template.spec.securityContext.fsGroup, or remove the field with --lossy
  [1]
  $ training-operator convert --lossy odd.yaml > converted.yaml
  ! odd.yaml:1:1: note: spec.runPolicy.cleanPodPolicy: set to None, the mpi-operator's default
  ! odd.yaml:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  ! odd.yaml:1:13: note: apiVersion: changed from kubeflow.org/v1alpha2 to kubeflow.org/v1
  ! odd.yaml:5:3: warning: spec.odd: unknown field: removed
  ! odd.yaml:8:7: note: spec.mpiReplicaSpecs.Launcher.restartPolicy: set to OnFailure, the mpi-operator's default
  ! odd.yaml:8:7: note: spec.mpiReplicaSpecs.Worker.restartPolicy: set to Always, the mpi-operator's default
  ! odd.yaml:10:11: warning: spec.mpiReplicaSpecs.Launcher.template.spec.imagePullPolicy: unknown field: removed
  ! odd.yaml:10:11: warning: spec.mpiReplicaSpecs.Worker.template.spec.imagePullPolicy: unknown field: removed
  ! odd.yaml:11:64: warning: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].securityContext.fsGroup: unknown field: removed
  ! odd.yaml:11:64: warning: spec.mpiReplicaSpecs.Worker.template.spec.containers[0].securityContext.fsGroup: unknown field: removed
  $ cat converted.yaml
  apiVersion: kubeflow.org/v1
  kind: MPIJob
  metadata:
    name: a
  spec:
    mpiReplicaSpecs:
      Launcher:
        restartPolicy: OnFailure
        template:
          spec:
            containers:
            - name: mpi
              image: x
              securityContext: {}
      Worker:
        restartPolicy: Always
        template:
          spec:
            containers:
            - name: mpi
              image: x
              securityContext: {}
    runPolicy:
      cleanPodPolicy: None
      backoffLimit: 6
  $ training-operator validate converted.yaml
  1 valid job, 0 errors, 0 warnings
  $ sed 's/odd/runPoilcy/' odd.yaml | training-operator convert --lossy -
  ! <stdin>:1:1: note: spec.runPolicy.cleanPodPolicy: set to None, the mpi-operator's default
  ! <stdin>:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  ! <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha2 to kubeflow.org/v1
  ! <stdin>:5:3: spec.runPoilcy: unknown field; did you mean runPolicy?
  ! <stdin>:8:7: note: spec.mpiReplicaSpecs.Launcher.restartPolicy: set to OnFailure, the mpi-operator's default
  ! <stdin>:8:7: note: spec.mpiReplicaSpecs.Worker.restartPolicy: set to Always, the mpi-operator's default
  ! <stdin>:10:11: warning: spec.mpiReplicaSpecs.Launcher.template.spec.imagePullPolicy: unknown field: removed
  ! <stdin>:10:11: warning: spec.mpiReplicaSpecs.Worker.template.spec.imagePullPolicy: unknown field: removed
  ! <stdin>:11:64: warning: spec.mpiReplicaSpecs.Launcher.template.spec.containers[0].securityContext.fsGroup: unknown field: removed
  ! <stdin>:11:64: warning: spec.mpiReplicaSpecs.Worker.template.spec.containers[0].securityContext.fsGroup: unknown field: removed
  [1]

The message about an unknown field of an early MPIJob lists the fields of its version.

  $ cat > early.yaml <<END
  > apiVersion: kubeflow.org/v1alpha1
  > kind: MPIJob
  > metadata: {name: a}
  > spec:
  >   replicas: 1
  >   odd: 1
  >   template: {spec: {containers: [{name: mpi, image: x}]}}
  > END
  $ training-operator convert early.yaml
  ! early.yaml:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  ! early.yaml:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  ! early.yaml:5:3: note: spec.replicas: moved to spec.mpiReplicaSpecs.Worker.replicas
  ! early.yaml:6:3: spec.odd: unknown field of v1alpha1, which has activeDeadlineSeconds, backoffLimit, cleanPodPolicy, gpus, gpusPerNode, launcherOnMaster, mainContainer, processingResourceType, processingUnits, processingUnitsPerNode, replicas, slotsPerWorker, template, launcherResources, mountsOnLauncher; remove the field with --lossy
  ! early.yaml:7:3: note: spec.template: moved to spec.mpiReplicaSpecs, as Launcher without resources and Worker without command
  [1]
  $ training-operator convert early.yaml --lossy
  apiVersion: kubeflow.org/v1
  kind: MPIJob
  metadata:
    name: a
  spec:
    mpiReplicaSpecs:
      Launcher:
        replicas: 1
        restartPolicy: OnFailure
        template:
          spec:
            containers:
            - name: mpi
              image: x
      Worker:
        replicas: 1
        restartPolicy: Always
        template:
          spec:
            containers:
            - name: mpi
              image: x
    runPolicy:
      backoffLimit: 6
  ! early.yaml:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  ! early.yaml:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  ! early.yaml:5:3: note: spec.replicas: moved to spec.mpiReplicaSpecs.Worker.replicas
  ! early.yaml:6:3: warning: spec.odd: unknown field of v1alpha1: removed
  ! early.yaml:7:3: note: spec.template: moved to spec.mpiReplicaSpecs, as Launcher without resources and Worker without command
  $ sed 's/odd/GPUs/' early.yaml | training-operator convert --lossy -
  ! <stdin>:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  ! <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  ! <stdin>:5:3: note: spec.replicas: moved to spec.mpiReplicaSpecs.Worker.replicas
  ! <stdin>:6:3: spec.GPUs: unknown field of v1alpha1; did you mean gpus?
  ! <stdin>:7:3: note: spec.template: moved to spec.mpiReplicaSpecs, as Launcher without resources and Worker without command
  [1]

Sample sets of the Paddle operator are named.

  $ cat > samples.yaml <<END
  > apiVersion: batch.paddlepaddle.org/v1
  > kind: PaddleJob
  > metadata: {name: a}
  > spec:
  >   sampleSetRef: {name: imagenet, mountPath: /data}
  >   worker: {replicas: 1, template: {spec: {containers: [{name: a, image: x}]}}}
  > END
  $ training-operator convert samples.yaml
  ! samples.yaml:1:1: note: spec.cleanPodPolicy: set to Running: running pods are deleted at the end; formerly, all pods were deleted after a success and none after a failure
  ! samples.yaml:1:1: warning: spec: pods get PADDLE_MASTER, PADDLE_NNODES and the other variables that paddle.distributed.launch reads, instead of PADDLE_TRAINER_ENDPOINTS, PADDLE_PSERVERS_IP_PORT_LIST, TRAINING_ROLE and PADDLE_TRAINER_ID; start the program with python -m paddle.distributed.launch
  ! samples.yaml:1:13: note: apiVersion: changed from batch.paddlepaddle.org/v1 to kubeflow.org/v1
  ! samples.yaml:5:3: spec.sampleSetRef: this operator does not cache sample sets; mount a volume with the data in the job's templates, or remove the field with --lossy
  ! samples.yaml:6:3: note: spec.worker: moved to spec.paddleReplicaSpecs.Worker
  ! samples.yaml:6:11: note: spec.worker.template.spec.restartPolicy: set to Never on the role, the paddle-operator's default
  ! samples.yaml:6:63: note: spec.worker.template.spec.containers[0].name: renamed to paddle, the name of the framework's container
  [1]
  $ training-operator convert samples.yaml --lossy
  apiVersion: kubeflow.org/v1
  kind: PaddleJob
  metadata:
    name: a
  spec:
    paddleReplicaSpecs:
      Worker:
        replicas: 1
        restartPolicy: Never
        template:
          spec:
            containers:
            - name: paddle
              image: x
    runPolicy:
      cleanPodPolicy: Running
  ! samples.yaml:1:1: note: spec.cleanPodPolicy: set to Running: running pods are deleted at the end; formerly, all pods were deleted after a success and none after a failure
  ! samples.yaml:1:1: warning: spec: pods get PADDLE_MASTER, PADDLE_NNODES and the other variables that paddle.distributed.launch reads, instead of PADDLE_TRAINER_ENDPOINTS, PADDLE_PSERVERS_IP_PORT_LIST, TRAINING_ROLE and PADDLE_TRAINER_ID; start the program with python -m paddle.distributed.launch
  ! samples.yaml:1:13: note: apiVersion: changed from batch.paddlepaddle.org/v1 to kubeflow.org/v1
  ! samples.yaml:5:3: warning: spec.sampleSetRef: this operator does not cache sample sets: removed
  ! samples.yaml:6:3: note: spec.worker: moved to spec.paddleReplicaSpecs.Worker
  ! samples.yaml:6:11: note: spec.worker.template.spec.restartPolicy: set to Never on the role, the paddle-operator's default
  ! samples.yaml:6:63: note: spec.worker.template.spec.containers[0].name: renamed to paddle, the name of the framework's container

Removed fields without an effect are named.

  $ job() {
  >     cat <<END
  > apiVersion: kubeflow.org/v1alpha1
  > kind: $1
  > metadata: {name: a}
  > spec:
  >   $2
  > END
  > }
  $ template='template: {spec: {containers: [{name: mpi, image: x}]}}'
  $ for fields in 'replicas: 2/gpusPerNode: 2' 'replicas: 2/processingUnitsPerNode: 2' 'gpus: 4/gpusPerNode: 2' \
  >     'gpus: 4/replicas: 7'; do
  >     job MPIJob "${fields/\//$'\n  '}"$'\n  '"$template" | training-operator convert - 2>&1 >/dev/null
  > done
  <stdin>:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  <stdin>:5:3: note: spec.replicas: moved to spec.mpiReplicaSpecs.Worker.replicas
  <stdin>:6:3: note: spec.gpusPerNode: removed: it has no effect without a number of devices
  <stdin>:7:3: note: spec.template: moved to spec.mpiReplicaSpecs, as Launcher without resources and Worker without command
  <stdin>:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  <stdin>:5:3: note: spec.replicas: moved to spec.mpiReplicaSpecs.Worker.replicas
  <stdin>:6:3: note: spec.processingUnitsPerNode: removed: it has no effect without a number of devices
  <stdin>:7:3: note: spec.template: moved to spec.mpiReplicaSpecs, as Launcher without resources and Worker without command
  <stdin>:1:1: note: spec.slotsPerWorker: set to 2, the number of devices of a worker, which was the default
  <stdin>:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  <stdin>:5:3: note: spec.gpus: changed to 2 workers with 2 devices each
  <stdin>:6:3: note: spec.gpusPerNode: removed: each worker sets its own devices
  <stdin>:7:3: note: spec.template: moved to spec.mpiReplicaSpecs, as Launcher without resources and Worker without command
  <stdin>:1:1: note: spec.slotsPerWorker: set to 4, the number of devices of a worker, which was the default
  <stdin>:1:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  <stdin>:5:3: warning: spec.gpus: changed to 1 workers with 4 devices each, for nodes of 8 devices as in the mpi-operator's manifests; if your nodes have another number, set spec.gpusPerNode before the conversion
  <stdin>:6:3: note: spec.replicas: removed: the number of devices determined the number of workers
  <stdin>:7:3: note: spec.template: moved to spec.mpiReplicaSpecs, as Launcher without resources and Worker without command
  $ for field in '  backend: tcp' "  masterPort: '23456'" '    pytorchReplicaType: MASTER'; do
  >     job PyTorchJob "replicaSpecs:"$'\n  - '"${template/mpi/pytorch}"$'\n'"$field" | training-operator convert - 2>&1 >/dev/null
  > done
  <stdin>:1:1: note: spec.runPolicy.cleanPodPolicy: set to All, the pytorch-operator's default
  <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  <stdin>:5:3: note: spec.replicaSpecs: moved to spec.pytorchReplicaSpecs
  <stdin>:6:22: note: spec.replicaSpecs[0].template.spec.restartPolicy: moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before
  <stdin>:7:3: note: spec.backend: removed: no operator ever read it
  <stdin>:1:1: note: spec.runPolicy.cleanPodPolicy: set to All, the pytorch-operator's default
  <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  <stdin>:5:3: note: spec.replicaSpecs: moved to spec.pytorchReplicaSpecs
  <stdin>:6:22: note: spec.replicaSpecs[0].template.spec.restartPolicy: moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before
  <stdin>:7:3: note: spec.masterPort: removed: no operator ever read it
  <stdin>:1:1: note: spec.runPolicy.cleanPodPolicy: set to All, the pytorch-operator's default
  <stdin>:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  <stdin>:5:3: note: spec.replicaSpecs: moved to spec.pytorchReplicaSpecs
  <stdin>:6:22: note: spec.replicaSpecs[0].template.spec.restartPolicy: moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before

Features of other operators are named.

  $ training-operator convert convert/cases/foreign.yaml
  ! convert/cases/foreign.yaml:2:13: note: apiVersion: changed from training.kubedl.io/v1alpha1 to kubeflow.org/v1
  ! convert/cases/foreign.yaml:6:3: spec.cronPolicy: this operator does not run jobs on a schedule; create the job from a CronJob, or remove the field with --lossy
  ! convert/cases/foreign.yaml:9:7: note: spec.tfReplicaSpecs.Worker.restartPolicy: set to ExitCode, the KubeDL operator's default
  ! convert/cases/foreign.yaml:14:1: note: spec.cleanPodPolicy: set to Running: running pods are deleted at the end; formerly, all pods were deleted after a success and none after a failure
  ! convert/cases/foreign.yaml:14:1: warning: spec: pods get PADDLE_MASTER, PADDLE_NNODES and the other variables that paddle.distributed.launch reads, instead of PADDLE_TRAINER_ENDPOINTS, PADDLE_PSERVERS_IP_PORT_LIST, TRAINING_ROLE and PADDLE_TRAINER_ID; start the program with python -m paddle.distributed.launch
  ! convert/cases/foreign.yaml:14:13: note: apiVersion: changed from batch.paddlepaddle.org/v1 to kubeflow.org/v1
  ! convert/cases/foreign.yaml:18:3: spec.elastic: this operator runs no etcd server for elastic training; let paddle.distributed.launch find its peers through PADDLE_MASTER, or remove the field with --lossy
  ! convert/cases/foreign.yaml:19:3: note: spec.worker: moved to spec.paddleReplicaSpecs.Worker
  ! convert/cases/foreign.yaml:20:5: note: spec.worker.template.spec.restartPolicy: set to OnFailure on the role, the paddle-operator's default
  ! convert/cases/foreign.yaml:26:1: note: spec: the mpi-operator connected to workers by SSH; in v1, mpirun starts their processes with exec through the API server, so images need no sshd and pods get no keys
  ! convert/cases/foreign.yaml:26:1: note: spec.runPolicy.cleanPodPolicy: set to None, the mpi-operator's default
  ! convert/cases/foreign.yaml:26:1: note: spec.runPolicy.backoffLimit: set to 6, the mpi-operator's default
  ! convert/cases/foreign.yaml:26:13: note: apiVersion: changed from kubeflow.org/v2beta1 to kubeflow.org/v1
  ! convert/cases/foreign.yaml:30:3: spec.mpiImplementation: /etc/mpi/hostfile has Open MPI's format (host slots=n), which Intel cannot read; convert the hostfile in the launcher, or remove the field with --lossy
  ! convert/cases/foreign.yaml:30:3: note: spec.launcherCreationPolicy: the default is now WaitForWorkersReady instead of AtStartup: the launcher is created once all workers run
  ! convert/cases/foreign.yaml:33:7: note: spec.mpiReplicaSpecs.Launcher.restartPolicy: set to OnFailure, the mpi-operator's default
  ! convert/cases/foreign.yaml:44:1: kind: no current kind replaces XDLJob of xdl.kubedl.io/v1alpha1; leave the job to its operator, or rewrite it as a current kind
  [1]

A job that may mean anything is rejected.

  $ training-operator convert convert/cases/wrong.yaml --lossy
  ! convert/cases/wrong.yaml:1:1: note: spec.jobMode: set to MXTrain, the former default
  ! convert/cases/wrong.yaml:1:1: note: spec.runPolicy.cleanPodPolicy: set to All, the stand-alone operator's default
  ! convert/cases/wrong.yaml:1:13: note: apiVersion: changed from kubeflow.org/v1alpha1 to kubeflow.org/v1
  ! convert/cases/wrong.yaml:5:3: note: spec.replicaSpecs: moved to spec.mxReplicaSpecs
  ! convert/cases/wrong.yaml:6:6: spec.replicaSpecs[0].mxReplicaType: unknown type "worker"; use one of SCHEDULER, SERVER, WORKER
  ! convert/cases/wrong.yaml:7:5: spec.replicaSpecs[1].template: must be set; add the replica's pod template
  ! convert/cases/wrong.yaml:8:32: spec.replicaSpecs[2].PsRootPort: must be a number; use a port from 1 to 65535
  ! convert/cases/wrong.yaml:8:67: note: spec.replicaSpecs[2].template.spec.restartPolicy: moved to the role's restartPolicy as ExitCode: exit codes of 128 or more restart the replica, as before
  ! convert/cases/wrong.yaml:9:5: spec.replicaSpecs[3]: duplicate type SCHEDULER; keep one of the two
  ! convert/cases/wrong.yaml:11:1: spec.jobMode: must be set; use dist or local
  ! convert/cases/wrong.yaml:11:13: note: apiVersion: changed from mxnet.mlkube.io/v1beta1 to kubeflow.org/v1
  ! convert/cases/wrong.yaml:12:7: note: kind: changed from MxJob to MXJob
  ! convert/cases/wrong.yaml:14:8: note: spec.replicaSpecs: moved to spec.mxReplicaSpecs
  [1]

Bad YAML and missing files are reported.

  $ printf 'a: 1\n---\nb: 1\nb: 2\n' | training-operator convert -
  ! <stdin>:4:1: duplicate key b, first in line 2; keep one
  [2]
  $ training-operator convert no/such.yaml
  ! no/such.yaml: no such file
  [2]

Files are written in place if they change, with the ends of their lines. One cannot be converted.

  $ mkdir place && cp convert/cases/{several,wrong}.yaml place && sed 's/$/\r/' convert/cases/v1beta1.yaml > place/crlf.yaml
  $ training-operator convert --in-place place 2>/dev/null
  [1]
  $ cmp place/wrong.yaml convert/cases/wrong.yaml
  $ training-operator convert convert/cases/several.yaml 2>/dev/null | cmp - place/several.yaml
  $ training-operator convert convert/cases/v1beta1.yaml 2>/dev/null | sed 's/$/\r/' | cmp - place/crlf.yaml
  $ ls place
  crlf.yaml
  several.yaml
  wrong.yaml

`validate` and `render` name the command for versions that are not served, and `validate` for each before today's.

  $ training-operator validate convert/cases/v1alpha1.yaml
  convert/cases/v1alpha1.yaml:2:1: apiVersion: MXJob of kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/v1alpha1.yaml
  0 valid jobs, 1 error, 0 warnings
  [1]
  $ training-operator render convert/cases/v1alpha1.yaml
  ! convert/cases/v1alpha1.yaml:2:1: apiVersion: MXJob of kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/v1alpha1.yaml
  [2]
  $ training-operator validate convert/cases/{modes,tensorflow,pytorch,mpi,xgboost,paddle,kubedl}.yaml
  convert/cases/modes.yaml:2:1: apiVersion: MXJob of kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/modes.yaml
  convert/cases/modes.yaml:34:1: apiVersion: MXJob of kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/modes.yaml
  convert/cases/tensorflow.yaml:1:1: apiVersion: TFJob of kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/tensorflow.yaml
  convert/cases/tensorflow.yaml:25:1: apiVersion: TfJob of tensorflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/tensorflow.yaml
  convert/cases/tensorflow.yaml:38:1: apiVersion: TFJob of kubeflow.org/v1alpha2 is no longer served; convert it with: training-operator convert convert/cases/tensorflow.yaml
  convert/cases/tensorflow.yaml:57:1: apiVersion: TFJob of kubeflow.org/v1beta1 is no longer served; convert it with: training-operator convert convert/cases/tensorflow.yaml
  convert/cases/tensorflow.yaml:74:1: apiVersion: TFJob of kubeflow.org/v1beta2 is no longer served; convert it with: training-operator convert convert/cases/tensorflow.yaml
  convert/cases/pytorch.yaml:1:1: apiVersion: PyTorchJob of kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/pytorch.yaml
  convert/cases/pytorch.yaml:23:1: apiVersion: PyTorchJob of kubeflow.org/v1alpha2 is no longer served; convert it with: training-operator convert convert/cases/pytorch.yaml
  convert/cases/pytorch.yaml:35:1: apiVersion: PyTorchJob of kubeflow.org/v1beta1 is no longer served; convert it with: training-operator convert convert/cases/pytorch.yaml
  convert/cases/pytorch.yaml:55:1: apiVersion: PyTorchJob of kubeflow.org/v1beta2 is no longer served; convert it with: training-operator convert convert/cases/pytorch.yaml
  convert/cases/mpi.yaml:1:1: apiVersion: MPIJob of kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/mpi.yaml
  convert/cases/mpi.yaml:14:1: apiVersion: MPIJob of kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/mpi.yaml
  convert/cases/mpi.yaml:28:1: apiVersion: MPIJob of kubeflow.org/v1alpha2 is no longer served; convert it with: training-operator convert convert/cases/mpi.yaml
  convert/cases/xgboost.yaml:1:1: apiVersion: XGBoostJob of xgboostjob.kubeflow.org/v1alpha1 is no longer served; convert it with: training-operator convert convert/cases/xgboost.yaml
  convert/cases/xgboost.yaml:25:1: apiVersion: XGBoostJob of xgboostjob.kubeflow.org/v1 is no longer served; convert it with: training-operator convert convert/cases/xgboost.yaml
  convert/cases/paddle.yaml:1:1: apiVersion: PaddleJob of batch.paddlepaddle.org/v1 is a kind of the paddle-operator and is not served here; convert it with: training-operator convert convert/cases/paddle.yaml
  convert/cases/paddle.yaml:19:1: apiVersion: PaddleJob of batch.paddlepaddle.org/v1 is a kind of the paddle-operator and is not served here; convert it with: training-operator convert convert/cases/paddle.yaml
  convert/cases/paddle.yaml:40:1: apiVersion: PaddleJob of batch.paddlepaddle.org/v1 is a kind of the paddle-operator and is not served here; convert it with: training-operator convert convert/cases/paddle.yaml
  convert/cases/kubedl.yaml:1:1: apiVersion: TFJob of training.kubedl.io/v1alpha1 is a kind of KubeDL and is not served here; convert it with: training-operator convert convert/cases/kubedl.yaml
  convert/cases/kubedl.yaml:17:1: apiVersion: PyTorchJob of training.kubedl.io/v1alpha1 is a kind of KubeDL and is not served here; convert it with: training-operator convert convert/cases/kubedl.yaml
  convert/cases/kubedl.yaml:36:1: apiVersion: XGBoostJob of training.kubedl.io/v1alpha1 is a kind of KubeDL and is not served here; convert it with: training-operator convert convert/cases/kubedl.yaml
  convert/cases/kubedl.yaml:49:1: apiVersion: MPIJob of training.kubedl.io/v1alpha1 is a kind of KubeDL and is not served here; convert it with: training-operator convert convert/cases/kubedl.yaml
  2 valid jobs, 23 errors, 0 warnings
  [1]
