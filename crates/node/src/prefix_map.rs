//! A map from IP prefixes to values, looked up by address: the longest matching prefix.

use fcn_observe::access;
use fcn_wire::pnc::Prefix;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Returns true if `address` is on the list, or the list is empty.
pub(crate) fn is_allowed(list: &[Prefix], address: IpAddr) -> bool {
    list.is_empty() || access::list_contains(list, address)
}

/// A map from prefixes. A look-up probes each prefix length in use once.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefixMap<T> {
    entries: BTreeMap<Prefix, T>,
    /// Number of prefixes of each length.
    lengths: BTreeMap<u8, usize>,
}

impl<T> PrefixMap<T> {
    /// Returns the value of `prefix`, inserting that of `value` if there is none.
    pub(crate) fn get_or_insert(&mut self, prefix: Prefix, value: impl FnOnce() -> T) -> &mut T {
        let lengths = &mut self.lengths;
        self.entries.entry(prefix).or_insert_with(|| {
            *lengths.entry(prefix.bits()).or_default() += 1;
            value()
        })
    }

    pub(crate) fn get_mut(&mut self, prefix: Prefix) -> Option<&mut T> {
        self.entries.get_mut(&prefix)
    }

    pub(crate) fn remove(&mut self, prefix: Prefix) {
        if self.entries.remove(&prefix).is_none() {
            return;
        }
        if let Some(count) = self.lengths.get_mut(&prefix.bits()) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&prefix.bits());
            }
        }
    }

    /// Returns the longest prefix that contains `address`, and its value.
    pub(crate) fn longest(&self, address: IpAddr) -> Option<(Prefix, &T)> {
        self.lengths.keys().rev().find_map(|bits| {
            let prefix = Prefix::new(address, *bits)?;
            Some((prefix, self.entries.get(&prefix)?))
        })
    }
}

impl<T> FromIterator<(Prefix, T)> for PrefixMap<T> {
    /// If there are several values for a prefix, the last one counts.
    fn from_iter<I: IntoIterator<Item = (Prefix, T)>>(entries: I) -> Self {
        let entries = BTreeMap::from_iter(entries);
        let mut lengths = BTreeMap::new();
        for prefix in entries.keys() {
            *lengths.entry(prefix.bits()).or_default() += 1;
        }
        Self { entries, lengths }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefix(octets: [u8; 4], bits: u8) -> Prefix {
        Prefix::new(IpAddr::from(octets), bits).unwrap()
    }

    #[test]
    fn the_last_of_equal_prefixes_counts() {
        let map =
            PrefixMap::from_iter([(prefix([10, 0, 0, 0], 8), 1), (prefix([10, 9, 9, 9], 8), 2)]);
        assert_eq!(map.longest(IpAddr::from([10, 1, 1, 1])).unwrap().1, &2);
        assert!(map.longest(IpAddr::from([0x0a00; 8])).is_none());
    }

    proptest! {
        #[test]
        fn a_look_up_finds_what_a_search_finds(entries in proptest::collection::vec((any::<bool>(), 0u8..4, 0u8..=32), 0..20),
            gone in proptest::collection::vec(0usize..20, 0..5), address: [u8; 4], v6: bool)
        {
            let ip = |v6: bool, octets: [u8; 4]| if v6 {
                let mut whole = [0; 16];
                whole[..4].copy_from_slice(&octets);
                IpAddr::from(whole)
            } else {
                IpAddr::from(octets)
            };
            let entries: BTreeMap<Prefix, usize> = entries.into_iter().enumerate()
                .map(|(i, (v6, first, bits))| (Prefix::new(ip(v6, [first << 6, 0, 0, 0]), bits).unwrap(), i)).collect();
            let mut map = PrefixMap::from_iter(entries.clone());
            let mut left = entries;
            for i in gone {
                if let Some(prefix) = left.keys().nth(i).copied() {
                    left.remove(&prefix);
                    map.remove(prefix);
                }
            }
            let address = ip(v6, address);
            let want = left.iter().filter(|(prefix, _)| prefix.contains(address)).max_by_key(|(prefix, _)| prefix.bits());
            prop_assert_eq!(map.longest(address), want.map(|(prefix, value)| (*prefix, value)));
        }
    }
}
