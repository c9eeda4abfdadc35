//! The security context of containers that the operator adds to a pod.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Capabilities, Container, PodSpec, SeccompProfile};

/// Gives a security context to the containers of `pod` that its template does not have. The pod security standard
/// `restricted` admits this context wherever it admits the template's own containers. Fields that are set are kept.
///
/// An added container runs as the user that the pod names, or else as the one of the framework's container. Without
/// either it gets no user, because its image may be made for root.
pub(super) fn added_containers(pod: &mut PodSpec, template: Option<&PodSpec>, main: Option<usize>) {
    let own: BTreeSet<&str> = template.map(names).unwrap_or_default();
    let main = main.and_then(|main| template?.containers.get(main)?.security_context.clone());
    let main = main.unwrap_or_default();
    let whole = pod.security_context.clone().unwrap_or_default();
    let inits = pod.init_containers.iter_mut().flatten();
    let added = pod
        .containers
        .iter_mut()
        .chain(inits)
        .filter(|c| !own.contains(&*c.name));
    for container in added {
        let context = container.security_context.get_or_insert_default();
        context.allow_privilege_escalation.get_or_insert(false);
        let none = || Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            ..Capabilities::default()
        };
        context.capabilities.get_or_insert_with(none);
        if whole.seccomp_profile.is_none() {
            context.seccomp_profile.get_or_insert_with(|| SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            });
        }
        take(
            &mut context.run_as_non_root,
            whole.run_as_non_root,
            main.run_as_non_root,
        );
        take(&mut context.run_as_user, whole.run_as_user, main.run_as_user);
        take(&mut context.run_as_group, whole.run_as_group, main.run_as_group);
    }
}

/// Sets `own` to the main container's value, unless it is set or the pod has one for all containers.
fn take<T>(own: &mut Option<T>, of_pod: Option<T>, of_main: Option<T>) {
    if own.is_none() && of_pod.is_none() {
        *own = of_main;
    }
}

fn names(spec: &PodSpec) -> BTreeSet<&str> {
    let inits = spec.init_containers.iter().flatten();
    let all = spec.containers.iter().chain(inits);
    all.map(|container: &Container| &*container.name).collect()
}
