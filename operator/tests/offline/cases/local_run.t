The jobs of these cases run `sh`. `$4` has more fields of their container, and `$5` of their pod.

  $ job() {
  >     cat > $1.yaml <<END
  > apiVersion: kubeflow.org/v1
  > kind: MXJob
  > metadata: {name: $1}
  > spec:
  >   jobMode: MXTrain
  >   mxReplicaSpecs:
  >     Worker:
  >       replicas: $2
  >       restartPolicy: ${restart:-Never}
  >       template:
  >         spec:
  >           $5
  >           containers:
  >           - name: mxnet
  >             image: none
  >             $4
  >             command:
  >             - sh
  >             - -c
  >             - |
  >               $3
  > END
  > }
  $ local_run() { training-operator local run "$@"; }

The output of a replica has its name before it. `--why` lists the differences from a cluster, such as a scheduler that is not waited for.

  $ job words 1 'echo words'
  $ local_run words.yaml 2>&1 | grep -E '\||\?|^[a-z]+-operator'
  training-operator: images are not pulled: commands run on this machine, in .
  training-operator: not applied on this machine: image none
  worker-0 | words
  $ job gang 1 'exit 0' '' 'schedulerName: volcano'
  $ local_run gang.yaml --why | grep '? schedulerName'
  worker-0 ? schedulerName: volcano → - (all pods start at once, on this machine)

Kept logs are files.

  $ job noisy 2 'echo out of $HOSTNAME; echo err >&2'
  $ local_run noisy.yaml --keep-logs logs/deep | grep logs
  training-operator: the logs are below logs/deep
  ! noisy.yaml:7:5: warning: spec.mxReplicaSpecs.Worker: 2 workers cannot find each other without a scheduler, because DMLC_PS_ROOT_URI is empty; add a Scheduler with 1 replica and a Server, or use 1 worker
  $ for file in logs/deep/default/*; do echo $file: $(sort $file); done
  logs/deep/default/noisy-worker-0.log: err out of noisy-worker-0
  logs/deep/default/noisy-worker-1.log: err out of noisy-worker-1

The working directory is the manifest's, or the given one.

  $ mkdir other && job where 1 'pwd | sed s,.*/,,'
  $ local_run where.yaml | grep '|'
  worker-0 | files
  $ cd other && local_run ../where.yaml | grep '|'; cd ..
  worker-0 | files
  $ local_run where.yaml --workdir other | grep '|'
  worker-0 | other

Directories and files that cannot be used are named before the start.

  $ for option in --workdir --venv --path; do local_run words.yaml $option /not/there || echo "exit code $?"; done
  exit code 2
  exit code 2
  exit code 2
  ! training-operator: local run: the working directory /not/there does not exist
  ! training-operator: local run: --venv: /not/there does not exist or is not a Python environment; create one with: python3 -m venv /not/there
  ! training-operator: local run: --path: the directory /not/there does not exist
  $ local_run words.yaml --keep-logs words.yaml
  ! training-operator: local run: --keep-logs: files cannot be written to words.yaml: File exists (os error 17); name another directory
  [2]
  $ local_run words.yaml --report /nonexistent/x.html
  ! training-operator: local run: --report /nonexistent/x.html: the file cannot be written; name another: No such file or directory (os error 2)
  [2]
  $ TMPDIR=/not/there local_run words.yaml
  ! training-operator: local run: the node cannot be started: the temporary directory /not/there: No such file or directory (os error 2); set TMPDIR
  [2]
  $ local_run words.yaml > /dev/full
  ! training-operator: local run: standard output: No space left on device (os error 28)
  [2]

A program that this machine lacks is named with the remedy.

  $ sed 's/command:/command: [no-such-program, train.py]\n            args:/' words.yaml > absent.yaml
  $ local_run absent.yaml | grep -e failed: -e '   |'
    failed: words-worker-0 (container mxnet) exited with 127, ContainerCannotRun
      | "no-such-program" is not in PATH; images are not pulled; name its directory with --path or --venv
  [1]

The kubelet would restart it forever. On one machine a restart changes nothing, so the run ends at once.

  $ sed -i 's/Never/OnFailure/' absent.yaml
  $ local_run absent.yaml 2>&1 >/dev/null | tail -1
  training-operator: words-worker-0 cannot start: "no-such-program" is not in PATH; images are not pulled; name its directory with --path or --venv
  [1]

The kubelet restarts the container once more before the job fails, and the run stops it. The replica that exceeds the limit has its
own exit code, and the counted restarts. It printed nothing.

  $ restart=OnFailure job limited 1 'exit 3'
  $ local_run limited.yaml --set spec.runPolicy.backoffLimit=1 | grep -e failed: -e 'restart 2' -e '   |' -e '^worker-0  F' | sed 's/ [0-9]s / …s /'
    failed: limited-worker-0 (container mxnet) exited with 3; backoffLimit 1 is used up
  worker-0  Failed   …s     3         1
  [1]

Python prints at once in each kind, unless the user decides.

  $ job prints 1 'echo is $PYTHONUNBUFFERED'
  $ local_run prints.yaml | grep '|'
  worker-0 | is 1
  $ local_run prints.yaml -e PYTHONUNBUFFERED=0 | grep '|'
  worker-0 | is 0

Variables are given to the processes.

  $ printf '# Of this project\nA=file\nB=file\n' > variables
  $ job asks 1 'echo $A-$B-$C-$DMLC_ROLE'
  $ local_run asks.yaml --env-file variables -e B=flag --env C=x=y -e DMLC_ROLE=none | grep '|'
  worker-0 | file-flag-x=y-worker
  $ local_run asks.yaml -e NOT_IN_THIS_SHELL
  ! training-operator: local run: --env: NOT_IN_THIS_SHELL is not set in this shell; set it, or use NOT_IN_THIS_SHELL=VALUE
  [2]

Fields are set before the check.

  $ container='spec.mxReplicaSpecs.Worker.template.spec.containers[0]'
  $ restart=ExitCode job changed 1 'exit 3'
  $ local_run changed.yaml --set spec.mxReplicaSpecs.Worker.replicas=2 --set "$container.command=[echo, set]" | grep '|' | sort
  worker-0 | set
  worker-1 | set
  ! changed.yaml:7:5: warning: spec.mxReplicaSpecs.Worker: 2 workers cannot find each other without a scheduler, because DMLC_PS_ROOT_URI is empty; add a Scheduler with 1 replica and a Server, or use 1 worker
  $ local_run changed.yaml --set spec.mxReplicaSpecs.Worker.replicas=two
  ! changed.yaml:8:7: spec.mxReplicaSpecs.Worker.replicas: must be an integer (is "two")
  [2]
  $ local_run changed.yaml --set spec.jobMode.x=1
  ! changed.yaml:5:3: spec.jobMode.x: cannot be set, because spec.jobMode is not an object; change the path of --set
  ! changed.yaml: no training job found; add a job of kind MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob, TfJob, MxJob
  [2]

The output of one replica is shown, with the states of all.

  $ job chatty 2 'echo words'
  $ local_run chatty.yaml --only worker-1 | grep -e '|' -e '\* Succeeded' | sort
  chatty * Succeeded: MXJob chatty is successfully completed.
  worker-0 * Succeeded
  worker-1 * Succeeded
  worker-1 | words
  ! chatty.yaml:7:5: warning: spec.mxReplicaSpecs.Worker: 2 workers cannot find each other without a scheduler, because DMLC_PS_ROOT_URI is empty; add a Scheduler with 1 replica and a Server, or use 1 worker
  $ local_run chatty.yaml --only worker-2
  ! chatty.yaml:7:5: warning: spec.mxReplicaSpecs.Worker: 2 workers cannot find each other without a scheduler, because DMLC_PS_ROOT_URI is empty; add a Scheduler with 1 replica and a Server, or use 1 worker
  ! training-operator: --only: no job has the replica worker-2; use one of worker-0 to worker-1
  [2]

The result is JSON, and the output of the replicas is on standard error.

  $ job counted 1 'echo words; exit 3'
  $ local_run counted.yaml --output json 2> errors | grep -v -e '"time"' -e '"started"' -e '"ended"' > result
  [1]
  $ grep '|' errors
  worker-0 | words
      | words
  $ sed '/"timeline"/,/\]/d' result
  {
    "succeeded": false,
    "jobs": [
      {
        "kind": "MXJob",
        "name": "counted",
        "condition": "Failed",
        "restarts": 0,
        "failure": {
          "summary": "worker-0: exit 3",
          "reason": "Error",
          "message": "words",
          "role": "Worker",
          "index": 0,
          "pod": "counted-worker-0",
          "container": "mxnet",
          "exitCode": 3,
        },
        "replicas": [
          {
            "name": "counted-worker-0",
            "role": "Worker",
            "phase": "Failed",
            "exitCode": 3,
            "restarts": 0,
          }
        ]
      }
    ]
  }
  $ sed -n '/"timeline"/,/\]/p' result | grep '"condition"' | sed '1p; $!d'
            "condition": "Created",
            "condition": "Failed",

A progress bar writes no line feed before its end.

  $ job bar 1 'printf "\\r10%%"; sleep 1.5; printf "\\r60%%"; sleep 0.1; printf "\\r100%%\\n"'
  $ local_run bar.yaml | grep '|'
  worker-0 | 10%
  worker-0 | 60%
  worker-0 | 100%

A command runs without a manifest. The workers of a file are in the file, so a number of workers needs a kind.

  $ local_run --kind pytorch --workers 2 --name plain --print-job -- sh -c 'echo $RANK of $WORLD_SIZE' 2> errors | grep '|' | sort
  worker-0 | 0 of 2
  worker-1 | 1 of 2
  $ sed -n '/^apiVersion/,$p' errors | grep -v '^training-operator'
  apiVersion: kubeflow.org/v1
  kind: PyTorchJob
  metadata:
    name: plain
  spec:
    pytorchReplicaSpecs:
      Worker:
        replicas: 2
        restartPolicy: OnFailure
        template:
          spec:
            containers:
            - command:
              - sh
              - -c
              - echo $RANK of $WORLD_SIZE
              image: example.com/train:latest
              name: pytorch
    runPolicy:
      backoffLimit: 3
  $ local_run --kind pytorch
  ! training-operator: local run: --kind must have a command; write: training-operator local run --kind pytorch -- <COMMAND>
  [2]
  $ local_run --kind torch python3 net.py
  ! training-operator: local run: the command of --kind must follow --; write: training-operator local run --kind torch -- python3 net.py
  [2]
  $ local_run words.yaml --workers 2
  ! training-operator: local run: --workers is for --kind; the workers of a job in a file are set with: --set spec.mxReplicaSpecs.Worker.replicas=2
  [2]

A volume is a given directory. One without a directory, or an image, is named before the start.

  $ mkdir data && echo 1 2 3 > data/numbers
  $ mount='volumeMounts: [{name: data, mountPath: /data}]'
  $ job reads 1 'cat /data/numbers' "$mount" 'volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]'
  $ local_run reads.yaml --mount data=data 2>&1 | grep -e '|' -e 'not applied'
  training-operator: not applied on this machine: image none
  worker-0 | 1 2 3
  $ local_run reads.yaml 2>&1 | grep 'not applied'
  training-operator: not applied on this machine: volume data (/data), image none
  [1]
  $ local_run reads.yaml --mount date=data
  ! training-operator: local run: --mount: no pod has a volume "date"; use one of data
  [2]
  $ job unmounted 1 'true' "$mount"
  $ local_run unmounted.yaml
  ! unmounted.yaml:16:29: spec.mxReplicaSpecs.Worker.template.spec.containers[0].volumeMounts[0].name: the pod has no volume "data"; add it to spec.mxReplicaSpecs.Worker.template.spec.volumes
  [2]

A container without a command is rejected: images are not pulled, so no image provides one.

  $ sed '/command:/,$d' words.yaml | training-operator local run -
  ! <stdin>:14:13: spec.mxReplicaSpecs.Worker.template.spec.containers[0].command: must be set, because images are not pulled: the command of none is unknown; add the command that runs on this machine, such as [python, train.py]
  [2]

Pods start without their devices on request.

  $ job devices 1 'echo started' 'resources: {limits: {example.com/accelerator: 4}}'
  $ local_run devices.yaml --ignore-devices 2>&1 | grep -e '|' -e 'not applied'
  training-operator: not applied on this machine: example.com/accelerator 4, image none
  worker-0 | started

Settings may have a file of their own. Those that are in no file are an error before the start. Nothing can add a missing key.

  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: rates}, data: {rate: "0.1"}}' > rates.yaml
  $ job rated 1 'echo $rate' 'envFrom: [{configMapRef: {name: rates}}]'
  $ local_run rated.yaml rates.yaml | grep '|'
  worker-0 | 0.1
  $ local_run rated.yaml
  ! rated.yaml:16:39: spec.mxReplicaSpecs.Worker.template.spec.containers[0].envFrom[0].configMapRef.name: ConfigMap rates is in none of the files; add the ConfigMap to the files, or set optional: true to run without it
  [2]
  $ job lacking 1 'exit 0' 'env: [{name: RATE, valueFrom: {configMapKeyRef: {name: rates, key: epochs}}}]'
  $ local_run lacking.yaml rates.yaml 2>&1 >/dev/null | tail -1
  training-operator: lacking-worker-0 cannot start: couldn't find key epochs in configmap "rates"
  [1]

A list of a cluster runs, as `kubectl get mxjobs -o yaml` prints it, with a ConfigMap.

  $ cat > list.yaml <<'END'
  > apiVersion: v1
  > kind: List
  > metadata: {resourceVersion: ""}
  > items:
  > - apiVersion: v1
  >   kind: ConfigMap
  >   metadata: {name: rates, namespace: team-a, resourceVersion: "12", uid: "1"}
  >   data: {rate: "0.1"}
  > - apiVersion: kubeflow.org/v1
  >   kind: MXJob
  >   metadata:
  >     {name: exported, namespace: team-a, uid: "2", resourceVersion: "13", generation: 1,
  >      creationTimestamp: "2024-01-01T00:00:00Z", managedFields: [{manager: kubectl, operation: Update}]}
  >   spec:
  >     jobMode: MXTrain
  >     mxReplicaSpecs:
  >       Worker:
  >         restartPolicy: Never
  >         template:
  >           spec:
  >             containers:
  >             - {name: mxnet, image: none, command: [sh, -c, echo rate=$rate], envFrom: [{configMapRef: {name: rates}}]}
  >   status: {conditions: [{type: Failed, status: "True"}]}
  > END
  $ local_run list.yaml | grep '|'
  worker-0 | rate=0.1

A suspended job is not waited for. In a cluster a user would resume it.

  $ local_run words.yaml --set spec.runPolicy.suspend=true 2>&1 >/dev/null | grep suspended
  training-operator: words is suspended, and is not resumed on this machine; set `suspend: false`
  [1]

The timeout gives up. The job has neither succeeded nor failed, it is only too late. Continuous output does not hide the timeout.

  $ job long 2 'exec sleep 1000'
  $ SECONDS=0
  $ local_run long.yaml --timeout 2 2>&1 >states | tail -1
  training-operator: not finished after 2 s (--timeout); still running: worker-0, worker-1; no output yet
  [1]
  $ [ $SECONDS -ge 2 ]
  $ grep '^long \*' states
  long * Created: MXJob long is created.
  long * Running: MXJob long is running.
  $ job flood 2 'exec yes'
  $ local_run flood.yaml --timeout 1 2>&1 >/dev/null | tail -1 | sed 's/worker-. last wrote .* ago/worker-… last wrote … ago/'
  training-operator: not finished after 1 s (--timeout); still running: worker-0, worker-1; worker-… last wrote … ago
  [1]
