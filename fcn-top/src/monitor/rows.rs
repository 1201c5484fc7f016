//! The rows: found by key, identified by [`RowId`], bounded. `row.rs` has the contents of a row.

use super::row::Row;
use crate::record::RowId;
use fcn_observe::{Bounded, RowKey, Slot};
use fcn_wire::Notification;

/// Rows by key. Beyond the limit the least recently notified are evicted.
#[derive(Debug)]
pub struct Rows {
    /// Touched by `ticks`, so that no two rows are touched at the same time.
    pub table: Bounded<RowKey, Row>,
    ticks: u64,
    /// Number of rows ever created.
    ever: u32,
}

impl Rows {
    /// Keeps at most `limit` rows; 0 counts as 1.
    pub fn new(limit: usize) -> Self {
        Self {
            table: Bounded::new(limit),
            ticks: 0,
            ever: 0,
        }
    }

    /// Returns the row of `key`, creating it if needed.
    #[inline]
    pub fn entry(&mut self, key: RowKey, notification: &Notification) -> (RowId, &mut Row) {
        let Self { table, ticks, ever } = self;
        *ticks += 1;
        let make = || {
            *ever = ever.wrapping_add(1);
            Row::new(notification, *ever)
        };
        let (slot, row) = table.get_or_insert_evicting(key, *ticks, make, |_| ());
        (id(slot, row), row)
    }

    /// Returns the row with that id, if it is still kept.
    pub fn get(&self, id: RowId) -> Option<(&RowKey, &Row)> {
        let (key, row) = self.table.at(Slot::new(id.place()))?;
        (row.serial == (id.0 >> 32) as u32).then_some((key, row))
    }

    /// Returns the rows kept.
    pub fn iter(&self) -> impl Iterator<Item = (RowId, &RowKey, &Row)> {
        self.from(0)
    }

    /// Returns how many times rows were used so far.
    pub const fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Returns the rows used since [`ticks`](Self::ticks) had that value.
    pub fn used_since(&self, ticks: u64) -> impl Iterator<Item = (RowId, &RowKey, &Row)> {
        let used = self.table.touched_after(Slot::new(0), Some(ticks));
        used.map(|(slot, key, row)| (id(slot, row), key, row))
    }

    /// Returns the rows kept, starting at a [slot](RowId::place).
    pub fn from(&self, place: u32) -> impl Iterator<Item = (RowId, &RowKey, &Row)> {
        let behind = self.table.touched_after(Slot::new(place), None);
        behind.map(|(slot, key, row)| (id(slot, row), key, row))
    }
}

const fn id(slot: Slot, row: &Row) -> RowId {
    RowId((row.serial as u64) << 32 | slot.get() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::{Kind, Origin, Qp, Subject};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn gist(qp: u32) -> Notification {
        let sender = [10, 0, 0, 1].into();
        Notification {
            kind: Kind::Cnp,
            origin: Origin::Receiver,
            notifier: [10, 0, 0, 2].into(),
            destination: sender,
            sender: Some(sender),
            subject: Subject::SenderQp(Qp::truncate(qp)),
            level: None,
            deepest_queue: None,
            hops: None,
        }
    }

    proptest! {
        /// Compared with an unbounded map: lookups find the key's row, and the least recently used
        /// rows are evicted.
        #[test]
        fn rows_are_found_and_the_oldest_are_evicted(
            limit in 1_usize..120,
            keys in proptest::collection::vec(0_u32..200, 1..600),
        ) {
            let mut rows = Rows::new(limit);
            let mut known: BTreeMap<u32, (usize, RowId)> = BTreeMap::new();
            for (time, qp) in keys.into_iter().enumerate() {
                let gist = gist(qp);
                let key = RowKey::new(&gist, None);
                let (id, _) = rows.entry(key, &gist);
                prop_assert_eq!(rows.get(id).map(|(key, _)| key), Some(&key));
                let left = known.iter().filter(|(_, (_, id))| rows.get(*id).is_none());
                let gone: Vec<u32> = left.map(|(qp, _)| *qp).collect();
                let latest = gone.iter().map(|qp| known[qp].0).max();
                for qp in &gone {
                    known.remove(qp);
                }
                prop_assert!(gone.len() <= limit.div_ceil(16));
                prop_assert!(known.values().all(|(at, _)| latest.is_none_or(|latest| latest < *at)));
                if let Some((_, before)) = known.insert(qp, (time, id)) {
                    prop_assert_eq!(before, id);
                }
                prop_assert_eq!(rows.table.len(), known.len());
                prop_assert!(rows.table.len() <= limit);
                prop_assert_eq!(rows.iter().count(), known.len());
            }
        }
    }
}
