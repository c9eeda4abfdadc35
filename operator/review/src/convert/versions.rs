//! The released versions of each kind, from all operators.

use kube_manifest::Node;
use training_job_program::program;
use training_job_review::Unserved;

use super::listed::{self, ListForm};
use super::log::Log;
use super::mapped::{self, MapForm};
use super::tree::has;
use super::{mpi, mxnet, paddle};

/// The current API version of all kinds.
pub(super) const CURRENT_VERSION: &str = "kubeflow.org/v1";

/// A kind of job under one API version.
pub(super) struct Version {
    pub(super) kind: &'static str,
    /// True unless it is the current API version.
    pub(super) is_old: bool,
    form: Form,
}

/// The form of a version's spec.
enum Form {
    /// Roles in a mapping. Former jobs of some kinds have a list instead.
    Roles(Option<&'static ListForm>, &'static MapForm),
    MxNet(&'static ListForm),
    Mpi(mpi::Origin),
    Paddle,
}

/// Returns the version of objects with this API version and kind if it was released.
pub(super) fn find(api_version: &str, kind: &str) -> Option<Version> {
    let (group, version) = api_version.split_once('/')?;
    let is_old = api_version != CURRENT_VERSION;
    let (kind, form) = match (group, kind) {
        ("mxnet.mlkube.io", "MxJob") if version == "v1beta1" => ("MXJob", Form::MxNet(&listed::MX_JOB)),
        ("mlkube.io", "TfJob") if version == "v1beta1" => {
            ("TFJob", Form::Roles(Some(&listed::TF_JOB), &mapped::TENSORFLOW))
        }
        ("tensorflow.org", "TfJob" | "TFJob") if version == "v1alpha1" => ("TFJob", tensorflow()),
        ("kubeflow.org", _) => of_kubeflow(version, kind)?,
        ("xgboostjob.kubeflow.org", "XGBoostJob") if matches!(version, "v1alpha1" | "v1") => {
            ("XGBoostJob", Form::Roles(None, &mapped::XGBOOST))
        }
        ("batch.paddlepaddle.org", "PaddleJob") if version == "v1" => ("PaddleJob", Form::Paddle),
        ("training.kubedl.io", _) if version == "v1alpha1" => of_kubedl(kind)?,
        _ => return None,
    };
    Some(Version { kind, is_old, form })
}

fn tensorflow() -> Form {
    Form::Roles(Some(&listed::TF_JOB_ALPHA), &mapped::TENSORFLOW)
}

fn of_kubeflow(version: &str, kind: &str) -> Option<(&'static str, Form)> {
    let first = ["v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1"];
    let among = |versions: &[&str]| versions.contains(&version);
    Some(match kind {
        "MXJob" if among(&["v1alpha1", "v1alpha2", "v1beta1", "v1"]) => {
            ("MXJob", Form::MxNet(&listed::MXJOB_ALPHA))
        }
        "TFJob" if among(&first) => ("TFJob", tensorflow()),
        // Objects from before the kind was renamed.
        "TfJob" if version == "v1alpha1" => ("TFJob", tensorflow()),
        "PyTorchJob" if among(&first) => (
            "PyTorchJob",
            Form::Roles(Some(&listed::PYTORCHJOB_ALPHA), &mapped::PYTORCH),
        ),
        "XGBoostJob" if among(&["v1alpha1", "v1"]) => ("XGBoostJob", Form::Roles(None, &mapped::XGBOOST)),
        "PaddleJob" if version == "v1" => ("PaddleJob", Form::Roles(None, &mapped::PADDLE)),
        "JAXJob" if version == "v1" => ("JAXJob", Form::Roles(None, &mapped::JAX)),
        mpi::KIND => {
            let origin = match version {
                "v1alpha1" => mpi::Origin::Alpha1,
                "v1alpha2" => mpi::Origin::Alpha2,
                "v2" | "v2beta1" => mpi::Origin::Ssh,
                "v1" => mpi::Origin::Current,
                _ => return None,
            };
            (mpi::KIND, Form::Mpi(origin))
        }
        _ => return None,
    })
}

fn of_kubedl(kind: &str) -> Option<(&'static str, Form)> {
    Some(match kind {
        "TFJob" => ("TFJob", Form::Roles(None, &mapped::KUBEDL_TENSORFLOW)),
        "PyTorchJob" => ("PyTorchJob", Form::Roles(None, &mapped::KUBEDL_PYTORCH)),
        "XGBoostJob" => ("XGBoostJob", Form::Roles(None, &mapped::KUBEDL_XGBOOST)),
        "MPIJob" => ("MPIJob", Form::Mpi(mpi::Origin::KubeDl)),
        _ => return None,
    })
}

/// Kinds of training jobs without a current counterpart, by the end of their group.
const UNSUPPORTED_KINDS: [(&str, &str); 8] = [
    ("kubedl.io", "XDLJob"),
    ("xdl.alibaba.com", "XDLJob"),
    ("kubedl.io", "MarsJob"),
    ("kubedl.io", "ElasticDLJob"),
    ("elasticdl.org", "ElasticDLJob"),
    ("kubeflow.org", "ChainerJob"),
    ("kubeflow.org", "Caffe2Job"),
    ("paddlepaddle.org", "TrainingJob"),
];

/// Returns true if objects with this API version and kind are training jobs that no current kind can run.
pub(super) fn is_unsupported(api_version: &str, kind: &str) -> bool {
    let group = api_version.split('/').next().unwrap_or_default();
    // The kind of the ksonnet packages contains programs, not pods.
    (group, kind) == ("paddlepaddle.org", "PaddleJob")
        || UNSUPPORTED_KINDS
            .iter()
            .any(|(end, known)| *known == kind && group.ends_with(end))
}

/// Describes an object of a version that `convert` reads but that is not served. `file` is the object's file.
pub fn unserved(api_version: &str, kind: &str, file: &str) -> Option<Unserved> {
    if kind == "TrainJob" && api_version.starts_with("trainer.kubeflow.org/") {
        let problem =
            format!("{kind} of {api_version} is a kind of Kubeflow Trainer 2 and is not served here");
        let remedy = "leave it to Kubeflow Trainer".to_owned();
        return Some(Unserved::new(problem, remedy).of_another_program());
    }
    let version = find(api_version, kind).filter(|version| version.is_old)?;
    let by_convert = format!("convert it with: {} convert {file}", program().name);
    let (problem, remedy) = match (&version.form, api_version) {
        (Form::Mpi(mpi::Origin::Ssh), _) => (
            format!("{kind} of {api_version} is a kind of the mpi-operator and is not served here"),
            format!(
                "leave it to the mpi-operator, or {by_convert} (which logs the differences, such as exec instead of SSH)"
            ),
        ),
        (_, "batch.paddlepaddle.org/v1") => (
            format!("{kind} of {api_version} is a kind of the paddle-operator and is not served here"),
            by_convert,
        ),
        (_, kubedl) if kubedl.starts_with("training.kubedl.io") => (
            format!("{kind} of {api_version} is a kind of KubeDL and is not served here"),
            by_convert,
        ),
        _ => (format!("{kind} of {api_version} is no longer served"), by_convert),
    };
    Some(Unserved::new(problem, remedy))
}

impl Version {
    /// Returns true for MPIJobs whose processes start by SSH.
    pub(super) fn is_mpi_by_ssh(&self) -> bool {
        matches!(self.form, Form::Mpi(mpi::Origin::Ssh))
    }

    /// Converts the spec of a job to its current form.
    pub(super) fn convert(&self, job: &mut Node, log: &mut Log<'_>) {
        let is_list = |listed: &ListForm, specs: &str| {
            let spec = job.get("spec");
            spec.is_some_and(|spec| listed.is_form_of(spec) && !has(spec, specs))
        };
        match &self.form {
            Form::Roles(Some(listed), mapped) if is_list(listed, mapped.specs) => {
                listed::convert(job, listed, log);
            }
            Form::Roles(_, mapped) => {
                mapped::convert(job, mapped, self.is_old, log);
            }
            Form::MxNet(listed) if is_list(listed, mapped::MXNET.specs) => listed::convert(job, listed, log),
            Form::MxNet(_) => mxnet::convert(job, self.is_old, log),
            Form::Mpi(origin) => mpi::convert(job, *origin, log),
            Form::Paddle => paddle::convert(job, log),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_released_version_is_known() {
        for (api_version, kind, current) in [
            ("kubeflow.org/v1alpha1", "MXJob", "MXJob"),
            ("mxnet.mlkube.io/v1beta1", "MxJob", "MXJob"),
            ("tensorflow.org/v1alpha1", "TfJob", "TFJob"),
            ("kubeflow.org/v1alpha1", "TfJob", "TFJob"),
            ("kubeflow.org/v1beta2", "TFJob", "TFJob"),
            ("kubeflow.org/v1alpha1", "PyTorchJob", "PyTorchJob"),
            ("kubeflow.org/v2beta1", "MPIJob", "MPIJob"),
            ("xgboostjob.kubeflow.org/v1", "XGBoostJob", "XGBoostJob"),
            ("batch.paddlepaddle.org/v1", "PaddleJob", "PaddleJob"),
            ("training.kubedl.io/v1alpha1", "MPIJob", "MPIJob"),
        ] {
            let version = find(api_version, kind);
            assert!(
                version.is_some_and(|version| version.is_old && version.kind == current),
                "{api_version} {kind}"
            );
        }
        for (api_version, kind) in [
            ("kubeflow.org/v2", "TFJob"),
            ("example.com/v1alpha1", "TFJob"),
            ("v1", "TFJob"),
            ("kubeflow.org/v1alpha1", "Deployment"),
        ] {
            assert!(find(api_version, kind).is_none(), "{api_version} {kind}");
        }
        assert!(is_unsupported("xdl.kubedl.io/v1alpha1", "XDLJob"));
        assert!(!is_unsupported("kubeflow.org/v1", "TFJob"));
    }
}
