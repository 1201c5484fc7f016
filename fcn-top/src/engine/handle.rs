//! Opening an interface through libpcap.

use super::kernel_filter::{PacketFilter, message};
use super::passed::ANY;
use super::rdma;
use fcn_wire::{LinkType, Profile};
use pcap::{Active, BpfProgram, Capture, Linktype, Precision};

/// The link type of all interfaces together that says which one each packet passed.
const LINUX_SLL2: Linktype = Linktype(276);
/// How long the kernel may gather packets before it hands them over, in milliseconds.
pub const GATHER: i32 = 10;

/// How to capture.
#[derive(Clone, Debug)]
pub struct Capturing {
    /// Octets of the ring that the kernel puts packets into.
    pub buffer: u64,
    /// Octets kept of each packet.
    pub snap_len: u32,
    /// Whether packets for others are wanted.
    pub promiscuous: bool,
    /// Which packets.
    pub filter: PacketFilter,
    /// Code points.
    pub profile: Profile,
    /// Whether no interface is named but those asked for.
    pub private: bool,
}

/// An open handle.
pub struct Handle {
    /// What packets come from.
    pub capture: Capture<Active>,
    /// What its packets begin with.
    pub link: LinkType,
    /// What packets have to pass here, behind the kernel's filter.
    pub filter: Option<BpfProgram>,
    /// Nanoseconds in what libpcap calls a microsecond of a time stamp.
    pub tick: u64,
}

/// Opens an interface that is up.
pub(super) fn open(name: &str, how: &Capturing) -> Result<Handle, String> {
    let mut capture = Capture::from_device(name)
        .map_err(message)?
        // All interfaces together cannot be made promiscuous, and libpcap complains.
        .promisc(how.promiscuous && name != ANY)
        .snaplen(i32::try_from(how.snap_len).unwrap_or(i32::MAX))
        .buffer_size(i32::try_from(how.buffer).unwrap_or(i32::MAX))
        .timeout(GATHER)
        .precision(Precision::Nano)
        .open()
        .map_err(message)?
        .setnonblock()
        .map_err(message)?;
    // Says on which interface each packet was seen, so that what passes several counts once; old libpcaps do not know it, and
    // the monitor tells what that means.
    if name == ANY {
        capture.set_datalink(LINUX_SLL2).unwrap_or_default();
    }
    let number = capture.get_datalink().0;
    let link = u32::try_from(number)
        .ok()
        .and_then(LinkType::from_pcap)
        .ok_or_else(|| format!("its link type {number} is none that is read here"))?;
    let filter = how
        .filter
        .install(&mut capture, link, &how.profile)
        .map_err(|why| format!("--filter: {why}"))?;
    Ok(Handle {
        capture,
        link,
        filter,
        // Nanoseconds were asked for, which rdmasniff has not.
        tick: if rdma::interfaces(name).is_some() {
            1_000
        } else {
            1
        },
    })
}
