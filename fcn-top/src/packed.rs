//! Rows of QPs, written into octets: a table of them takes less than half of the memory, and loses nothing. What rows mean
//! is not its business.
//!
//! A number is its length and as many octets, so that small ones, round ones and zeros are short; an address that is the
//! same as the one before it in the row is one octet. Rows stand in chunks, so that a growing table leaves no holes as long
//! as itself, and a row is unpacked when it is looked at.

use crate::monitor::RowId;
use crate::order::{Order, SortKey};
use crate::record::{Answer, Evidence, QpRecord, QpSide, Record, Resolved};
use fcn_wire::{Kind, Origin};
use rustc_hash::FxHashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Rows in a chunk.
const ROWS: usize = 256;
/// A chunk's octets have room for multiples of so many: doubling it would leave up to half of it empty.
const ROOM: usize = 8 << 10;
/// Octets that no packed row is longer than: every field at its longest.
const LONGEST: usize = 1024;
/// In place of a number's length: there is none.
const NONE: u8 = 0xFF;

/// What an address begins with, unless it is [`NONE`].
const SAME: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;

/// Rows, one behind the other.
#[derive(Clone, Debug, Default)]
struct Chunk {
    ids: Vec<RowId>,
    /// Where each row ends.
    ends: Vec<u32>,
    octets: Vec<u8>,
}

impl Chunk {
    /// With room for as many octets as the chunk before it took.
    fn behind(before: Option<&Self>) -> Self {
        let Some(before) = before else {
            return Self::default();
        };
        Self {
            ids: Vec::with_capacity(ROWS),
            ends: Vec::with_capacity(ROWS),
            octets: Vec::with_capacity(before.octets.len().next_multiple_of(ROOM)),
        }
    }

    fn push(&mut self, id: RowId, packed: &[u8]) {
        let len = self.octets.len() + packed.len();
        if self.octets.capacity() < len {
            let more = len.next_multiple_of(ROOM) - self.octets.len();
            self.octets.reserve_exact(more);
        }
        self.ids.push(id);
        self.octets.extend_from_slice(packed);
        self.ends.push(self.octets.len() as u32);
    }
}

/// What QPs are told: rows in some order, each with its name.
#[derive(Clone, Debug, Default)]
pub struct QpRows {
    /// All full, but for the last one in use.
    chunks: Vec<Chunk>,
    len: usize,
    /// Names of interfaces.
    names: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, u32>,
}

impl QpRows {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lets go of all rows, but keeps the room that they took.
    pub fn clear(&mut self) {
        for chunk in &mut self.chunks {
            chunk.ids.clear();
            chunk.ends.clear();
            chunk.octets.clear();
        }
        self.len = 0;
        self.names.clear();
        self.numbers.clear();
    }

    /// Gives back room that is not needed: at most one chunk's remains.
    pub fn trim(&mut self) {
        self.chunks.truncate(self.len.div_ceil(ROWS));
    }

    /// Gives back all room that is not needed, as nothing is going to be added.
    pub fn tighten(&mut self) {
        self.trim();
        for chunk in &mut self.chunks {
            chunk.ids.shrink_to_fit();
            chunk.ends.shrink_to_fit();
            chunk.octets.shrink_to_fit();
        }
    }

    /// Adds a row behind the others.
    pub fn push(&mut self, id: RowId, record: &QpRecord) {
        let interface = record.interface.as_ref().map(|name| self.number_of(name));
        let mut packer = Packer::default();
        pack(record, interface, &mut packer);
        let place = self.len / ROWS;
        if self.chunks.len() <= place {
            self.chunks.push(Chunk::behind(self.chunks.last()));
        }
        let Some(chunk) = self.chunks.get_mut(place) else {
            return;
        };
        chunk.push(id, packer.octets());
        self.len += 1;
    }

    fn number_of(&mut self, name: &Arc<str>) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(Arc::clone(name));
        self.numbers.insert(Arc::clone(name), number);
        number
    }

    /// The name of the row at `place`.
    #[must_use]
    pub fn id(&self, place: usize) -> Option<RowId> {
        self.chunks
            .get(place / ROWS)?
            .ids
            .get(place % ROWS)
            .copied()
    }

    /// The row at `place`.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<(RowId, QpRecord)> {
        let (chunk, place) = (self.chunks.get(place / ROWS)?, place % ROWS);
        let start = match place.checked_sub(1) {
            Some(before) => *chunk.ends.get(before)? as usize,
            None => 0,
        };
        let end = *chunk.ends.get(place)? as usize;
        let mut unpacker = Unpacker {
            octets: chunk.octets.get(start..end)?,
            last: None,
        };
        let record = unpack(&mut unpacker, &self.names);
        Some((*chunk.ids.get(place)?, record))
    }

    /// Only so many rows: those that come first in an order, and in this one.
    #[must_use]
    pub fn first(self, order: &Order, most: usize) -> Self {
        if self.len <= most {
            return self;
        }
        let rows = self.iter().zip(0..);
        let mut keys: Vec<(SortKey, usize)> = rows
            .map(|((_, record), place)| (SortKey::of(record.cell(order.column)), place))
            .collect();
        keys.sort_by(|(a, _), (b, _)| order.compare_keys(a, b));
        let rows = keys.iter().filter_map(|(_, place)| self.get(*place));
        rows.take(most).collect()
    }

    /// Names of the rows, in their order.
    pub fn ids(&self) -> impl Iterator<Item = RowId> {
        self.chunks.iter().flat_map(|chunk| &chunk.ids).copied()
    }

    /// Where the row of that name stands.
    #[must_use]
    pub fn position(&self, id: RowId) -> Option<usize> {
        self.ids().position(|other| other == id)
    }

    /// The row of that name.
    #[must_use]
    pub fn find(&self, id: RowId) -> Option<QpRecord> {
        self.get(self.position(id)?).map(|(_, record)| record)
    }

    /// The rows, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (RowId, QpRecord)> + Clone {
        (0..self.len).filter_map(|place| self.get(place))
    }
}

impl Extend<(RowId, QpRecord)> for QpRows {
    fn extend<T: IntoIterator<Item = (RowId, QpRecord)>>(&mut self, rows: T) {
        for (id, record) in rows {
            self.push(id, &record);
        }
    }
}

impl FromIterator<(RowId, QpRecord)> for QpRows {
    fn from_iter<T: IntoIterator<Item = (RowId, QpRecord)>>(rows: T) -> Self {
        let mut packed = Self::new();
        packed.extend(rows);
        packed
    }
}

impl From<Vec<(RowId, QpRecord)>> for QpRows {
    fn from(rows: Vec<(RowId, QpRecord)>) -> Self {
        rows.into_iter().collect()
    }
}

/// A row that is being packed.
struct Packer {
    octets: [u8; LONGEST],
    len: usize,
    last: Option<IpAddr>,
}

impl Default for Packer {
    fn default() -> Self {
        Self {
            octets: [0; LONGEST],
            len: 0,
            last: None,
        }
    }
}

impl Packer {
    fn octets(&self) -> &[u8] {
        self.octets.get(..self.len).unwrap_or_default()
    }

    #[inline]
    fn octet(&mut self, octet: u8) {
        if let Some(place) = self.octets.get_mut(self.len) {
            *place = octet;
            self.len += 1;
        }
    }

    #[inline]
    fn number(&mut self, number: u64) {
        let len = (u64::BITS - number.leading_zeros()).div_ceil(8) as usize;
        // All eight octets are written, and those that are zero written over.
        if let Some(place) = self.octets.get_mut(self.len..self.len + 9) {
            place[0] = len as u8;
            place[1..].copy_from_slice(&number.to_le_bytes());
            self.len += 1 + len;
        }
    }
}

/// A row that is being unpacked.
struct Unpacker<'a> {
    octets: &'a [u8],
    last: Option<IpAddr>,
}

impl Unpacker<'_> {
    #[inline]
    fn octet(&mut self) -> u8 {
        match self.octets.split_first() {
            Some((first, rest)) => {
                self.octets = rest;
                *first
            }
            None => 0,
        }
    }

    #[inline]
    fn number(&mut self) -> u64 {
        let len = self.octet();
        self.number_of(len)
    }

    /// A number of so many octets.
    #[inline]
    fn number_of(&mut self, len: u8) -> u64 {
        let len = usize::from(len.min(8)).min(self.octets.len());
        let (octets, rest) = self.octets.split_at(len);
        let mut number = [0; 8];
        number[..len].copy_from_slice(octets);
        self.octets = rest;
        u64::from_le_bytes(number)
    }
}

/// What can be a field of a row.
trait Pack: Sized {
    fn pack(&self, to: &mut Packer);
    fn unpack(from: &mut Unpacker<'_>) -> Self;
}

/// A field that is a number.
trait Number: Copy {
    fn number(self) -> u64;
    fn of(number: u64) -> Self;
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }

    fn of(number: u64) -> Self {
        number
    }
}

impl Number for u32 {
    fn number(self) -> u64 {
        self.into()
    }

    fn of(number: u64) -> Self {
        number as Self
    }
}

impl Number for u8 {
    fn number(self) -> u64 {
        self.into()
    }

    fn of(number: u64) -> Self {
        number as Self
    }
}

impl Number for f64 {
    // The other way round, so that the zeros at the end of a round one come first.
    fn number(self) -> u64 {
        self.to_bits().swap_bytes()
    }

    fn of(number: u64) -> Self {
        Self::from_bits(number.swap_bytes())
    }
}

/// Names from a list are their places in it.
macro_rules! names {
    ($( $name:ty : $all:expr; )+) => {$(
        impl Number for $name {
            fn number(self) -> u64 {
                $all.iter().position(|name| *name == self).unwrap_or(0) as u64
            }

            fn of(number: u64) -> Self {
                $all.get(number as usize).copied().unwrap_or($all[0])
            }
        }
    )+};
}
names! {
    Kind: Kind::ALL;
    Origin: Origin::ALL;
    QpSide: [QpSide::Sender, QpSide::Receiver];
    Resolved: [Resolved::Packet, Resolved::Cm, Resolved::Acks];
    Answer: Answer::ALL;
}

impl<N: Number> Pack for N {
    #[inline]
    fn pack(&self, to: &mut Packer) {
        to.number(self.number());
    }

    #[inline]
    fn unpack(from: &mut Unpacker<'_>) -> Self {
        N::of(from.number())
    }
}

impl<N: Number> Pack for Option<N> {
    #[inline]
    fn pack(&self, to: &mut Packer) {
        match self {
            Some(number) => number.pack(to),
            None => to.octet(NONE),
        }
    }

    #[inline]
    fn unpack(from: &mut Unpacker<'_>) -> Self {
        match from.octet() {
            NONE => None,
            len => Some(N::of(from.number_of(len))),
        }
    }
}

impl Pack for Option<Evidence> {
    fn pack(&self, to: &mut Packer) {
        match self {
            None => to.octet(NONE),
            Some(evidence) => {
                for number in evidence.to_numbers() {
                    to.number(number);
                }
            }
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let first = from.octet();
        if first == NONE {
            return None;
        }
        let which = from.number_of(first);
        let mut numbers = [which, 0, 0, 0];
        for number in &mut numbers[1..] {
            *number = from.number();
        }
        Some(Evidence::of_numbers(numbers))
    }
}

impl Pack for Option<IpAddr> {
    fn pack(&self, to: &mut Packer) {
        match self {
            None => to.octet(NONE),
            Some(same) if to.last == Some(*same) => to.octet(SAME),
            Some(IpAddr::V4(address)) => {
                to.octet(V4);
                to.number(address.to_bits().into());
            }
            Some(IpAddr::V6(address)) => {
                let bits = address.to_bits();
                to.octet(V6);
                to.number((bits >> 64) as u64);
                to.number(bits as u64);
            }
        }
        to.last = self.or(to.last);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let address = match from.octet() {
            SAME => from.last,
            V4 => Some(Ipv4Addr::from_bits(from.number() as u32).into()),
            V6 => {
                let (high, low) = (from.number(), from.number());
                Some(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)).into())
            }
            _ => None,
        };
        from.last = address.or(from.last);
        address
    }
}

impl Pack for IpAddr {
    fn pack(&self, to: &mut Packer) {
        Some(*self).pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        // There always is one.
        Option::unpack(from).unwrap_or(Self::V4(Ipv4Addr::UNSPECIFIED))
    }
}

/// The fields, but for the name of the interface. Those addresses that are often the same stand side by side.
macro_rules! fields {
    ($( $field:ident )+) => {
        fn pack(record: &QpRecord, interface: Option<u32>, to: &mut Packer) {
            let QpRecord { interface: _, $( $field, )+ } = record;
            interface.pack(to);
            $( $field.pack(to); )+
        }

        fn unpack(from: &mut Unpacker<'_>, names: &[Arc<str>]) -> QpRecord {
            let interface = <Option<u32>>::unpack(from)
                .and_then(|number| names.get(number as usize).cloned());
            $( let $field = Pack::unpack(from); )+
            QpRecord { interface, $( $field, )+ }
        }
    };
}
fields! {
    sender told receiver notifier notifiers qp qp_side kind origin flow_label sender_qp sender_qp_from receiver_qp
    rate_now rate_1s rate_10s rate_mean rate_peak total gap_min gap_p50 gap_p90 gap_p99 level level_max queue queue_max
    ce_share data_rate data_packets change_1ms change_10ms measured verdict evidence first_seen last_seen icrc_bad findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Cell;
    use crate::sample;
    use proptest::prelude::*;

    /// As the cells have it: a number that is none is not equal to itself.
    fn same(a: &QpRecord, b: &QpRecord) -> bool {
        (0..QpRecord::COLUMNS.len()).all(|column| match (a.cell(column), b.cell(column)) {
            (Cell::Rate(a), Cell::Rate(b))
            | (Cell::Bits(a), Cell::Bits(b))
            | (Cell::Share(a), Cell::Share(b))
            | (Cell::Change(a), Cell::Change(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        })
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let rows: Vec<_> = (0..3).flat_map(|_| sample::rows()).collect();
        let packed: QpRows = rows.clone().into();
        assert_eq!(packed.iter().collect::<Vec<_>>(), rows);
        assert_eq!((packed.len(), packed.get(rows.len())), (rows.len(), None));
        let (id, record) = &rows[1];
        assert_eq!(packed.position(*id), Some(1));
        assert_eq!(packed.find(*id).as_ref(), Some(record));
    }

    #[test]
    fn the_first_ones_are_chosen() {
        let rows = [3, 9, 1, 9, 5].into_iter().zip(0..).map(|(total, id)| {
            let record = QpRecord {
                total,
                ..sample::qp()
            };
            (RowId(id), record)
        });
        let packed: QpRows = rows.collect();
        let ids = |order: &str, most| -> Vec<u64> {
            let order = Order::parse::<QpRecord>(order).unwrap();
            packed
                .clone()
                .first(&order, most)
                .ids()
                .map(|id| id.0)
                .collect()
        };
        assert_eq!(ids("-total", 3), [1, 3, 4]);
        assert_eq!(ids("total", 2), [2, 0]);
        assert_eq!(ids("total", 5), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn rows_of_several_chunks_and_room_used_again() {
        let mut packed = QpRows::new();
        for round in 0..3 {
            packed.clear();
            assert!(packed.is_empty() && packed.get(0).is_none());
            let count = ROWS * 2 + 10 - round * ROWS;
            for n in 0..count as u64 {
                let total = n + round as u64;
                let record = QpRecord {
                    total,
                    interface: Some(format!("eth{}", total % 3).into()),
                    ..sample::qp()
                };
                packed.push(RowId(n), &record);
            }
            assert_eq!(packed.iter().count(), count);
            for (n, (id, record)) in (0..).zip(packed.iter()) {
                assert_eq!((id, record.total), (RowId(n), n + round as u64));
                let name = format!("eth{}", record.total % 3);
                assert_eq!(record.interface.as_deref(), Some(&*name));
            }
        }
        packed.trim();
        assert_eq!(packed.chunks.len(), packed.len().div_ceil(ROWS));
    }

    #[test]
    fn it_is_much_smaller() {
        let mut packer = Packer::default();
        pack(&sample::qp(), Some(0), &mut packer);
        assert!(packer.len < size_of::<QpRecord>() / 2, "{}", packer.len);
    }

    #[test]
    fn the_longest_row_fits() {
        let longest = QpRecord {
            sender: Some(Ipv6Addr::from_bits(!0).into()),
            told: Ipv6Addr::from_bits(!1).into(),
            receiver: Some(Ipv6Addr::from_bits(!2).into()),
            notifier: Ipv6Addr::from_bits(!3).into(),
            ..sample::qp()
        };
        let mut packer = Packer::default();
        pack(&longest, Some(u32::MAX), &mut packer);
        // Every other field is nine octets at most.
        assert!(4 * 19 + 9 * (QpRecord::COLUMNS.len() + 3) + 9 <= LONGEST);
        let mut unpacker = Unpacker {
            octets: packer.octets(),
            last: None,
        };
        let record = unpack(&mut unpacker, &[]);
        assert_eq!(
            record,
            QpRecord {
                interface: None,
                ..longest
            }
        );
    }

    proptest! {
        #[test]
        fn any_number_is_kept(
            numbers in proptest::collection::vec(any::<u64>(), 8),
            shift in 0..64_u32,
            none in any::<bool>(),
            v4 in any::<u32>(),
        ) {
            let of = |n: usize| numbers[n] >> shift;
            let float = |n: usize| f64::from_bits(of(n));
            let record = QpRecord {
                sender: (!none).then(|| Ipv4Addr::from_bits(v4).into()),
                receiver: (!none).then(|| Ipv6Addr::from_bits(u128::from(of(0)) << 64 | u128::from(of(1))).into()),
                qp: (!none).then_some(of(2) as u32),
                rate_now: Some(float(3)),
                total: of(4),
                gap_min: (!none).then_some(of(5)),
                ce_share: (!none).then(|| float(6)),
                last_seen: of(7),
                ..sample::qp()
            };
            let packed = QpRows::from(vec![(RowId(of(0)), record.clone())]);
            let (id, kept) = packed.get(0).unwrap();
            prop_assert_eq!(id, RowId(of(0)));
            prop_assert!(same(&kept, &record), "{kept:?} {record:?}");
        }
    }
}
