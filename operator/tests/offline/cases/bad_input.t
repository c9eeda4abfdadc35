Every file in `operator/tests/bad` is rejected, with messages that name file, position, field and one remedy.

  $ training-operator render bad/* 2> messages
  [2]
  $ cat messages
  bad/bad-labels.yaml:6:12: metadata.labels.team: must be a valid label value (is "a b"); use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends
  bad/bad-labels.yaml:15:13: spec.mxReplicaSpecs.Worker.template.metadata.labels[example.com/app]: must be a valid label value (is "-x"); use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends
  bad/bad-labels.yaml:16:13: spec.mxReplicaSpecs.Worker.template.metadata.labels[a//b]: must be a valid key (is "a//b"); use at most 63 letters, digits, '-', '_' and '.', optionally after a DNS name and '/'
  bad/bad-labels.yaml:17:13: spec.mxReplicaSpecs.Worker.template.metadata.labels.version: must be a string (is 1.9); put it in quotes
  bad/bad-labels.yaml:18:13: spec.mxReplicaSpecs.Worker.template.metadata.labels.ok: must be a string (YAML reads yes as the boolean true); put it in quotes
  bad/bad-name.yaml:5:3: metadata.name: must be a valid service name (is "My_Job"); use at most 63 lower-case letters, digits and '-', starting with a letter and not ending with '-', such as my-job
  bad/bad-object-name.yaml:4:12: metadata.name: must be a valid name of an object (is "My_Job"); use at most 63 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part, such as my-job
  bad/bad-restart-policy.yaml:10:7: spec.mxReplicaSpecs.Server.restartPolicy: unknown value "sometimes"; use one of Always, OnFailure, Never, ExitCode
  bad/bad-restart-policy.yaml:17:7: spec.mxReplicaSpecs.Worker.restartPolicy: unknown value "onFailure"; did you mean OnFailure? use one of Always, OnFailure, Never, ExitCode
  bad/bad-words.yaml:7:3: spec.jobMode: unknown value "MXTrian"; did you mean MXTrain? use one of MXTrain, MXTune
  bad/bad-words.yaml:8:3: spec.successPolicy: unknown value "Most"; use AllWorkers, or remove it
  bad/bad-words.yaml:9:15: spec.runPolicy.cleanPodPolicy: unknown value "all"; did you mean All? use one of All, Running, None
  bad/bad-words.yaml:9:36: spec.runPolicy.backoffLimit: must be at least 0 (is -1)
  bad/big-config.yaml:8:3: spec.mxReplicaSpecs: environment variable MX_CONFIG of a-job-of-three-thousand-workers-scheduler-0 must be at most 131072 bytes, the limit of Linux (would have 197081 with 3001 replicas); use fewer replicas or a shorter job name
  bad/binary.yaml: must be UTF-8 text (byte 128 is not UTF-8)
  bad/braces-in-comment.yaml:8:7: spec.pytorchReplicaSpecs.Worker.replcas: unknown field; did you mean replicas?
  bad/braces-in-value.yaml:8:7: spec.pytorchReplicaSpecs.Worker.replicas: must be an integer (is "{{ workers }}"); render it first, for example: helm template . | training-operator validate -
  bad/broken-at-sign.yaml:8:17: a value must not begin with '@'; put it in quotes
  bad/broken-backslash.yaml:8:80: a backslash in double quotes begins an escape, and this one is not valid; use single quotes
  bad/broken-full-width-colon.yaml:8:15: U+FF1A (a full-width character) looks like ":"; type the plain character in its place
  bad/broken-indentation.yaml:16:10: the line does not match the structure of the lines above; check its indentation
  bad/broken-indented-too-far.yaml:9:9: the line is indented below a line that already has a value; indent it as that line
  bad/broken-json-comment.json:2:3: JSON has no comments; remove the comment
  bad/broken-merge.yaml:8:1: a conflict marker of a merge; resolve the conflict and remove the markers
  bad/broken-missing-colon.yaml:8:7: missing ':' after a key; add one
  bad/broken-missing-space.yaml:8:16: missing space after ':'; add one
  bad/broken-no-break-space.yaml:8:16: U+00A0 (a no-break space) looks like a space; type the plain character in its place
  bad/broken-quote.yaml:6:1: the quoted text above has no closing quotation mark; add it, or indent the line
  bad/broken-tab.yaml:7:1: a tab in the indentation; use spaces
  bad/container-without-name.yaml:11:13: spec.mxReplicaSpecs.Scheduler.template.spec.containers[0].name: must be set; set name: mxnet
  bad/container-without-name.yaml:11:13: spec.mxReplicaSpecs.Worker.template.spec.containers[0].name: must be set; set name: mxnet
  bad/containers-without-template.yaml:8:7: spec.mxReplicaSpecs.Scheduler.containers: unknown field; move it to spec.mxReplicaSpecs.Scheduler.template.spec.containers
  bad/containers-without-template.yaml:10:7: spec.mxReplicaSpecs.Worker.containers: unknown field; move it to spec.mxReplicaSpecs.Worker.template.spec.containers
  bad/duplicate-key.yaml:16:3: duplicate key jobMode, first in line 7; keep one
  bad/duplicate-roles.yaml:16:5: spec.mxReplicaSpecs.worker: duplicate role Worker (case is ignored); keep one of them
  bad/empty.yaml: is empty; add a job of kind MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob, TfJob, MxJob
  bad/huge-replicas.yaml:10:7: spec.mxReplicaSpecs.Scheduler.replicas: must be at most 1 (is 2)
  bad/huge-replicas.yaml:18:7: spec.mxReplicaSpecs.Server.replicas: must be at most 10000 (is 99999999999)
  bad/huge-replicas.yaml:26:7: spec.mxReplicaSpecs.Worker.replicas: must be at most 10000 (is 10001)
  bad/long-name.yaml:5:3: metadata.name: service names must be at most 63 characters (the longest would have 64); shorten the job's name by 1
  bad/look-alikes.yaml:8:7: spec.pytorchReplicaSpecs.Worker[rеplicas]: unknown field: U+0435 (a Cyrillic letter) looks like "e"; type "e" in its place
  bad/look-alikes.yaml:9:7: spec.pytorchReplicaSpecs.Worker[restart\u{200b}Policy]: unknown field: U+200B (a zero-width space) is invisible; remove it
  bad/memory-in-gb.yaml:13:34: spec.mxReplicaSpecs.Scheduler.template.spec.containers[0].resources.limits.memory: must be a quantity (is "4GB"); did you mean 4G or 4Gi?
  bad/memory-in-gb.yaml:13:34: spec.mxReplicaSpecs.Worker.template.spec.containers[0].resources.limits.memory: must be a quantity (is "4GB"); did you mean 4G or 4Gi?
  bad/misplaced.yaml:4:1: backoffLimit: unknown field; move it to spec.runPolicy.backoffLimit
  bad/misplaced.yaml:6:3: spec.cleanPodPolicy: unknown field; move it to spec.runPolicy.cleanPodPolicy
  bad/misplaced.yaml:7:49: spec.runPolicy.schedulingPolicy.minResources.requests: must be an integer or a string (is an object); move it to spec.runPolicy.schedulingPolicy.minResources[example.com/gpu], because minResources takes plain values
  bad/misplaced.yaml:9:5: spec.pytorchReplicaSpecs.runPolicy: PyTorchJob has no role runPolicy; move it to spec.runPolicy
  bad/misplaced.yaml:11:7: spec.pytorchReplicaSpecs.Master.nodeSelector: unknown field; move it to spec.pytorchReplicaSpecs.Master.template.spec.nodeSelector
  bad/misplaced.yaml:15:50: spec.pytorchReplicaSpecs.Master.template.spec.containers[0].hostNetwork: unknown field; move it to spec.pytorchReplicaSpecs.Master.template.spec.hostNetwork
  bad/misplaced.yaml:15:81: spec.pytorchReplicaSpecs.Master.template.spec.containers[0].resources[example.com/gpu]: unknown field; move it to spec.pytorchReplicaSpecs.Master.template.spec.containers[0].resources.limits[example.com/gpu] or spec.pytorchReplicaSpecs.Master.template.spec.containers[0].resources.requests[example.com/gpu]
  bad/negative-replicas.yaml:10:7: spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)
  bad/no-api-version.yaml:1:1: apiVersion: must be a non-empty string; set apiVersion: kubeflow.org/v1
  bad/no-container.yaml:10:25: spec.mxReplicaSpecs.Worker.template.spec.containers: must have a container; add one named "mxnet"
  bad/no-container.yaml:12:18: spec.mxReplicaSpecs.Scheduler.template.spec.containers: must have a container; add one named "mxnet"
  bad/no-job.yaml:2:1: note: ConfigMap settings of v1 is not a training job and is skipped
  bad/no-job.yaml:6:1: note: Experiment search of kubeflow.org/v1 is not a training job and is skipped
  bad/no-job.yaml: no training job found; add a job of kind MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob, TfJob, MxJob
  bad/no-kind.yaml:2:1: kind: must be a non-empty string; set the kind of the object
  bad/no-kind.yaml:4:1: must be a Kubernetes object; start the document with apiVersion and kind
  bad/no-kind.yaml:7:1: must be a Kubernetes object; start the document with apiVersion and kind
  bad/no-metadata.yaml:2:1: metadata.name: must be set; use at most 63 lower-case letters, digits and '-', starting with a letter and not ending with '-', such as my-job
  bad/no-metadata.yaml:2:1: spec.mxReplicaSpecs: must have at least one role; add one of Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner
  bad/no-mxnet-container.yaml:13:11: spec.mxReplicaSpecs.Worker.template.spec.containers: must have a container named "mxnet"; name the container that runs the training "mxnet"
  bad/no-replicas.yaml:8:3: spec.mxReplicaSpecs: must have at least one replica; set the replicas of a role to 1 or more
  bad/no-worker.yaml:8:3: spec.mxReplicaSpecs: must have a Worker, because an MXTrain job without one never ends; add a Worker
  bad/not-utf-8.yaml: must be UTF-8 text (byte 9 is not UTF-8)
  bad/null-role.yaml:8:3: spec.mxReplicaSpecs: must have at least one role; add one of Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner
  bad/null-role.yaml:9:5: spec.mxReplicaSpecs.Worker: null is dropped by the API server, so mxReplicaSpecs has no Worker; set a value or remove it
  bad/null-role.yaml:10:5: spec.mxReplicaSpecs.Server: null is dropped by the API server, so mxReplicaSpecs has no Server; set a value or remove it
  bad/old-version-with-typo.yaml:13:13: spec.mxReplicaSpecs.Worker.template.spec.containers[0].image: must be set; name the image to run
  bad/old-version-with-typo.yaml:14:13: spec.mxReplicaSpecs.Worker.template.spec.containers[0].imagee: unknown field; did you mean image?
  bad/placeholders.yaml:4:12: metadata.name: must be a valid service name (is "<job-name>"); replace the placeholder <job-name>
  bad/placeholders.yaml:8:7: spec.pytorchReplicaSpecs.Worker.replicas: must be an integer (is "$NUM_NODES"); replace the variable first, for example with envsubst
  bad/placeholders.yaml:9:7: spec.pytorchReplicaSpecs.Worker.restartPolicy: unknown value "__POLICY__"; replace the placeholder __POLICY__
  bad/program.py: is a Python program, not a manifest; give a manifest of a job whose command runs the program
  bad/roles-of-another-kind.yaml:6:3: spec.pytorchReplicaSpecs: is a field of PyTorchJob, not of MXJob; set kind: PyTorchJob, or rename the field to mxReplicaSpecs
  bad/second-document.yaml:25:7: spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -2)
  bad/second-document.yaml:39:54: spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -3)
  bad/train-job.yaml:2:1: apiVersion: TrainJob of trainer.kubeflow.org/v1alpha1 is a kind of Kubeflow Trainer 2 and is not served here; leave it to Kubeflow Trainer
  bad/unknown-role.yaml:9:5: spec.mxReplicaSpecs.Chief: MXJob has no role Chief; use one of Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner
  bad/unknown-role.yaml:16:5: spec.mxReplicaSpecs.Wroker: MXJob has no role Wroker; did you mean Worker? use one of Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner
  bad/wrong-case-kind.yaml:3:1: kind: unknown kind "MxJob"; use MXJob of kubeflow.org/v1 or kubeflow.org/v1beta1 or kubeflow.org/v1alpha2
  bad/wrong-fields.yaml:8:15: spec.runPolicy.backofLimit: unknown field; did you mean backoffLimit?
  bad/wrong-fields.yaml:8:31: spec.runPolicy.suspend: must be true or false (is "no")
  bad/wrong-fields.yaml:9:3: spec.mxReplicaSpec: unknown field; did you mean mxReplicaSpecs?
  bad/wrong-fields.yaml:18:13: spec.mxReplicaSpecs.Worker.template.spec.containers[0].comand: unknown field; did you mean command?
  bad/wrong-fields.yaml:19:13: spec.mxReplicaSpecs.Worker.template.spec.containers[0].args: must be a list (is "--lr 0.1"); write [--lr, "0.1"]
  bad/wrong-fields.yaml:20:33: spec.mxReplicaSpecs.Worker.template.spec.containers[0].env[0].value: must be a string (is 1); put it in quotes
  bad/wrong-fields.yaml:20:45: spec.mxReplicaSpecs.Worker.template.spec.containers[0].env[1].name: must be a valid variable name (is "a=b"); use printable ASCII characters other than '='
  bad/wrong-fields.yaml:21:22: spec.mxReplicaSpecs.Worker.template.spec.containers[0].ports[0].containerPort: must be from 1 to 65535 (is 70000)
  bad/wrong-fields.yaml:21:46: spec.mxReplicaSpecs.Worker.template.spec.containers[0].ports[1].containerPort: must be an integer (is "http")
  bad/wrong-fields.yaml:22:34: spec.mxReplicaSpecs.Worker.template.spec.containers[0].resources.limits.memory: must be a quantity (is "4GB"); did you mean 4G or 4Gi?
  bad/wrong-fields.yaml:22:47: spec.mxReplicaSpecs.Worker.template.spec.containers[0].resources.limits.cpu: must be at least 0 (is -1)
  bad/wrong-fields.yaml:22:57: spec.mxReplicaSpecs.Worker.template.spec.containers[0].resources.request: unknown field; did you mean requests?
  bad/wrong-version.yaml:2:1: apiVersion: unknown API version "kubeflow.org/v2" of MXJob; use one of kubeflow.org/v1, kubeflow.org/v1beta1, kubeflow.org/v1alpha2
  bad/yes-is-true.yaml:13:29: spec.mxReplicaSpecs.Scheduler.template.spec.containers[0].env[0].value: must be a string (YAML reads yes as the boolean true); put it in quotes
  bad/yes-is-true.yaml:13:29: spec.mxReplicaSpecs.Worker.template.spec.containers[0].env[0].value: must be a string (YAML reads yes as the boolean true); put it in quotes
  $ for file in bad/*; do grep -q "^$file" messages || echo "$file is not rejected"; done
  $ grep '; .*; ' messages
  [1]

Missing files are reported.

  $ training-operator render no/such/file.yaml
  ! no/such/file.yaml: no such file
  [2]
  $ mkdir empty; touch empty/mod.rs; training-operator render empty
  ! empty: contains no *.yaml, *.yml or *.json file
  [2]
  $ printf 'a: 1\na: 2\n' | training-operator render -
  ! <stdin>:2:1: duplicate key a, first in line 1; keep one
  [2]

One bad file keeps all jobs from being printed.

  $ training-operator render cases/single-worker.yaml bad/negative-replicas.yaml bad/no-worker.yaml
  ! bad/negative-replicas.yaml:10:7: spec.mxReplicaSpecs.Worker.replicas: must be at least 0 (is -1)
  ! bad/no-worker.yaml:8:3: spec.mxReplicaSpecs: must have a Worker, because an MXTrain job without one never ends; add a Worker
  [2]

Usage errors have suggestions.

  $ training-operator rendr
  ! error: unrecognized subcommand 'rendr'
  !
  !   tip: a similar subcommand exists: 'render'
  !
  ! Usage: training-operator <COMMAND>
  !
  ! For more information, try '--help'.
  [2]
  $ training-operator render
  ! error: the following required arguments were not provided:
  !   <FILE>...
  !
  ! Usage: training-operator render <FILE>...
  !
  ! For more information, try '--help'.
  [2]
  $ training-operator 2>&1 | sed -n 1p
  Run training jobs on Kubernetes, and check or preview them without a cluster
  [2]
  $ training-operator render x --output toml
  ! error: invalid value 'toml' for '--output <OUTPUT>'
  !   [possible values: yaml, json]
  !
  ! For more information, try '--help'.
  [2]
  $ training-operator run job.yaml
  ! training-operator: run: runs the operator of a cluster and takes no file; to run a job on this machine: training-operator local run job.yaml
  [2]

A file cannot write to the terminal.

  $ printf 'apiVersion: kubeflow.org/v1\nkind: MXJob\n"\\e[31m": 1\n' | training-operator render - 2>&1 | cat -v
  <stdin>:1:1: metadata.name: must be set; use at most 63 lower-case letters, digits and '-', starting with a letter and not ending with '-', such as my-job
  <stdin>:1:1: spec.mxReplicaSpecs: must have at least one role; add one of Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner
  <stdin>:3:1: [\u{1b}[31m]: unknown field; use one of spec, status, or remove it
  [2]
