Bad files are rejected before the configuration of a cluster is read.

  $ training-operator smoke-test - < /dev/null
  ! training-operator: -: must have one document (has 0)
  [2]
  $ printf 'kind: PyTorchJob\n---\nkind: PyTorchJob\n' | training-operator smoke-test -
  ! training-operator: -: must have one document (has 2)
  [2]
  $ printf 'apiVersion: v1\nkind: Pod\n' | training-operator smoke-test -
  ! training-operator: -: kind: must be one of MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob, TfJob, MxJob (is "Pod")
  [2]
  $ echo 'a: [' | training-operator smoke-test -
  ! training-operator: -: '[' has no closing bracket
  [2]
  $ training-operator smoke-test no-such-job.yaml
  ! training-operator: no-such-job.yaml: No such file or directory (os error 2)
  [2]

A time needs a unit.

  $ training-operator smoke-test --timeout=5 -
  ! error: invalid value '5' for '--timeout <TIME>': must be a duration such as 15s or 1m30s
  !
  ! For more information, try '--help'.
  [2]
