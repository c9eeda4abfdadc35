//! Finds the replicas whose success ends a job, by simulating that some of them end while others run.

use std::collections::BTreeSet;

use training_job_program::listed;

/// A set of replicas, each as its role's position and its index.
pub(super) type Replicas = BTreeSet<(usize, usize)>;

/// The condition under which a job succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SuccessCondition {
    /// Alternative conditions. Empty if no replica's success ends the job.
    any_of: Vec<Vec<RoleCondition>>,
}

/// The replicas of one role that must end with exit code 0.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RoleCondition {
    role: usize,
    of: usize,
    needed: RequiredReplicas,
}

/// The number of needed replicas of a role, or the index of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequiredReplicas {
    All,
    Any(usize),
    One(usize),
}

impl SuccessCondition {
    /// Finds the condition for roles of these sizes. `succeeds` must return true if the job succeeds when exactly
    /// these replicas have ended with exit code 0 and the others run. Additional successes must never prevent the
    /// job's success.
    ///
    /// # Errors
    /// The errors of `succeeds`.
    pub(super) fn find<E>(
        sizes: &[usize],
        mut succeeds: impl FnMut(&Replicas) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let all_of = |role: usize| (0..sizes[role]).map(move |index| (role, index));
        let mut any_of = Vec::new();
        let filled: Vec<usize> = (0..sizes.len()).filter(|role| sizes[*role] > 0).collect();
        for &role in &filled {
            if succeeds(&all_of(role).collect())? {
                let part = RoleCondition::find(role, sizes[role], |subset| succeeds(subset))?;
                any_of.push(vec![part]);
            }
        }
        if !any_of.is_empty() {
            return Ok(Self { any_of });
        }
        let mut needed = filled;
        let union = |roles: &[usize]| roles.iter().flat_map(|role| all_of(*role)).collect::<Replicas>();
        if !succeeds(&union(&needed))? {
            return Ok(Self { any_of });
        }
        for role in needed.clone() {
            let others: Vec<_> = needed.iter().copied().filter(|other| *other != role).collect();
            if succeeds(&union(&others))? {
                needed = others;
            }
        }
        let mut parts = Vec::new();
        for &role in &needed {
            let others: Vec<_> = needed.iter().copied().filter(|other| *other != role).collect();
            let others = union(&others);
            let part = RoleCondition::find(role, sizes[role], |subset| {
                succeeds(&subset.union(&others).copied().collect())
            })?;
            parts.push(part);
        }
        any_of.push(parts);
        Ok(Self { any_of })
    }

    /// Returns true if the job succeeds when these replicas have ended with exit code 0.
    #[cfg(test)]
    pub(super) fn holds(&self, ended: &Replicas) -> bool {
        self.any_of.iter().any(|parts| {
            parts.iter().all(|part| {
                let of_role = ended.iter().filter(|(role, _)| *role == part.role);
                match part.needed {
                    RequiredReplicas::All => of_role.count() == part.of,
                    RequiredReplicas::Any(count) => of_role.count() >= count,
                    RequiredReplicas::One(index) => ended.contains(&(part.role, index)),
                }
            })
        })
    }

    /// Describes the condition as text. `names` are the roles' names, in the order of their sizes.
    pub(super) fn describe(&self, names: &[String]) -> String {
        if self.any_of.is_empty() {
            return "by a rule of the kind only, if at all: exit code 0 of all replicas does not end the job.".to_owned();
        }
        let conditions = self.any_of.iter().map(|parts| {
            let is_one = matches!(&parts[..], [part] if part.is_one());
            let parts: Vec<_> = parts
                .iter()
                .map(|part| part.describe(&names[part.role]))
                .collect();
            format!("{} {}", listed(&parts), if is_one { "has" } else { "have" })
        });
        let conditions: Vec<_> = conditions.collect();
        let named: BTreeSet<_> = self.any_of.iter().flatten().map(|part| part.role).collect();
        let is_all = |part: &RoleCondition| part.needed == RequiredReplicas::All;
        if let ([parts], true) = (&self.any_of[..], named.len() == names.len() && names.len() > 1)
            && parts.iter().all(is_all)
        {
            return "when all replicas have ended with exit code 0.".to_owned();
        }
        let only =
            matches!(&self.any_of[..], [parts] if parts.len() == names.len() && parts.iter().all(is_all));
        format!(
            "when {} ended with exit code 0{}.",
            conditions.join(" ended with exit code 0, or "),
            if only { "" } else { ", regardless of the others" }
        )
    }
}

impl RoleCondition {
    /// Finds the needed replicas of a role whose replicas together are sufficient.
    fn find<E>(
        role: usize,
        of: usize,
        mut succeeds: impl FnMut(&Replicas) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let mut enough =
            |indices: std::ops::Range<usize>| succeeds(&indices.map(|index| (role, index)).collect());
        let part = |needed| RoleCondition { role, of, needed };
        // Bisects for the smallest sufficient number of first replicas.
        let (mut too_few, mut first) = (0, of);
        while first - too_few > 1 {
            let middle = too_few + (first - too_few) / 2;
            if enough(0..middle)? {
                first = middle;
            } else {
                too_few = middle;
            }
        }
        if first == of && of > 1 && !enough(of - 1..of)? {
            return Ok(part(RequiredReplicas::All));
        }
        let last = first - 1;
        if of == 1 {
            return Ok(part(RequiredReplicas::All));
        }
        if first == 1 {
            let others = enough(of - 1..of)? && enough(of / 2..of / 2 + 1)?;
            return Ok(part(if others {
                RequiredReplicas::Any(1)
            } else {
                RequiredReplicas::One(0)
            }));
        }
        if enough(last..first)? {
            return Ok(part(RequiredReplicas::One(last)));
        }
        Ok(part(if enough(of - first..of)? {
            RequiredReplicas::Any(first)
        } else {
            RequiredReplicas::All
        }))
    }

    fn is_one(&self) -> bool {
        self.of == 1 || matches!(self.needed, RequiredReplicas::One(_) | RequiredReplicas::Any(1))
    }

    fn describe(&self, name: &str) -> String {
        match (self.needed, self.of) {
            (_, 1) => format!("{name}-0"),
            (RequiredReplicas::One(index), _) => format!("{name}-{index}"),
            (RequiredReplicas::All, of) => format!("all {of} replicas of {name}"),
            (RequiredReplicas::Any(1), of) => format!("any one of the {of} replicas of {name}"),
            (RequiredReplicas::Any(count), of) => format!("any {count} of the {of} replicas of {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn describe(sizes: &[usize], rule: impl Fn(&Replicas) -> bool) -> String {
        let names = ["a", "b"].map(str::to_owned);
        let found = SuccessCondition::find(sizes, |ended| Ok::<_, Infallible>(rule(ended))).unwrap();
        found.describe(&names[..sizes.len()])
    }

    #[test]
    fn each_rule_has_its_sentence() {
        let of = |ended: &Replicas, role| ended.iter().filter(|(r, _)| *r == role).count();
        let when = |text: &str| format!("when {text} ended with exit code 0, regardless of the others.");
        assert_eq!(describe(&[1, 3], |e| of(e, 0) == 1), when("a-0 has"));
        let all_of_one = "when all 3 replicas of a have ended with exit code 0.";
        assert_eq!(describe(&[3], |e| of(e, 0) == 3), all_of_one);
        assert_eq!(
            describe(&[3], |e| of(e, 0) > 0),
            when("any one of the 3 replicas of a has")
        );
        assert_eq!(
            describe(&[5], |e| of(e, 0) > 2),
            when("any 3 of the 5 replicas of a have")
        );
        for index in 0..4 {
            let text = when(&format!("a-{index} has"));
            assert_eq!(describe(&[4, 1], |e| e.contains(&(0, index))), text);
        }
        let either = when("a-0 has ended with exit code 0, or all 2 replicas of b have");
        assert_eq!(describe(&[1, 2], |e| of(e, 0) == 1 || of(e, 1) == 2), either);
        let all = "when all replicas have ended with exit code 0.";
        assert_eq!(describe(&[1, 2], |e| of(e, 0) == 1 && of(e, 1) == 2), all);
        assert!(describe(&[1, 2], |_| false).starts_with("by a rule of the kind only"));
    }

    #[test]
    fn a_thousand_replicas_need_few_tries() {
        let mut tries = 0;
        let found = SuccessCondition::find(&[1_000], |ended| {
            tries += 1;
            Ok::<_, Infallible>(ended.len() == 1_000)
        });
        assert!(
            found
                .unwrap()
                .holds(&(0..1_000).map(|index| (0, index)).collect())
        );
        assert!(tries < 20, "{tries}");
    }
}
