//! Random numbers that depend only on a seed.

/// A random number generator (SplitMix64). The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a generator for one purpose, identified by `what` and `number`. Its numbers do not depend on draws for
    /// other purposes.
    pub fn about(seed: u64, what: &str, number: u64) -> Self {
        let mut hash = Hash::default();
        hash.add(&seed.to_le_bytes());
        hash.add(what.as_bytes());
        hash.add(&number.to_le_bytes());
        let mut random = Self(hash.value());
        random.draw();
        random
    }

    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The modulo bias is too small to affect a run.
        self.draw().checked_rem(bound).unwrap_or(0)
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Returns true with this probability, in thousandths.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    /// Returns a random item of a slice, which must not be empty.
    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(among.len() as u64)).unwrap_or(0);
        &among[index]
    }
}

/// A hash that is the same on every machine (FNV-1a, 64 bits).
#[derive(Clone, Debug)]
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Adds bytes to the hash.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Returns the hash of all bytes added so far.
    pub fn value(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_a_seed_never_change() {
        // Regression seeds would be useless if these numbers changed.
        let mut random = Random::new(1);
        assert_eq!(random.draw(), 10_451_216_379_200_822_465);
        assert_eq!(random.draw(), 13_757_245_211_066_428_519);
        assert_eq!(Random::about(1, "a", 2).draw(), Random::about(1, "a", 2).draw());
        assert_ne!(Random::about(1, "a", 2).draw(), Random::about(1, "a", 3).draw());
    }

    #[test]
    fn bounds_are_kept() {
        let mut random = Random::new(7);
        for _ in 0..1_000 {
            assert!((3..=5).contains(&random.between(3, 5)));
        }
        assert!(!random.chance(0) && random.chance(1_000));
        assert_eq!(random.below(0), 0);
    }
}
