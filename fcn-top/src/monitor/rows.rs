//! The rows: found by key, named by [`RowId`], bounded. What one row holds is in `row.rs`.
//!
//! Past the limit the least recently notified rows leave, a sixteenth of all at a time: so that a notification need not
//! touch the rows before and behind its own in a list.

use super::RowId;
use super::row::Row;
use fcn_node::watch::RowKey;
use fcn_node::watch::bounded::reserve;
use fcn_node::watch::hashing::Seeded;
use fcn_wire::Gist;

/// What part of the rows leaves at a time.
const BATCH: usize = 16;

/// No slot.
const NONE: u32 = u32::MAX;
/// Chains at first.
const CHAINS: usize = 64;

/// Rows by key.
///
/// Found by chains through the rows themselves: their heads, twice as many as rows, are so few octets that they stay in the
/// processor's cache, and a row has to be fetched anyway.
#[derive(Debug)]
pub struct Rows {
    seed: Seeded,
    /// The slot of the first row of each chain; a power of two of them.
    heads: Vec<u32>,
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
            heads: vec![NONE; CHAINS],
            slots: Vec::new(),
            used: Vec::new(),
            free: Vec::new(),
            ticks: 0,
            limit: limit.clamp(1, NONE as usize),
            evicted: 0,
        }
    }

    /// The row of `key`, a new one where there is none. `leaves` is told which rows have to go for it.
    #[inline]
    pub fn entry(
        &mut self,
        key: RowKey,
        notification: &Gist,
        leaves: impl FnMut(&Row),
    ) -> (RowId, &mut Row) {
        let slot = match self.find(&key) {
            Some(slot) => slot,
            None => self.insert(key, notification, leaves),
        };
        self.ticks += 1;
        let place = slot as usize;
        self.used[place] = self.ticks;
        let row = &mut self.slots[place];
        (id(slot, row.generation()), row)
    }

    /// The first row of the chain that a key's row is in, if any is: mostly that row.
    #[inline]
    #[must_use]
    pub fn guess(&self, key: &RowKey) -> u32 {
        self.heads[self.chain(key)]
    }

    /// Has a guessed row fetched from memory.
    #[inline]
    pub fn fetch(&self, guess: u32) {
        if let Some(row) = self.slots.get(guess as usize) {
            row.fetch();
        }
    }

    #[inline]
    fn chain(&self, key: &RowKey) -> usize {
        self.seed.of_words(key.words()) as usize & (self.heads.len() - 1)
    }

    #[inline]
    fn find(&self, key: &RowKey) -> Option<u32> {
        let mut slot = self.heads[self.chain(key)];
        while slot != NONE {
            let row = &self.slots[slot as usize];
            if row.key() == key {
                return Some(slot);
            }
            slot = row.next;
        }
        None
    }

    #[cold]
    fn insert(&mut self, key: RowKey, notification: &Gist, leaves: impl FnMut(&Row)) -> u32 {
        if self.len() >= self.limit {
            self.evict(leaves);
        } else if self.len() >= self.heads.len() / 2 {
            self.heads.resize(self.heads.len() * 2, NONE);
            self.chain_all();
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                let place = &mut self.slots[slot as usize];
                let generation = place.generation().wrapping_add(1);
                *place = Row::new(key, notification, generation);
                slot
            }
            None => {
                reserve(&mut self.slots, self.limit);
                self.slots.push(Row::new(key, notification, 0));
                self.used.push(0);
                (self.slots.len() - 1) as u32
            }
        };
        self.put_first(slot);
        slot
    }

    fn put_first(&mut self, slot: u32) {
        let chain = self.chain(self.slots[slot as usize].key());
        let next = core::mem::replace(&mut self.heads[chain], slot);
        self.slots[slot as usize].next = next;
    }

    /// Makes the chains anew, of the rows in use.
    fn chain_all(&mut self) {
        self.heads.fill(NONE);
        for slot in 0..self.slots.len() {
            if self.used[slot] > 0 {
                self.put_first(slot as u32);
            }
        }
    }

    fn evict(&mut self, mut leaves: impl FnMut(&Row)) {
        let mut ages: Vec<(u64, u32)> = (self.used.iter().copied().zip(0..))
            .filter(|(used, _)| *used > 0)
            .collect();
        let batch = ages.len().div_ceil(BATCH);
        if batch < ages.len() {
            ages.select_nth_unstable(batch);
        }
        for (_, slot) in ages.into_iter().take(batch) {
            self.unchain(slot);
            leaves(&self.slots[slot as usize]);
            self.used[slot as usize] = 0;
            self.free.push(slot);
            self.evicted += 1;
        }
    }

    fn unchain(&mut self, slot: u32) {
        let row = &self.slots[slot as usize];
        let (chain, next) = (self.chain(row.key()), row.next);
        let mut at = self.heads[chain];
        if at == slot {
            self.heads[chain] = next;
            return;
        }
        while at != NONE {
            let row = &mut self.slots[at as usize];
            if row.next == slot {
                row.next = next;
                return;
            }
            at = row.next;
        }
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
        let slots = self.slots.iter().zip(&self.used).zip(0..);
        slots
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
