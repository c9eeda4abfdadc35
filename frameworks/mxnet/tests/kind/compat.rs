//! Compares our objects of MXJobs with those of the Go operator v1.8.1 on a real API server. They must be equal byte
//! for byte, except at the paths in [`DIFFERENCES`].

use training_job_mxnet::MXJob;
use training_job_testbed::compare_renders;

/// All differences: the scenario, the place and the reason. A row that matches nothing fails the test.
const DIFFERENCES: &str = "\
* | services.*scheduler-0.spec.clusterIP | its address stays when it restarts
* | services.*tunertracker-0.spec.clusterIP | its address stays when it restarts
mx-byteps | pods.byteps-mxnet-job-worker-0.spec.containers[0].resources.requests | the API server copies the limits
mx-byteps | pods.byteps-mxnet-job-worker-1.spec.containers[0].resources.requests | the API server copies the limits
mx-gang-plugins | pods.job-worker-*.resources.requests | the API server copies the limits
mx-gang-volcano | pods.job-worker-*.resources.requests | the API server copies the limits
mx-gang-volcano-resources | pods.job-*.resources.requests | the API server copies the limits
mx-gang-plugins-other-scheduler | pods.job-worker-*.labels | pods of another scheduler are no members
mx-resources | pods.job-worker-0.spec.containers[0].resources.requests | the API server copies the limits
mx-resources | pods.job-worker-1.spec.containers[0].resources.requests | the API server copies the limits
mx-train-dist | pods.mxnet-job-worker-0.spec.containers[0].resources.requests | the API server copies the limits
mx-tune | pods.auto-tuning-job-tunerserver-0.spec.containers[0].resources.requests | the API server copies the limits
mx-tune-fails | pods.auto-tuning-job-tunerserver-0.spec.containers[0].resources.requests | the API server copies the limits
mx-tune-key | pods.auto-tuning-job-tunerserver-0.spec.containers[0].resources.requests | the API server copies the limits
mx-tune-key | pods.auto-tuning-job-tunerserver-1.spec.containers[0].resources.requests | the API server copies the limits
mx-podspec | pods.job-worker-0.spec.containers[0].livenessProbe | the API server fills it in
mx-podspec | pods.job-worker-0.spec.containers[0].ports[0].hostPort | the API server fills it in
mx-podspec | pods.job-worker-0.spec.priorityClassName | the API server drops an empty value
mx-env-user | pods.job-worker-0.spec.containers[0].env | #41: no variable twice; ours replace the user's of the same name
mx-env-user | pods.job-worker-1.spec.containers[0].env | #41: no variable twice; ours replace the user's of the same name
mx-port-extra | services.job-worker-0.spec.ports[0].protocol | #39: it makes TCP of every protocol
mx-port-unnamed | services.job-worker-0 | #39: the API server refuses its unnamed port; we give it a name
mx-zero-servers | services.job-server-0 | #6: index 0 of no servers is created and deleted forever
mx-foreign-pod | pods.job-worker-0 | #36: somebody else's pod job-worker-0 is there, and stopped its pass
mx-foreign-pod | pods.job-worker-1 | #36: somebody else's pod job-worker-0 is there, and stopped its pass
mx-foreign-pod | services.job-worker- | #36: somebody else's pod job-worker-0 is there, and stopped its pass
mx-hazard-null-role | refused | the API server drops a null role; in a file it is a mistake
mx-invalid-no-jobmode | pods | the CRD refuses it; read from a file, a missing mode is MXTrain
mx-invalid-no-jobmode | services | the CRD refuses it; read from a file, a missing mode is MXTrain
mx-invalid-restart-policy | refused | #45: an unknown restart policy
mx-jobmode-unknown | refused | #14: an unknown mode
mx-name-services-too-long | refused | #42: services cannot have such long names
mx-role-unknown | refused | #14: an unknown role
";

#[test]
fn renders_equal_those_of_the_go_operator_except_for_listed_differences() {
    let compared = compare_renders::<MXJob>(DIFFERENCES);
    assert!(compared > 250, "only {compared} objects were compared");
}
