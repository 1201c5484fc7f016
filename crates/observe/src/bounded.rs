//! A map that never exceeds its limit: the least recently touched entries are evicted, a sixteenth
//! of the table at a time.
//!
//! Eviction is by batches instead of a linked list, so that a hit writes only one time stamp. A
//! value keeps its position for as long as it is kept, and can be addressed by its [`Slot`]. The
//! meaning of the values is up to the users.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Inverse of the share of entries that is evicted when the table is full.
const BATCH: usize = 16;
/// Maximum number of entries: every slot has a number of 32 bits.
const MAX_LIMIT: usize = 1 << 31;

/// Position of an entry. After the entry is evicted another one may get the slot: compare the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(u32);

impl Slot {
    /// Returns the slot's number: below the table's limit.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the slot of that number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }
}

/// Maximum number of octets reserved at a time, though not filled.
const RESERVED: usize = 64 << 20;

/// Reserves room for one more entry, up to `limit`. A full vector grows by 64 MB (`RESERVED`) or by
/// its current length, whichever is more. Reserved memory is not committed before it is filled,
/// while each vector that is outgrown would leave a hole of its own size.
#[inline]
pub fn reserve<T>(entries: &mut Vec<T>, limit: usize) {
    if entries.len() == entries.capacity() {
        let many = (RESERVED / size_of::<T>().max(1)).max(entries.len());
        entries.reserve_exact(many.min(limit.saturating_sub(entries.len())).max(1));
    }
}

/// Data that a search needs about an entry, stored apart from it, so that a search reads few cache
/// lines and no other entry.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// Time of the last access.
    touched: u64,
    /// Hash of its key.
    hash: u64,
}

/// A map with a maximum number of entries, each with the time of its last access.
///
/// Memory: an entry's key and value, and 22 to 28 octets. Once the table is full, adding an entry
/// allocates nothing, except 16 octets per entry while a batch is being chosen.
#[derive(Clone, Debug)]
pub struct Bounded<K, V> {
    limit: usize,
    /// Slots by key.
    slots: HashTable<u32>,
    entries: Vec<Option<(K, V)>>,
    /// By slot.
    notes: Vec<Note>,
    /// Slots whose entries have been evicted.
    free: Vec<u32>,
    evicted: u64,
    hasher: RandomState,
}

impl<K: Hash + Eq, V> Bounded<K, V> {
    /// Keeps at most `limit` values; 0 counts as 1.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            limit: limit.clamp(1, MAX_LIMIT),
            slots: HashTable::new(),
            entries: Vec::new(),
            notes: Vec::new(),
            free: Vec::new(),
            evicted: 0,
            hasher: RandomState::default(),
        }
    }

    /// Returns the number of values kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Returns true if the map is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values evicted because the table was full.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Returns the slot of the value of `key`.
    #[must_use]
    pub fn slot_of<Q>(&self, key: &Q) -> Option<Slot>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        // An empty table needs no hash.
        if self.slots.is_empty() {
            return None;
        }
        self.slot_hashed(key, self.hasher.hash_one(key))
    }

    #[inline]
    fn slot_hashed<Q>(&self, key: &Q, hash: u64) -> Option<Slot>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let found = self.slots.find(hash, |slot| {
            let entry = self.entries.get(*slot as usize).and_then(Option::as_ref);
            entry.is_some_and(|(other, _)| other.borrow() == key)
        });
        found.map(|slot| Slot(*slot))
    }

    /// Returns the key and value at `slot`.
    #[must_use]
    pub fn at(&self, slot: Slot) -> Option<(&K, &V)> {
        let (key, value) = self.entries.get(slot.0 as usize)?.as_ref()?;
        Some((key, value))
    }

    /// Returns the value of `key` and the time of its last access.
    #[must_use]
    pub fn get_touched(&self, key: &K) -> Option<(&V, u64)> {
        let slot = self.slot_of(key)?;
        let (_, value) = self.at(slot)?;
        Some((value, self.notes.get(slot.0 as usize)?.touched))
    }

    /// Returns the value of `key`.
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.at(self.slot_of(key)?).map(|(_, value)| value)
    }

    /// Returns the value of `key`, mutably, without touching it.
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let slot = self.slot_of(key)?;
        let (_, value) = self.entries.get_mut(slot.0 as usize)?.as_mut()?;
        Some(value)
    }

    /// Returns the value of `key`, touched at `at`.
    pub fn touch<Q>(&mut self, key: &Q, at: u64) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let slot = self.slot_of(key)?;
        let note = self.notes.get_mut(slot.0 as usize)?;
        note.touched = at.max(note.touched);
        let (_, value) = self.entries.get_mut(slot.0 as usize)?.as_mut()?;
        Some(value)
    }

    /// Returns the value of `key`, inserting the result of `make` if there is none; it is touched
    /// at `at`.
    ///
    /// If the table is full, a sixteenth of it (at least one value) is evicted first: the least
    /// recently touched.
    pub fn get_or_insert_with(&mut self, key: K, at: u64, make: impl FnOnce() -> V) -> &mut V {
        self.get_or_insert_evicting(key, at, make, |_| ()).1
    }

    /// Like [`get_or_insert_with`](Self::get_or_insert_with), with the slot of the value. `hint` is
    /// its likely slot; if it is right, no search is needed.
    #[inline]
    pub fn get_or_insert_near(
        &mut self,
        hint: Slot,
        key: K,
        at: u64,
        make: impl FnOnce() -> V,
    ) -> (Slot, &mut V) {
        let place = match self.at(hint) {
            Some((there, _)) if *there == key => hint,
            _ => self.place(&key, |_| ()),
        };
        self.put(place, key, at, make)
    }

    /// Like [`get_or_insert_with`](Self::get_or_insert_with), with the slot of the value; `gone` is
    /// called with each key evicted.
    pub fn get_or_insert_evicting(
        &mut self,
        key: K,
        at: u64,
        make: impl FnOnce() -> V,
        gone: impl FnMut(&K),
    ) -> (Slot, &mut V) {
        let place = self.place(&key, gone);
        self.put(place, key, at, make)
    }

    /// Returns the slot of `key`, allocating one if there is none.
    #[inline]
    fn place(&mut self, key: &K, gone: impl FnMut(&K)) -> Slot {
        let hash = self.hasher.hash_one(key);
        match self.slot_hashed(key, hash) {
            Some(slot) => slot,
            None => self.make_room(hash, gone),
        }
    }

    /// Returns the value in a slot that [`place`](Self::place) has found or allocated.
    #[inline]
    fn put(&mut self, slot: Slot, key: K, at: u64, make: impl FnOnce() -> V) -> (Slot, &mut V) {
        let note = &mut self.notes[slot.0 as usize];
        note.touched = at.max(note.touched);
        // A value that was found is already there.
        let entry = &mut self.entries[slot.0 as usize];
        let (_, value) = entry.get_or_insert_with(|| (key, make()));
        (slot, value)
    }

    /// Returns the entries by slot, starting at `from`; with `at`, only those touched after it.
    pub fn touched_after(
        &self,
        from: Slot,
        at: Option<u64>,
    ) -> impl Iterator<Item = (Slot, &K, &V)> {
        let entries = self.entries.iter().zip(&self.notes).zip(0..);
        let entries = entries.skip(from.0 as usize);
        entries.filter_map(move |((entry, note), slot)| {
            let (key, value) = entry.as_ref()?;
            let is_touched = at.is_none_or(|at| note.touched > at);
            is_touched.then_some((Slot(slot), key, value))
        })
    }

    /// Returns every key and value, in unspecified order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries
            .iter()
            .flatten()
            .map(|(key, value)| (key, value))
    }

    /// Allocates a slot for a key with that hash.
    #[cold]
    fn make_room(&mut self, hash: u64, gone: impl FnMut(&K)) -> Slot {
        if self.len() >= self.limit {
            self.evict(gone);
        }
        let note = Note { touched: 0, hash };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.notes[slot as usize] = note;
                slot
            }
            None => {
                reserve(&mut self.entries, self.limit);
                reserve(&mut self.notes, self.limit);
                self.entries.push(None);
                self.notes.push(note);
                self.entries.len() as u32 - 1
            }
        };
        let notes = &self.notes;
        self.slots
            .insert_unique(hash, slot, |slot| notes[*slot as usize].hash);
        Slot(slot)
    }

    /// Evicts a sixteenth of a full table, the least recently touched entries; among equals, those
    /// in the lower slots.
    fn evict(&mut self, mut gone: impl FnMut(&K)) {
        // Only called if the table is full: no slot is free.
        let touched = self.notes.iter().map(|note| note.touched);
        let mut ages: Vec<(u64, u32)> = touched.zip(0..).collect();
        let count = (self.limit / BATCH).max(1).min(ages.len());
        if count < ages.len() {
            ages.select_nth_unstable(count);
            ages.truncate(count);
        }
        // In slot order, which is faster for memory.
        ages.sort_unstable_by_key(|(_, slot)| *slot);
        for (_, slot) in ages {
            // Dropped in place: values may be large.
            let entry = &mut self.entries[slot as usize];
            if let Some((key, _)) = entry {
                gone(key);
                *entry = None;
                self.evicted += 1;
                self.set_free(slot);
            }
        }
    }

    /// Returns an emptied slot to the free list.
    fn set_free(&mut self, slot: u32) {
        self.free.push(slot);
        let hash = self.notes[slot as usize].hash;
        if let Ok(there) = self.slots.find_entry(hash, |other| *other == slot) {
            there.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_least_recently_touched_entry_is_evicted() {
        let mut table = Bounded::new(2);
        *table.get_or_insert_with('a', 1, || 10) += 1;
        table.get_or_insert_with('b', 2, || 20);
        assert_eq!(table.touch(&'a', 3), Some(&mut 11));
        assert_eq!((table.len(), table.evicted()), (2, 0));
        let mut left = Vec::new();
        let (slot, value) = table.get_or_insert_evicting('c', 4, || 30, |key| left.push(*key));
        assert_eq!((*value, left), (30, vec!['b']));
        assert_eq!(table.at(slot), Some((&'c', &30)));
        assert_eq!(
            (table.get(&'a'), table.get(&'b'), table.evicted()),
            (Some(&11), None, 1)
        );
        let all: BTreeMap<_, _> = table.iter().collect();
        assert_eq!(all, BTreeMap::from([(&'a', &11), (&'c', &30)]));
    }

    #[test]
    fn a_sixteenth_is_evicted_at_a_time_and_slots_are_reused() {
        let mut table = Bounded::new(64);
        for key in 0..64_u64 {
            table.get_or_insert_with(key, 1000 - key, || ());
        }
        table.get_or_insert_with(64, 2000, || ());
        assert_eq!((table.len(), table.evicted()), (61, 4));
        for key in 60..64 {
            assert_eq!(table.get(&key), None, "{key}");
        }
        for key in 65..1000 {
            let (slot, ()) = table.get_or_insert_evicting(key, 2000 + key, || (), |_| ());
            assert!(slot.get() < 64);
        }
        assert!(table.len() <= 64);
    }

    #[test]
    fn a_wrong_hint_does_no_harm() {
        let mut table = Bounded::new(2);
        let (a, _) = table.get_or_insert_near(Slot::new(7), 'a', 1, || 10);
        let (b, value) = table.get_or_insert_near(a, 'b', 2, || 20);
        assert_eq!((*value, a == b), (20, false));
        let (slot, value) = table.get_or_insert_near(a, 'a', 3, || 0);
        *value += 1;
        assert_eq!(slot, a);
        assert_eq!(table.get(&'a'), Some(&11));
        // It was touched: the other one is evicted.
        table.get_or_insert_near(b, 'c', 4, || 30);
        assert_eq!(table.get(&'b'), None);
        assert_eq!((table.get(&'a'), table.get(&'c')), (Some(&11), Some(&30)));
    }

    #[test]
    fn a_limit_of_0_counts_as_1() {
        let mut table = Bounded::new(0);
        assert_eq!(table.get(&1), None);
        table.get_or_insert_with(1, 0, || ());
        table.get_or_insert_with(2, 0, || ());
        assert_eq!((table.len(), table.evicted()), (1, 1));
    }

    proptest! {
        /// Compared with an unbounded map: evicted entries were touched no later than those that
        /// stay.
        #[test]
        fn the_limit_holds_and_the_oldest_entries_are_evicted(
            limit in 1_usize..40,
            keys in proptest::collection::vec(0_u16..60, 1..400),
        ) {
            let mut table = Bounded::new(limit);
            let mut touched = BTreeMap::new();
            for (time, key) in keys.into_iter().enumerate() {
                let time = time as u64 / 3;
                let mut gone = Vec::new();
                let (_, value) = table.get_or_insert_evicting(key, time, || key, |key| gone.push(*key));
                prop_assert_eq!(*value, key);
                let most = gone.iter().map(|key| touched[key]).max();
                for key in gone {
                    prop_assert!(touched.remove(&key).is_some());
                }
                prop_assert!(most.is_none_or(|most| touched.values().all(|kept| most <= *kept)));
                touched.insert(key, time);
                prop_assert!(table.len() <= limit);
                prop_assert_eq!(table.len(), touched.len());
                for key in 0..60 {
                    prop_assert_eq!(table.get(&key).is_some(), touched.contains_key(&key));
                }
            }
        }
    }
}
