//! Notes that a wrapper attaches to a packet, and what can be derived from them.

use super::notes::{self, NoteType};
use super::packet::{Call, Packet, Tvb};
use super::{guard, handles, preferences};
use crate::names::P;
use crate::plan::ColumnText;
use crate::show::{self, OptionPresence, OptionsAt, PayloadAt, RoceAt, Source};
use fcn_wire::Profile;
use fcn_wire::bth::Opcode;

/// Maximum length of an IPv6 packet without a jumbo payload, in octets.
const LONGEST_PACKET: usize = 40 + u16::MAX as usize;

/// Returns the octets of a data source that are used to show the header at `at`, and their length
/// on the wire. An sFlow sample is the beginning of a packet, whose own length fields give its
/// length: the octets behind it in the datagram are not part of it.
pub fn readable_octets<'p>(packet: Packet<'p>, ds: Tvb<'p>, at: &PayloadAt) -> (&'p [u8], usize) {
    let (bytes, wire_len) = (ds.bytes(), ds.reported());
    if !packet.has_samples() {
        return (bytes, wire_len);
    }
    let sample = bytes.get(..at.start + at.captured).unwrap_or(bytes);
    (sample, wire_len + LONGEST_PACKET)
}

/// A note of a wrapper.
#[derive(Clone, Copy)]
pub struct Note<'p> {
    pub kind: NoteKind,
    /// Data source.
    pub ds: Tvb<'p>,
    /// Position of the noted part in it: the UDP payload, or the header.
    pub at: PayloadAt,
    pub quoted: bool,
    /// UDP port that it came by; 0 for other protocols.
    pub port: u16,
    /// True if the original dissector returned, rather than throwing an exception.
    pub returned: bool,
}

// SAFETY: nothing else is noted under this protocol.
unsafe impl NoteType for Note<'_> {
    const PROTOCOL: P = P::Roce;
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    Roce,
    Options {
        hop_by_hop: bool,
        fast: bool,
    },
    MacControl,
    Proxy,
    Wan,
    /// Apparently meant as a message of ours, but broken, so that other dissectors were tried
    /// first.
    Broken(P),
    /// The original dissector refused the packet.
    Void,
}

impl PayloadAt {
    /// Returns the data source, and the position in it of the octets that a dissector is called
    /// with.
    pub fn from_call(call: Call<'_>) -> (Tvb<'_>, Self) {
        let (ds, start) = call.tvb.source();
        let at = Self {
            start,
            captured: call.tvb.captured(),
            reported: call.tvb.reported(),
            addresses: call.packet.addresses(),
        };
        (ds, at)
    }
}

impl<'p> Note<'p> {
    /// Creates a note from the arguments of a dissector.
    pub fn new(call: Call<'p>, kind: NoteKind, port: u16) -> Self {
        let (ds, at) = PayloadAt::from_call(call);
        Self {
            kind,
            ds,
            at,
            quoted: call.packet.is_quoted(),
            port,
            returned: false,
        }
    }

    fn begins_with(&self, opcodes: &[Opcode]) -> bool {
        let opcode = self.ds.bytes().get(self.at.start);
        self.kind == NoteKind::Roce && opcode.is_some_and(|o| opcodes.contains(&Opcode(*o)))
    }

    /// Returns true if it is a CNP of either kind.
    pub fn is_cnp(&self) -> bool {
        self.begins_with(&[Opcode::CNP])
    }

    /// Returns true if it is a CNP, or InfiniBand's own, which prototypes send.
    pub fn is_any_cnp(&self) -> bool {
        self.begins_with(&[Opcode::CNP, Opcode::IB_CNP])
    }

    /// Returns true if it is an options header with a Fast CNP option.
    pub const fn is_fast_option(&self) -> bool {
        matches!(self.kind, NoteKind::Options { fast: true, .. })
    }

    /// Returns the code points for reading it.
    pub fn profile(&self, packet: Packet<'p>) -> Profile {
        match self.kind {
            NoteKind::Proxy | NoteKind::Broken(P::ProxyCn) => self.proxy_profile(packet),
            NoteKind::Wan => preferences::profile_at(P::WanFcn, self.port),
            NoteKind::Broken(protocol) => preferences::profile_at(protocol, self.port),
            _ => preferences::profile_at(P::Roce, self.roce_port(packet)),
        }
    }

    /// Returns the code points for reading a proxy notification. Decode As may assign RoCEv2 to
    /// several ports: the port is that of the flow that the message is about.
    fn proxy_profile(&self, packet: Packet<'p>) -> Profile {
        let mut profile = preferences::profile_at(P::ProxyCn, self.port);
        let ports = guard(|| show::flow_ports(&self.source(packet, &profile), &self.at));
        let mut ports = ports.into_iter().flatten();
        if let Some(port) = ports.find(|port| handles::is_roce_port(*port)) {
            profile.rocev2_port = port;
        }
        profile
    }

    /// Returns the RoCEv2 port that the packet around an options header came by.
    fn roce_port(&self, packet: Packet<'p>) -> u16 {
        if self.port != 0 {
            return self.port;
        }
        notes::for_packet::<Note<'_>>(packet)
            .and_then(|all| all.iter().find(|other| other.kind == NoteKind::Roce))
            .map_or_else(handles::roce_port, |other| other.port)
    }

    /// Returns everything needed to show the packet.
    pub fn source<'a>(&self, packet: Packet<'p>, profile: &'a Profile) -> Source<'a>
    where
        'p: 'a,
    {
        let (bytes, wire_len) = readable_octets(packet, self.ds, &self.at);
        Source {
            bytes,
            wire_len,
            profile,
            check_icrc: preferences::checks_icrc(),
            quoted: self.quoted,
            link: packet.link_of(self.ds),
        }
    }

    pub const fn roce_at(&self, option_presence: OptionPresence) -> RoceAt {
        RoceAt {
            at: self.at,
            option_presence,
        }
    }

    pub fn options_at(&self, packet: Packet<'p>, hop_by_hop: bool) -> OptionsAt {
        let message = self.counterpart(packet, |other| {
            !matches!(other.kind, NoteKind::Options { .. })
        });
        let roce_noted = message
            .filter(|other| self.is_fast_option() && other.kind == NoteKind::Roce)
            .filter(|roce| roce.ds == self.ds);
        let is_behind = |other: &Note<'p>| other.ds == self.ds && other.at.start > self.at.start;
        OptionsAt {
            start: self.at.start,
            hop_by_hop,
            addresses: self.at.addresses,
            roce_noted: roce_noted.map(|roce| roce.at),
            is_last: message.is_none() && self.counterpart(packet, is_behind).is_none(),
        }
    }

    /// Returns another note that belongs to this one by its addresses. They are used if the IP
    /// header cannot be found: reassembly drops it, and the extension headers in front of the
    /// Fragment header with it.
    pub fn counterpart(
        &self,
        packet: Packet<'p>,
        wanted: impl Fn(&Note<'p>) -> bool,
    ) -> Option<Note<'p>> {
        notes::for_packet::<Note<'p>>(packet)?.iter().find(|other| {
            wanted(other) && other.quoted == self.quoted && other.at.addresses == self.at.addresses
        })
    }

    /// Returns whether a Fast CNP option was noted that belongs to this packet, and in which data
    /// source.
    pub fn option_presence(&self, packet: Packet<'p>) -> OptionPresence {
        match self.counterpart(packet, Note::is_fast_option) {
            None => OptionPresence::No,
            Some(option) if option.ds == self.ds => OptionPresence::Here,
            Some(_) => OptionPresence::Elsewhere,
        }
    }

    /// Returns the kind of CNP of a RoCEv2 packet, and the text for the Info column; `None` if it
    /// is not a CNP.
    pub fn cnp_text(&self, packet: Packet<'p>) -> Option<(P, ColumnText)> {
        if !self.is_cnp() {
            return None;
        }
        let fast = self.option_presence(packet);
        let profile = preferences::profile_at(P::Roce, self.port);
        guard(|| show::info(&self.source(packet, &profile), &self.roce_at(fast))).flatten()
    }

    /// Names a CNP of either kind in the columns.
    pub fn set_columns(&self, packet: Packet<'p>) {
        if !packet.has_writable_info() {
            return;
        }
        let Some((protocol, mut text)) = self.cnp_text(packet) else {
            return;
        };
        // Text that Wireshark appended about an exception that ended the dissection is kept.
        if !self.returned
            && let Some(present) = packet.info()
            && let Some(longer) = guard(|| show::with_remark(&text, present.to_bytes()))
        {
            text = longer;
        }
        packet.set_columns(protocol, &text);
    }
}
