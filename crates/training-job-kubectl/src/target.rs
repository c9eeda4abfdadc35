//! The job that an argument names: `NAME` or `KIND/NAME`.

use std::fmt;
use std::sync::Arc;

use anyhow::bail;
use training_job_review::{Kind, Kinds};

/// The name of a job, and its possible kinds.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) kinds: Vec<Arc<Kind>>,
    pub(crate) name: String,
}

impl Target {
    /// Reads an argument.
    ///
    /// # Errors
    /// The kind is unknown, or the name is empty.
    pub(crate) fn parse(argument: &str, kinds: &Kinds) -> anyhow::Result<Self> {
        let (kinds, name) = match argument.split_once('/') {
            None => (kinds.to_vec(), argument),
            Some((kind, name)) => match kinds.of_argument(kind) {
                Some(kind) => (vec![kind], name),
                None => {
                    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
                    bail!("unknown kind {kind:?}; use one of {}", names.join(", "))
                }
            },
        };
        if name.is_empty() || name.contains('/') {
            bail!("{argument:?}: must be NAME or KIND/NAME, such as train or mxjob/train");
        }
        Ok(Self {
            kinds,
            name: name.to_owned(),
        })
    }

    /// Returns the kind, if the argument names it, or `job`.
    pub(super) fn noun(&self) -> &str {
        match &self.kinds[..] {
            [only] => only.name(),
            _ => "job",
        }
    }
}

/// The error for a job that does not exist.
#[derive(Debug)]
pub(crate) struct NoSuchJob(pub(super) String);

impl fmt::Display for NoSuchJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoSuchJob {}

/// Returns the only job of this name.
///
/// # Errors
/// The job does not exist, or several jobs have the name.
pub(crate) fn only<T>(
    mut found: Vec<T>,
    target: &Target,
    namespace: &str,
    title: impl Fn(&T) -> String,
) -> anyhow::Result<T> {
    let name = &target.name;
    match (found.pop(), &found[..]) {
        (None, _) => bail!(NoSuchJob(format!(
            "no {} {name:?} in namespace {namespace}; list the jobs with: kubectl training list --namespace {namespace}, \
             or those of all namespaces with -A",
            target.noun()
        ))),
        (Some(only), []) => Ok(only),
        (Some(last), others) => {
            let all: Vec<String> = others.iter().chain([&last]).map(title).collect();
            bail!(
                "{name:?} is the name of {} jobs; use one of {}",
                all.len(),
                all.join(", ")
            )
        }
    }
}
