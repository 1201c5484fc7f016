//! IOAM traces: their paths, and the queues and delays at each hop.

use crate::record::HopRecord;
use arrayvec::ArrayVec;
use fcn_observe::Bounded;
use fcn_wire::ioam::{NOT_AVAILABLE, Node, Trace};

/// Maximum number of hops of a path; of a longer trace only the first ones count.
pub const MAX_HOPS: usize = 32;
/// Nanoseconds per second.
const SECOND: u64 = 1_000_000_000;
/// Transit delay that did not fit (RFC 9197 section 4.4.2.5): only the top bit is set.
const LONG_DELAY: u32 = 0x8000_0000;

/// Identifier of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum HopId {
    /// Node number.
    Node(u64),
    /// Ingress and egress interface of a node without a number.
    Interfaces(u32, u32),
    /// Neither.
    Unknown,
    /// Not a hop: the first element of every path.
    Namespace(u16),
}

/// Data written by a node.
#[derive(Clone, Copy, Debug, Default)]
struct NodeData {
    node: Option<u64>,
    interfaces: Option<(u32, u32)>,
    queue: Option<u32>,
    delay: Option<u32>,
    seconds: Option<u32>,
    fraction: Option<u32>,
}

impl NodeData {
    #[inline]
    fn from_node(node: &Node<'_>) -> Self {
        let available = |bit| node.word(bit).filter(|word| *word != NOT_AVAILABLE);
        let wide = |bit| node.wide(bit).filter(|wide| *wide != u64::MAX);
        let number = available(0).map(|word| u64::from(word & 0x00FF_FFFF));
        let short = available(1).map(|word| (word >> 16, word & 0xFFFF));
        Self {
            node: number.or_else(|| wide(8).map(|wide| wide & (u64::MAX >> 8))),
            interfaces: wide(9)
                .map(|wide| ((wide >> 32) as u32, wide as u32))
                .or(short),
            queue: available(6),
            delay: available(4).map(|word| word.min(LONG_DELAY)),
            seconds: available(2),
            fraction: available(3),
        }
    }

    const fn id(&self) -> HopId {
        match (self.node, self.interfaces) {
            (Some(node), _) => HopId::Node(node),
            (None, Some((ingress, egress))) => HopId::Interfaces(ingress, egress),
            (None, None) => HopId::Unknown,
        }
    }

    /// Returns the arrival time in nanoseconds, by the node's clock.
    fn time(&self, binary: bool) -> Option<u64> {
        let (seconds, fraction) = (u64::from(self.seconds?), u64::from(self.fraction?));
        let nanoseconds = if binary {
            (fraction * SECOND) >> 32
        } else {
            fraction
        };
        Some(seconds * SECOND + nanoseconds)
    }
}

#[derive(Clone, Debug, Default)]
struct Hop {
    last: NodeData,
    queue_max: Option<u32>,
    queue_sum: u64,
    queues: u64,
    delay_max: Option<u32>,
    between: Option<u64>,
}

impl Hop {
    fn add(&mut self, node: &NodeData, between: Option<u64>) {
        self.last = *node;
        self.queue_max = self.queue_max.max(node.queue);
        if let Some(queue) = node.queue {
            self.queue_sum = self.queue_sum.saturating_add(queue.into());
            self.queues += 1;
        }
        self.delay_max = self.delay_max.max(node.delay);
        self.between = between;
    }
}

#[derive(Clone, Debug)]
struct Path {
    number: u32,
    namespace: u16,
    traces: u64,
    last_seen: u64,
    /// True if fractions of time stamps are in units of 2^-32 s.
    binary: bool,
    hops: Box<[Hop]>,
}

/// IOAM paths with a maximum number; the least recently used is evicted first.
///
/// A path is a namespace and the nodes passed, by their numbers, or by their interfaces if they
/// have no number; two traces with the same ones took the same path. Values that a node could not
/// provide (all ones, RFC 9197 section 4.4.2) are omitted.
///
/// The fraction of a time stamp may be nanoseconds (PTP) or units of 2^-32 s (NTP): RFC 9197
/// section 5 leaves it to the deployment, and a trace does not say. It is taken for nanoseconds
/// until a fraction of 10^9 or more shows that the path's nodes use the other unit. There is no
/// time between two nodes without both seconds and fraction, nor if their clocks differ so that it
/// would be negative.
#[derive(Debug)]
pub struct Paths {
    paths: Bounded<Box<[HopId]>, Path>,
    next: u32,
}

impl Paths {
    /// Keeps at most `limit` paths; 0 counts as 1.
    pub fn new(limit: usize) -> Self {
        Self {
            paths: Bounded::new(limit),
            next: 1,
        }
    }

    /// Processes a trace captured at `at`, in nanoseconds since the epoch. A trace without nodes,
    /// or whose nodes cannot be separated, is ignored.
    pub fn observe(&mut self, at: u64, trace: &Trace<'_>) {
        let mut nodes = 0;
        for node in trace.nodes() {
            if node.is_err() {
                return;
            }
            nodes += 1;
        }
        let hops = nodes.min(MAX_HOPS);
        if hops == 0 {
            return;
        }
        // The last node passed comes first in the trace.
        let mut seen: ArrayVec<NodeData, MAX_HOPS> = ArrayVec::new();
        let behind = trace.nodes().flatten().skip(nodes - hops).take(hops);
        seen.extend(behind.map(|node| NodeData::from_node(&node)));
        seen.reverse();
        let namespace = trace.namespace_id();
        let mut ids: ArrayVec<HopId, { MAX_HOPS + 1 }> = ArrayVec::new();
        ids.push(HopId::Namespace(namespace));
        ids.extend(seen.iter().map(NodeData::id));
        let ids = ids.as_slice();
        let path = match self.paths.slot_of(ids) {
            Some(_) => self.paths.touch(ids, at),
            None => {
                let number = self.next;
                self.next = self.next.wrapping_add(1).max(1);
                let path = self
                    .paths
                    .get_or_insert_with(ids.into(), at, || Path::new(number, namespace, hops));
                Some(path)
            }
        };
        if let Some(path) = path {
            path.add(at, &seen);
        }
    }

    /// Returns the hops of all paths, path by path in order of first appearance, the first node
    /// passed first.
    pub fn hops(&self) -> impl Iterator<Item = HopRecord> {
        let mut paths: Vec<&Path> = self.paths.iter().map(|(_, path)| path).collect();
        paths.sort_unstable_by_key(|path| path.number);
        paths.into_iter().flat_map(Path::records)
    }
}

impl Path {
    fn new(number: u32, namespace: u16, hops: usize) -> Self {
        Self {
            number,
            namespace,
            traces: 0,
            last_seen: 0,
            binary: false,
            hops: vec![Hop::default(); hops].into(),
        }
    }

    fn add(&mut self, at: u64, nodes: &[NodeData]) {
        self.traces += 1;
        self.last_seen = self.last_seen.max(at);
        self.binary |= nodes
            .iter()
            .filter_map(|seen| seen.fraction)
            .any(|fraction| u64::from(fraction) >= SECOND);
        let mut before = None;
        for (hop, seen) in self.hops.iter_mut().zip(nodes) {
            let time = seen.time(self.binary);
            let between = time
                .zip(before)
                .and_then(|(now, then): (u64, u64)| now.checked_sub(then));
            hop.add(seen, between);
            before = time;
        }
    }

    fn records(&self) -> impl Iterator<Item = HopRecord> {
        self.hops.iter().zip(1..).map(|(hop, place)| HopRecord {
            path: self.number,
            traces: self.traces,
            hop: place,
            node: hop.last.node,
            namespace: self.namespace,
            ingress: hop.last.interfaces.map(|(ingress, _)| ingress),
            egress: hop.last.interfaces.map(|(_, egress)| egress),
            queue: hop.last.queue,
            queue_mean: (hop.queues > 0).then(|| hop.queue_sum as f64 / hop.queues as f64),
            queue_max: hop.queue_max,
            delay: hop.last.delay.map(u64::from),
            delay_max: hop.delay_max.map(u64::from),
            between: hop.between,
            last_seen: self.last_seen,
        })
    }
}

#[cfg(test)]
mod tests;
