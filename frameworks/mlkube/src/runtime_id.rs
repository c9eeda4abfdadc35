//! The four characters by which the names of a job's pods differ from those of an earlier job of the same name.

use training_job::{FieldErrors, Rule};

/// The field that has them, if the job says them itself; an object that the old operator has seen does.
const FIELD: &str = "RuntimeId";

/// What is wrong, and what to do.
const BAD: [&str; 2] = [
    "it becomes part of names",
    "use up to 8 lower-case letters and digits, or leave it out",
];
const FIXED: [&str; 2] = [
    "it cannot be changed, since pods are called by it",
    "make another job with it",
];

/// The job's own, or four of `[0-9a-z]` that follow from its UID.
pub(crate) fn of(own: Option<&str>, uid: Option<&str>) -> String {
    match own.filter(|own| !own.is_empty()) {
        Some(own) => own.to_owned(),
        None => from_uid(uid.unwrap_or_default()),
    }
}

/// FNV-1a, in base 36.
fn from_uid(uid: &str) -> String {
    let hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let digit = |place: u32| char::from_digit(((hash >> 8) / 36_u64.pow(place) % 36) as u32, 36);
    (0..4).filter_map(digit).collect()
}

/// Adds an error if it cannot be part of a name.
pub(crate) fn check(own: Option<&str>, errors: &mut FieldErrors) {
    let fits =
        |own: &str| own.len() <= 8 && own.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if own.is_some_and(|own| !fits(own)) {
        errors.push(format!("spec.{FIELD}"), BAD[0], BAD[1]);
    }
}

/// The same as rules for the API server, of the field that is spelt like this; and that it stays as it is.
pub(crate) fn rules(field: &str) -> [Rule; 2] {
    let fits = format!("!has(self.{field}) || self.{field}.matches(\"^[a-z0-9]{{0,8}}$\")");
    let stays = format!(
        "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    );
    [
        Rule::new(fits, BAD.join("; ")).at(field),
        Rule::new(stays, FIXED.join("; ")).at(field),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_from_the_uid_unless_the_job_has_one() {
        let one = of(None, Some("8a5e0f7e-5f0c-4b6e-9b7d-0a6b3f5f9f10"));
        let other = of(Some(""), Some("8a5e0f7e-5f0c-4b6e-9b7d-0a6b3f5f9f11"));
        assert!(one != other, "{one} {other}");
        for id in [&one, &other] {
            assert!(id.len() == 4 && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
        }
        assert_eq!(one, of(None, Some("8a5e0f7e-5f0c-4b6e-9b7d-0a6b3f5f9f10")));
        assert_eq!(of(Some("x7f2"), Some("any")), "x7f2");
    }
}
