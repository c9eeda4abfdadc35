//! The four characters that distinguish the names of a job's pods from those of an earlier job of the same name.

use training_job::{Check, Rule, Topology};

/// Returns the job's own runtime ID, or four characters of `[0-9a-z]` that are derived from its UID.
pub(crate) fn of(own: Option<&str>, uid: Option<&str>) -> String {
    match own.filter(|own| !own.is_empty()) {
        Some(own) => own.to_owned(),
        None => from_uid(uid.unwrap_or_default()),
    }
}

/// Returns an FNV-1a hash in base 36.
fn from_uid(uid: &str) -> String {
    let hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let digit = |place: u32| char::from_digit(((hash >> 8) / 36_u64.pow(place) % 36) as u32, 36);
    (0..4).filter_map(digit).collect()
}

/// Returns true if a job may have this id.
pub(crate) fn fits(own: Option<&str>) -> bool {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    own.is_none_or(|own| own.len() <= 8 && own.bytes().all(is_allowed))
}

/// Returns the checks of the field of the spec that has the id: it [fits](fits), and does not change.
pub(crate) fn checks<J>(field: &str, holds: fn(&J, &Topology<'_>) -> bool) -> [Check<J>; 2] {
    let fits = format!("!has(self.{field}) || self.{field}.matches(\"^[a-z0-9]{{0,8}}$\")");
    let stays = format!(
        "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    );
    let invalid = "must be at most 8 lower-case letters and digits, because it is part of names";
    let changed =
        "must not change, because it is part of the names of pods; create another job with the new value";
    [
        Check::field(field, invalid, "correct it, or remove the field", fits, holds),
        Rule::new(stays, changed).at(field).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_id_follows_from_the_uid_unless_the_job_sets_one() {
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
