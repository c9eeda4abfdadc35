//! Jobs whose pods a gang scheduler binds together.

use std::sync::Arc;

use serde_json::{Value, json};
use training_job::api::ConditionType;

use crate::harness::{Act, PlanHarness, Stories, notices};

/// Returns a job of these roles under Volcano. Each container requests a CPU.
fn under_volcano(roles: &str, run_policy: &str) -> PlanHarness {
    asking(PlanHarness::train(roles, run_policy).with_gangs("volcano"))
}

fn under_coscheduling(roles: &str, run_policy: &str) -> PlanHarness {
    asking(PlanHarness::train(roles, run_policy).with_gangs("my-scheduler"))
}

fn asking(mut w: PlanHarness) -> PlanHarness {
    w.edit_pods(|spec| {
        let resources = json!({"requests": {"cpu": "1"}});
        spec.containers[0].resources = Some(serde_json::from_value(resources).unwrap());
    });
    w
}

fn spec(w: &mut PlanHarness) -> Value {
    w.group().expect("there is a PodGroup")["spec"].clone()
}

/// Returns the conditions of a group for which Volcano has found no capacity.
fn unschedulable() -> Value {
    json!([
        {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "m"},
        {"type": "Scheduled", "status": "True", "message": "of an earlier session"},
    ])
}

#[test]
fn pods_are_created_when_volcano_admits_the_group() {
    let mut w = under_volcano("Scheduler=1 Worker=2", "activeDeadlineSeconds: 60");
    w.reconcile();
    let group = json!({"minMember": 3, "minResources": {"cpu": "3"}, "queue": "default"});
    assert_eq!(spec(&mut w), group);
    assert_eq!((w.pod_names().len(), w.service_names().len()), (0, 0));
    assert_eq!(w.state(), "Created");
    let created = w.now;
    assert_eq!(
        w.status().start_time.unwrap().0,
        created,
        "programs give up a job without one"
    );
    assert!(w.status().replica_statuses.is_empty());
    w.after(1_000).phase("Pending");
    assert_eq!((w.pod_names().len(), w.state()), (0, "Created".to_owned()));
    assert_eq!(
        w.status().start_time.unwrap().0,
        created,
        "its deadline does not run"
    );
    w.phase("Inqueue");
    assert_eq!((w.pod_names().len(), w.service_names().len()), (3, 3));
    assert_eq!(w.status().start_time.unwrap().0, w.now);
    let pod = w.pod("worker-1").object();
    let annotations = pod.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["scheduling.k8s.io/group-name"], "job");
    assert_eq!(annotations["volcano.sh/task-spec"], "worker");
    assert_eq!(
        pod.spec.as_ref().unwrap().scheduler_name.as_deref(),
        Some("volcano")
    );
    w.all_running();
    assert_eq!(spec(&mut w), group);
    assert_eq!(w.state(), "Created Running");
}

#[test]
fn coscheduling_has_the_pods_at_once() {
    let mut w = under_coscheduling(
        "Scheduler=1 Worker=2",
        "schedulingPolicy: {scheduleTimeoutSeconds: 30, queue: q, priorityClass: high}",
    );
    w.reconcile();
    let group = json!({"minMember": 3, "minResources": {"cpu": "3"}, "scheduleTimeoutSeconds": 30});
    assert_eq!(spec(&mut w), group);
    let pod = w.pod("worker-1").object();
    let labels = pod.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["scheduling.x-k8s.io/pod-group"], "job");
    assert_eq!(pod.metadata.annotations, None);
    let scheduler = pod.spec.as_ref().unwrap().scheduler_name.as_deref();
    assert_eq!(scheduler, Some("my-scheduler"));
}

#[test]
fn min_available_is_used_up_to_the_number_of_replicas() {
    let policy = "schedulingPolicy: {minAvailable: 2, queue: q, priorityClass: high, minResources: {cpu: 9}}";
    let mut w = under_volcano("Scheduler=1 Worker=2", policy);
    w.reconcile();
    let group =
        json!({"minMember": 2, "minResources": {"cpu": "9"}, "queue": "q", "priorityClassName": "high"});
    assert_eq!(spec(&mut w), group);

    let mut w = under_volcano("Scheduler=1 Worker=2", "schedulingPolicy: {minAvailable: 2}");
    w.reconcile();
    assert_eq!(spec(&mut w)["minResources"], json!({"cpu": "2"}));
    let mut w = under_volcano("Scheduler=1 Worker=2", "schedulingPolicy: {minAvailable: 7}");
    w.reconcile();
    assert_eq!(spec(&mut w)["minMember"], 3);
    let mut w = under_coscheduling("Scheduler=1 Worker=2", "schedulingPolicy: {minAvailable: 0}");
    w.reconcile();
    assert_eq!(spec(&mut w), json!({"minMember": 1}), "its definition takes no 0");
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "").with_gangs("volcano");
    w.reconcile();
    assert_eq!(spec(&mut w)["minResources"], json!({}), "nothing is asked for");
}

#[test]
fn a_group_follows_the_job_and_keeps_fields_of_others() {
    let mut w = under_volcano("Scheduler=1 Worker=2", "");
    w.reconcile();
    w.group().unwrap()["spec"]["queue"] = json!("theirs");
    w.group().unwrap()["spec"]["other"] = json!({"of": "another"});
    w.phase("Inqueue").all_running().scale("Worker", 3).reconcile();
    let group =
        json!({"minMember": 4, "minResources": {"cpu": "4"}, "queue": "theirs", "other": {"of": "another"}});
    assert_eq!(spec(&mut w), group);
    w.scale("Worker", 1).reconcile().finish_deletions().reconcile();
    assert_eq!(spec(&mut w)["minMember"], 2);
    assert_eq!(spec(&mut w)["minResources"], json!({"cpu": "2"}));
}

/// Coscheduling counts only pods that have not ended, so a minimum that includes ended pods could never be reached
/// again.
#[test]
fn members_that_have_ended_are_not_counted() {
    for scheduler in ["volcano", "my-scheduler"] {
        let mut w =
            asking(PlanHarness::train("Worker=3:OnFailure", "restartScope: Replica").with_gangs(scheduler));
        w.edit(|job| {
            let worker = job.spec.replica_specs["Worker"].as_ref().unwrap();
            let mut server = worker.clone();
            let resources = json!({"limits": {"example.com/gpu": 1}});
            server.replicas = Some(1);
            server.template.spec.as_mut().unwrap().containers[0].resources =
                Some(serde_json::from_value(resources).unwrap());
            job.spec.replica_specs.insert("Server".to_owned(), Some(server));
        });
        w.reconcile().phase("Inqueue").all_running();
        let all = json!({"cpu": "3", "example.com/gpu": "1"});
        assert_eq!(spec(&mut w)["minResources"], all, "{scheduler}");
        w.pod("worker-0").succeeds().pod("server-0").succeeds();
        w.reconcile();
        assert_eq!(spec(&mut w)["minMember"], 2, "{scheduler}");
        assert_eq!(
            spec(&mut w)["minResources"],
            json!({"cpu": "2"}),
            "{scheduler}: what nobody asks for any more is gone"
        );
        w.pod("worker-1").exits(137).reconcile();
        assert_eq!(spec(&mut w)["minMember"], 2, "{scheduler}: it comes again");
    }
}

/// Volcano sets a group back to waiting when it loses a pod before any pod runs.
#[test]
fn a_group_that_waits_again_requests_the_missing_members() {
    for (policy, whole) in [("{}", "4"), ("{minResources: {cpu: 9}}", "9")] {
        let policy = format!("restartScope: Replica, schedulingPolicy: {policy}");
        let mut w = under_volcano("Worker=4:OnFailure", &policy);
        w.reconcile().phase("Inqueue");
        for index in 0..4 {
            w.pod(&format!("worker-{index}")).is_scheduled();
        }
        w.reconcile().pod("worker-2").vanishes();
        w.reconcile().phase("Pending");
        assert_eq!(w.pod_names().len(), 4, "the missing one is made at once");
        assert_eq!(spec(&mut w)["minResources"], json!({"cpu": "1"}));
        assert_eq!(spec(&mut w)["minMember"], 4);
        w.group().unwrap()["status"]["conditions"] = unschedulable();
        let waits =
            "PodGroupWaits: PodGroup job waits in queue default for pods 4, cpu 1; Volcano reports: m";
        assert_eq!(notices(&w), [waits]);
        w.pod("worker-2").is_scheduled();
        assert!(notices(&w).is_empty(), "all have their places");
        w.pod("worker-1").deleted_by_user();
        assert!(notices(&w).is_empty(), "nor does one that goes wait");
        w.phase("Inqueue");
        assert_eq!(spec(&mut w)["minResources"], json!({"cpu": whole}));
    }
}

/// Missing pods are created immediately if another pod holds capacity, and not otherwise.
#[test]
fn pods_that_hold_no_room_let_none_in_beside_them() {
    let leaves: [Act; 3] = [
        |w| w.pod("worker-0").deleted_by_user(),
        |w| w.pod("worker-0").succeeds(),
        // A surplus pod, which is deleted now.
        |w| {
            let pod = w.pods.remove("job-worker-0").unwrap();
            w.pods.insert("job-worker-9".to_owned(), pod);
            w.pod("worker-9").object().metadata.name = Some("job-worker-9".to_owned());
            w
        },
    ];
    for (case, leave) in leaves.into_iter().enumerate() {
        let mut w = under_volcano("Scheduler=1 Worker=2:OnFailure", "restartScope: Replica");
        w.reconcile().phase("Inqueue").all_running();
        w.group().unwrap()["status"] = json!({"phase": "Pending"});
        w.pod("scheduler-0").vanishes().pod("worker-1").vanishes();
        leave(&mut w);
        assert!(w.plan().create_pods.is_empty(), "{case}");
        w.group().unwrap()["status"] = json!({"phase": "Inqueue"});
        assert!(!w.plan().create_pods.is_empty(), "{case}");
    }
}

#[test]
fn ends_of_pods_are_seen_while_the_group_waits() {
    let mut w = under_volcano("Scheduler=1 Worker=2:Never", "");
    w.reconcile().phase("Inqueue").all_running().phase("Running");
    w.phase("Pending").pod("worker-1").exits(1).reconcile();
    assert_eq!(w.state(), "Created Failed");

    let mut w = under_volcano("Scheduler=1 Worker=2", "");
    w.reconcile().phase("Inqueue").all_running().phase("Pending");
    w.pod("scheduler-0").succeeds().reconcile().after(2).reconcile();
    assert!(w.status().is(ConditionType::Succeeded));
}

#[test]
fn a_job_that_restarts_waits_for_its_turn_again() {
    let mut w = under_volcano("Scheduler=1 Worker=2:OnFailure", "");
    w.reconcile().phase("Inqueue").all_running().phase("Running");
    // The condition stays when the group is admitted.
    w.group().unwrap()["status"]["conditions"] = unschedulable();
    let uid = |w: &PlanHarness| w.objects.values().next().unwrap()["job"].uid.clone();
    let first = uid(&w);
    w.pod("worker-1").exits(137);
    assert_eq!(w.reconcile().after(5).reconcile().status().recovery.job, 1);
    assert_eq!(uid(&w), first, "the old pods still end");
    assert!(notices(&w).is_empty(), "the old group does not wait");
    w.finish_deletions().reconcile();
    assert_ne!(uid(&w), first, "it queues anew");
    assert_eq!(w.pod_names().len(), 0);
    assert_eq!(w.service_names().len(), 3, "names stay as they are");
    assert_eq!(w.phase("Inqueue").all_running().pod_names().len(), 3);
    assert_eq!(w.state(), "Created Running");
    let second = uid(&w);
    w.pod("worker-1").exits(137).reconcile().after(5).reconcile();
    w.finish_deletions().reconcile();
    assert_ne!(uid(&w), second);
}

/// Sets the scheduler name in the workers' template.
fn name_scheduler(w: &mut PlanHarness, name: &str) {
    w.edit(|job| {
        let worker = job.spec.replica_specs.get_mut("Worker").unwrap();
        let template = &mut worker.as_mut().unwrap().template;
        template.spec.as_mut().unwrap().scheduler_name = Some(name.to_owned());
    });
}

#[test]
fn pods_of_another_scheduler_are_not_members() {
    let mut w = under_volcano("Scheduler=1 Worker=2", "");
    name_scheduler(&mut w, "mine");
    w.scale("Worker", 0).reconcile();
    assert!(notices(&w).is_empty(), "there are none");
    w.scale("Worker", 2).reconcile();
    assert_eq!(spec(&mut w)["minMember"], 1);
    let warning = "SetPodTemplateSchedulerName: Another scheduler is specified when gang-scheduling is enabled and it \
                   will not be overwritten";
    assert_eq!(notices(&w), [warning]);
    w.phase("Inqueue");
    let pod = w.pod("worker-0").object();
    let scheduler = pod.spec.as_ref().unwrap().scheduler_name.as_deref();
    assert_eq!(scheduler, Some("mine"), "it is left as it is");
    assert_eq!(&pod.metadata.annotations, &None, "it is left as it is");
}

#[test]
fn pods_whose_template_names_the_gang_scheduler_are_members() {
    for named in ["volcano", ""] {
        let mut w = under_volcano("Scheduler=1 Worker=2", "");
        name_scheduler(&mut w, named);
        w.reconcile();
        assert_eq!(spec(&mut w)["minMember"], 3, "{named:?}");
        assert!(notices(&w).is_empty(), "{named:?}: {:?}", notices(&w));
    }
}

#[test]
fn a_group_goes_after_the_last_pod_and_comes_again_with_the_job() {
    let mut w = under_volcano("Scheduler=1 Worker=2", "");
    w.reconcile().phase("Inqueue").all_running();
    w.suspend(true).reconcile();
    assert!(w.group().is_some(), "its pods still end");
    w.finish_deletions().reconcile();
    assert!(w.group().is_none());
    assert_eq!(w.suspend(false).reconcile().pod_names().len(), 0);
    assert_eq!(w.phase("Inqueue").all_running().pod_names().len(), 3);

    w.edit(|job| {
        let policy = json!({"cleanPodPolicy": "None"});
        job.spec.run_policy = Some(serde_json::from_value(policy).unwrap());
    });
    w.pod("scheduler-0").succeeds().reconcile().after(2).reconcile();
    assert!(w.status().is(ConditionType::Succeeded));
    assert!(w.group().is_some(), "workers run on");
    w.pod("worker-0").succeeds().pod("worker-1").succeeds();
    w.reconcile();
    assert!(w.group().is_none());
}

#[test]
fn a_group_has_the_jobs_annotations_from_when_it_was_made() {
    let mut w = under_volcano("Scheduler=1 Worker=1", "");
    let annotate = |w: &mut PlanHarness, key: &str, value: &str| {
        let annotations = w.job.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
    };
    annotate(&mut w, "volcano.sh/preemptable", "true");
    annotate(&mut w, "kubectl.kubernetes.io/last-applied-configuration", "{}");
    w.reconcile();
    annotate(&mut w, "note", "later");
    w.reconcile();
    let annotations = &w.objects.values().next().unwrap()["job"].annotations;
    assert_eq!(json!(annotations), json!({"volcano.sh/preemptable": "true"}));
}

#[test]
fn a_waiting_job_has_a_reason() {
    let mut w = under_volcano("Scheduler=1 Worker=1", "schedulingPolicy: {queue: blue}");
    w.reconcile();
    assert!(notices(&w).is_empty(), "a scheduler may take its time");
    assert!(w.plan().requeue.is_some());
    w.after(11);
    let not_seen = "PodGroupWaits: no scheduler has processed PodGroup job; check that the queue blue exists and that Volcano runs";
    assert_eq!(notices(&w), [not_seen]);
    w.phase("Pending");
    let waits = "PodGroupWaits: PodGroup job waits in queue blue for pods 2, cpu 2; Volcano reports";
    let no_reason = " no reason in its status; see the events of the PodGroup, and the state of the queue";
    assert_eq!(notices(&w), [format!("{waits}{no_reason}")]);
    w.group().unwrap()["status"]["conditions"] = unschedulable();
    assert_eq!(notices(&w), [format!("{waits}: m")]);
    w.group().unwrap()["status"]["phase"] = json!("Inqueue");
    w.reconcile();
    assert!(notices(&w).is_empty(), "the condition stays, and tells nothing");
}

/// The scheduler's message for one pod is reported for the group, once all pods have one.
#[test]
fn a_gang_without_nodes_is_reported_in_the_schedulers_words() {
    let mut w = under_coscheduling("Scheduler=1 Worker=2", "");
    w.reconcile();
    let siblings = "0/3 nodes are available: cannot find enough sibling pods, current pods number: 1, minMember of group: 3. \
                    preemption: none";
    for pod in ["scheduler-0", "worker-0", "worker-1"] {
        w.pod(pod).is_not_scheduled("Unschedulable", siblings);
    }
    assert!(notices(&w).is_empty(), "the others are about to come");
    assert!(w.plan().requeue.is_some());
    w.after(10);
    let waits = "PodGroupWaits: PodGroup job waits for pods 3, cpu 3; 3 of 3 pods have no node; ";
    let says = "my-scheduler reports: 0/3 nodes are available: cannot find enough sibling pods, current pods number: 1, minMember of \
                group: 3";
    assert_eq!(notices(&w), [format!("{waits}{says}")]);
    w.pod("scheduler-0").is_scheduled();
    let two = waits.replace("3 of 3", "2 of 3");
    assert_eq!(notices(&w), [format!("{two}{says}")]);
    let mut ended = w.clone();
    ended.pod("worker-1").succeeds();
    let one = waits.replace("3 of 3", "1 of 2");
    assert_eq!(notices(&ended), [format!("{one}{says}")]);
    w.all_running();
    assert!(notices(&w).is_empty());
}

/// The group's notice covers only the nodes of its members.
#[test]
fn other_obstacles_of_pods_of_a_gang_are_reported_for_each() {
    let mut w = under_coscheduling("Scheduler=1 Worker=2", "");
    name_scheduler(&mut w, "mine");
    w.reconcile().pod("scheduler-0").waits("ErrImagePull", "no image");
    w.pod("worker-0").is_not_scheduled("Unschedulable", "no node");
    let told = notices(&w);
    for reason in ["ErrImagePull", "Unschedulable"] {
        assert!(told.iter().any(|notice| notice.starts_with(reason)), "{told:?}");
    }
}

/// The scheduler does not retry when other pods end.
#[test]
fn the_scheduler_of_a_gang_without_nodes_is_notified_of_freed_capacity() {
    let mut w = under_coscheduling("Scheduler=1 Worker=1", "");
    w.reconcile();
    let told = |w: &PlanHarness| {
        let group = &w.objects.values().next().unwrap()["job"];
        group
            .annotations
            .get("training.kubeflow.org/capacity-freed-at")
            .cloned()
    };
    assert!(!w.plan().waits_for_capacity, "its scheduler has not looked yet");
    w.pod("worker-0").is_not_scheduled("SchedulingGated", "gated");
    assert!(!w.plan().waits_for_capacity, "it waits for something else");
    w.pod("worker-0").is_not_scheduled("Unschedulable", "no node");
    w.pod("scheduler-0").is_not_scheduled("Unschedulable", "no node");
    assert!(w.plan().waits_for_capacity);
    // Nudged after 1, 2, 4, 8 … seconds, and then every five minutes.
    let begin = w.now;
    let mut seconds = Vec::new();
    for second in 1..1_000 {
        let before = told(&w);
        w.after(1).reconcile();
        if told(&w) != before {
            seconds.push(second);
        }
    }
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 812]);
    assert_eq!(w.now, begin + jiff::SignedDuration::from_secs(999));

    w.capacity_freed_at = Some(w.now);
    w.reconcile();
    assert_eq!(told(&w), Some(w.now.to_string()));
    // Pods end one after another: the scheduler is nudged once a second.
    w.capacity_freed_at = Some(w.now + jiff::SignedDuration::from_millis(10));
    w.reconcile();
    assert_ne!(told(&w), Some("2026-01-01T00:16:40Z".to_owned()));
    assert_eq!(
        w.plan().requeue.unwrap().at,
        w.now + jiff::SignedDuration::from_secs(1)
    );
    w.after(1).reconcile();
    assert_eq!(told(&w), Some(w.now.to_string()));
    w.all_running();
    assert!(!w.plan().waits_for_capacity);
}

/// An operator that is upgraded while groups wait continues with the pauses of the former one.
#[test]
fn the_annotation_of_an_earlier_operator_is_read() {
    let mut w = under_coscheduling("Scheduler=1 Worker=1", "");
    w.reconcile();
    for pod in ["scheduler-0", "worker-0"] {
        w.pod(pod).is_not_scheduled("Unschedulable", "no node");
    }
    for _ in 0..3 {
        w.after(1).reconcile();
    }
    let next = w.plan().requeue;
    let group = w.objects.values_mut().next().unwrap().get_mut("job").unwrap();
    let annotations = &mut Arc::make_mut(group).annotations;
    let at = annotations
        .remove("training.kubeflow.org/capacity-freed-at")
        .unwrap();
    annotations.insert("training.kubeflow.org/told-of-room".to_owned(), at);
    assert_eq!(w.plan().requeue, next);
    assert!(w.plan().patch_objects.is_empty());
}

#[test]
fn a_job_without_a_gang_scheduler_reports_a_part_that_waits_for_long() {
    let mut w = PlanHarness::train("Scheduler=1 Worker=2", "");
    w.reconcile();
    for worker in ["worker-0", "worker-1"] {
        w.pod(worker).is_not_scheduled("Unschedulable", "no node");
    }
    let partly = |w: &PlanHarness| notices(w).into_iter().find(|n| n.starts_with("PartlyScheduled"));
    w.reconcile().after(400);
    assert_eq!(partly(&w), None, "nothing is held");
    w.pod("scheduler-0").running().reconcile();
    let text = "PartlyScheduled: 2 of 3 pods have had no node for 5 minutes while the other pods occupy theirs; a gang \
                scheduler or a queue starts all pods of a job or none";
    assert_eq!(partly(&w).as_deref(), Some(text));

    let mut w = PlanHarness::train("Scheduler=1 Worker=1", "");
    w.reconcile().pod("scheduler-0").running();
    w.pod("worker-0").is_not_scheduled("Unschedulable", "no node");
    w.reconcile();
    assert_eq!(partly(&w), None);
    assert_eq!(
        w.plan().requeue.unwrap().at,
        w.now + jiff::SignedDuration::from_secs(300)
    );
}
