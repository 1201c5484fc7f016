//! What is shown of each message: plans made from octets by `fcn-wire`'s views. No Wireshark in here.

mod fast_cnp;
mod ioam;
mod pfc;
mod proxy_cn;
mod roce;
mod wan_fcn;

pub use fast_cnp::{OptionsAt, has_ours, options, quotation};
pub use pfc::mac_control;
pub use proxy_cn::proxy_cn;
pub use roce::{RoceAt, info, roce, with_remark};
pub use wan_fcn::wan_fcn;

use crate::locate::{Known, ip_header};
use fcn_wire::Profile;
use fcn_wire::frame::{Frame, LinkType};
use std::net::IpAddr;

/// The octets that something is shown from, and how.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The data source as captured: the frame, or what was reassembled.
    pub bytes: &'a [u8],
    /// Octets of the data source on the wire.
    pub wire_len: usize,
    /// Code points in use.
    pub profile: &'a Profile,
    /// Whether ICRCs are to be verified.
    pub check_icrc: bool,
    /// Whether this is quoted in another packet (an ICMP error, a proxy notification).
    pub quoted: bool,
}

impl<'a> Scene<'a> {
    /// The packet whose IP header begins at `start`, with its layers located; offsets from `start`.
    fn frame(&self, start: usize) -> Frame<'a> {
        let bytes = self.bytes.get(start..).unwrap_or_default();
        // What is quoted is cut by design: its own length fields tell what was there.
        let wire_len = if self.quoted {
            usize::from(u16::MAX) + 40
        } else {
            self.wire_len.saturating_sub(start)
        };
        Frame::parse(bytes, wire_len, LinkType::RawIp, self.profile)
    }

    /// The packet whose UDP payload begins at `payload`, and where its IP header begins.
    fn frame_of_payload(
        &self,
        payload: usize,
        source: Option<IpAddr>,
    ) -> Option<(usize, Frame<'a>)> {
        let start = self.ip_header(payload.checked_sub(8)?, Known::Udp, source?)?;
        let frame = self.frame(start);
        let found = frame.datagram()?.payload_at() + start;
        (found == payload).then_some((start, frame))
    }

    fn ip_header(&self, place: usize, what: Known, source: IpAddr) -> Option<usize> {
        match source {
            IpAddr::V4(source) => ip_header(self.bytes, place, what, &source.octets()),
            IpAddr::V6(source) => ip_header(self.bytes, place, what, &source.octets()),
        }
    }

    fn slice(&self, start: usize, len: usize) -> &'a [u8] {
        let rest = self.bytes.get(start..).unwrap_or_default();
        rest.get(..len).unwrap_or(rest)
    }
}
