//! Which manifests are in the shape of the stand-alone operator.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use training_job::TrainingJob;
use training_job_mxnet::{MXJob, MXJobSpec};

#[test]
fn a_policy_at_the_top_makes_the_shape_and_one_in_its_place_unmakes_it() {
    let is_inline = |fields: &str| {
        let spec: MXJobSpec = serde_saphyr::from_str(&format!("jobMode: MXTrain\n{fields}")).unwrap();
        spec.is_inline()
    };
    for field in [
        "cleanPodPolicy: All",
        "ttlSecondsAfterFinished: 9",
        "activeDeadlineSeconds: 9",
        "backoffLimit: 9",
        "schedulingPolicy: {queue: a}",
    ] {
        assert!(is_inline(field), "{field}");
        // These the stand-alone operator did not have.
        assert!(
            is_inline(&format!("{field}\nrunPolicy: {{suspend: true}}")),
            "{field}"
        );
        assert!(
            is_inline(&format!("{field}\nrunPolicy: {{restartScope: Job}}")),
            "{field}"
        );
        assert!(
            is_inline(&format!("{field}\nrunPolicy: {{layout: Compact}}")),
            "{field}"
        );
        assert!(
            !is_inline(&format!("{field}\nrunPolicy: {{backoffLimit: 1}}")),
            "{field}"
        );
        assert!(!is_inline(&format!("runPolicy: {{{field}}}")), "{field}");
    }
    assert!(!is_inline("") && !is_inline("schedulerName: volcano") && !is_inline("runPolicy: {}"));
}

#[test]
fn a_field_is_named_where_it_counts() {
    let named = |fields: &str, field: &str| {
        let spec = format!("jobMode: MXTrain\n{fields}");
        let job = MXJob::new("job", serde_saphyr::from_str(&spec).unwrap());
        job.run_policy_field(field)
    };
    for (field, value) in [
        ("cleanPodPolicy", "All"),
        ("ttlSecondsAfterFinished", "9"),
        ("activeDeadlineSeconds", "9"),
        ("backoffLimit", "9"),
        ("schedulingPolicy", "{queue: a}"),
    ] {
        let (top, nested) = (
            format!("{field}: {value}"),
            format!("runPolicy: {{{field}: {value}}}"),
        );
        assert_eq!(named(&top, field), format!("spec.{field}"));
        assert_eq!(named(&nested, field), format!("spec.runPolicy.{field}"));
        assert_eq!(
            named(&format!("{top}\n{nested}"), field),
            format!("spec.runPolicy.{field}")
        );
        assert_eq!(named("", field), format!("spec.runPolicy.{field}"));
    }
    assert_eq!(named("backoffLimit: 9", "suspend"), "spec.runPolicy.suspend");
}
