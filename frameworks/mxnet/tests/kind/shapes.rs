//! The compatibility mode of a job, and its effects.

use training_job::TrainingJob;
use training_job::api::CleanPodPolicy;
use training_job_mxnet::{Compatibility, MXJob, MXJobSpec};

#[test]
fn a_policy_at_the_top_makes_the_shape_and_one_in_its_place_unmakes_it() {
    let is_inline = |fields: &str| {
        let spec: MXJobSpec = serde_saphyr::from_str(&format!("jobMode: MXTrain\n{fields}")).unwrap();
        spec.compatibility_mode() == Compatibility::MXNetOperator
    };
    for field in [
        "cleanPodPolicy: All",
        "ttlSecondsAfterFinished: 9",
        "activeDeadlineSeconds: 9",
        "backoffLimit: 9",
        "schedulingPolicy: {queue: a}",
    ] {
        assert!(is_inline(field), "{field}");
        // The stand-alone operator did not have these fields.
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
fn compatibility_takes_precedence_over_the_shape() {
    let rules = |fields: &str| {
        let spec: MXJobSpec = serde_saphyr::from_str(&format!("jobMode: MXTrain\n{fields}")).unwrap();
        let job = MXJob::new("job", spec);
        let retried = (1..256).filter(|code| job.spec.compatibility_mode().is_retryable(*code));
        (job.run_policy().clean_pod_policy, retried.collect::<Vec<_>>())
    };
    let stand_alone = (Some(CleanPodPolicy::All), vec![130, 137, 138, 143]);
    let training = (None, (128..256).collect());
    assert_eq!(rules("compatibility: MXNetOperator"), stand_alone);
    assert_eq!(rules("backoffLimit: 1"), stand_alone);
    assert_eq!(rules(""), training);
    let both = "compatibility: MXNetOperator\nrunPolicy: {backoffLimit: 1}";
    assert_eq!(rules(both), stand_alone);
    assert_eq!(
        rules("compatibility: TrainingOperator\nbackoffLimit: 1"),
        training
    );
    // Go clients write an unset string as "".
    assert_eq!(rules("compatibility: ''\nbackoffLimit: 1"), stand_alone);
}

#[test]
fn the_compatibility_mode_is_described_with_its_reason() {
    let since = |version: &str, fields: &str| {
        let spec = serde_saphyr::from_str(&format!("jobMode: MXTrain\n{fields}")).unwrap();
        let text = MXJob::new("job", spec).describe_compatibility(version)?;
        let (start, _) = text.split_once(": ").unwrap();
        Some(start.to_owned())
    };
    let stand_alone = "Rules of the stand-alone mxnet-operator apply, because";
    let training = "Rules of the training operator apply, because";
    for (version, fields, expected) in [
        ("v1", "", None),
        ("v1", "runPolicy: {backoffLimit: 1}", None),
        (
            "v1",
            "backoffLimit: 1",
            Some(format!("{stand_alone} backoffLimit is at the top of the spec")),
        ),
        (
            "v1",
            "compatibility: MXNetOperator",
            Some(format!("{stand_alone} spec.compatibility is MXNetOperator")),
        ),
        (
            "v1beta1",
            "compatibility: MXNetOperator",
            Some(format!("{stand_alone} it was written under v1beta1")),
        ),
        (
            "v1alpha2",
            "compatibility: TrainingOperator",
            Some(format!("{training} spec.compatibility is TrainingOperator")),
        ),
        (
            "v1",
            "backoffLimit: 1\nrunPolicy: {cleanPodPolicy: All}",
            Some(format!("{training} runPolicy sets policies")),
        ),
        (
            "v1",
            "backoffLimit: 1\ncleanPodPolicy: All",
            Some(format!(
                "{stand_alone} cleanPodPolicy, backoffLimit are at the top of the spec"
            )),
        ),
    ] {
        assert_eq!(since(version, fields), expected, "{version} {fields}");
    }
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
