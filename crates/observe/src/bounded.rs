//! A table that never holds more than its limit: what was touched longest ago leaves, a sixteenth of the table at a time.
//!
//! Batches instead of a linked list, so that a hit writes one time stamp beside its value and nothing else. Values stay
//! where they are for as long as they are kept, and can be named by their [`Slot`]. What the values mean is the users'
//! business.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Of how many entries one leaves when the table is full.
const BATCH: usize = 16;
/// Most entries: every slot has a number of 32 bits.
const MAX_LIMIT: usize = 1 << 31;

/// Where an entry is kept. Another entry may get the place once the first has left: compare the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(u32);

impl Slot {
    /// Its number: below the table's limit.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The slot of that number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }
}

/// Most octets that are reserved at a time, though not filled.
const RESERVED: usize = 64 << 20;

/// Makes room for one more entry, of `limit` at most: where there is none, for as many as 64 MB hold, or twice as many as
/// there are. What is reserved takes no memory before it is filled, while each vector that is outgrown would leave a hole
/// as long as itself.
#[inline]
pub fn reserve<T>(entries: &mut Vec<T>, limit: usize) {
    if entries.len() == entries.capacity() {
        let many = (RESERVED / size_of::<T>().max(1)).max(entries.len());
        entries.reserve_exact(many.min(limit.saturating_sub(entries.len())).max(1));
    }
}

/// What a search needs to know of an entry, apart from it: so that it reads few lines of memory, and no other entry.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// When it was touched last.
    touched: u64,
    /// Its key's hash.
    hash: u64,
}

/// At most so many values, by key; each with the time at which it was touched last.
///
/// Memory: an entry's key and value, and 22 to 28 octets. Nothing is allocated for an entry once the table is full, but
/// 16 octets an entry for as long as a batch is being chosen.
#[derive(Clone, Debug)]
pub struct Bounded<K, V> {
    limit: usize,
    /// The slots of the keys.
    slots: HashTable<u32>,
    entries: Vec<Option<(K, V)>>,
    /// By slot.
    notes: Vec<Note>,
    /// Slots whose entries have left.
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

    /// Values kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values that have had to leave because the table was full.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Where the value of `key` is kept.
    #[must_use]
    pub fn slot_of<Q>(&self, key: &Q) -> Option<Slot>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        // What is not there need not be hashed.
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

    /// Key and value at `slot`.
    #[must_use]
    pub fn at(&self, slot: Slot) -> Option<(&K, &V)> {
        let (key, value) = self.entries.get(slot.0 as usize)?.as_ref()?;
        Some((key, value))
    }

    /// The value of `key`, and when it was touched last.
    #[must_use]
    pub fn get_touched(&self, key: &K) -> Option<(&V, u64)> {
        let slot = self.slot_of(key)?;
        let (_, value) = self.at(slot)?;
        Some((value, self.notes.get(slot.0 as usize)?.touched))
    }

    /// The value of `key`.
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.at(self.slot_of(key)?).map(|(_, value)| value)
    }

    /// The value of `key`, to be changed. This does not touch it.
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let slot = self.slot_of(key)?;
        let (_, value) = self.entries.get_mut(slot.0 as usize)?.as_mut()?;
        Some(value)
    }

    /// The value of `key`, which counts as touched at `at`.
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

    /// The value of `key`, made by `make` if there is none; it counts as touched at `at`.
    ///
    /// Where the table is full, a sixteenth of it leaves first (at least one value): those touched longest ago.
    pub fn get_or_insert_with(&mut self, key: K, at: u64, make: impl FnOnce() -> V) -> &mut V {
        self.get_or_insert_evicting(key, at, make, |_| ()).1
    }

    /// The same, and where the value is kept: at `hint`, it may be, so that nobody need search.
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

    /// The same, and where the value is kept; `gone` is told what has left.
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

    /// The slot of `key`, made if there is none.
    #[inline]
    fn place(&mut self, key: &K, gone: impl FnMut(&K)) -> Slot {
        let hash = self.hasher.hash_one(key);
        match self.slot_hashed(key, hash) {
            Some(slot) => slot,
            None => self.make_room(hash, gone),
        }
    }

    /// The value in a slot that [`place`](Self::place) has found or made.
    #[inline]
    fn put(&mut self, slot: Slot, key: K, at: u64, make: impl FnOnce() -> V) -> (Slot, &mut V) {
        let note = &mut self.notes[slot.0 as usize];
        note.touched = at.max(note.touched);
        // A value that was found is in its place already.
        let entry = &mut self.entries[slot.0 as usize];
        let (_, value) = entry.get_or_insert_with(|| (key, make()));
        (slot, value)
    }

    /// Every key and value by slot, from one on, of those that were touched after `at`, where that is asked for.
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

    /// Every key and value, in no useful order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries
            .iter()
            .flatten()
            .map(|(key, value)| (key, value))
    }

    /// A slot for a key with that hash.
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

    /// Lets a sixteenth of a full table go, those touched longest ago; among equals, those in the lower slots.
    fn evict(&mut self, mut gone: impl FnMut(&K)) {
        // It is called where the table is full: no slot is free.
        let touched = self.notes.iter().map(|note| note.touched);
        let mut ages: Vec<(u64, u32)> = touched.zip(0..).collect();
        let count = (self.limit / BATCH).max(1).min(ages.len());
        if count < ages.len() {
            ages.select_nth_unstable(count);
            ages.truncate(count);
        }
        // Slot by slot: memory is faster in that order.
        ages.sort_unstable_by_key(|(_, slot)| *slot);
        for (_, slot) in ages {
            // Dropped in its place: values may be large.
            let entry = &mut self.entries[slot as usize];
            if let Some((key, _)) = entry {
                gone(key);
                *entry = None;
                self.evicted += 1;
                self.set_free(slot);
            }
        }
    }

    /// Has a slot that has been emptied used again.
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
    fn what_was_touched_longest_ago_leaves() {
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
    fn a_sixteenth_leaves_at_a_time_and_slots_are_used_again() {
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
    fn a_hint_finds_what_is_there_and_misleads_nobody() {
        let mut table = Bounded::new(2);
        let (a, _) = table.get_or_insert_near(Slot::new(7), 'a', 1, || 10);
        let (b, value) = table.get_or_insert_near(a, 'b', 2, || 20);
        assert_eq!((*value, a == b), (20, false));
        let (slot, value) = table.get_or_insert_near(a, 'a', 3, || 0);
        *value += 1;
        assert_eq!(slot, a);
        assert_eq!(table.get(&'a'), Some(&11));
        // It was touched: the other one leaves.
        table.get_or_insert_near(b, 'c', 4, || 30);
        assert_eq!(table.get(&'b'), None);
        assert_eq!((table.get(&'a'), table.get(&'c')), (Some(&11), Some(&30)));
    }

    #[test]
    fn a_limit_of_nothing_is_one() {
        let mut table = Bounded::new(0);
        assert_eq!(table.get(&1), None);
        table.get_or_insert_with(1, 0, || ());
        table.get_or_insert_with(2, 0, || ());
        assert_eq!((table.len(), table.evicted()), (1, 1));
    }

    proptest! {
        /// Against a map that forgets nothing: what is gone was touched before everything that stays.
        #[test]
        fn it_keeps_its_limit_and_lets_the_oldest_go(
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
