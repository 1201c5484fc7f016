//! sFlow version 5: headers of packets sampled by a switch, several per datagram (sflow.org, "sFlow
//! Version 5").
//!
//! Of its many structures, only those with a packet's octets are parsed: raw packet headers of
//! Ethernet, IPv4 and IPv6 in flow samples, plain or expanded. Everything else is skipped by its
//! length.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           Version 5                           |   0  datagram
//! |                Agent address type: 1 IPv4, 2 IPv6             |   4
//! |                      Agent address (4 or 16)                  |   8
//! |                         Sub-agent ID                          |  12, IPv6: 24
//! |                        Sequence number                        |  16
//! |                         Uptime in ms                          |  20
//! |                       Number of samples                       |  24
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |              Enterprise               |        Format         |   0  each sample, and each record of a flow sample
//! |                            Length                             |   4  of what follows
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Sequence number                        |   0  flow sample, format 1
//! |  Source type  |             Source index                      |   4
//! |                         Sampling rate                         |   8
//! |                          Sample pool                          |  12
//! |                             Drops                             |  16
//! |Fmt|                       Input port                          |  20
//! |Fmt|                      Output port                          |  24
//! |                       Number of records                       |  28
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!
//! Expanded, format 3: source type and index, and format and value of each port, have 32 bits each.
//!
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         Protocol: 1 Ethernet, 11 IPv4, 12 IPv6, others        |   0  raw packet header, format 1
//! |                         Frame length                          |   4
//! |                           Stripped                            |   8
//! |                        Header length                          |  12
//! |          The packet's first octets, padded to 4               |  16
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::sflow::{Datagram, DatagramRepr, FlowSample, Port, RawRepr};
//!
//! let agent = DatagramRepr { agent: [10, 0, 0, 1].into(), sub_agent: 0, sequence: 1, uptime: 1000 };
//! let sample = FlowSample { rate: 1000, input: Port::from_index(3), ..FlowSample::default() };
//! let mut out = [0; 1400];
//! let mut writer = agent.begin(&mut out)?;
//! // A frame of 1,086 octets and its FCS, of which the first 64 are sent.
//! let raw = RawRepr { protocol: 1, frame_length: 1090, stripped: 4, header: &[7; 64] };
//! writer.push(&sample, &raw)?;
//! let len = writer.finish();
//!
//! let datagram = Datagram::new_checked(&out[..len], len)?;
//! let packet = datagram.packets().next().unwrap();
//! assert_eq!(packet.bytes, [7; 64]);
//! assert_eq!(packet.wire_len, 1086);
//! assert_eq!((packet.sample.rate, packet.sample.input.index()), (1000, Some(3)));
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::headers::link_type::LinkType;
use crate::layer::Layer;
use crate::octets::{ipv4_at, ipv6_at, put, u32_at};
use std::net::IpAddr;

/// Supported version.
pub const VERSION: u32 = 5;
/// Sample formats, of enterprise 0.
const FLOW_SAMPLE: u32 = 1;
const EXPANDED_FLOW_SAMPLE: u32 = 3;
/// Format of a raw packet header in a flow sample's records, of enterprise 0.
const RAW_HEADER: u32 = 1;
/// Octets before each sample and record: format and length.
const ITEM_HEADER: usize = 8;
/// Port value that stands for the switch itself.
const INTERNAL: u32 = 0x3FFF_FFFF;

/// Offsets in the datagram's header.
mod datagram {
    pub const ADDRESS_TYPE: usize = 4;
    pub const ADDRESS: usize = 8;
    /// From the end of the address on.
    pub const SUB_AGENT: usize = 0;
    pub const SEQUENCE: usize = 4;
    pub const UPTIME: usize = 8;
    pub const SAMPLES: usize = 12;
    pub const REST: usize = 16;
}

/// Offsets in a flow sample before its records.
mod flow {
    pub const SEQUENCE: usize = 0;
    pub const SOURCE: usize = 4;
    /// From the end of the source on.
    pub const RATE: usize = 0;
    pub const POOL: usize = 4;
    pub const DROPS: usize = 8;
    pub const PORTS: usize = 12;
    pub const LEN: usize = 32;
    pub const EXPANDED_LEN: usize = 44;
}

/// Offsets in a raw packet header record before the packet's octets.
mod raw {
    pub const PROTOCOL: usize = 0;
    pub const FRAME_LENGTH: usize = 4;
    pub const STRIPPED: usize = 8;
    pub const HEADER_LENGTH: usize = 12;
    pub const LEN: usize = 16;
    pub const ETHERNET: u32 = 1;
    pub const IPV4: u32 = 11;
    pub const IPV6: u32 = 12;
}

/// Values of a datagram's header, without the number of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DatagramRepr {
    /// Switch's address, which identifies it whatever source address its datagrams have.
    pub agent: IpAddr,
    /// Sub-agent: the part of the switch that sends.
    pub sub_agent: u32,
    /// Sequence number of the datagram within that sub-agent.
    pub sequence: u32,
    /// Time since that sub-agent started, in milliseconds.
    pub uptime: u32,
}

/// View of a datagram.
///
/// No method panics, and every iterator ends: [`new_checked`](Self::new_checked) has verified that
/// each length lies within the enclosing structure.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    bytes: &'a [u8],
    wire_len: usize,
    /// Offset of the end of the agent's address.
    rest: usize,
}

impl<'a> Datagram<'a> {
    /// Returns a view of a UDP payload that had `wire_len` octets, of which `bytes` were captured.
    ///
    /// # Errors
    /// Fails on another version, on a length or count that exceeds the available space, and if the
    /// header was not captured completely. Truncation after the header is not an error.
    pub fn new_checked(bytes: &'a [u8], wire_len: usize) -> Result<Self> {
        let wire_len = wire_len.max(bytes.len());
        let short = |need| Err(Error::short(Layer::Sflow, need, bytes.len()));
        if bytes.len() < datagram::ADDRESS {
            return short(datagram::ADDRESS);
        }
        let version = u32_at(bytes, 0);
        if version != VERSION {
            let error = Error::value(Layer::Sflow, 0, "version", version.into(), "5");
            return Err(error);
        }
        let rest = match u32_at(bytes, datagram::ADDRESS_TYPE) {
            1 => datagram::ADDRESS + 4,
            2 => datagram::ADDRESS + 16,
            other => {
                let (at, field) = (datagram::ADDRESS_TYPE, "agent address type");
                return Err(Error::value(
                    Layer::Sflow,
                    at,
                    field,
                    other.into(),
                    "1 or 2",
                ));
            }
        };
        if bytes.len() < rest + datagram::REST {
            return short(rest + datagram::REST);
        }
        let view = Self {
            bytes,
            wire_len,
            rest,
        };
        for sample in view.samples() {
            let sample = sample?;
            if sample.is_flow() {
                view.check(&sample)?;
            }
        }
        Ok(view)
    }

    /// Checks a flow sample's lengths, as far as it was captured.
    fn check(&self, sample: &Item) -> Result<()> {
        let header = sample.flow_header();
        if sample.len < header {
            let (at, field) = (sample.at - 4, "sample length");
            let error = Error::length(Layer::Sflow, at, field, sample.len, header, usize::MAX);
            return Err(error);
        }
        let Some(records) = self.records(sample) else {
            return Ok(());
        };
        for record in records {
            let record = record?;
            if record.format == RAW_HEADER && self.bytes.len() >= record.at + raw::LEN {
                self.check_raw(&record)?;
            }
        }
        Ok(())
    }

    fn check_raw(&self, record: &Item) -> Result<()> {
        let at = |field: usize| record.at + field;
        if record.len < raw::LEN {
            let (at, field) = (record.at - 4, "record length");
            let error = Error::length(Layer::Sflow, at, field, record.len, raw::LEN, usize::MAX);
            return Err(error);
        }
        let [length, stripped, header] = [raw::FRAME_LENGTH, raw::STRIPPED, raw::HEADER_LENGTH]
            .map(|field| u32_at(self.bytes, at(field)) as usize);
        let room = record.len - raw::LEN;
        if header > room {
            let field = "header length";
            let at = at(raw::HEADER_LENGTH);
            return Err(Error::length(Layer::Sflow, at, field, header, 0, room));
        }
        if stripped > length {
            let (at, field) = (at(raw::STRIPPED), "stripped");
            return Err(Error::length(Layer::Sflow, at, field, stripped, 0, length));
        }
        Ok(())
    }

    /// Returns the values of its header.
    #[must_use]
    pub fn header(&self) -> DatagramRepr {
        let at = |field| u32_at(self.bytes, self.rest + field);
        DatagramRepr {
            agent: if self.rest == datagram::ADDRESS + 4 {
                ipv4_at(self.bytes, datagram::ADDRESS).into()
            } else {
                ipv6_at(self.bytes, datagram::ADDRESS).into()
            },
            sub_agent: at(datagram::SUB_AGENT),
            sequence: at(datagram::SEQUENCE),
            uptime: at(datagram::UPTIME),
        }
    }

    /// Returns the number of samples stated in its header, of any format, captured or not.
    #[must_use]
    pub fn number_of_samples(&self) -> u32 {
        u32_at(self.bytes, self.rest + datagram::SAMPLES)
    }

    /// Returns true if the capture truncated the datagram, so that samples may be missing.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.bytes.len() < self.wire_len
    }

    fn samples(&self) -> Items<'a> {
        Items {
            bytes: self.bytes,
            at: self.rest + datagram::REST,
            end: self.wire_len,
            left: self.number_of_samples(),
        }
    }

    /// Returns the records of a flow sample whose header was captured.
    fn records(&self, sample: &Item) -> Option<Items<'a>> {
        let at = sample.at + sample.flow_header();
        (at <= self.bytes.len()).then(|| Items {
            bytes: self.bytes,
            at,
            end: sample.at + sample.len,
            left: u32_at(self.bytes, at - 4),
        })
    }

    /// Returns the sampled packets in order, as far as captured: for each flow sample the first raw
    /// packet header, because a sample describes one packet. Packets of protocols other than
    /// Ethernet, IPv4 and IPv6 are skipped, as are samples with sampling rate 0.
    pub fn packets(&self) -> impl Iterator<Item = Packet<'a>> + use<'a> {
        let view = *self;
        // Lengths were checked; an error would end each.
        view.samples()
            .map_while(Result::ok)
            .filter(Item::is_flow)
            .filter_map(move |sample| {
                let flow = view.flow(&sample)?;
                let mut records = view.records(&sample)?.map_while(Result::ok);
                let record = records.find(|record| record.format == RAW_HEADER)?;
                view.packet(flow, &record)
            })
    }

    fn flow(&self, sample: &Item) -> Option<FlowSample> {
        let data = self.bytes.get(sample.at..)?;
        let data = data.get(..sample.flow_header())?;
        let at = |field| u32_at(data, field);
        let expanded = sample.format == EXPANDED_FLOW_SAMPLE;
        let (source, rest) = if expanded {
            let (kind, index) = (at(flow::SOURCE), at(flow::SOURCE + 4));
            (Source { kind, index }, flow::SOURCE + 8)
        } else {
            let word = at(flow::SOURCE);
            let (kind, index) = (word >> 24, word & 0x00FF_FFFF);
            (Source { kind, index }, flow::SOURCE + 4)
        };
        let port = |number: usize| {
            let ports = rest + flow::PORTS;
            if expanded {
                let (format, value) = (at(ports + 8 * number), at(ports + 8 * number + 4));
                Port { format, value }
            } else {
                let word = at(ports + 4 * number);
                let (format, value) = (word >> 30, word & 0x3FFF_FFFF);
                Port { format, value }
            }
        };
        Some(FlowSample {
            sequence: at(flow::SEQUENCE),
            source,
            rate: at(rest + flow::RATE),
            pool: at(rest + flow::POOL),
            drops: at(rest + flow::DROPS),
            input: port(0),
            output: port(1),
        })
    }

    fn packet(&self, sample: FlowSample, record: &Item) -> Option<Packet<'a>> {
        let data = self.bytes.get(record.at..)?;
        let (head, behind) = data.split_at_checked(raw::LEN)?;
        let link = match u32_at(head, raw::PROTOCOL) {
            raw::ETHERNET => LinkType::Ethernet,
            raw::IPV4 | raw::IPV6 => LinkType::RawIp,
            _ => return None,
        };
        let wire_len = u32_at(head, raw::FRAME_LENGTH).saturating_sub(u32_at(head, raw::STRIPPED));
        // Octets after the packet's end are padding.
        let len = u32_at(head, raw::HEADER_LENGTH).min(wire_len) as usize;
        let bytes = behind.get(..len).unwrap_or(behind);
        (sample.rate > 0).then_some(Packet {
            sample,
            link,
            bytes,
            wire_len: wire_len as usize,
        })
    }
}

/// A sampled packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its flow sample.
    pub sample: FlowSample,
    /// Its link type.
    pub link: LinkType,
    /// Its first octets, as far as sent and captured.
    pub bytes: &'a [u8],
    /// Length when it was sampled, in octets, without those that the switch stripped (the FCS,
    /// tags).
    pub wire_len: usize,
}

/// Content of a flow sample, without its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowSample {
    /// Sequence number of the sample within its source.
    pub sequence: u32,
    /// Data source.
    pub source: Source,
    /// Sampling rate: one in `rate` packets is sampled.
    pub rate: u32,
    /// Number of packets that could have been sampled so far.
    pub pool: u32,
    /// Number of samples dropped so far for lack of resources.
    pub drops: u32,
    /// Input port of the packet.
    pub input: Port,
    /// Output port of the packet.
    pub output: Port,
}

/// Data source of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Source {
    /// Kind, 8 bits unless expanded: 0 a port (by its ifIndex), 1 a VLAN, 2 a physical entity.
    pub kind: u32,
    /// Index, 24 bits unless expanded.
    pub index: u32,
}

/// Input or output port of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Port {
    /// Meaning of the value, 2 bits: 0 an ifIndex, 1 the reason why the packet was discarded, 2 the
    /// number of ports.
    pub format: u32,
    /// Value, 30 bits unless expanded.
    pub value: u32,
}

impl Port {
    /// Creates the port with that ifIndex.
    #[must_use]
    pub const fn from_index(index: u32) -> Self {
        Self {
            format: 0,
            value: index,
        }
    }

    /// Returns the ifIndex, if it is a single known port and not the switch itself.
    #[must_use]
    pub const fn index(&self) -> Option<u32> {
        match *self {
            Self {
                format: 0,
                value: value @ 1..,
            } if value != INTERNAL => Some(value),
            _ => None,
        }
    }
}

/// An item of a list of samples or records.
#[derive(Clone, Copy, Debug)]
struct Item {
    /// Enterprise and format.
    format: u32,
    /// Offset of its content, and the content's length without padding.
    at: usize,
    len: usize,
}

impl Item {
    const fn is_flow(&self) -> bool {
        matches!(self.format, FLOW_SAMPLE | EXPANDED_FLOW_SAMPLE)
    }

    const fn flow_header(&self) -> usize {
        if self.format == EXPANDED_FLOW_SAMPLE {
            flow::EXPANDED_LEN
        } else {
            flow::LEN
        }
    }
}

/// A list of samples or records, up to the end of the capture or an error.
#[derive(Clone, Debug)]
struct Items<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Required end of the list, captured or not.
    end: usize,
    /// Number of remaining items.
    left: u32,
}

impl Iterator for Items<'_> {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Result<Item>> {
        self.left = self.left.checked_sub(1)?;
        let (start, room) = (self.at, self.end.saturating_sub(self.at));
        // Every item except the last takes at least its header, so the loop ends whatever the
        // count.
        let Some(space) = room.checked_sub(ITEM_HEADER) else {
            self.left = 0;
            return Some(Err(Error::short(Layer::Sflow, ITEM_HEADER, room).at(start)));
        };
        if self.bytes.len() < start + ITEM_HEADER {
            self.left = 0;
            return None;
        }
        let (format, len) = (u32_at(self.bytes, start), u32_at(self.bytes, start + 4));
        let padded = u64::from(len).next_multiple_of(4);
        match usize::try_from(padded) {
            Ok(padded) if padded <= space => {
                self.at = start + ITEM_HEADER + padded;
                Some(Ok(Item {
                    format,
                    at: start + ITEM_HEADER,
                    len: len as usize,
                }))
            }
            _ => {
                self.left = 0;
                let (at, len) = (start + 4, len as usize);
                Some(Err(Error::length(
                    Layer::Sflow,
                    at,
                    "length",
                    len,
                    0,
                    space,
                )))
            }
        }
    }
}

/// Values of a raw packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RawRepr<'a> {
    /// Protocol of the packet's first header: 1 Ethernet, 11 IPv4, 12 IPv6.
    pub protocol: u32,
    /// Length of the packet on the network in octets, including the FCS.
    pub frame_length: u32,
    /// Number of octets stripped from it: at least the FCS.
    pub stripped: u32,
    /// First octets of the packet.
    pub header: &'a [u8],
}

impl RawRepr<'_> {
    /// Returns the length in octets of a flow sample with it in a datagram.
    #[must_use]
    pub const fn sample_len(&self) -> usize {
        2 * ITEM_HEADER + flow::LEN + raw::LEN + self.header.len().next_multiple_of(4)
    }
}

impl DatagramRepr {
    /// Returns the length of the header in octets.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        let address = if self.agent.is_ipv4() { 4 } else { 16 };
        datagram::ADDRESS + address + datagram::REST
    }

    /// Begins a datagram in `out`.
    ///
    /// # Errors
    /// Fails if `out` is too short for the header.
    pub fn begin<'a>(&self, out: &'a mut [u8]) -> Result<Writer<'a>> {
        let at = self.header_len();
        if out.len() < at {
            return Err(Error::buffer(Layer::Sflow, at, out.len()));
        }
        let family: u32 = if self.agent.is_ipv4() { 1 } else { 2 };
        put(out, 0, &VERSION.to_be_bytes());
        put(out, datagram::ADDRESS_TYPE, &family.to_be_bytes());
        match self.agent {
            IpAddr::V4(address) => put(out, datagram::ADDRESS, &address.octets()),
            IpAddr::V6(address) => put(out, datagram::ADDRESS, &address.octets()),
        }
        let rest = at - datagram::REST;
        put_words(out, rest, [self.sub_agent, self.sequence, self.uptime, 0]);
        Ok(Writer {
            out,
            at,
            count_at: rest + datagram::SAMPLES,
            samples: 0,
        })
    }
}

/// Writes a datagram, flow sample by flow sample.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
    count_at: usize,
    samples: u32,
}

impl Writer<'_> {
    /// Appends a flow sample with a raw packet header: a plain one, or an expanded one if a number
    /// needs it.
    ///
    /// # Errors
    /// Fails if the buffer is too small; it is left unchanged.
    pub fn push(&mut self, sample: &FlowSample, raw: &RawRepr<'_>) -> Result<()> {
        let FlowSample {
            source,
            input,
            output,
            ..
        } = *sample;
        let ports = [input, output];
        let is_plain = source.kind >> 8 == 0
            && source.index >> 24 == 0
            && ports
                .iter()
                .all(|p| p.format >> 2 == 0 && p.value >> 30 == 0);
        let (format, header) = match is_plain {
            true => (FLOW_SAMPLE, flow::LEN),
            false => (EXPANDED_FLOW_SAMPLE, flow::EXPANDED_LEN),
        };
        let record = raw::LEN + raw.header.len().next_multiple_of(4);
        let len = header + ITEM_HEADER + record;
        let (start, end) = (self.at, self.at + ITEM_HEADER + len);
        let have = self.out.len();
        let Some(room) = self.out.get_mut(start..end) else {
            return Err(Error::buffer(Layer::Sflow, end, have));
        };
        room.fill(0);
        put_words(room, 0, [format, len as u32, sample.sequence]);
        let counts = [sample.rate, sample.pool, sample.drops];
        let at = ITEM_HEADER + flow::SOURCE;
        if is_plain {
            put_words(room, at, [source.kind << 24 | source.index]);
            put_words(room, at + 4, counts);
            put_words(room, at + 16, ports.map(|p| p.format << 30 | p.value));
        } else {
            put_words(room, at, [source.kind, source.index]);
            put_words(room, at + 8, counts);
            let [a, b] = ports;
            put_words(room, at + 20, [a.format, a.value, b.format, b.value]);
        }
        let records = ITEM_HEADER + header;
        put_words(room, records - 4, [1, RAW_HEADER, record as u32]);
        let numbers = [raw.protocol, raw.frame_length, raw.stripped];
        put_words(room, records + ITEM_HEADER, numbers);
        let len_at = records + ITEM_HEADER + raw::HEADER_LENGTH;
        put_words(room, len_at, [raw.header.len() as u32]);
        put(room, records + ITEM_HEADER + raw::LEN, raw.header);
        self.at = end;
        self.samples += 1;
        Ok(())
    }

    /// Writes the number of samples, and returns the datagram's length.
    #[must_use]
    pub fn finish(self) -> usize {
        put_words(self.out, self.count_at, [self.samples]);
        self.at
    }
}

fn put_words<const N: usize>(out: &mut [u8], at: usize, words: [u32; N]) {
    put(out, at, words.map(u32::to_be_bytes).as_flattened());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A sample and its content: protocol, octets after the header, octets stripped, header.
    type Sampled = (FlowSample, (u32, u16, u8, Vec<u8>));

    fn port() -> impl Strategy<Value = Port> {
        let plain = (0..4u32, 0..1u32 << 30).prop_map(|(format, value)| Port { format, value });
        let any = (0..4u32, any::<u32>()).prop_map(|(format, value)| Port { format, value });
        prop_oneof![3 => plain, 1 => any]
    }

    fn sampled() -> impl Strategy<Value = Sampled> {
        let source = prop_oneof![(0..1u32 << 8, 0..1u32 << 24), (any::<u32>(), any::<u32>())];
        let counts = (any::<u32>(), 1..u32::MAX, any::<u32>(), any::<u32>());
        let sample =
            (source, counts, port(), port()).prop_map(|(source, counts, input, output)| {
                FlowSample {
                    sequence: counts.0,
                    source: Source {
                        kind: source.0,
                        index: source.1,
                    },
                    rate: counts.1,
                    pool: counts.2,
                    drops: counts.3,
                    input,
                    output,
                }
            });
        let protocol = prop::sample::select(vec![1u32, 11, 12, 2, 7]);
        let header = prop::collection::vec(any::<u8>(), 0..140);
        (sample, (protocol, any::<u16>(), any::<u8>(), header))
    }

    fn written(agent: &DatagramRepr, samples: &[Sampled]) -> Vec<u8> {
        let mut out = vec![0xA5; 100 + samples.len() * 300];
        let mut writer = agent.begin(&mut out).unwrap();
        for (sample, (protocol, behind, stripped, header)) in samples {
            let raw = RawRepr {
                protocol: *protocol,
                frame_length: header.len() as u32 + u32::from(*behind) + u32::from(*stripped),
                stripped: (*stripped).into(),
                header,
            };
            writer.push(sample, &raw).unwrap();
        }
        let len = writer.finish();
        out.truncate(len);
        out
    }

    fn agents() -> impl Strategy<Value = DatagramRepr> {
        let agent = prop_oneof![
            any::<[u8; 4]>().prop_map(IpAddr::from),
            any::<[u8; 16]>().prop_map(IpAddr::from)
        ];
        (agent, any::<[u32; 3]>()).prop_map(|(agent, [sub_agent, sequence, uptime])| DatagramRepr {
            agent,
            sub_agent,
            sequence,
            uptime,
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(agent in agents(), samples in prop::collection::vec(sampled(), 0..9)) {
            let bytes = written(&agent, &samples);
            let datagram = Datagram::new_checked(&bytes, bytes.len()).unwrap();
            prop_assert_eq!(datagram.header(), agent);
            prop_assert_eq!(datagram.number_of_samples() as usize, samples.len());
            prop_assert!(!datagram.is_cut());
            let wanted = samples.iter().filter(|(_, (protocol, ..))| matches!(protocol, 1 | 11 | 12));
            let packets: Vec<_> = datagram.packets().collect();
            prop_assert_eq!(packets.len(), wanted.clone().count());
            for (packet, (sample, (protocol, behind, _, header))) in packets.iter().zip(wanted) {
                prop_assert_eq!(packet.sample, *sample);
                prop_assert_eq!(packet.bytes, &header[..]);
                prop_assert_eq!(packet.wire_len, header.len() + usize::from(*behind));
                let link = if *protocol == 1 { LinkType::Ethernet } else { LinkType::RawIp };
                prop_assert_eq!(packet.link, link);
            }
        }

        /// Truncated anywhere by the capture, it has the packets before the cut and the beginning
        /// of the one that was cut. Truncated by its sender, i.e. shorter than it claims, it is
        /// rejected.
        #[test]
        fn truncation_at_any_octet_keeps_a_prefix(agent in agents(), samples in prop::collection::vec(sampled(), 1..4)) {
            let bytes = written(&agent, &samples);
            let whole = Datagram::new_checked(&bytes, bytes.len()).unwrap();
            let all: Vec<_> = whole.packets().collect();
            for len in 0..bytes.len() {
                prop_assert!(Datagram::new_checked(&bytes[..len], len).is_err());
                let Ok(cut) = Datagram::new_checked(&bytes[..len], bytes.len()) else {
                    prop_assert!(len < agent.header_len());
                    continue;
                };
                prop_assert!(cut.is_cut());
                let packets: Vec<_> = cut.packets().collect();
                prop_assert!(packets.len() <= all.len());
                for (i, (packet, whole)) in packets.iter().zip(&all).enumerate() {
                    prop_assert!(whole.bytes.starts_with(packet.bytes));
                    prop_assert!(i + 1 == packets.len() || packet.bytes == whole.bytes);
                    prop_assert_eq!((packet.sample, packet.wire_len), (whole.sample, whole.wire_len));
                }
            }
        }

        /// Whatever the words are, there are no more packets than fit, and each lies within the
        /// datagram.
        #[test]
        fn contradictory_words_are_refused_or_bounded(
            agent in agents(),
            samples in prop::collection::vec(sampled(), 1..4),
            lies in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), 0..33u32), 1..4),
            missing in 0..2000usize,
        ) {
            let mut bytes = written(&agent, &samples);
            for (place, word, shift) in lies {
                let at = place.index(bytes.len() / 4) * 4;
                put_words(&mut bytes, at, [word.unbounded_shr(shift)]);
            }
            if let Ok(datagram) = Datagram::new_checked(&bytes, bytes.len() + missing) {
                let packets: Vec<_> = datagram.packets().collect();
                prop_assert!(packets.len() <= bytes.len() / (ITEM_HEADER + flow::LEN + ITEM_HEADER + raw::LEN));
                for packet in packets {
                    prop_assert!(bytes.as_ptr_range().contains(&packet.bytes.as_ptr()) || packet.bytes.is_empty());
                    prop_assert!(packet.bytes.len() <= packet.wire_len && packet.sample.rate > 0);
                }
            }
        }

        #[test]
        fn any_octets_are_read_without_a_panic(head in prop::sample::select(vec![1u32, 2]), words in prop::collection::vec(0..9u32, 0..200), missing in 0..100usize) {
            let words: Vec<u32> = [5, head].into_iter().chain(words).collect();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            if let Ok(datagram) = Datagram::new_checked(&bytes, bytes.len() + missing) {
                prop_assert!(datagram.packets().count() <= bytes.len() / ITEM_HEADER);
            }
        }
    }

    const AGENT: DatagramRepr = DatagramRepr {
        agent: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
        sub_agent: 0,
        sequence: 7,
        uptime: 1,
    };

    /// Builds a datagram with one sample of a packet of 60 octets plus FCS, and sets word `at` of
    /// it to `word`.
    fn changed(at: usize, word: u32) -> Vec<u8> {
        let mut out = [0; 200];
        let mut writer = AGENT.begin(&mut out).unwrap();
        let sample = FlowSample {
            rate: 10,
            ..FlowSample::default()
        };
        let raw = RawRepr {
            protocol: 1,
            frame_length: 64,
            stripped: 4,
            header: &[9; 40],
        };
        writer.push(&sample, &raw).unwrap();
        let len = writer.finish();
        assert_eq!(len, AGENT.header_len() + raw.sample_len());
        put_words(&mut out, at, [word]);
        out[..len].to_vec()
    }

    #[test]
    fn contradictory_datagrams_are_refused() {
        let read = |bytes: &[u8]| {
            Datagram::new_checked(bytes, bytes.len()).map(|datagram| datagram.packets().count())
        };
        assert_eq!(read(&changed(12, 0)), Ok(1));
        for (at, word, why) in [
            (0, 4, "version"),
            (4, 3, "agent address type"),
            (24, 2, "samples"),
            (24, u32::MAX, "samples"),
            (32, 97, "length of the sample"),
            (32, u32::MAX, "length of the sample"),
            (32, 28, "length of the sample, below its header"),
            (64, 2, "records"),
            (64, u32::MAX, "records"),
            (72, 57, "length of the record"),
            (72, 12, "length of the record, below its header"),
            (88, 41, "header length"),
            (84, 65, "stripped"),
        ] {
            assert!(read(&changed(at, word)).is_err(), "{why} {word}");
        }
        // Other formats, enterprises and protocols, sampling rate 0, or no samples: no packets.
        for (at, word) in [
            (28, 2),
            (28, 1 << 12 | 1),
            (68, 1001),
            (76, 2),
            (44, 0),
            (24, 0),
        ] {
            assert_eq!(read(&changed(at, word)), Ok(0), "{at} {word}");
        }
    }

    #[test]
    fn padding_is_excluded() {
        let bytes = changed(80, 34);
        let datagram = Datagram::new_checked(&bytes, bytes.len()).unwrap();
        let packet = datagram.packets().next().unwrap();
        assert_eq!((packet.bytes.len(), packet.wire_len), (30, 30));
    }

    #[test]
    fn internal_and_unknown_ports_have_no_index() {
        assert_eq!(Port::from_index(3).index(), Some(3));
        for (format, value) in [(0, 0), (0, INTERNAL), (1, 3), (2, 3)] {
            assert_eq!(Port { format, value }.index(), None);
        }
    }
}
