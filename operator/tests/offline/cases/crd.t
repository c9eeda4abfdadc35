Kinds are left out unless they are named. The cluster may have the separate mpi-operator, and few clusters have jobs of 2017.

  $ training-operator crd --help | tr -s ' \n' ' ' | grep -o 'all kinds but [A-Za-z, ]* and [A-Za-z]*'
  all kinds but MPIJob, TfJob and MxJob
  $ training-operator crd | grep '^  name: '
    name: jaxjobs.kubeflow.org
    name: mxjobs.kubeflow.org
    name: paddlejobs.kubeflow.org
    name: pytorchjobs.kubeflow.org
    name: tfjobs.kubeflow.org
    name: xgboostjobs.kubeflow.org
  $ training-operator crd --kind MPIJob | grep '^  name: '
    name: mpijobs.kubeflow.org
  $ training-operator crd --kind MPIJobs
  ! training-operator: --kind: "MPIJobs" is not supported; must be one of MXJob, TFJob, XGBoostJob, PyTorchJob, JAXJob, PaddleJob, MPIJob, TfJob, MxJob
  [2]

Other files of a directory stay.

  $ mkdir definitions && echo 'resources: []' > definitions/Kustomization
  $ training-operator crd --dir definitions
  $ ls definitions
  Kustomization
  kubeflow.org_jaxjobs.yaml
  kubeflow.org_mxjobs.yaml
  kubeflow.org_paddlejobs.yaml
  kubeflow.org_pytorchjobs.yaml
  kubeflow.org_tfjobs.yaml
  kubeflow.org_xgboostjobs.yaml
  $ cat definitions/Kustomization
  resources: []
