//! IOAM trace option data (RFC 9197 section 4.4), as carried in an IPv6 option (RFC 9486) or copied
//! into a Fast CNP.
//!
//! Other IOAM option types (proof of transit, edge-to-edge, direct export) are named but not
//! parsed.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  IPv6 option data (RFC 9486 section 3)
//! |   Reserved    | IOAM Opt-Type |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  trace
//! |         Namespace-ID          | NodeLen |O|L|A|U|RemainingLen |   0
//! |               IOAM-Trace-Type                 |   Reserved    |   4
//! |     free space (RemainingLen words, pre-allocated only)       |   8
//! |     data of the node passed last ...                          |
//! |     data of the node passed first                             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  data of a node, by the trace type's bits
//! |   Hop Limit   |                    node_id                    |  bit 0
//! |          ingress_if           |           egress_if           |      1
//! |   seconds; fraction; transit delay; namespace; queue depth;   |      2 to 6
//! |                      checksum complement                      |      7
//! |   Hop Limit   |                 node_id (56)                  |      8
//! |              ingress_if (32), then egress_if (32)             |      9
//! |                 namespace-specific data (64)                  |     10
//! |                       buffer occupancy                        |     11
//! |                  undefined, 32 bits each                      |     12 to 21
//! |    Length     |                   Schema ID                   |     22
//! |           opaque state snapshot, Length words                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::ioam::{NodeValues, OptType, Trace, TraceRepr, TraceType, fill_preallocated};
//!
//! let trace_type = TraceType::default().with(0).with(6);
//! let empty = TraceRepr {
//!     namespace_id: 1,
//!     node_len: trace_type.node_len() as u8,
//!     remaining_len: trace_type.node_len() as u8,
//!     trace_type,
//!     ..TraceRepr::default()
//! };
//! let mut bytes = [&empty.to_bytes()[..], &vec![0; 4 * trace_type.node_len()]].concat();
//!
//! let node = NodeValues { node_id: 0x301, queue_depth: 4000, ..NodeValues::default() };
//! assert!(fill_preallocated(&mut bytes, &node)?);
//! assert!(!fill_preallocated(&mut bytes, &node)?, "no space for another");
//! let trace = Trace::new_checked(OptType::Preallocated, &bytes)?;
//! assert_eq!((trace.deepest_queue(), trace.overflow()), (Some(4000), true));
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::fields::{Bits, Values, bits, values, view_fields};
use crate::finding::{Findings, Rule};
use crate::layer::Layer;
use crate::octets::{put, put_u24, u16_at, u32_at, u64_at};
use core::fmt;

/// Length of the trace header before the node data list, in octets.
pub const TRACE_HEADER_LEN: usize = 8;
/// Octets before the trace in an IPv6 IOAM option: reserved and IOAM option type (RFC 9486 section
/// 3).
pub const OPTION_PREFIX_LEN: usize = 2;
/// Value of a 4-octet field that a node could not fill (RFC 9197 section 4.4.2).
pub const NOT_AVAILABLE: u32 = u32::MAX;

mod field {
    /// NodeLen (5), flags (4), RemainingLen (7).
    pub const LENGTHS: usize = 2;
    pub const TRACE_TYPE: usize = 4;
    pub const RESERVED: usize = 7;
}

/// Overflow among the four flags.
const OVERFLOW: u8 = 8;

/// Returns the error for a length in the trace header, in 4-octet units, that contradicts the
/// trace.
#[cold]
const fn length_error(field: &'static str, value: usize, min: usize, max: usize) -> Error {
    Error::length(Layer::Ioam, field::LENGTHS, field, value, min, max)
}

/// IOAM option type (RFC 9197 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptType {
    /// Pre-allocated trace: nodes fill the space reserved by the first node.
    Preallocated,
    /// Incremental trace: nodes add their data and lengthen the option.
    Incremental,
    /// Any other type.
    Other(u8),
}

impl OptType {
    /// Returns the type's number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Preallocated => 0,
            Self::Incremental => 1,
            Self::Other(code) => code,
        }
    }

    /// Returns true if this crate parses the option's data.
    #[must_use]
    pub const fn is_trace(self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

impl From<u8> for OptType {
    fn from(code: u8) -> Self {
        match code {
            0 => Self::Preallocated,
            1 => Self::Incremental,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for OptType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preallocated => f.write_str("pre-allocated trace"),
            Self::Incremental => f.write_str("incremental trace"),
            Self::Other(2) => f.write_str("proof of transit"),
            Self::Other(3) => f.write_str("edge to edge"),
            Self::Other(4) => f.write_str("direct export"),
            Self::Other(code) => write!(f, "unknown IOAM option type {code}"),
        }
    }
}

/// The data of an IPv6 IOAM option (RFC 9486 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoamOption<'a> {
    /// Reserved octet, zero when sent.
    pub reserved: u8,
    /// IOAM option type.
    pub opt_type: OptType,
    /// The rest: a trace if `opt_type` is a trace type.
    pub body: &'a [u8],
}

impl<'a> IoamOption<'a> {
    /// Splits the option data `data` into its parts.
    ///
    /// # Errors
    /// Fails on fewer than 2 octets.
    pub fn parse(data: &'a [u8]) -> Result<Self> {
        let Some((prefix, body)) = data.split_first_chunk::<OPTION_PREFIX_LEN>() else {
            return Err(Error::short(Layer::Ioam, OPTION_PREFIX_LEN, data.len()));
        };
        Ok(Self {
            reserved: prefix[0],
            opt_type: OptType::from(prefix[1]),
            body,
        })
    }

    /// Returns the trace, or `None` for another option type.
    ///
    /// # Errors
    /// See [`Trace::new_checked`]; offsets are from the start of the option data.
    pub fn trace(&self) -> Option<Result<Trace<'a>>> {
        self.opt_type.is_trace().then(|| {
            Trace::new_checked(self.opt_type, self.body).map_err(|e| e.at(OPTION_PREFIX_LEN))
        })
    }

    /// Adds the rules that the option breaks, with offsets from the start of the option data.
    pub fn check(&self, findings: &mut Findings) {
        if self.reserved != 0 {
            findings.push(Rule::IoamReserved, 0, 1);
        }
        match self.trace() {
            None => {}
            Some(Ok(trace)) => findings.within(OPTION_PREFIX_LEN, |f| trace.check(f)),
            Some(Err(e)) => findings.push(Rule::IoamMalformed, e.offset, self.body.len()),
        }
    }

    /// Returns the octets before the body.
    #[must_use]
    pub const fn prefix(&self) -> [u8; OPTION_PREFIX_LEN] {
        [self.reserved, self.opt_type.code()]
    }

    /// Returns the length in octets of a Hop-by-Hop Options header that holds only a trace of
    /// `trace` octets, at 4n.
    #[must_use]
    pub const fn header_len(trace: usize) -> usize {
        (4 + 2 + OPTION_PREFIX_LEN + trace).next_multiple_of(8)
    }
}

/// IOAM-Trace-Type: the set of data fields that each node writes. Bit 0 is the most significant of
/// the 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TraceType(u32);

impl TraceType {
    /// Bit of the opaque state snapshot.
    pub const OPAQUE: u8 = 22;
    /// Reserved bit.
    pub const RESERVED: u8 = 23;

    /// Creates it from the 24-bit field; higher bits are dropped.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & 0x00FF_FFFF)
    }

    /// Returns it with `bit` (0 to 23) set too.
    #[must_use]
    pub const fn with(self, bit: u8) -> Self {
        if bit > 23 {
            self
        } else {
            Self(self.0 | 1 << (23 - bit))
        }
    }

    /// Returns the 24-bit field.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns true if `bit` (0 to 23) is set.
    #[must_use]
    pub const fn has(self, bit: u8) -> bool {
        bit <= 23 && self.0 & (1 << (23 - bit)) != 0
    }

    /// Returns true if any of the undefined bits 12 to 21 is set.
    #[must_use]
    pub const fn has_undefined(self) -> bool {
        self.0 & 0x0000_0FFC != 0
    }

    /// Returns the offset in a node's data of the field of `bit` (0 to 22), or `None` if nodes have
    /// no such field.
    #[inline]
    #[must_use]
    pub const fn offset_of(self, bit: u8) -> Option<usize> {
        /// Bits 8 to 10, whose fields have 8 octets; the others have 4.
        const WIDE: u32 = 0x00E000;
        if bit > Self::OPAQUE || !self.has(bit) {
            return None;
        }
        let before = 24 - bit as u32;
        let fields =
            (self.0 >> before).count_ones() + (self.0 & WIDE).unbounded_shr(before).count_ones();
        Some(fields as usize * 4)
    }

    /// Returns the NodeLen that the type requires, in 4-octet units without the opaque snapshot.
    #[must_use]
    pub const fn node_len(self) -> usize {
        let wide = (self.has(8) as usize) + (self.has(9) as usize) + (self.has(10) as usize);
        // Bits 0 to 21 are 4 octets each, three of them 8.
        (self.0 >> 2).count_ones() as usize + wide
    }
}

/// View of IOAM trace option data: header and node data list.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'a> {
    opt_type: OptType,
    bytes: &'a [u8],
}

impl<'a> Trace<'a> {
    /// Returns a view of the trace in `bytes`, the whole trace in the option.
    ///
    /// # Errors
    /// Fails if `bytes` is shorter than the 8-octet header. The header's statements about the list
    /// are checked when the list is read: [`free_len`](Self::free_len), [`nodes`](Self::nodes),
    /// [`check`](Self::check).
    pub fn new_checked(opt_type: OptType, bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < TRACE_HEADER_LEN {
            return Err(Error::short(Layer::Ioam, TRACE_HEADER_LEN, bytes.len()));
        }
        Ok(Self { opt_type, bytes })
    }

    /// Returns pre-allocated or incremental.
    #[must_use]
    pub const fn opt_type(&self) -> OptType {
        self.opt_type
    }

    /// Returns all octets of the trace.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    fn lengths(&self) -> u16 {
        u16_at(self.bytes, field::LENGTHS)
    }

    /// Returns the Overflow flag: a node that had data to add found too little space.
    #[must_use]
    pub fn overflow(&self) -> bool {
        self.flags() & OVERFLOW != 0
    }

    /// Returns the number of free octets in the list, before the first node's data; 0 in an
    /// incremental trace.
    ///
    /// # Errors
    /// Fails if RemainingLen is larger than the list.
    pub fn free_len(&self) -> Result<usize> {
        let list = self.bytes.len() - TRACE_HEADER_LEN;
        let remaining = usize::from(self.remaining_len());
        match self.opt_type {
            OptType::Preallocated if remaining * 4 > list => {
                Err(length_error("RemainingLen", remaining, 0, list / 4))
            }
            OptType::Preallocated => Ok(remaining * 4),
            _ => Ok(0),
        }
    }

    /// Returns the nodes' data, the **last** node passed first; a single error if header and list
    /// do not reveal where they begin.
    #[must_use]
    pub fn nodes(&self) -> Nodes<'a> {
        let (trace_type, node_len) = (self.trace_type(), self.node_len().into());
        let (end, expected) = (self.bytes.len(), trace_type.node_len());
        let (at, failed) = match self.free_len() {
            Ok(free) if TRACE_HEADER_LEN + free < end && node_len != expected => (
                end,
                Some(length_error("NodeLen", node_len, expected, expected)),
            ),
            Ok(free) => (TRACE_HEADER_LEN + free, None),
            Err(e) => (end, Some(e)),
        };
        Nodes {
            bytes: self.bytes,
            at,
            trace_type,
            node_len,
            failed,
        }
    }

    /// Returns the deepest queue that a node reports, in the unit defined by the namespace.
    ///
    /// Also returns `None` if the node list is ragged, because then the starts of its nodes are
    /// unknown.
    #[must_use]
    pub fn deepest_queue(&self) -> Option<u32> {
        let mut deepest = None;
        for node in self.nodes() {
            deepest = deepest.max(node.ok()?.queue_depth());
        }
        deepest
    }

    /// Adds the rules that the trace breaks, with offsets from the start of the trace.
    pub fn check(&self, findings: &mut Findings) {
        let list = self.bytes.len() - TRACE_HEADER_LEN;
        let trace_type = self.trace_type();
        if trace_type.has_undefined() {
            findings.push(Rule::IoamUndefined, field::TRACE_TYPE, 3);
        }
        if trace_type.has(TraceType::RESERVED) {
            findings.push(Rule::IoamReservedBit, field::TRACE_TYPE, 3);
        }
        if self.flags() & 1 != 0 {
            findings.push(Rule::IoamFlag, field::LENGTHS, 2);
        }
        if self.overflow() {
            findings.push(Rule::IoamOverflow, field::LENGTHS, 2);
        }
        if self.reserved() != 0 {
            findings.push(Rule::IoamReserved, field::RESERVED, 1);
        }
        if self.free_len().is_err() {
            findings.push(Rule::IoamRemaining, field::LENGTHS, 2);
            return;
        }
        let node_len = usize::from(self.node_len());
        if node_len == 0 && trace_type.node_len() != 0 && list > 0 {
            findings.push(Rule::IoamNodeLenZero, field::LENGTHS, 2);
        } else if node_len != trace_type.node_len() {
            findings.push(Rule::IoamNodeLen, field::LENGTHS, 2);
        } else if let Some(e) = self.nodes().find_map(Result::err) {
            let len = self.bytes.len().saturating_sub(e.offset);
            findings.push(Rule::IoamRagged, e.offset, len);
        }
    }
}

/// Iterator over the nodes of a trace. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Nodes<'a> {
    bytes: &'a [u8],
    at: usize,
    trace_type: TraceType,
    node_len: usize,
    failed: Option<Error>,
}

impl<'a> Iterator for Nodes<'a> {
    type Item = Result<Node<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(e) = self.failed.take() {
            return Some(Err(e));
        }
        let rest = self.bytes.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        let offset = self.at;
        let mut len = self.node_len * 4;
        if self.trace_type.has(TraceType::OPAQUE) {
            // The snapshot's own length is in its first octet, in units of its data alone.
            len += 4 + rest.get(len).map_or(0, |units| usize::from(*units) * 4);
        }
        self.at = self.bytes.len();
        if len == 0 {
            return Some(Err(length_error("NodeLen", 0, 1, 31)));
        }
        let Some(bytes) = rest.get(..len) else {
            return Some(Err(Error::short(Layer::Ioam, len, rest.len()).at(offset)));
        };
        self.at = offset + len;
        Some(Ok(Node {
            offset,
            bytes,
            trace_type: self.trace_type,
        }))
    }
}

/// Data that one node wrote.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Offset in octets from the start of the trace.
    pub offset: usize,
    /// The node's data.
    pub bytes: &'a [u8],
    trace_type: TraceType,
}

impl<'a> Node<'a> {
    /// Returns the node's data fields, in the order of the trace type's bits.
    #[must_use]
    pub const fn fields(&self) -> Fields<'a> {
        Fields {
            node: *self,
            // Bit 0 on top, so that leading zeros are the bits to skip.
            left: (self.trace_type.bits() & !1) << 8,
            at: 0,
        }
    }

    /// Returns the queue depth, if the node wrote one.
    #[must_use]
    pub fn queue_depth(&self) -> Option<u32> {
        self.word(6).filter(|depth| *depth != NOT_AVAILABLE)
    }

    /// Returns the first four octets of the field of `bit` (0 to 22): the whole field, except for
    /// the wide fields (8 to 10) and the opaque snapshot. Faster than [`fields`](Self::fields) if
    /// only a few fields are needed.
    #[inline]
    #[must_use]
    pub fn word(&self, bit: u8) -> Option<u32> {
        let at = self.trace_type.offset_of(bit)?;
        Some(u32_at(self.bytes, at))
    }

    /// Returns the field of `bit` 8, 9 or 10, which has eight octets.
    #[inline]
    #[must_use]
    pub fn wide(&self, bit: u8) -> Option<u64> {
        let at = self
            .trace_type
            .offset_of(bit)
            .filter(|_| (8..=10).contains(&bit))?;
        Some(u64_at(self.bytes, at))
    }

    /// Returns the node identifier, if the node wrote one: the short one, otherwise the wide one.
    #[must_use]
    pub fn node_id(&self) -> Option<u64> {
        let short = self.word(0).map(|word| u64::from(word & 0x00FF_FFFF));
        short.or_else(|| self.wide(8).map(|wide| wide << 8 >> 8))
    }
}

/// One data field of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Bit of the trace type, 0 to 22.
    pub bit: u8,
    /// Offset in octets from the start of the trace.
    pub offset: usize,
    /// Length of the field in octets.
    pub len: usize,
    /// Value of the field.
    pub value: Value<'a>,
}

/// Value of a data field (RFC 9197 section 4.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Bit 0: Hop Limit on leaving the node, and node identifier (24 bits).
    HopLimitNodeId {
        /// Hop Limit.
        hop_limit: u8,
        /// Node identifier.
        node_id: u32,
    },
    /// Bit 1: interface identifiers, 16 bits each.
    Interfaces {
        /// Ingress.
        ingress: u16,
        /// Egress.
        egress: u16,
    },
    /// Bit 2: seconds of the arrival time, in the namespace's timestamp format.
    TimestampSeconds(u32),
    /// Bit 3: fraction of the arrival time, in the namespace's timestamp format.
    TimestampFraction(u32),
    /// Bit 4: nanoseconds in the node; the top bit indicates overflow.
    TransitDelay(u32),
    /// Bit 5: namespace-specific data.
    NamespaceData(u32),
    /// Bit 6: length of the egress queue, in a unit of the namespace (octets or buffers).
    QueueDepth(u32),
    /// Bit 7: checksum complement.
    ChecksumComplement(u32),
    /// Bit 8: Hop Limit and node identifier of 56 bits.
    HopLimitNodeIdWide {
        /// Hop Limit.
        hop_limit: u8,
        /// Node identifier.
        node_id: u64,
    },
    /// Bit 9: interface identifiers, 32 bits each.
    InterfacesWide {
        /// Ingress.
        ingress: u32,
        /// Egress.
        egress: u32,
    },
    /// Bit 10: namespace-specific data, 64 bits.
    NamespaceDataWide(u64),
    /// Bit 11: occupancy of the shared buffer pool, in a unit of the namespace.
    BufferOccupancy(u32),
    /// Bits 12 to 21, undefined.
    Undefined(u32),
    /// Bit 22: opaque state snapshot.
    Opaque {
        /// Schema identifier, 24 bits.
        schema_id: u32,
        /// The snapshot.
        data: &'a [u8],
    },
}

/// Iterator over the data fields of a node.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    node: Node<'a>,
    /// Remaining bits, bit 0 on top.
    left: u32,
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        if self.left == 0 {
            return None;
        }
        let bit = self.left.leading_zeros() as u8;
        self.left &= !(1 << 31 >> bit);
        let (bytes, at) = (self.node.bytes, self.at);
        let (word, wide) = (u32_at(bytes, at), u64_at(bytes, at));
        let (top, behind) = ((word >> 24) as u8, word & 0x00FF_FFFF);
        let mut len = if matches!(bit, 8..=10) { 8 } else { 4 };
        let value = match bit {
            0 => Value::HopLimitNodeId {
                hop_limit: top,
                node_id: behind,
            },
            1 => Value::Interfaces {
                ingress: (word >> 16) as u16,
                egress: word as u16,
            },
            2 => Value::TimestampSeconds(word),
            3 => Value::TimestampFraction(word),
            4 => Value::TransitDelay(word),
            5 => Value::NamespaceData(word),
            6 => Value::QueueDepth(word),
            7 => Value::ChecksumComplement(word),
            8 => Value::HopLimitNodeIdWide {
                hop_limit: top,
                node_id: wide << 8 >> 8,
            },
            9 => Value::InterfacesWide {
                ingress: word,
                egress: wide as u32,
            },
            10 => Value::NamespaceDataWide(wide),
            11 => Value::BufferOccupancy(word),
            TraceType::OPAQUE => {
                len += usize::from(top) * 4;
                Value::Opaque {
                    schema_id: behind,
                    data: bytes.get(at + 4..at + len)?,
                }
            }
            _ => Value::Undefined(word),
        };
        self.at = at + len;
        Some(Field {
            bit,
            offset: self.node.offset + at,
            len,
            value,
        })
    }
}

bits! {
    TraceType: |bits| Self(bits as u32), |kind: Self| kind.0.into();
}

view_fields! {
    Trace by bytes,
    /// Header of a trace.
    TraceRepr [TRACE_HEADER_LEN] {
        /// Namespace-ID.
        namespace_id: u16 = "Namespace-ID", [(0, 0, 16)];
        /// NodeLen: length of one node's data in 4-octet units, without an opaque snapshot; 0 to
        /// 31.
        node_len: u8 = "NodeLen", [(field::LENGTHS, 0, 5)];
        /// The four flags: Overflow (8), Loopback (4) and Active (2, both RFC 9322), undefined (1).
        flags: u8 = "Flags", [(field::LENGTHS, 5, 4)];
        /// RemainingLen: free space in 4-octet units; 0 to 127.
        remaining_len: u8 = "RemainingLen", [(field::LENGTHS, 9, 7)];
        /// IOAM-Trace-Type.
        trace_type: TraceType = "IOAM-Trace-Type", [(field::TRACE_TYPE, 0, 24)];
        /// Octet after the trace type.
        reserved: u8 = "Reserved", [(field::RESERVED, 0, 8)];
    } and {}
}

/// Values that a node writes into a trace, one per data field; fields not in the trace type are not
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NodeValues<'a> {
    /// Hop Limit on leaving the node.
    pub hop_limit: u8,
    /// Node identifier; truncated to 24 bits in the short form, to 56 in the wide one.
    pub node_id: u64,
    /// Ingress interface; truncated to 16 bits in the short form.
    pub ingress: u32,
    /// Egress interface; truncated to 16 bits in the short form.
    pub egress: u32,
    /// Arrival time, seconds.
    pub seconds: u32,
    /// Arrival time, fraction.
    pub fraction: u32,
    /// Nanoseconds in the node.
    pub transit_delay: u32,
    /// Namespace-specific data; truncated to 32 bits in the short form.
    pub namespace_data: u64,
    /// Queue depth.
    pub queue_depth: u32,
    /// Checksum complement.
    pub checksum_complement: u32,
    /// Buffer occupancy.
    pub buffer_occupancy: u32,
    /// Schema identifier and data of the opaque snapshot; the data's length is a multiple of 4, at
    /// most 1020.
    pub opaque: (u32, &'a [u8]),
}

impl NodeValues<'_> {
    /// Returns the number of octets that a node writes for `trace_type`.
    #[must_use]
    pub const fn buffer_len(&self, trace_type: TraceType) -> usize {
        let opaque = if trace_type.has(TraceType::OPAQUE) {
            4 + self.opaque.1.len()
        } else {
            0
        };
        trace_type.node_len() * 4 + opaque
    }

    /// Writes the node's data for `trace_type` and returns its length.
    ///
    /// # Errors
    /// Fails if `out` is too short or the snapshot's length does not fit its length field.
    pub fn emit(&self, trace_type: TraceType, out: &mut [u8]) -> Result<usize> {
        let need = self.buffer_len(trace_type);
        if out.len() < need {
            return Err(Error::buffer(Layer::Ioam, need, out.len()));
        }
        let mut at = 0;
        for bit in (0..=TraceType::OPAQUE).filter(|bit| trace_type.has(*bit)) {
            let word = match bit {
                0 => u32::from(self.hop_limit) << 24 | self.node_id as u32 & 0x00FF_FFFF,
                1 => (self.ingress & 0xFFFF) << 16 | self.egress & 0xFFFF,
                2 => self.seconds,
                3 => self.fraction,
                4 => self.transit_delay,
                5 => self.namespace_data as u32,
                6 => self.queue_depth,
                7 => self.checksum_complement,
                8..=10 => {
                    let wide = match bit {
                        8 => u64::from(self.hop_limit) << 56 | self.node_id << 8 >> 8,
                        9 => u64::from(self.ingress) << 32 | u64::from(self.egress),
                        _ => self.namespace_data,
                    };
                    put(out, at, &wide.to_be_bytes());
                    at += 8;
                    continue;
                }
                11 => self.buffer_occupancy,
                TraceType::OPAQUE => {
                    let (schema_id, data) = self.opaque;
                    if data.len() % 4 != 0 || data.len() > 1020 {
                        let (field, len) = ("opaque snapshot octets", data.len());
                        return Err(Error::length(Layer::Ioam, at, field, len, 0, 1020));
                    }
                    put(out, at, &[(data.len() / 4) as u8]);
                    put_u24(out, at + 1, schema_id);
                    put(out, at + 4, data);
                    at += 4 + data.len();
                    continue;
                }
                _ => NOT_AVAILABLE,
            };
            put(out, at, &word.to_be_bytes());
            at += 4;
        }
        Ok(at)
    }
}

/// Returns the trace type, the number of free octets, and the length of one more node's data.
/// `None` if there is no data, or no space for it; in the latter case Overflow is set.
fn space_for(
    values: &NodeValues<'_>,
    opt_type: OptType,
    bytes: &mut [u8],
) -> Result<Option<(TraceType, usize, usize)>> {
    let trace = Trace::new_checked(opt_type, bytes)?;
    let free = match opt_type {
        OptType::Preallocated => trace.free_len()?,
        _ => usize::from(trace.remaining_len()) * 4,
    };
    let (trace_type, lengths) = (trace.trace_type(), trace.lengths());
    let need = values.buffer_len(trace_type);
    if need == 0 {
        return Ok(None);
    }
    // RFC 9197: a node does not add data to a trace that has already overflowed.
    if need > free || trace.overflow() {
        let full = lengths | u16::from(OVERFLOW) << 7;
        put(bytes, field::LENGTHS, &full.to_be_bytes());
        return Ok(None);
    }
    Ok(Some((trace_type, free, need)))
}

/// Subtracts `need` octets from the free space.
fn consume_space(bytes: &mut [u8], need: usize) {
    let left = u16_at(bytes, field::LENGTHS) - (need / 4) as u16;
    put(bytes, field::LENGTHS, &left.to_be_bytes());
}

/// Fills a node's data into the pre-allocated trace `bytes`. If there is data but no space, sets
/// Overflow.
///
/// Returns true if the data was written (RFC 9197 section 4.4.1).
///
/// # Errors
/// Fails if the trace is shorter than the header, RemainingLen exceeds the list, or a snapshot
/// cannot be written.
pub fn fill_preallocated(bytes: &mut [u8], values: &NodeValues<'_>) -> Result<bool> {
    let Some((trace_type, free, need)) = space_for(values, OptType::Preallocated, bytes)? else {
        return Ok(false);
    };
    let at = TRACE_HEADER_LEN + free - need;
    let room = bytes.get_mut(at..at + need).unwrap_or_default();
    values.emit(trace_type, room).map_err(|e| e.at(at))?;
    consume_space(bytes, need);
    Ok(true)
}

/// Adds a node's data to the incremental trace `bytes`, before the previous nodes' data. If there
/// is data but no space, sets Overflow.
///
/// Returns true if the data was added (RFC 9197 section 4.4.1).
///
/// # Errors
/// Fails if the trace is shorter than the header or a snapshot cannot be written.
pub fn append_incremental(bytes: &mut Vec<u8>, values: &NodeValues<'_>) -> Result<bool> {
    let Some((trace_type, _, need)) = space_for(values, OptType::Incremental, bytes)? else {
        return Ok(false);
    };
    let mut data = vec![0; need];
    values.emit(trace_type, &mut data)?;
    bytes.splice(TRACE_HEADER_LEN..TRACE_HEADER_LEN, data);
    consume_space(bytes, need);
    Ok(true)
}

/// Builds a trace of namespace 1 with space for `free` more octets, filled by `nodes` in the order
/// passed.
///
/// # Errors
/// Fails if a snapshot cannot be written.
pub fn filled_trace<'n>(
    trace_type: TraceType,
    free: usize,
    nodes: impl DoubleEndedIterator<Item = &'n NodeValues<'n>>,
) -> Result<Vec<u8>> {
    let header = TraceRepr {
        namespace_id: 1,
        node_len: trace_type.node_len() as u8,
        flags: 0,
        remaining_len: (free / 4) as u8,
        trace_type,
        reserved: 0,
    };
    let mut out = header.to_bytes().to_vec();
    out.resize(TRACE_HEADER_LEN + free, 0);
    for node in nodes.rev() {
        let at = out.len();
        out.resize(at + node.buffer_len(trace_type), 0);
        node.emit(trace_type, out.get_mut(at..).unwrap_or_default())?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOPS: TraceType = TraceType::from_bits(0b1100_0010 << 16);

    #[test]
    fn incremental_traces_grow_until_full() {
        let mut bytes = empty(HOPS, &[], 8);
        let node = |node_id| NodeValues {
            node_id,
            ..NodeValues::default()
        };
        let first = append_incremental(&mut bytes, &node(1)).unwrap();
        let one = bytes.clone();
        assert!(first && append_incremental(&mut bytes, &node(2)).unwrap());
        assert_eq!(
            bytes[bytes.len() - 12..],
            one[8..],
            "earlier data comes last"
        );
        let two = bytes.len();
        assert!(!append_incremental(&mut bytes, &node(3)).unwrap());
        let trace = Trace::new_checked(OptType::Incremental, &bytes).unwrap();
        assert_eq!((trace.remaining_len(), trace.overflow()), (2, true));
        assert_eq!((bytes.len(), two), (8 + 24, 8 + 24));
        let nodes = [node(1), node(2)];
        let filled = filled_trace(HOPS, 0, nodes.iter()).unwrap();
        assert_eq!(filled[8..], bytes[8..]);
    }

    const fn lengths(node_len: u16, remaining_len: u16) -> u16 {
        node_len << 11 | remaining_len
    }

    fn empty(trace_type: TraceType, list: &[u8], remaining: u8) -> Vec<u8> {
        let header = TraceRepr {
            namespace_id: 7,
            node_len: trace_type.node_len() as u8,
            remaining_len: remaining,
            trace_type,
            ..TraceRepr::default()
        };
        [&header.to_bytes()[..], list].concat()
    }

    proptest! {
        #[test]
        fn fields_follow_the_trace_type(bits in 0u32..1 << 24, seed in any::<u8>()) {
            let trace_type = TraceType::from_bits(bits & !2);
            let data: Vec<u8> = (0..trace_type.node_len() * 4).map(|i| (i as u8).wrapping_mul(seed)).collect();
            let node = Node { offset: 0, bytes: &data, trace_type };
            let mut found = 0;
            for field in node.fields() {
                found += 1;
                prop_assert_eq!(trace_type.offset_of(field.bit), Some(field.offset));
                prop_assert_eq!(node.word(field.bit), Some(u32_at(&data, field.offset)));
                let wide = (field.len == 8).then(|| u64_at(&data, field.offset));
                prop_assert_eq!(node.wide(field.bit), wide);
            }
            let absent = (0..=u8::MAX).filter(|bit| trace_type.offset_of(*bit).is_none()).count();
            prop_assert_eq!(found + absent, 256);
            let last = (0..22).rev().find_map(|bit| trace_type.offset_of(bit));
            prop_assert!(last.is_none_or(|at| at + 4 <= data.len()));
        }
    }

    fn findings_of(opt_type: OptType, bytes: &[u8]) -> Vec<Rule> {
        let mut findings = Findings::new();
        Trace::new_checked(opt_type, bytes)
            .unwrap()
            .check(&mut findings);
        findings.into_iter().map(|f| f.rule).collect()
    }

    #[test]
    fn node_len_follows_the_trace_type() {
        assert_eq!(HOPS.node_len(), 3);
        assert_eq!(TraceType::default().with(8).with(9).with(10).node_len(), 6);
        assert_eq!(TraceType::from_bits(0xFF_FFFF).node_len(), 25);
        assert_eq!(TraceType::default().with(22).with(23).node_len(), 0);
        assert!(
            TraceType::default().with(12).has_undefined()
                && TraceType::default().with(21).has_undefined()
        );
        assert!(!TraceType::from_bits(0xFF_F003).has_undefined());
    }

    #[test]
    fn nodes_fill_from_the_end_and_are_read_last_first() {
        let mut bytes = empty(HOPS, &[0; 24], 6);
        for (node_id, queue_depth) in [(1, 10), (2, 4000)] {
            let values = NodeValues {
                hop_limit: 64,
                node_id,
                queue_depth,
                ..NodeValues::default()
            };
            assert!(fill_preallocated(&mut bytes, &values).unwrap());
        }
        assert!(!fill_preallocated(&mut bytes, &NodeValues::default()).unwrap());
        let trace = Trace::new_checked(OptType::Preallocated, &bytes).unwrap();
        assert!(trace.overflow() && trace.remaining_len() == 0);
        let ids: Vec<_> = trace
            .nodes()
            .map(|n| n.unwrap().node_id().unwrap())
            .collect();
        assert_eq!(ids, [2, 1]);
        assert_eq!(trace.deepest_queue(), Some(4000));
        assert_eq!(
            findings_of(OptType::Preallocated, &bytes),
            [Rule::IoamOverflow]
        );
    }

    #[test]
    fn overflow_needs_data_to_add() {
        for (trace_type, overflows) in [
            (TraceType::default(), false),
            (TraceType::default().with(TraceType::RESERVED), false),
            (HOPS, true),
        ] {
            let mut bytes = empty(trace_type, &[], 0);
            assert_eq!(
                fill_preallocated(&mut bytes, &NodeValues::default()),
                Ok(false)
            );
            let trace = Trace::new_checked(OptType::Preallocated, &bytes).unwrap();
            assert_eq!(trace.overflow(), overflows, "{trace_type:?}");
        }
    }

    #[test]
    fn every_field_round_trips() {
        let all = TraceType::from_bits(0xFF_FFFE);
        let opaque = [9; 8];
        let values = NodeValues {
            hop_limit: 61,
            node_id: 0x00AA_BBCC_DDEE_FF01,
            ingress: 0x0001_0002,
            egress: 0x0003_0004,
            seconds: 5,
            fraction: 6,
            transit_delay: 7,
            namespace_data: 0x0809_0A0B_0C0D_0E0F,
            queue_depth: 8,
            checksum_complement: 9,
            buffer_occupancy: 10,
            opaque: (0x00AB_CDEF, &opaque),
        };
        let mut list = vec![0; values.buffer_len(all)];
        assert_eq!(values.emit(all, &mut list).unwrap(), 25 * 4 + 12);
        let bytes = empty(all, &list, 0);
        let trace = Trace::new_checked(OptType::Incremental, &bytes).unwrap();
        let nodes: Vec<_> = trace.nodes().map(Result::unwrap).collect();
        assert_eq!(nodes.len(), 1);
        let fields: Vec<_> = nodes[0].fields().collect();
        assert_eq!(fields.len(), 23);
        assert_eq!(
            fields[8].value,
            Value::HopLimitNodeIdWide {
                hop_limit: 61,
                node_id: values.node_id
            }
        );
        assert_eq!(
            fields[1].value,
            Value::Interfaces {
                ingress: 2,
                egress: 4
            }
        );
        assert_eq!(
            fields[9].value,
            Value::InterfacesWide {
                ingress: 0x0001_0002,
                egress: 0x0003_0004
            }
        );
        assert_eq!(fields[12].value, Value::Undefined(NOT_AVAILABLE));
        assert_eq!(
            fields[22].value,
            Value::Opaque {
                schema_id: 0x00AB_CDEF,
                data: &opaque
            }
        );
        let end = fields[22].offset + fields[22].len;
        assert_eq!(end, bytes.len());
        assert_eq!(
            findings_of(OptType::Incremental, &bytes),
            [Rule::IoamUndefined]
        );
    }

    #[test]
    fn wrong_lengths_are_reported() {
        let good = empty(HOPS, &[0; 24], 3);
        assert_eq!(findings_of(OptType::Preallocated, &good), []);
        let mut bad = good.clone();
        put(&mut bad, 2, &lengths(0, 3).to_be_bytes());
        assert_eq!(
            findings_of(OptType::Preallocated, &bad),
            [Rule::IoamNodeLenZero]
        );
        put(&mut bad, 2, &lengths(4, 3).to_be_bytes());
        assert_eq!(
            findings_of(OptType::Preallocated, &bad),
            [Rule::IoamNodeLen]
        );
        put(&mut bad, 2, &lengths(3, 7).to_be_bytes());
        assert_eq!(
            findings_of(OptType::Preallocated, &bad),
            [Rule::IoamRemaining]
        );
        put(&mut bad, 2, &lengths(3, 2).to_be_bytes());
        assert_eq!(findings_of(OptType::Preallocated, &bad), [Rule::IoamRagged]);
        bad = good.clone();
        bad[6] = 0x01;
        bad[7] = 1;
        assert_eq!(
            findings_of(OptType::Preallocated, &bad),
            [Rule::IoamReservedBit, Rule::IoamReserved]
        );
    }

    proptest! {
        #[test]
        fn parsing_any_bytes_terminates_without_panic(opt in 0u8..3, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let opt_type = OptType::from(opt);
            let Ok(trace) = Trace::new_checked(opt_type, &bytes) else {
                prop_assert!(bytes.len() < TRACE_HEADER_LEN);
                return Ok(());
            };
            let mut findings = Findings::new();
            trace.check(&mut findings);
            let mut covered = 0;
            for node in trace.nodes().flatten() {
                for field in node.fields() {
                    prop_assert!(field.offset + field.len <= bytes.len());
                    covered += field.len;
                }
            }
            prop_assert!(covered <= bytes.len());
            prop_assert!(TraceRepr::parse(&trace).to_bytes() == bytes[..TRACE_HEADER_LEN]);
        }

        #[test]
        fn filling_preserves_existing_data(bits: u32, mut bytes in proptest::collection::vec(any::<u8>(), 8..120)) {
            put_u24(&mut bytes, 4, bits);
            let before = bytes.clone();
            if let Ok(true) = fill_preallocated(&mut bytes, &NodeValues::default()) {
                let old = Trace::new_checked(OptType::Preallocated, &before).unwrap().free_len().unwrap();
                let new = Trace::new_checked(OptType::Preallocated, &bytes).unwrap().free_len().unwrap();
                prop_assert!(new < old);
                prop_assert_eq!(&bytes[TRACE_HEADER_LEN + old..], &before[TRACE_HEADER_LEN + old..]);
            }
        }
    }
}
