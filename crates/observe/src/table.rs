//! A table of bounded capacity that evicts the least recently used entry.

use core::hash::Hash;
use core::num::NonZeroUsize;
use lru::LruCache;

/// A table that evicts its least recently used entry when full. Grows on demand; a capacity of 0
/// counts as 1.
#[derive(Debug)]
pub struct Table<K: Hash + Eq, V> {
    entries: LruCache<K, V>,
    capacity: NonZeroUsize,
}

impl<K: Hash + Eq, V> Table<K, V> {
    /// Returns an empty table.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            // The cache would allocate for its full capacity; there may be many tables, and most
            // stay small.
            entries: LruCache::unbounded(),
            capacity: NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN),
        }
    }

    /// Returns the entry of `key`, which counts as used.
    pub fn get(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// Returns the entry of `key`, which does not count as used.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.entries.peek(key)
    }

    /// Sets the entry of `key`. Returns another entry if one was evicted for it.
    pub fn put(&mut self, key: K, value: V) -> Option<(K, V)> {
        let full = self.entries.len() >= self.capacity.get() && !self.entries.contains(&key);
        let evicted = if full { self.entries.pop_lru() } else { None };
        self.entries.put(key, value);
        evicted
    }

    /// Removes and returns the entry of `key`.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.pop(key)
    }

    /// Returns the entry of `key`, inserting the result of `make` if there is none, regardless of
    /// the capacity; it counts as used.
    pub fn get_or_make(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.entries.get_or_insert_mut(key, make)
    }

    /// Removes and returns the least recently used entry.
    pub fn pop_oldest(&mut self) -> Option<V> {
        self.entries.pop_lru().map(|(_, value)| value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_evicted() {
        let mut table = Table::new(2);
        assert_eq!(table.put(1, 'a'), None);
        assert_eq!(table.put(2, 'b'), None);
        assert_eq!(table.get(&1), Some(&mut 'a'));
        assert_eq!(table.peek(&2), Some(&'b'), "a peek does not count as use");
        assert_eq!(table.put(2, 'B'), None, "no new entry");
        assert_eq!(table.put(3, 'c'), Some((1, 'a')));
        assert_eq!((table.len(), table.remove(&2)), (2, Some('B')));
        assert_eq!(table.put(4, 'd'), None);
    }

    #[test]
    fn a_capacity_of_0_counts_as_1() {
        let mut table = Table::new(0);
        assert_eq!(
            (table.put(1, ()), table.put(2, ()), table.len()),
            (None, Some((1, ())), 1)
        );
    }
}
