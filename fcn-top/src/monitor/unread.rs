//! Packets that were not read although they may be RoCE, by reason, and what else stands beside
//! RoCEv2: RoCE v1.

use crate::record::UnreadRecord;
use fcn_observe::unproven::Unproven;
use fcn_wire::frame::LinkType;
use fcn_wire::header::ethernet;
use fcn_wire::{Findings, Frame, Layer, Rule, Unread};
use rustc_hash::FxHashMap;

/// Maximum number of reasons counted individually; further ones are counted by kind.
const REASONS: usize = 64;
/// Maximum number of pairs of hosts with RoCE v1 that are remembered.
const PAIRS: usize = 1024;

/// Two MAC addresses, the lower one first.
type Pair = [[u8; 6]; 2];

/// Counts of packets that were not read, and hosts with RoCE v1.
#[derive(Debug, Default)]
pub struct UnreadPackets {
    unproven: Unproven,
    /// Packets by reason, in the order in which the reasons occurred.
    counts: Vec<(Reason, u64)>,
    /// Hosts between which there is RoCE v1, and true if RoCEv2 between them has been reported.
    v1: FxHashMap<Pair, bool>,
}

/// Kind of reason, and the number that distinguishes reasons of the kind; `None` for the rest.
type Reason = (&'static str, Option<u16>);

const fn reason(why: Unread) -> Reason {
    match why {
        Unread::RoceUnproven(port) => ("roce_unproven", Some(port)),
        Unread::EtherType(number) => ("ether_type", Some(number)),
        Unread::GreProtocol(number) => ("gre_protocol", Some(number)),
        Unread::Fragment => ("fragment", None),
    }
}

impl UnreadPackets {
    /// Makes the frame RoCEv2 if other packets of its five-tuple prove it.
    #[inline]
    pub fn prove(&mut self, frame: &mut Frame<'_>, at: u64) {
        self.unproven.learn(frame, at);
    }

    /// Counts a packet that was not read.
    #[cold]
    pub fn count(&mut self, why: Unread) {
        let (kind, number) = reason(why);
        let known = |reason: Reason| move |(other, _): &&mut (Reason, u64)| *other == reason;
        if let Some((_, count)) = self.counts.iter_mut().find(known((kind, number))) {
            *count += 1;
        } else if self.counts.len() < REASONS {
            self.counts.push(((kind, number), 1));
        } else if let Some((_, count)) = self.counts.iter_mut().find(known((kind, None))) {
            *count += 1;
        } else {
            // At most one for each kind.
            self.counts.push(((kind, None), 1));
        }
    }

    /// Adds the finding that a RoCEv2 packet passes between two hosts with RoCE v1, once for each
    /// pair of hosts.
    #[inline]
    pub fn check_version(&mut self, frame: &Frame<'_>, link: LinkType, findings: &mut Findings) {
        if frame.is_roce_v1() {
            if let Some((_, pair)) = pair(frame, link)
                && self.v1.len() < PAIRS
            {
                self.v1.entry(pair).or_default();
            }
        } else if !self.v1.is_empty()
            && frame.is_roce()
            && let Some((at, pair)) = pair(frame, link)
            && let Some(reported) = self.v1.get_mut(&pair)
            && !core::mem::replace(reported, true)
        {
            findings.push(Rule::RoceVersions, at + ethernet::TYPE, 2);
        }
    }

    /// Returns the table, most packets first.
    pub fn records(&self) -> Vec<UnreadRecord> {
        let mut records: Vec<_> = (self.counts.iter())
            .map(|((kind, number), packets)| UnreadRecord {
                kind,
                number: number.map(u32::from),
                packets: *packets,
            })
            .collect();
        records.sort_by_key(|record| core::cmp::Reverse(record.packets));
        records
    }
}

/// Returns the MAC addresses of the innermost Ethernet header, and its offset.
#[cold]
fn pair(frame: &Frame<'_>, link: LinkType) -> Option<(usize, Pair)> {
    if link != LinkType::Ethernet {
        return None;
    }
    let span = frame
        .spans()
        .iter()
        .rfind(|span| span.layer == Layer::Ethernet)?;
    let header = frame.bytes().get(span.start..)?;
    let mac = |at: usize| header.get(at..)?.first_chunk::<6>().copied();
    let mut pair = [mac(ethernet::SOURCE)?, mac(ethernet::DESTINATION)?];
    pair.sort_unstable();
    Some((span.start, pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_bounded_and_every_packet_counts() {
        let mut unread = UnreadPackets::default();
        for number in 0..1000 {
            unread.count(Unread::EtherType(number));
            unread.count(Unread::RoceUnproven(number));
            unread.count(Unread::Fragment);
        }
        let records = unread.records();
        assert!(records.len() <= REASONS + 4);
        let sum: u64 = records.iter().map(|record| record.packets).sum();
        assert_eq!(sum, 3000);
        assert_eq!((records[0].kind, records[0].number), ("fragment", None));
    }
}
