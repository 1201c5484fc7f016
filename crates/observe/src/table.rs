//! A table of bounded capacity: the entry used longest ago is evicted.

use core::hash::Hash;
use core::num::NonZeroUsize;
use lru::LruCache;

/// Least recently used entries leave when it is full. Grows as needed; a capacity of 0 counts as 1.
#[derive(Debug)]
pub struct Table<K: Hash + Eq, V> {
    entries: LruCache<K, V>,
    capacity: NonZeroUsize,
}

impl<K: Hash + Eq, V> Table<K, V> {
    /// An empty table.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            // The cache would take room for all its entries at once; there may be many tables, and most stay small.
            entries: LruCache::unbounded(),
            capacity: NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN),
        }
    }

    /// Entry of `key`, which counts as used.
    pub fn get(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// Entry of `key`, which does not count as used.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.entries.peek(key)
    }

    /// Sets the entry of `key`. Returns the other entry that had to leave for it.
    pub fn put(&mut self, key: K, value: V) -> Option<(K, V)> {
        let full = self.entries.len() >= self.capacity.get() && !self.entries.contains(&key);
        let evicted = if full { self.entries.pop_lru() } else { None };
        self.entries.put(key, value);
        evicted
    }

    /// Takes the entry of `key` out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.pop(key)
    }

    /// Entry of `key`, made by `make` where there is none, whatever the capacity; it counts as used.
    pub fn get_or_make(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        self.entries.get_or_insert_mut(key, make)
    }

    /// Takes the entry out that was used longest ago.
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
    fn what_was_used_longest_ago_leaves() {
        let mut table = Table::new(2);
        assert_eq!(table.put(1, 'a'), None);
        assert_eq!(table.put(2, 'b'), None);
        assert_eq!(table.get(&1), Some(&mut 'a'));
        assert_eq!(table.peek(&2), Some(&'b'), "a peek is no use");
        assert_eq!(table.put(2, 'B'), None, "no new entry");
        assert_eq!(table.put(3, 'c'), Some((1, 'a')));
        assert_eq!((table.len(), table.remove(&2)), (2, Some('B')));
        assert_eq!(table.put(4, 'd'), None);
    }

    #[test]
    fn a_capacity_of_nothing_is_one() {
        let mut table = Table::new(0);
        assert_eq!(
            (table.put(1, ()), table.put(2, ()), table.len()),
            (None, Some((1, ())), 1)
        );
    }
}
