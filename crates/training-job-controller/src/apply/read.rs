//! Reads pods that the watch does not show.

use std::collections::BTreeMap;

use futures::FutureExt;
use kube::Api;
use kube::core::Status;
use kube_follow::CallError;
use training_job::plan::ChildKind;
use training_job::plan::observed::{NameHolder, PodRecord};

use super::super::cache::children::controller;
use super::super::cache::list_epoch::ListEpoch;
use super::super::cache::partial_child::{Child, PartialChild};
use super::super::steps::ApplyError;
use super::{Applier, call_each};

impl Applier<'_> {
    /// Reads pods by their names, and caches those that the job controls. Returns the holder of each name.
    ///
    /// # Errors
    /// A pod could not be read.
    pub(crate) async fn read_pods(
        &self,
        names: &[String],
    ) -> Result<BTreeMap<String, NameHolder>, ApplyError> {
        let read = |name: &String| {
            let read = name.clone();
            (name.clone(), move || self.read_pod(read).boxed())
        };
        let results = call_each(names.iter().map(read), false).await.into_iter();
        let holders = results.map(|result| result.map(|(holder, name)| (name, holder)));
        holders.collect::<Result<_, _>>().map_err(|(_, problem)| problem)
    }

    async fn read_pod(&self, name: String) -> Result<NameHolder, ApplyError> {
        let (kind, api) = (ChildKind::Pod, self.api::<PodRecord>(ChildKind::Pod));
        let epoch = self.children().epoch(kind);
        let holder = match self.read(kind, &api, &name).await {
            Ok((epoch, pod)) if controller(pod.meta()).is_some_and(|owner| owner.uid == self.owner) => {
                if self.is_labelled(pod.meta()) {
                    self.children().answered::<PodRecord>(kind, &pod, epoch);
                } else {
                    self.children().found::<PodRecord>(kind, &pod, epoch);
                }
                return Ok(NameHolder::Job);
            }
            Ok(_) => NameHolder::Other,
            Err(error) if error.is_not_found(&name) => NameHolder::NoPod,
            Err(error) => return Err(error.into()),
        };
        let cached = self.children().observe(&self.namespace, &self.owner);
        if let Some(pod) = cached.pods.get(&name) {
            self.children()
                .confirm_gone::<PodRecord>(kind, &self.namespace, &name, &pod.uid, epoch);
        }
        Ok(holder)
    }

    /// Reads an object, and returns the list epoch in which the call was sent. A response about another object proves
    /// nothing about this one, so it is an error with the code of a bad gateway.
    pub(super) async fn read<C: Child>(
        &self,
        kind: ChildKind,
        api: &Api<PartialChild<C>>,
        name: &str,
    ) -> Result<(ListEpoch, PartialChild<C>), CallError> {
        let (epoch, there) = self.call_in_epoch(kind, 0, api.get(name)).await?;
        if there.meta().name.as_deref() == Some(name) {
            return Ok((epoch, there));
        }
        let message = format!("the response to the read of {name} is about another object");
        let status = Status::failure(&message, "BadGateway").with_code(502);
        Err(kube::Error::Api(Box::new(status)).into())
    }
}
