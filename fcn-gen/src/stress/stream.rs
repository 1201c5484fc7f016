//! The frames of one kind on one queue: the fields that change from one to the next, and their
//! values.

use super::model::{Hosts, Kind, Stress};
use super::prototype::{Prototype, SWITCH, SummedFrame};
use super::walk::{Share, Step, Walk};
use crate::macs::Rewrite;
use fcn_wire::header::{ethernet, ipv6, udp};
use fcn_wire::ip;
use fcn_wire::pfc::PfcRepr;
use fcn_wire::proxy_cn::{Family, FiveTuple, ProxyCnRepr};
use fcn_wire::template::{Change, Edit, Template, TemplateError};
use fcn_wire::wan_fcn::WanFcnRepr;
use std::net::{IpAddr, Ipv6Addr};

/// Start of the dynamic ports, and their number.
const PORTS: (u16, u32) = (0xC000, 0x4000);
const FLOW_LABELS: u32 = 1 << 20;
/// Number of switches that send notifications.
const SWITCHES: u32 = 64;
/// Fractional bits of the share of marked packets.
const SHARE_BITS: u32 = 32;

/// Parameters of flows, shared by all streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flows {
    /// Number of hosts on each side.
    hosts: u32,
    senders: Hosts,
    receivers: Hosts,
    seed: u64,
    rocev2_port: u16,
}

/// Values of a connection's frames.
#[derive(Clone, Copy, Debug)]
struct Connection {
    /// Numbers of its hosts.
    sender: u32,
    receiver: u32,
    /// Entropy of its flow.
    entropy: u32,
    step: Step,
}

impl Flows {
    pub const fn new(stress: &Stress) -> Self {
        Self {
            hosts: Stress::hosts(stress.flows),
            senders: stress.senders,
            receivers: stress.receivers,
            seed: stress.seed,
            rocev2_port: stress.profile.rocev2_port,
        }
    }

    #[inline]
    fn at(&self, step: Step) -> Connection {
        // The finaliser of a good hash, which spreads consecutive values over all bits.
        let mut mixed = (u64::from(step.flow) ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^= mixed >> 32;
        Connection {
            sender: step.flow % self.hosts,
            receiver: step.flow / self.hosts,
            entropy: mixed as u32,
            step,
        }
    }
}

impl Connection {
    /// Returns the flow's UDP source port.
    #[inline]
    const fn port(&self, more: u32) -> u16 {
        PORTS.0 | (self.entropy.wrapping_add(more) & (PORTS.1 - 1)) as u16
    }

    /// Returns the flow's label.
    #[inline]
    const fn label(&self, more: u32) -> u32 {
        (self.entropy >> 12).wrapping_add(more) & (FLOW_LABELS - 1)
    }

    /// Returns the switch that notifies about the flow.
    #[inline]
    fn switch(&self) -> Ipv6Addr {
        switch(self.step.flow % SWITCHES)
    }
}

fn switch(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(SWITCH.to_bits() + u128::from(number))
}

/// Frames of one kind on one queue.
pub(super) struct Stream {
    kind: Kind,
    prototype: Prototype,
    len: usize,
    macs: Rewrite,
    walk: Walk,
    flows: Flows,
    levels: Vec<u8>,
    /// Number of frames generated, modulo 2^32.
    made: u32,
    /// Share of data packets to be marked, and the share accumulated since the last marked one.
    marked: u64,
    due: u64,
}

impl Stream {
    pub fn new(
        stress: &Stress,
        (kind, prototype): (Kind, Prototype),
        share: Share,
        macs: Rewrite,
    ) -> Self {
        // Each kind begins at another flow, so that consecutive frames are about different flows.
        let start = (kind as u32).wrapping_mul(0x1F12_3BB5);
        Self {
            len: prototype.bytes().len(),
            kind,
            prototype,
            macs,
            walk: Walk::new(stress, share, start),
            flows: Flows::new(stress),
            levels: stress.levels.clone(),
            made: share.queue,
            marked: (stress.ce * (1_u64 << SHARE_BITS) as f64) as u64,
            due: 0,
        }
    }

    /// Returns the length of a frame in octets.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Advances without a frame.
    pub fn skip(&mut self) {
        self.walk.step();
        self.made = self.made.wrapping_add(1);
    }

    /// Writes the next frame to the start of `out`, which holds an earlier one of this stream
    /// unless `anew` is set.
    #[inline]
    pub fn fill(&mut self, out: &mut [u8], anew: bool) {
        let Some(out) = out.get_mut(..self.len) else {
            // The sender skips frames that do not fit.
            return self.skip();
        };
        if anew {
            self.begin(out);
        }
        let connection = self.flows.at(self.walk.step());
        self.made = self.made.wrapping_add(1);
        let flows = (&self.flows, self.kind.family());
        let done = match &self.prototype {
            Prototype::Roce(template) if self.kind.is_data() => {
                self.due += self.marked;
                let ce = self.due >> SHARE_BITS != 0;
                self.due &= (1 << SHARE_BITS) - 1;
                let ecn = Change::Ecn(if ce { 0b11 } else { 0b10 });
                let edit = data(template, out, &connection, flows);
                edit.and_then(|mut edit| edit.set(ecn))
            }
            Prototype::Roce(template) => cnp(template, out, &connection, (&self.flows, self.kind)),
            Prototype::ProxyCn(frame, quoted) => {
                proxy_cn((frame, quoted), out, &connection, flows, self.level())
            }
            Prototype::WanFcn(frame) => {
                wan_fcn(frame, out, &connection.step, self.level());
                Ok(())
            }
            Prototype::Pfc(_) => {
                pause(out, self.made);
                Ok(())
            }
        };
        debug_assert_eq!(done, Ok(()), "every field was prepared");
    }

    #[cold]
    fn begin(&self, out: &mut [u8]) {
        out.copy_from_slice(self.prototype.bytes());
        self.macs.apply(out);
    }

    #[inline]
    fn level(&self) -> u8 {
        let levels = self.levels.len().max(1);
        let at = self.made as usize % levels;
        self.levels.get(at).copied().unwrap_or(0)
    }
}

type Done = Result<(), TemplateError>;

/// Sets addresses, entropy and QP of a CNP or Fast CNP. The port changes with each lap, and after
/// some laps the flow label or identification, since there is no PSN to distinguish it from
/// previous ones.
#[inline]
fn cnp(
    template: &Template,
    out: &mut [u8],
    connection: &Connection,
    (flows, kind): (&Flows, Kind),
) -> Done {
    let family = kind.family();
    let (lap, laps) = (connection.step.lap, connection.step.lap / PORTS.1);
    let receiver = flows.receivers.at(connection.receiver, family);
    let mut edit = template.edit(out)?;
    if let (Kind::FastCnp1 | Kind::FastCnp2, IpAddr::V6(original)) = (kind, receiver) {
        edit.set(Change::SourceAddress(connection.switch().into()))?;
        edit.set(Change::FastCnpOriginalDestination(original))?;
    } else {
        edit.set(Change::SourceAddress(receiver))?;
    }
    edit.set(Change::DestinationAddress(
        flows.senders.at(connection.sender, family),
    ))?;
    edit.set(match family {
        Family::V6 => Change::FlowLabel(connection.label(laps)),
        Family::V4 => Change::Identification(laps as u16),
    })?;
    edit.set(Change::UdpSource(connection.port(lap)))?;
    edit.set(Change::DestQp(Stress::qp(connection.step.connection)))
}

/// Sets the fields of a data packet: that of a frame, or a quoted one.
#[inline]
fn data<'a>(
    template: &'a Template,
    out: &'a mut [u8],
    connection: &Connection,
    (flows, family): (&Flows, Family),
) -> Result<Edit<'a>, TemplateError> {
    let mut edit = template.edit(out)?;
    edit.set(Change::SourceAddress(
        flows.senders.at(connection.sender, family),
    ))?;
    edit.set(Change::DestinationAddress(
        flows.receivers.at(connection.receiver, family),
    ))?;
    if family == Family::V6 {
        edit.set(Change::FlowLabel(connection.label(0)))?;
    }
    edit.set(Change::UdpSource(connection.port(0)))?;
    edit.set(Change::DestQp(Stress::qp(connection.step.connection)))?;
    edit.set(Change::Psn(connection.step.lap))?;
    Ok(edit)
}

#[inline]
fn proxy_cn(
    (frame, quoted): (&SummedFrame, &Template),
    out: &mut [u8],
    connection: &Connection,
    (flows, family): (&Flows, Family),
    level: u8,
) -> Done {
    let header = ProxyCnRepr {
        five_tuple: FiveTuple {
            source: flows.senders.at(connection.sender, family),
            destination: flows.receivers.at(connection.receiver, family),
            protocol: 17,
            source_port: connection.port(0),
            destination_port: flows.rocev2_port,
        },
        level,
        reserved: 0,
        // The quoted packet is already in place.
        invoking: &[],
    };
    let mut done = Ok(());
    frame.checksum.change(out, |out| {
        put(out, frame.udp, &connection.port(0).to_be_bytes());
        let message = out.get_mut(frame.udp + udp::LEN..).unwrap_or_default();
        let fits = header.emit(message).is_ok();
        debug_assert!(fits, "there is room for it");
        let invoking = message.get_mut(family.header_len()..).unwrap_or_default();
        done = data(quoted, invoking, connection, (flows, family)).map(drop);
    });
    done
}

/// Sets the fields of an FCN. The flow label represents the connection, which is invisible in the
/// WAN; the remaining part of its number is in the switch's address.
#[inline]
fn wan_fcn(frame: &SummedFrame, out: &mut [u8], step: &Step, level: u8) {
    let message = WanFcnRepr {
        flow_label: step.connection % FLOW_LABELS,
        level,
        reserved: 0,
    };
    let source = switch(step.connection / FLOW_LABELS).octets();
    let port = PORTS.0 | (step.lap % PORTS.1) as u16;
    frame.checksum.change(out, |out| {
        let packet = out.get_mut(ethernet::LEN..).unwrap_or_default();
        ip::set_flow_label(packet, message.flow_label);
        put(packet, ipv6::SOURCE, &source);
        put(out, frame.udp, &port.to_be_bytes());
        put(out, frame.udp + udp::LEN, &message.to_bytes());
    });
}

/// Sets the fields of a PFC frame: classes in turn, with all pause times except 0, which resumes.
#[inline]
fn pause(out: &mut [u8], made: u32) {
    let pause = PfcRepr::for_class(made as usize % 8, (made / 8 % 0xFFFF) as u16 + 1);
    if let Some(pause) = pause {
        put(out, ethernet::LEN, &pause.to_bytes());
    }
}

#[inline]
fn put(out: &mut [u8], at: usize, octets: &[u8]) {
    if let Some(place) = out.get_mut(at..at + octets.len()) {
        place.copy_from_slice(octets);
    }
}
