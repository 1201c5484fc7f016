//! The rows: found by key, named by [`RowId`], bounded. What one row holds is in `row.rs`.
//!
//! Past the limit the least recently notified rows leave, a sixteenth of all at a time: so that a notification need not
//! touch the rows before and behind its own in a list.

use super::RowId;
use super::row::Row;
use fcn_observe::RowKey;
use fcn_observe::bounded::reserve;
use fcn_observe::fetch::fetch;
use fcn_observe::hashing::Seeded;
use fcn_wire::Gist;

/// What part of the rows leaves at a time.
const BATCH: usize = 16;

/// No slot.
const NONE: u32 = u32::MAX;
/// Places at first.
const PLACES: usize = 64;
/// Rows that may have to leave are counted in so many steps of time, as a power of two.
const STEP_BITS: u32 = 10;

/// Where a row is, and 32 bits of its key's hash: other rows need not be fetched only to see that they are others. The lower
/// ones of those bits say from which place on it is looked for.
#[derive(Clone, Copy, Debug)]
struct Place {
    tag: u32,
    slot: u32,
}

/// Where a row is looked for: 32 bits of its key's hash.
#[derive(Clone, Copy, Debug)]
pub struct Look(u32);

const FREE: Place = Place { tag: 0, slot: NONE };

/// Rows by key.
#[derive(Debug)]
pub struct Rows {
    seed: Seeded,
    /// A power of two of them, at least an eighth of them free; a row is at the first place from its tag's on that was free.
    places: Vec<Place>,
    slots: Vec<Row>,
    /// When each slot was last used, by `ticks`; 0 for a free one. Apart from the rows, so that it is searched quickly.
    used: Vec<u64>,
    free: Vec<u32>,
    ticks: u64,
    limit: usize,
    evicted: u64,
}

impl Rows {
    /// At most `limit` rows; 0 counts as 1.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            seed: Seeded::default(),
            places: vec![FREE; PLACES],
            slots: Vec::new(),
            used: Vec::new(),
            free: Vec::new(),
            ticks: 0,
            limit: limit.clamp(1, 1 << 31),
            evicted: 0,
        }
    }

    /// The row of `key`, a new one where there is none. It is in the slot `guess`, unless much has changed since that was
    /// guessed.
    #[inline]
    pub fn entry(&mut self, key: RowKey, guess: u32, notification: &Gist) -> (RowId, &mut Row) {
        let slot = if self.holds(guess, &key) {
            guess
        } else {
            let tag = self.tag(&key);
            match self.find(&key, tag) {
                Some(slot) => slot,
                None => self.insert(key, tag, notification),
            }
        };
        self.ticks += 1;
        let at = slot as usize;
        self.used[at] = self.ticks;
        let row = &mut self.slots[at];
        (id(slot, row.generation()), row)
    }

    #[inline]
    fn holds(&self, slot: u32, key: &RowKey) -> bool {
        let used = self.used.get(slot as usize).is_some_and(|used| *used > 0);
        used && self
            .slots
            .get(slot as usize)
            .is_some_and(|row| row.key() == key)
    }

    /// Where a key's row is looked for.
    #[inline]
    #[must_use]
    pub fn look(&self, key: &RowKey) -> Look {
        Look(self.tag(key))
    }

    /// Has that place fetched from memory.
    #[inline]
    pub fn fetch_place(&self, Look(tag): Look) {
        let mask = self.places.len() - 1;
        fetch(&self.places[tag as usize & mask]);
    }

    /// The slot of a key's row, as far as can be told without a look at it; where there is none, none.
    #[inline]
    #[must_use]
    pub fn guess(&self, Look(tag): Look) -> u32 {
        let mut found = self.run(tag).filter(|place| place.tag == tag);
        found.next().map_or(NONE, |place| place.slot)
    }

    /// Has a guessed row fetched from memory.
    #[inline]
    pub fn fetch(&self, guess: u32) {
        if let Some(row) = self.slots.get(guess as usize) {
            row.fetch();
        }
    }

    /// Has fetched what a notification at `at` touches beside that, where the row is read already.
    #[inline]
    pub fn fetch_at(&self, guess: u32, at: u64) {
        if let Some(row) = self.slots.get(guess as usize) {
            row.fetch_at(at);
        }
    }

    #[inline]
    fn tag(&self, key: &RowKey) -> u32 {
        self.seed.of_words(key.words()) as u32
    }

    /// The places from a tag's on, up to the first free one.
    #[inline]
    fn run(&self, tag: u32) -> impl Iterator<Item = Place> {
        let mask = self.places.len() - 1;
        let mut at = tag as usize;
        core::iter::from_fn(move || {
            let place = self.places[at & mask];
            at += 1;
            (place.slot != NONE).then_some(place)
        })
    }

    #[inline]
    fn find(&self, key: &RowKey, tag: u32) -> Option<u32> {
        self.run(tag)
            .filter(|place| place.tag == tag)
            .map(|place| place.slot)
            .find(|slot| self.slots[*slot as usize].key() == key)
    }

    #[cold]
    fn insert(&mut self, key: RowKey, tag: u32, notification: &Gist) -> u32 {
        if self.len() >= self.limit {
            self.evict();
        } else if self.len() >= self.places.len() / 8 * 7 {
            self.spread();
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                let row = &mut self.slots[slot as usize];
                let generation = row.generation().wrapping_add(1);
                *row = Row::new(key, notification, generation);
                slot
            }
            None => {
                reserve(&mut self.slots, self.limit);
                self.slots.push(Row::new(key, notification, 0));
                self.used.push(0);
                (self.slots.len() - 1) as u32
            }
        };
        self.put(Place { tag, slot });
        slot
    }

    fn put(&mut self, place: Place) {
        let mask = self.places.len() - 1;
        let mut at = place.tag as usize & mask;
        while self.places[at].slot != NONE {
            at = (at + 1) & mask;
        }
        self.places[at] = place;
    }

    /// Twice as many places.
    fn spread(&mut self) {
        let len = self.places.len() * 2;
        let before = core::mem::replace(&mut self.places, vec![FREE; len]);
        for place in before {
            if place.slot != NONE {
                self.put(place);
            }
        }
    }

    fn evict(&mut self) {
        let latest = self.latest_to_leave();
        // Slot by slot: memory is faster in that order.
        let used = self.used.iter_mut().zip(&self.slots).zip(0..);
        let leaving: Vec<Place> = used
            .filter(|((used, _), _)| (1..=latest).contains(&**used))
            .map(|((used, row), slot)| {
                *used = 0;
                let tag = self.seed.of_words(row.key().words()) as u32;
                Place { tag, slot }
            })
            .collect();
        let mask = self.places.len() - 1;
        for some in leaving.chunks(BATCH) {
            // Several places at once are on their way from memory.
            for place in some {
                fetch(&self.places[place.tag as usize & mask]);
            }
            for place in some {
                self.take_out(*place);
            }
        }
        self.evicted += leaving.len() as u64;
        self.free.extend(leaving.iter().map(|place| place.slot));
    }

    /// When the last of a sixteenth of the rows was used, those that were used longest ago. No two are used at once.
    fn latest_to_leave(&self) -> u64 {
        let used = || self.used.iter().copied().filter(|used| *used > 0);
        let batch = self.len().div_ceil(BATCH);
        // Most rows are told by counting them; only those in the step that the last of the batch is in are sorted.
        let first = used().min().unwrap_or(0);
        let shift = (u64::BITS - (self.ticks - first).leading_zeros()).saturating_sub(STEP_BITS);
        let step = |at: u64| ((at - first) >> shift) as usize;
        let mut counts = [0_usize; 1 << STEP_BITS];
        for at in used() {
            counts[step(at)] += 1;
        }
        let mut before = 0;
        let last = (counts.iter()).position(|count| {
            before += count;
            before >= batch
        });
        let Some(last) = last else { return self.ticks };
        before -= counts[last];
        let mut among: Vec<u64> = used().filter(|at| step(*at) == last).collect();
        let (_, latest, _) = among.select_nth_unstable(batch - before - 1);
        *latest
    }

    /// Takes a row's place out, and moves those behind it that cannot be found beyond a free one.
    fn take_out(&mut self, leaving: Place) {
        let mask = self.places.len() - 1;
        let mut hole = leaving.tag as usize & mask;
        while self.places[hole].slot != leaving.slot {
            hole = (hole + 1) & mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let place = self.places[at];
            if place.slot == NONE {
                break;
            }
            // How far each is from where it is looked for first.
            let from = at.wrapping_sub(place.tag as usize) & mask;
            if from >= at.wrapping_sub(hole) & mask {
                self.places[hole] = place;
                hole = at;
            }
        }
        self.places[hole] = FREE;
    }

    /// The row of that name, where it is still kept.
    #[must_use]
    pub fn get(&self, id: RowId) -> Option<&Row> {
        let (slot, generation) = (id.0 as u32, (id.0 >> 32) as u32);
        let is_used = *self.used.get(slot as usize)? > 0;
        let row = self.slots.get(slot as usize).filter(|_| is_used)?;
        (row.generation() == generation).then_some(row)
    }

    /// The rows kept.
    pub fn iter(&self) -> impl Iterator<Item = (RowId, &Row)> {
        self.used_since(0)
    }

    /// How often rows were used so far.
    #[must_use]
    pub const fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Those rows that were used since there were so many [`ticks`](Self::ticks).
    pub fn used_since(&self, ticks: u64) -> impl Iterator<Item = (RowId, &Row)> {
        self.used_from(0, ticks)
    }

    /// The rows kept from a [place](RowId::place) on.
    pub fn from(&self, place: u32) -> impl Iterator<Item = (RowId, &Row)> {
        self.used_from(place, 0)
    }

    fn used_from(&self, place: u32, ticks: u64) -> impl Iterator<Item = (RowId, &Row)> {
        let slots = self.slots.iter().zip(&self.used).zip(0..);
        slots
            .skip(place as usize)
            .filter(move |((_, used), _)| **used > ticks)
            .map(|((row, _), slot)| (id(slot, row.generation()), row))
    }

    /// Rows kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Rows gone.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }
}

const fn id(slot: u32, generation: u32) -> RowId {
    RowId((generation as u64) << 32 | slot as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::{Kind, Origin, Qp, Subject};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn gist(qp: u32) -> Gist {
        let sender = [10, 0, 0, 1].into();
        Gist {
            kind: Kind::Cnp,
            origin: Origin::Receiver,
            notifier: [10, 0, 0, 2].into(),
            told: sender,
            sender: Some(sender),
            subject: Subject::SenderQp(Qp::truncate(qp)),
            level: None,
            deepest_queue: None,
            hops: 0,
        }
    }

    proptest! {
        /// Against a map that forgets nothing: what is found is the key's, and those leave that were used longest ago.
        #[test]
        fn rows_are_found_and_the_oldest_leave(
            limit in 1_usize..120,
            keys in proptest::collection::vec(0_u32..200, 1..600),
            guessed in any::<bool>(),
        ) {
            let mut rows = Rows::new(limit);
            let mut known: BTreeMap<u32, (usize, RowId)> = BTreeMap::new();
            for (time, qp) in keys.into_iter().enumerate() {
                let gist = gist(qp);
                let key = RowKey::of(&gist, None);
                let guess = if guessed { rows.guess(rows.look(&key)) } else { NONE };
                let (id, row) = rows.entry(key, guess, &gist);
                prop_assert_eq!(row.key(), &key);
                let left = known.iter().filter(|(_, (_, id))| rows.get(*id).is_none());
                let gone: Vec<u32> = left.map(|(qp, _)| *qp).collect();
                let latest = gone.iter().map(|qp| known[qp].0).max();
                for qp in &gone {
                    known.remove(qp);
                }
                prop_assert!(gone.len() <= limit.div_ceil(BATCH));
                prop_assert!(known.values().all(|(at, _)| latest.is_none_or(|latest| latest < *at)));
                if let Some((_, before)) = known.insert(qp, (time, id)) {
                    prop_assert_eq!(before, id);
                }
                prop_assert_eq!(rows.len(), known.len());
                prop_assert!(rows.len() <= limit);
                prop_assert_eq!(rows.iter().count(), known.len());
                for (_, id) in known.values() {
                    let row = rows.get(*id).unwrap();
                    prop_assert_eq!(rows.guess(rows.look(row.key())), id.place());
                }
            }
        }
    }
}
