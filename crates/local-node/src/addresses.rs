//! Loopback addresses for pods.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// The port of the claim on a block. It is outside the range that the kernel gives to clients, and no known service
/// uses it.
const CLAIM_PORT: u16 = 64_127;
/// The second byte of the first block. 127.0.x.x and the low numbers belong to resolvers and other tools.
const FIRST_BLOCK: u8 = 64;
const LAST_BLOCK: u8 = 127;
/// The range of the last byte of pods' addresses. The first address of a block is for the claim.
const FIRST_HOST: u8 = 2;
const LAST_HOST: u8 = 254;

/// Assigns one address of 127.0.0.0/8 to each pod name.
///
/// Several agents may run on one machine. Each owns blocks of 253 addresses. The owner of a block holds a socket
/// bound to the block's first address. The kernel gives that address to one process only, and releases it when the
/// process ends.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    claims: Vec<(Block, UdpSocket)>,
    free: Vec<Ipv4Addr>,
    given: BTreeMap<(String, String), Ipv4Addr>,
    taken: BTreeSet<Ipv4Addr>,
}

type Block = (u8, u8);

impl Addresses {
    /// Claims a first block.
    ///
    /// # Errors
    /// No block is free, or this system has no loopback addresses except 127.0.0.1.
    pub(super) fn claim() -> io::Result<Self> {
        let mut addresses = Self::default();
        addresses.claim_block()?;
        Ok(addresses)
    }

    /// Returns the address of the pod `name`, whether or not such a pod exists. A name keeps its address.
    ///
    /// # Errors
    /// All addresses are used and no further block can be claimed.
    pub(super) fn get_or_assign(&mut self, namespace: &str, name: &str) -> io::Result<Ipv4Addr> {
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(address) = self.given.get(&key) {
            return Ok(*address);
        }
        loop {
            if self.free.is_empty() {
                self.claim_block()?;
            }
            let Some(address) = self.free.pop() else { continue };
            if self.taken.insert(address) {
                self.given.insert(key, address);
                return Ok(address);
            }
        }
    }

    /// Returns the address of the pod `name`, whose address in the API is `known`, set by an earlier agent. The
    /// address is kept, unless another agent has claimed its block since.
    ///
    /// # Errors
    /// See [`get_or_assign`](Self::get_or_assign).
    pub(super) fn adopt(&mut self, namespace: &str, name: &str, known: Ipv4Addr) -> io::Result<Ipv4Addr> {
        let [_, high, low, _] = known.octets();
        let is_of_a_block = known.is_loopback() && (FIRST_BLOCK..=LAST_BLOCK).contains(&high);
        let is_own = self.claims.iter().any(|(block, _)| *block == (high, low));
        if is_of_a_block && !is_own && self.claim_this((high, low)).is_err() {
            return self.get_or_assign(namespace, name);
        }
        self.taken.insert(known);
        self.given
            .entry((namespace.to_owned(), name.to_owned()))
            .or_insert(known);
        Ok(known)
    }

    /// Gives the pod `name` an address that another name has as well, unless the pod has one. Returns the pod's address.
    pub(super) fn share(&mut self, namespace: &str, name: &str, address: Ipv4Addr) -> Ipv4Addr {
        let key = (namespace.to_owned(), name.to_owned());
        *self.given.entry(key).or_insert(address)
    }

    fn claim_block(&mut self) -> io::Result<()> {
        let own: BTreeSet<Block> = self.claims.iter().map(|(block, _)| *block).collect();
        let blocks = (FIRST_BLOCK..=LAST_BLOCK).flat_map(|high| (0..=u8::MAX).map(move |low| (high, low)));
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for block in blocks.filter(|block| !own.contains(block)) {
            match self.claim_this(block) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
                claimed => return claimed,
            }
        }
        Err(last)
    }

    fn claim_this(&mut self, (high, low): Block) -> io::Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, high, low, 1), CLAIM_PORT))?;
        self.claims.push(((high, low), socket));
        // Addresses are taken from the end, so the lowest comes last.
        let hosts = (FIRST_HOST..=LAST_HOST).rev();
        self.free
            .extend(hosts.map(|host| Ipv4Addr::new(127, high, low, host)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_address_and_agents_share_none() {
        let mut one = Addresses::claim().unwrap();
        let mut two = Addresses::claim().unwrap();
        let mut seen = BTreeSet::new();
        for pod in 0..600 {
            assert!(seen.insert(one.get_or_assign("ns", &format!("pod-{pod}")).unwrap()));
            assert!(seen.insert(two.get_or_assign("ns", &format!("pod-{pod}")).unwrap()));
        }
        assert!(seen.insert(one.get_or_assign("other", "pod-0").unwrap()));
        let first = one.get_or_assign("ns", "pod-0").unwrap();
        assert!(!seen.insert(first));
        assert!(
            seen.iter()
                .all(|address| address.is_loopback() && address.octets()[1] >= 64)
        );
    }

    #[test]
    fn an_address_that_the_api_knows_is_kept() {
        let mut addresses = Addresses::claim().unwrap();
        let free = *addresses.free.last().unwrap();
        assert_eq!(addresses.adopt("ns", "old", free).unwrap(), free);
        assert_eq!(addresses.get_or_assign("ns", "old").unwrap(), free);
        assert_ne!(addresses.get_or_assign("ns", "new").unwrap(), free);
    }

    #[test]
    fn an_address_is_kept_in_a_block_that_is_free_and_left_in_one_that_is_not() {
        let (mut one, mut two) = (Addresses::claim().unwrap(), Addresses::claim().unwrap());
        let theirs = one.get_or_assign("ns", "a").unwrap();
        let other = two.adopt("ns", "a", theirs).unwrap();
        assert_ne!(other, theirs);
        assert_eq!(two.get_or_assign("ns", "a").unwrap(), other);
        assert_eq!(
            two.adopt("ns", "a", theirs).unwrap(),
            other,
            "the API may not have it yet"
        );
        let free = Ipv4Addr::new(127, LAST_BLOCK, 200, 7);
        assert_eq!(two.adopt("ns", "b", free).unwrap(), free);
        assert_ne!(one.adopt("ns", "b", free).unwrap(), free, "it is claimed");
        // A pod that got no address of a block.
        assert_eq!(
            one.adopt("ns", "c", Ipv4Addr::LOCALHOST).unwrap(),
            Ipv4Addr::LOCALHOST
        );
    }
}
