//! Opens interfaces through libpcap.

use super::all_interfaces::ANY;
use super::kernel_filter::{PacketFilter, message};
use super::rdma;
use fcn_wire::{LinkType, Profile};
use pcap::{Active, BpfProgram, Capture, Linktype, Precision};

/// Link type of the capture on all interfaces that records the interface of each packet.
const LINUX_SLL2: Linktype = Linktype(276);
/// Time that the kernel may collect packets before it delivers them, in milliseconds.
pub const GATHER: i32 = 10;

/// Capture options.
#[derive(Clone, Debug)]
pub struct Capturing {
    /// Size of the kernel's packet ring, in octets.
    pub buffer: u64,
    /// Octets captured of each packet.
    pub snap_len: u32,
    /// True to receive packets for other hosts.
    pub promiscuous: bool,
    /// Packet filter.
    pub filter: PacketFilter,
    /// Code points.
    pub profile: Profile,
    /// True if only the requested interfaces may be named.
    pub private: bool,
}

/// An open capture handle.
pub struct Handle {
    /// The libpcap capture.
    pub capture: Capture<Active>,
    /// Link type.
    pub link: LinkType,
    /// Filter applied here, after the kernel's.
    pub filter: Option<BpfProgram>,
    /// Nanoseconds per unit that libpcap calls a microsecond in time stamps.
    pub tick: u64,
}

/// Opens an interface that is up.
pub(super) fn open(name: &str, how: &Capturing) -> Result<Handle, String> {
    let mut capture = Capture::from_device(name)
        .map_err(message)?
        // The capture on all interfaces cannot be promiscuous, and libpcap complains.
        .promisc(how.promiscuous && name != ANY)
        .snaplen(i32::try_from(how.snap_len).unwrap_or(i32::MAX))
        .buffer_size(i32::try_from(how.buffer).unwrap_or(i32::MAX))
        .timeout(GATHER)
        .precision(Precision::Nano)
        .open()
        .map_err(message)?
        .setnonblock()
        .map_err(message)?;
    // Records the interface of each packet, so that a packet captured on several counts once. Old
    // versions of libpcap do not support it; the monitor then warns of the consequences.
    if name == ANY {
        capture.set_datalink(LINUX_SLL2).unwrap_or_default();
    }
    let number = capture.get_datalink().0;
    let link = u32::try_from(number)
        .ok()
        .and_then(LinkType::from_pcap)
        .ok_or_else(|| format!("unsupported link type {number}"))?;
    let filter = how
        .filter
        .install(&mut capture, link, &how.profile)
        .map_err(|why| format!("--filter: {why}"))?;
    Ok(Handle {
        capture,
        link,
        filter,
        // Nanoseconds were requested, which rdmasniff does not support.
        tick: if rdma::interfaces(name).is_some() {
            1_000
        } else {
            1
        },
    })
}
