//! Mirrored frames: copies in ERSPAN, GRE or another tunnel, or sFlow samples, as a switch sends
//! them.

use fcn_link::file_transmit::FrameTransform;
use fcn_tool::quantity;
use fcn_wire::Profile;
use fcn_wire::emit::{self, Encapsulation, MirroredFrame};
use fcn_wire::sflow::{DatagramRepr, FlowSample, Port, RawRepr, Source};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustc_hash::FxHashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;

/// Destination of copies and samples.
const COLLECTOR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 254));
/// Maximum length of a frame's header in a sample, in octets: the usual setting of switches.
const SAMPLED_HEADER: usize = 128;
/// Maximum length of a datagram in octets: below the Ethernet MTU, with some room for headers.
const LONGEST_DATAGRAM: usize = 1_400;
/// Time that a sample waits for others to share its datagram, in nanoseconds. Real switches wait
/// for up to a second, which makes their time stamps less accurate.
const PATIENCE: u64 = 1_000_000;
/// Length of the FCS in octets, which sFlow counts but does not send.
const FCS: u32 = 4;

/// Kind of mirroring by a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mirroring {
    /// Copies of all frames, in this encapsulation.
    Copies(Encapsulation),
    /// Samples: one in this many frames.
    Sflow(NonZeroU32),
}

impl Mirroring {
    /// Parses an encapsulation's name, `sflow`, or `sflow:N`.
    ///
    /// # Errors
    /// The text is not a kind of mirroring.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Some(one_in) = text.strip_prefix("sflow:") {
            return quantity::one_in(one_in).map(Self::Sflow);
        }
        if text == "sflow" {
            return Ok(Self::Sflow(NonZeroU32::MIN));
        }
        let known = Encapsulation::ALL.into_iter().find(|one| one.id() == text);
        known.map(Self::Copies).ok_or_else(|| {
            let names = Encapsulation::ALL.map(Encapsulation::id).join(", ");
            format!("unknown format; expected one of {names}, sflow, sflow:N")
        })
    }
}

/// One mirroring switch per capture point.
pub struct Mirrors {
    how: Mirroring,
    seed: u64,
    profile: Profile,
    /// Number of copies sent so far, by capture point.
    copies: FxHashMap<u32, u32>,
    agents: FxHashMap<u32, Agent>,
}

/// Returns the address of the switch at a capture point.
fn switch(place: u32) -> IpAddr {
    Ipv4Addr::new(198, 51, 100, (place % 250) as u8 + 1).into()
}

impl Mirrors {
    /// Creates switches that mirror frames in this way; the seed decides which frames they sample.
    #[must_use]
    pub fn new(how: Mirroring, seed: u64) -> Self {
        Self {
            how,
            seed,
            // The profile's code points make no difference here.
            profile: Profile::DEFAULT,
            copies: FxHashMap::default(),
            agents: FxHashMap::default(),
        }
    }

    /// Writes the mirrored form of an Ethernet frame of `wire_len` octets, captured at a capture
    /// point at a time, to `out`, and returns its length on the wire in octets. Writes nothing if
    /// there is nothing to send yet. A frame that the tunnel cannot carry is written unchanged.
    pub fn copy(
        &mut self,
        (place, at): (u32, u64),
        frame: &[u8],
        wire_len: u32,
        out: &mut Vec<u8>,
    ) -> u32 {
        out.clear();
        let encapsulation = match self.how {
            Mirroring::Copies(encapsulation) => encapsulation,
            Mirroring::Sflow(one_in) => {
                let seed = self.seed;
                let agent = (self.agents.entry(place)).or_insert_with(|| Agent::new(place, seed));
                agent.see(at, frame, wire_len, one_in);
                if agent.is_due(at) {
                    agent.send(out, &self.profile);
                }
                return out.len() as u32;
            }
        };
        let sequence = self.copies.entry(place).or_default();
        *sequence = sequence.wrapping_add(1);
        let mirrored = MirroredFrame {
            encapsulation,
            source: switch(place),
            destination: COLLECTOR,
            // The field has ten bits.
            session: (place % 1023) as u16 + 1,
            port: (place % 1023) as u16 + 1,
            sequence: *sequence,
            at,
        };
        out.resize(frame.len() + MirroredFrame::MAX_HEADERS, 0);
        if let Ok(Some((len, wire_len))) =
            mirrored.write(frame, wire_len as usize, &self.profile, out)
        {
            out.truncate(len);
            return wire_len as u32;
        }
        out.clear();
        out.extend_from_slice(frame);
        wire_len
    }

    /// Returns true if the switches send samples, not copies.
    #[must_use]
    pub const fn samples(&self) -> bool {
        matches!(self.how, Mirroring::Sflow(_))
    }

    /// Returns true if the switches send samples, but have sampled nothing so far.
    #[must_use]
    pub fn has_sampled_nothing(&self) -> bool {
        self.samples() && self.agents.values().all(|agent| agent.samples == 0)
    }

    /// Writes the next pending datagram to `out` after the last frame, and returns its capture
    /// point and time. Datagrams come in the order of time; returns `None` when all are written.
    pub fn rest(&mut self, out: &mut Vec<u8>) -> Option<(u32, u64)> {
        out.clear();
        let waiting = (self.agents.iter_mut()).filter(|(_, agent)| !agent.waiting.is_empty());
        let (place, agent) = waiting.min_by_key(|(place, agent)| (agent.last, **place))?;
        agent.send(out, &self.profile);
        Some((*place, agent.last))
    }
}

impl FrameTransform for Mirrors {
    fn transform(&mut self, seen: (u32, u64), frame: &[u8], out: &mut Vec<u8>) {
        self.copy(seen, frame, frame.len() as u32, out);
    }

    fn rest(&mut self, out: &mut Vec<u8>) -> Option<(u32, u64)> {
        Self::rest(self, out)
    }
}

/// The sFlow agent of a switch, which samples frames received on one port.
struct Agent {
    header: DatagramRepr,
    port: u32,
    rng: Xoshiro256PlusPlus,
    pool: u32,
    samples: u32,
    /// Pending samples (sample, length of the frame on the wire, header), and the length of their
    /// datagram in octets.
    waiting: Vec<(FlowSample, u32, Vec<u8>)>,
    octets: usize,
    /// Times of the first and the last pending sample.
    first: u64,
    last: u64,
}

impl Agent {
    fn new(place: u32, seed: u64) -> Self {
        let header = DatagramRepr {
            agent: switch(place),
            sub_agent: 0,
            sequence: 0,
            uptime: 0,
        };
        Self {
            header,
            port: place + 1,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(place) << 32),
            pool: 0,
            samples: 0,
            waiting: Vec::new(),
            octets: header.header_len(),
            first: 0,
            last: 0,
        }
    }

    fn see(&mut self, at: u64, frame: &[u8], wire_len: u32, one_in: NonZeroU32) {
        self.pool = self.pool.wrapping_add(1);
        self.header.uptime = (at / 1_000_000) as u32;
        // The upper half of the product with a random 32-bit number is uniformly distributed below
        // the factor.
        if (u64::from(self.rng.next_u32()) * u64::from(one_in.get())) >> 32 != 0 {
            return;
        }
        self.samples = self.samples.wrapping_add(1);
        let sample = FlowSample {
            sequence: self.samples,
            source: Source {
                kind: 0,
                index: self.port,
            },
            rate: one_in.get(),
            pool: self.pool,
            drops: 0,
            input: Port::from_index(self.port),
            output: Port::default(),
        };
        let header = frame.get(..SAMPLED_HEADER).unwrap_or(frame);
        if self.waiting.is_empty() {
            self.first = at;
        }
        self.last = at;
        self.octets += raw(wire_len, header).sample_len();
        self.waiting.push((sample, wire_len, header.to_vec()));
    }

    /// Returns true if the pending samples have waited long enough, or one more sample might not
    /// fit the datagram.
    fn is_due(&self, at: u64) -> bool {
        let longest = raw(0, &[0; SAMPLED_HEADER]).sample_len();
        !self.waiting.is_empty()
            && (at >= self.first + PATIENCE || self.octets + longest > LONGEST_DATAGRAM)
    }

    fn send(&mut self, out: &mut Vec<u8>, profile: &Profile) {
        self.header.sequence = self.header.sequence.wrapping_add(1);
        let mut datagram = [0; LONGEST_DATAGRAM];
        let Ok(mut writer) = self.header.begin(&mut datagram) else {
            return;
        };
        for (sample, wire_len, header) in self.waiting.drain(..) {
            // The sample fits: otherwise the datagram would have been sent before.
            let _ = writer.push(&sample, &raw(wire_len, &header));
        }
        self.octets = self.header.header_len();
        let len = writer.finish();
        out.resize(LONGEST_DATAGRAM + MirroredFrame::MAX_HEADERS, 0);
        let datagram = datagram.get(..len).unwrap_or_default();
        let written = emit::sflow(self.header.agent, COLLECTOR, datagram, profile, out);
        out.truncate(written.unwrap_or(0));
    }
}

fn raw(wire_len: u32, header: &[u8]) -> RawRepr<'_> {
    RawRepr {
        protocol: 1,
        frame_length: wire_len + FCS,
        stripped: FCS,
        header,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::{Frame, LinkType};

    /// Samples `frames` frames of 1,000 octets, 10 µs apart, alternately from two capture points;
    /// returns the datagrams, each with capture point, time and number of samples.
    fn sampled(one_in: u32, frames: u64, seed: u64) -> Vec<((u32, u64), usize)> {
        let one_in = NonZeroU32::new(one_in).unwrap();
        let mut mirrors = Mirrors::new(Mirroring::Sflow(one_in), seed);
        let (mut all, mut out) = (Vec::new(), Vec::new());
        let profile = Profile::DEFAULT;
        let mut add = |seen, out: &[u8]| {
            assert!(out.len() <= 1_500 + 14);
            let frame = Frame::parse(out, out.len(), LinkType::Ethernet, &profile);
            let datagram = frame.samples().unwrap();
            for packet in datagram.packets() {
                assert_eq!((packet.bytes.len(), packet.wire_len), (128, 1_000));
                assert_eq!(packet.sample.rate, one_in.get());
            }
            all.push((seen, datagram.packets().count()));
        };
        for n in 0..frames {
            let seen = (n as u32 % 2, n * 10_000);
            let wire_len = mirrors.copy(seen, &[n as u8; 600], 1_000, &mut out);
            assert_eq!(wire_len as usize, out.len());
            if !out.is_empty() {
                add(seen, &out);
            }
        }
        while let Some(seen) = mirrors.rest(&mut out) {
            add(seen, &out);
        }
        all
    }

    #[test]
    fn one_in_one_samples_every_frame() {
        let all = sampled(1, 1_003, 7);
        assert_eq!(all.iter().map(|(_, count)| count).sum::<usize>(), 1_003);
        assert!(all.is_sorted_by_key(|((_, at), _)| *at));
        assert!(all.iter().all(|(_, count)| *count <= 7));
    }

    #[test]
    fn sampling_depends_on_the_seed() {
        let (one, other) = (sampled(10, 20_000, 1), sampled(10, 20_000, 2));
        assert_eq!(one, sampled(10, 20_000, 1));
        assert_ne!(one, other);
        for all in [one, other] {
            let count: usize = all.iter().map(|(_, count)| count).sum();
            // The expected 2,000, within five standard deviations.
            assert!(count.abs_diff(2_000) < 225, "{count}");
        }
    }

    #[test]
    fn names_are_parsed() {
        assert_eq!(
            Mirroring::read("sflow"),
            Ok(Mirroring::Sflow(NonZeroU32::MIN))
        );
        let thousand = Mirroring::Sflow(NonZeroU32::new(1_000).unwrap());
        assert_eq!(Mirroring::read("sflow:1000"), Ok(thousand));
        let gre = Mirroring::Copies(Encapsulation::Gre);
        assert_eq!(Mirroring::read("gre"), Ok(gre));
        for text in [
            "sflow:0",
            "sflow:",
            "sflow:x",
            "sflow:5000000000",
            "erspan4",
            "",
        ] {
            assert!(Mirroring::read(text).is_err(), "{text}");
        }
    }
}
