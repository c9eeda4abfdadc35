The template is the example, so a package of the example's names is the example.

  $ training-operator new-kind FarmJob farm-operator
  farm-operator: a package for FarmJob. Its job runs on this machine, and its tests pass:
    cd farm-operator
    cargo run -- local run jobs/primes.yaml
    cargo test
  $ for file in .gitignore Dockerfile README.md crd.yaml jobs/farm.py snapshots/primes.snap tests/local.rs; do
  >     cmp farm-operator/$file examples/add-a-framework/$file
  > done
  $ grep -E 'path =|testbed' farm-operator/Cargo.toml
  [1]
  $ grep -o 'training-job = { git = "https://' farm-operator/Cargo.toml
  training-job = { git = "https://
  $ training-operator new-kind FarmJob farm-operator
  ! training-operator: farm-operator: exists and is not empty; name another directory
  [2]

Names are those of the kind.

  $ training-operator new-kind DeepHiveJob hive --group hive.example.org
  hive: a package for DeepHiveJob. Its job runs on this machine, and its tests pass:
    cd hive
    cargo run -- local run jobs/primes.yaml
    cargo test
  $ find hive -type f | sort
  hive/.gitignore
  hive/Cargo.toml
  hive/Dockerfile
  hive/README.md
  hive/crd.yaml
  hive/jobs/deephive.py
  hive/jobs/headless.yaml
  hive/jobs/primes.yaml
  hive/snapshots/headless.snap
  hive/snapshots/primes.snap
  hive/src/job.rs
  hive/src/lib.rs
  hive/src/main.rs
  hive/tests/local.rs
  hive/tests/snapshots.rs
  hive/tests/story.rs
  $ grep -rioE 'farm|region: ' hive
  [1]
  $ grep -E 'group = |DEEPHIVE_HEAD' hive/src/job.rs
      group = "hive.example.org",
              variable("DEEPHIVE_HEAD", head.host(0)),

Bad names are rejected.

  $ for kind in Hive hiveJob Job 2Job HoneyBeeHiveJob Hi-veJob; do
  >     training-operator new-kind $kind never || echo "exit code $?"
  > done
  exit code 2
  exit code 2
  exit code 2
  exit code 2
  exit code 2
  exit code 2
  ! error: invalid value 'Hive' for '<KIND>': must be 1 to 10 letters and digits followed by Job, with a capital letter first, such as HiveJob
  !
  ! For more information, try '--help'.
  ! error: invalid value 'hiveJob' for '<KIND>': must be 1 to 10 letters and digits followed by Job, with a capital letter first, such as HiveJob
  !
  ! For more information, try '--help'.
  ! error: invalid value 'Job' for '<KIND>': must be 1 to 10 letters and digits followed by Job, with a capital letter first, such as HiveJob
  !
  ! For more information, try '--help'.
  ! error: invalid value '2Job' for '<KIND>': must be 1 to 10 letters and digits followed by Job, with a capital letter first, such as HiveJob
  !
  ! For more information, try '--help'.
  ! error: invalid value 'HoneyBeeHiveJob' for '<KIND>': must be 1 to 10 letters and digits followed by Job, with a capital letter first, such as HiveJob
  !
  ! For more information, try '--help'.
  ! error: invalid value 'Hi-veJob' for '<KIND>': must be 1 to 10 letters and digits followed by Job, with a capital letter first, such as HiveJob
  !
  ! For more information, try '--help'.
  $ training-operator new-kind HiveJob never --group local
  ! error: invalid value 'local' for '--group <DOMAIN>': must be a domain, such as example.com
  !
  ! For more information, try '--help'.
  [2]
  $ [ ! -e never ]
