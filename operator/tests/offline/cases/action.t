These commands are those of the action, the hook of pre-commit and `examples/ci`, on a sample change.

  $ step() {
  >     sed -n "/- name: $1\$/,/- name: /p" $ROOT/action.yaml | sed -n '/^      run:/,/^    - /p' |
  >         sed '/^      run: |$/d; s/^      run: //; /^    - /d; s/^        //'
  > }
  $ run() { bash -ec "$(step "$1")"; echo "$1: exit code $?"; }
  $ git() { command git -c user.name=A -c user.email=a@example.com "$@"; }
  $ export JOBS=jobs SNAPSHOTS=snapshots RUNNER_TEMP=. GITHUB_PATH=/dev/null
  $ sample() {
  >     mkdir -p $1/jobs && cd $1 && git init --quiet && cp $ROOT/operator/tests/cases/sidecar-and-init.yaml jobs/job.yaml &&
  >         training-operator snapshot jobs --dir snapshots && git add . && git commit --quiet -m 'A job' &&
  >         export BASE=$(git rev-parse HEAD)
  > }

The action reviews a change. A bad job fails it.

  $ sample action
  $ step Diff
  git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth=1 origin "$BASE"
  training-operator diff "$BASE:$JOBS" "$JOBS" --output markdown >"$RUNNER_TEMP/comment.md" || [ $? -eq 1 ]
  $ run Validate; run Diff; run Snapshots
  Validate: exit code 0
  Diff: exit code 0
  Snapshots: exit code 0
  $ sed -i s/tensorboard:2/tensorboard:3/ jobs/job.yaml
  $ run Validate; run Diff
  Validate: exit code 0
  Diff: exit code 0
  $ grep tensorboard:3 comment.md
  | MXJob sidecar | worker.containers.tensorboard.image `tensorboard:2` → `tensorboard:3` |
  | worker.containers.tensorboard.image | tensorboard:2 | tensorboard:3 |
  +    image: tensorboard:3
  $ run Snapshots | tail -1
  Snapshots: exit code 1
  ! training-operator: 1 snapshot in snapshots is outdated; run the same command without --check and review the changes
  $ training-operator snapshot jobs --dir snapshots
  $ run Snapshots
  Snapshots: exit code 0
  $ sed -i 's/restartPolicy: Never/restartPolicy: Nevr/' jobs/job.yaml
  $ run Validate
  ::error file=jobs/job.yaml,line=10,col=7::spec.mxReplicaSpecs.Scheduler.restartPolicy: unknown value "Nevr"; did you mean Never? use one of Always, OnFailure, Never, ExitCode
  ::error file=jobs/job.yaml,line=17,col=7::spec.mxReplicaSpecs.Worker.restartPolicy: unknown value "Nevr"; did you mean Never? use one of Always, OnFailure, Never, ExitCode
  Validate: exit code 1
  $ run Diff
  Diff: exit code 1
  ! jobs/job.yaml:10:7: spec.mxReplicaSpecs.Scheduler.restartPolicy: unknown value "Nevr"; did you mean Never? use one of Always, OnFailure, Never, ExitCode
  ! jobs/job.yaml:17:7: spec.mxReplicaSpecs.Worker.restartPolicy: unknown value "Nevr"; did you mean Never? use one of Always, OnFailure, Never, ExitCode
  $ cd ..

It reviews a whole repository in a shallow clone.

  $ sample whole
  $ sed -i s/tensorboard:2/tensorboard:3/ jobs/job.yaml
  $ git commit --quiet --all -m 'Another image'
  $ git clone --quiet --depth=1 file://$PWD ../clone && cd ../clone
  $ JOBS=. run Diff 2>&1 | sed 's/^[0-9a-f]*:/COMMIT:/'
  COMMIT:.: note: 1 file has no training job and is skipped
  .: note: 1 file has no training job and is skipped
  Diff: exit code 0
  $ grep -e tensorboard:3 -e 'does not exist' comment.md
  | MXJob sidecar | worker.containers.tensorboard.image `tensorboard:2` → `tensorboard:3` |
  | worker.containers.tensorboard.image | tensorboard:2 | tensorboard:3 |
  +    image: tensorboard:3
  $ cd ..

The program that the action builds is found by its key, which changes with the code.

  $ mkdir code && touch code/lib.rs && export ACTION=code
  $ find_program() { GITHUB_OUTPUT=output; export GITHUB_OUTPUT; rm -f output; (PATH=$1; run 'Find the program'); cat output; }
  $ find_program "$PATH"
  Find the program: exit code 0
  installed=true
  $ find_program /usr/bin:/bin | tee first | sed 's/key=................$/key=…/'
  Find the program: exit code 0
  installed=false
  key=…
  $ find_program /usr/bin:/bin | cmp - first
  $ echo '// Changed.' > code/lib.rs
  $ find_program /usr/bin:/bin | cmp -s - first
  [1]

The hook of pre-commit runs the installed program.

  $ hook() { sed -n 's/^  entry: //p; s/^  args: \[\(.*\)\]/\1/p' $ROOT/.pre-commit-hooks.yaml | paste -sd ' '; }
  $ grep language: $ROOT/.pre-commit-hooks.yaml
    language: script
  $ hook
  tools/pre-commit-hook validate .
  $ sample pre-commit
  $ $ROOT/$(hook)
  .: note: 1 file has no training job and is skipped
  1 valid job, 0 errors, 0 warnings
  $ sed -i 's/kind: MXJob/&\nspek: {}/' jobs/job.yaml
  $ $ROOT/$(hook) | tail -1
  0 valid jobs, 1 error, 0 warnings
  [1]
  $ cd ..

It builds a missing program once. A stand-in for cargo installs what the real one would: the program of the package in the folder.

  $ mkdir -p checkout/{tools,operator/review/src,bin} && cd checkout
  $ for file in operator/review/{src/main.rs,Cargo.toml} tools/pre-commit-hook; do cp $ROOT/$file $file; done
  $ cat > bin/cargo <<'END'
  > #!/bin/sh
  > while [ $# -gt 0 ]; do case $1 in --root) to=$2;; --path) from=$2;; esac; shift; done
  > [ -f "$from/src/main.rs" ] || exit 101
  > name=$(sed -n 's/^name = "\(.*\)"/\1/p' "$from/Cargo.toml" | head -n 1)
  > mkdir -p "$to/bin"; printf '#!/bin/sh\necho "ran $*"\n' > "$to/bin/$name"; chmod +x "$to/bin/$name"
  > END
  $ chmod +x bin/cargo
  $ PATH=$PWD/bin:/usr/bin:/bin $(hook)
  ran validate .
  ! building training-review, once
  $ PATH=$PWD/bin:/usr/bin:/bin $(hook)
  ran validate .
  $ cd ..

The hook of `examples/ci` rejects bad jobs and stale snapshots.

  $ sample hook
  $ sh $ROOT/examples/ci/pre-commit
  1 valid job, 0 errors, 0 warnings
  $ sed -i s/tensorboard:2/tensorboard:3/ jobs/job.yaml
  $ sh $ROOT/examples/ci/pre-commit | grep stale
  snapshots/job.yaml: stale
  ! training-operator: 1 snapshot in snapshots is outdated; run the same command without --check and review the changes
  [1]
  $ training-operator snapshot jobs --dir snapshots
  $ sh $ROOT/examples/ci/pre-commit
  1 valid job, 0 errors, 0 warnings
  $ sed -i 's/kind: MXJob/&\nspek: {}/' jobs/job.yaml
  $ sh $ROOT/examples/ci/pre-commit
  jobs/job.yaml:4:1: spek: unknown field; did you mean spec?
  0 valid jobs, 1 error, 0 warnings
  [1]

actionlint knows the expressions and contexts of GitHub, and the inputs of the action.

  $ mkdir -p ../lint/.github/workflows ../lint/.training-operator && cd ../lint && git init --quiet
  $ cp $ROOT/examples/ci/review.yaml $ROOT/.github/workflows/{ci,release}.yaml .github/workflows
  $ cp $ROOT/action.yaml .training-operator
  $ $ROOT/target/actionlint/actionlint
  $ sed -i 's/path: jobs/files: jobs/' .github/workflows/review.yaml
  $ $ROOT/target/actionlint/actionlint -oneline
  .github/workflows/review.yaml:20:16: input "files" is not defined in action "Review training jobs" defined at "./.training-operator". available inputs are "comment", "path", "snapshots" [action]
  [1]
