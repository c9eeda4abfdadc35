The old side may be missing or invalid, which is a note. A comment on a pull request has no standard error.

  $ git() { command git -c user.name=A -c user.email=a@example.com "$@"; }
  $ mkdir first && cd first && git init --quiet && echo 'no job' > README.md && git add . && git commit --quiet -m Nothing
  $ mkdir jobs && cp ../cases/sidecar-and-init.yaml jobs/job.yaml
  $ for old in HEAD:jobs HEAD:jobs/job.yaml elsewhere/job.yaml; do
  >     training-operator diff $old jobs | sed -n 1p; echo "exit code $?"
  > done
  MXJob sidecar: added (2 pods)
  exit code 1
  MXJob sidecar: added (2 pods)
  exit code 1
  MXJob sidecar: added (2 pods)
  exit code 1
  ! note: HEAD:jobs does not exist; the old side is empty
  ! note: HEAD:jobs/job.yaml does not exist; the old side is empty
  ! note: elsewhere/job.yaml does not exist; the old side is empty
  $ (sed 's/Worker:/Wroker:/' jobs/job.yaml; echo ---; echo 'not: [') > bad.yaml
  $ training-operator diff bad.yaml jobs | sed -n 1p
  MXJob sidecar: added (2 pods)
  ! bad.yaml:16:5: note: spec.mxReplicaSpecs.Wroker: left out of the old side: MXJob has no role Wroker; did you mean Worker? use one of Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner
  ! bad.yaml:29:6: note: left out of the old side: '[' has no closing bracket; add it
  [1]
  $ training-operator diff bad.yaml jobs --output markdown | sed '/^| Job/,$d'
  ### Training jobs

  Notes about the old side:

  - bad.yaml:16:5: spec.mxReplicaSpecs.Wroker: left out of the old side: MXJob has no role Wroker; did you mean Worker? use one of Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner
  - bad.yaml:29:6: left out of the old side: '\[' has no closing bracket; add it

  Jobs that differ: 1. Objects: 0 changed, 4 added, 0 removed.

  ! bad.yaml:16:5: note: spec.mxReplicaSpecs.Wroker: left out of the old side: MXJob has no role Wroker; did you mean Worker? use one of Scheduler, Server, Worker, TunerTracker, TunerServer, Tuner
  ! bad.yaml:29:6: note: left out of the old side: '[' has no closing bracket; add it
  [1]
  $ training-operator diff gone.yaml jobs --output markdown | sed '/^| Job/,$d'
  ### Training jobs

  Notes about the old side:

  - gone.yaml does not exist; the old side is empty

  Jobs that differ: 1. Objects: 0 changed, 4 added, 0 removed.

  ! note: gone.yaml does not exist; the old side is empty
  [1]
  $ cd ..

Revisions are compared with files. A path of a revision is read from each directory, and never guessed to be empty.

  $ mkdir -p revisions/jobs/deep revisions/other && cd revisions && git init --quiet
  $ cp ../cases/sidecar-and-init.yaml 'jobs/deep/a b.yaml' && echo 'no job' > jobs/README.md
  $ git add . && git commit --quiet -m 'A job'
  $ training-operator diff HEAD:jobs jobs
  $ sed -i 's/tensorboard:2/tensorboard:3/' 'jobs/deep/a b.yaml'
  $ diff() {
  >     echo "in $1: diff $2 $3"
  >     (cd $1 && training-operator diff "$2" $3) | sed -n '1p; /^+ .*:3$/p'
  >     echo "exit code $?"
  > }
  $ for old in HEAD:jobs HEAD:jobs/ HEAD: 'HEAD:jobs/deep/a b.yaml' HEAD:./jobs HEAD:jobs/../jobs/.; do
  >     diff . "$old" jobs
  > done
  in .: diff HEAD:jobs jobs
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  in .: diff HEAD:jobs/ jobs
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  in .: diff HEAD: jobs
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  in .: diff HEAD:jobs/deep/a b.yaml jobs
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  in .: diff HEAD:./jobs jobs
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  in .: diff HEAD:jobs/../jobs/. jobs
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff . HEAD:. .
  in .: diff HEAD:. .
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff jobs HEAD:. .
  in jobs: diff HEAD:. .
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff jobs 'HEAD:./deep/a b.yaml' 'deep'
  in jobs: diff HEAD:./deep/a b.yaml deep
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff jobs HEAD:.. ..
  in jobs: diff HEAD:.. ..
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff jobs HEAD:../jobs .
  in jobs: diff HEAD:../jobs .
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff jobs/deep HEAD:../.. ../..
  in jobs/deep: diff HEAD:../.. ../..
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff other 'HEAD:../jobs/deep/a b.yaml' ../jobs
  in other: diff HEAD:../jobs/deep/a b.yaml ../jobs
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff . HEAD .
  in .: diff HEAD .
  exit code 2
  ! HEAD: no such file, but a git revision; write HEAD:PATH, or HEAD:. for this directory
  $ diff . HEAD:. HEAD
  in .: diff HEAD:. HEAD
  exit code 2
  ! HEAD: no such file, but a git revision; write HEAD:PATH, or HEAD:. for this directory
  $ diff . HEAD:.. .
  in .: diff HEAD:.. .
  exit code 2
  ! HEAD:..: the path leaves the repository; use a path inside it
  $ diff . HEAD:jbos jobs
  in .: diff HEAD:jbos jobs
  exit code 2
  ! HEAD:jbos: HEAD has no jbos, nor has the working tree; correct it, or use /dev/null for nothing
  $ diff jobs HEAD:deep deep
  in jobs: diff HEAD:deep deep
  exit code 2
  ! HEAD:deep: HEAD has jobs/deep, but not deep, at the root; write HEAD:./deep
  $ diff . nosuch:jobs jobs 2>&1 | sed 's/fatal: .*/fatal: …/'
  in .: diff nosuch:jobs jobs
  nosuch:jobs: no such file, and none in git: fatal: …
  exit code 2
  $ cp ../cases/sidecar-and-init.yaml other/new.yaml
  $ diff . HEAD:other other
  in .: diff HEAD:other other
  MXJob sidecar: added (2 pods)
  exit code 1
  ! note: HEAD:other does not exist; the old side is empty
  $ diff other HEAD:. .
  in other: diff HEAD:. .
  MXJob sidecar: added (2 pods)
  exit code 1
  ! note: HEAD:. does not exist; the old side is empty
  $ git commit --quiet --all -m 'Another image'
  $ diff . HEAD~1:jobs HEAD:jobs
  in .: diff HEAD~1:jobs HEAD:jobs
  MXJob sidecar: changed
  +    image: tensorboard:3
  exit code 1
  $ diff . HEAD:jobs jobs
  in .: diff HEAD:jobs jobs
  exit code 0
  $ cd ..

A revision that a shallow clone lacks gets its remedy.

  $ mkdir origin && cd origin && git init --quiet
  $ for n in 1 2; do
  >     (cat ../cases/sidecar-and-init.yaml; echo "# $n") > job.yaml; git add .; git commit --quiet -m $n
  > done
  $ git clone --quiet --depth=1 file://$PWD ../shallow && cd ../shallow
  $ training-operator diff HEAD~1:. . 2>&1 | sed 's/(.*/(…/'
  HEAD~1:.: HEAD~1 is not in this shallow clone; fetch it with: git fetch --unshallow (…
  [2]
  $ git fetch --quiet --unshallow
  $ training-operator diff HEAD~1:. .
