Every kind of the help has a first job, which is valid without warnings and runs the command.

  $ training-operator new --help | tr -s ' \n' ' ' | grep -o '\[possible values: [^]]*JAXJob[^]]*\]'
  [possible values: MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob, TfJob, MxJob]
  $ command=(-- mycommand --flag 'two words')
  $ for kind in MXJob TFJob XGBoostJob PyTorchJob JAXJob PaddleJob MPIJob TfJob 'MxJob --set spec.jobMode=dist'; do
  >     training-operator new $kind --workers 3 "${command[@]}" > job.yaml
  >     training-operator validate --strict job.yaml > checked || cat checked
  >     training-operator render job.yaml > rendered
  >     echo $kind: $(grep -c '^kind: Pod$' rendered) pods, $(grep -c -e '- two words$' rendered) run the command
  > done
  MXJob: 5 pods, 5 run the command
  TFJob: 3 pods, 3 run the command
  XGBoostJob: 4 pods, 4 run the command
  PyTorchJob: 3 pods, 3 run the command
  JAXJob: 3 pods, 3 run the command
  PaddleJob: 3 pods, 3 run the command
  MPIJob: 4 pods, 1 run the command
  TfJob: 4 pods, 4 run the command
  MxJob --set spec.jobMode=dist: 5 pods, 5 run the command

The name and the image are the given ones.

  $ training-operator new JAXJob --name digits --image example.com/digits:1 "${command[@]}"
  ---
  # JAXJob digits
  apiVersion: kubeflow.org/v1
  kind: JAXJob
  metadata:
    name: digits
  spec:
    jaxReplicaSpecs:
      Worker:
        replicas: 2
        restartPolicy: OnFailure
        template:
          spec:
            containers:
            - command:
              - mycommand
              - --flag
              - two words
              image: example.com/digits:1
              name: jax
    runPolicy:
      backoffLimit: 3

The workers of an MPIJob run what the operator starts, so their container gets no command.

  $ training-operator new MPIJob "${command[@]}"
  ---
  # MPIJob train
  apiVersion: kubeflow.org/v1
  kind: MPIJob
  metadata:
    name: train
  spec:
    mpiReplicaSpecs:
      Launcher:
        replicas: 1
        restartPolicy: OnFailure
        template:
          spec:
            containers:
            - command:
              - mycommand
              - --flag
              - two words
              image: example.com/train:latest
              name: mpi
      Worker:
        replicas: 2
        restartPolicy: OnFailure
        template:
          spec:
            containers:
            - image: example.com/train:latest
              name: mpi
    runPolicy:
      backoffLimit: 3

A kind has the names of its framework.

  $ for name in mxnet tensorflow torch PyTorch paddlepaddle horovod jax; do
  >     echo $name: $(training-operator new $name -- true | grep kind:)
  > done
  mxnet: kind: MXJob
  tensorflow: kind: TFJob
  torch: kind: PyTorchJob
  PyTorch: kind: PyTorchJob
  paddlepaddle: kind: PaddleJob
  horovod: kind: MPIJob
  jax: kind: JAXJob
  $ training-operator new --kind jax -- true | cmp - <(training-operator new JAXJob -- true)

`--set` changes no roles, because other roles are another training. Its warnings are shown.

  $ for kind in PyTorchJob:pytorch TFJob:tf PaddleJob:paddle; do
  >     training-operator new ${kind%:*} --workers 2 --set spec.${kind#*:}ReplicaSpecs.Worker.restartPolicy=Never -- true |
  >         grep -B1 restartPolicy
  > done
        replicas: 2
        restartPolicy: Never
        replicas: 2
        restartPolicy: Never
        replicas: 2
        restartPolicy: Never
  ! warning: spec.runPolicy.backoffLimit: restartPolicy is Never in every role, so the first container that fails ends the job, and only deleted or evicted pods count against this limit; set restartPolicy to OnFailure or ExitCode, or remove backoffLimit
  ! warning: spec.runPolicy.backoffLimit: restartPolicy is Never in every role, so the first container that fails ends the job, and only deleted or evicted pods count against this limit; set restartPolicy to OnFailure or ExitCode, or remove backoffLimit
  ! warning: spec.runPolicy.backoffLimit: restartPolicy is Never in every role, so the first container that fails ends the job, and only deleted or evicted pods count against this limit; set restartPolicy to OnFailure or ExitCode, or remove backoffLimit
  $ training-operator new JAXJob --set metadata.namespace=ml -- true | grep namespace
    namespace: ml

A kind may have several versions. Workers of v2beta1 get their command from the operator.

  $ training-operator new MPIJob --api-version v2beta1 -- mpirun ./pi > job.yaml; grep -e apiVersion -e mpirun job.yaml
  apiVersion: kubeflow.org/v2beta1
              - mpirun
  $ training-operator validate --strict job.yaml
  1 valid job, 0 errors, 0 warnings
  $ training-operator new MPIJob --api-version v3 -- mpirun ./pi
  ! training-operator: MPIJob: the kind has no version v3; use one of v1, v2beta1
  [2]

Values that a job may not have are rejected.

  $ training-operator new JAXJob --name My_Job -- true
  ! training-operator: JAXJob: metadata.name: must be a valid service name (is "My_Job"); use at most 63 lower-case letters, digits and '-', starting with a letter and not ending with '-', such as my-job
  [2]
  $ training-operator new MxJob -- true
  ! training-operator: MxJob: spec.jobMode: unknown value ""; use one of local, dist
  [2]
  $ training-operator new JAXJob --workers 0 -- true
  ! error: invalid value '0' for '--workers <NUMBER>': 0 is not in 1..=4294967295
  !
  ! For more information, try '--help'.
  [2]
  $ training-operator new JAXJob
  ! error: the following required arguments were not provided:
  !   <COMMAND>...
  !
  ! Usage: training-operator new <KIND> -- <COMMAND>...
  !
  ! For more information, try '--help'.
  [2]
  $ training-operator new TorchJob -- true
  ! error: invalid value 'TorchJob' for '[KIND]'
  !   [possible values: MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob, TfJob, MxJob]
  !
  !   tip: a similar value exists: 'PyTorchJob'
  !
  ! For more information, try '--help'.
  [2]
