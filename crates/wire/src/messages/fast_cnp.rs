//! Fast CNP options (draft-xiao-rtgwg-rocev2-fast-cnp section 4): IPv6 destination options before a
//! CNP.
//!
//! The CNP itself is in `cnp.rs`, the trace that option 2 carries in `ioam.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  option 1, at 4n+2
//!                                 |  Option Type  |Opt Data Len 16|
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     destination address of the data packet (128)              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  option 2, at 4n
//! |  Option Type  | Opt Data Len  |   Reserved    | IOAM Opt-Type |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     IOAM trace of the data packet ...                         |
//! |     destination address of the data packet (128)              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::fast_cnp::FastCnpRepr;
//! use fcn_wire::ipv6_ext::{Options, OptionsWriter, next_header};
//! use fcn_wire::{Layer, Profile};
//!
//! let option = FastCnpRepr::Option1 { original_destination: "2001:db8::9".parse()? };
//! let mut header = vec![0; option.header_len()];
//! let mut writer = OptionsWriter::new(Layer::DestinationOptions, &mut header);
//! option.emit(&Profile::DEFAULT, &mut writer)?;
//! writer.finish(next_header::UDP)?;
//!
//! let found = Options::new(Layer::DestinationOptions, &header).next().unwrap()?;
//! assert_eq!(FastCnpRepr::parse(found.kind, found.data, &Profile::DEFAULT), Some(Ok(option)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::ioam::{IoamOption, OPTION_PREFIX_LEN, Trace};
use crate::ip::is_node_address;
use crate::ipv6_ext::{Ipv6Option, OptionsWriter};
use crate::layer::Layer;
use crate::profile::Profile;
use std::net::Ipv6Addr;

/// Length of an IPv6 address, in octets.
const ADDRESS_LEN: usize = 16;
/// Opt Data Len of option 1.
pub const OPTION1_LEN: usize = ADDRESS_LEN;
/// Alignment of option 1: its type octet at 4n+2, so that the address is at 4n.
const OPTION1_ALIGN: (usize, usize) = (4, 2);
/// Alignment of option 2: its type octet at 4n.
const OPTION2_ALIGN: (usize, usize) = (4, 0);
/// Maximum length of the IOAM trace (header and node data list) that option 2 can carry.
pub const MAX_TRACE_LEN: usize = 255 - OPTION_PREFIX_LEN - ADDRESS_LEN;

/// One of the two Fast CNP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastCnpRepr<'a> {
    /// Option 1: the data packet carried no IOAM trace.
    Option1 {
        /// Destination address of the data packet that met congestion: the receiver.
        original_destination: Ipv6Addr,
    },
    /// Option 2: carries the IOAM trace of the data packet.
    Option2 {
        /// Reserved octet, IOAM option type and trace, which has at most [`MAX_TRACE_LEN`] octets.
        ioam: IoamOption<'a>,
        /// Destination address of the data packet that met congestion: the receiver.
        original_destination: Ipv6Addr,
    },
}

impl<'a> FastCnpRepr<'a> {
    /// Parses the option data `data` of an option of type `kind`; `None` if `kind` is neither Fast
    /// CNP option.
    ///
    /// # Errors
    /// Fails if `data` is too short for the address (option 1), or for address and IOAM header
    /// (option 2), with offsets from the start of the option data. Longer data of option 1 is
    /// accepted and reported by [`check`](Self::check).
    pub fn parse(kind: u8, data: &'a [u8], profile: &Profile) -> Option<Result<Self>> {
        let short = |min, max| {
            let field = "Opt Data Len";
            Error::length(Layer::FastCnp, 0, field, data.len(), min, max)
        };
        if kind == profile.fast_cnp_option1 {
            let address = data.first_chunk::<ADDRESS_LEN>();
            let address = address.ok_or_else(|| short(OPTION1_LEN, OPTION1_LEN));
            return Some(address.map(|address| Self::Option1 {
                original_destination: Ipv6Addr::from(*address),
            }));
        }
        (kind == profile.fast_cnp_option2).then(|| {
            let (ioam, address) = data
                .split_last_chunk::<ADDRESS_LEN>()
                .ok_or_else(|| short(OPTION_PREFIX_LEN + ADDRESS_LEN, 255))?;
            let layer = Layer::FastCnp;
            Ok(Self::Option2 {
                ioam: IoamOption::parse(ioam).map_err(|e| Error { layer, ..e })?,
                original_destination: Ipv6Addr::from(*address),
            })
        })
    }

    /// Returns the option number, 1 or 2.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::Option1 { .. } => 1,
            Self::Option2 { .. } => 2,
        }
    }

    /// Returns the receiver whose QP is named in the CNP.
    #[must_use]
    pub const fn original_destination(&self) -> Ipv6Addr {
        match self {
            Self::Option1 {
                original_destination,
            }
            | Self::Option2 {
                original_destination,
                ..
            } => *original_destination,
        }
    }

    /// Returns the offset of the original destination in option data of `data_len` octets.
    #[must_use]
    pub const fn address_at(&self, data_len: usize) -> usize {
        match self {
            Self::Option1 { .. } => 0,
            Self::Option2 { .. } => data_len.saturating_sub(ADDRESS_LEN),
        }
    }

    /// Returns the IOAM trace of option 2, if there is one that can be parsed.
    #[must_use]
    pub fn trace(&self) -> Option<Trace<'a>> {
        match self {
            Self::Option1 { .. } => None,
            Self::Option2 { ioam, .. } => ioam.trace()?.ok(),
        }
    }

    /// Adds the rules that `option`, found in an options header of kind `header`, breaks.
    ///
    /// Offsets are from the start of that header.
    pub fn check(
        option: &Ipv6Option<'a>,
        header: Layer,
        profile: &Profile,
        findings: &mut Findings,
    ) {
        let Ipv6Option { kind, offset, data } = *option;
        let Some(parsed) = Self::parse(kind, data, profile) else {
            return;
        };
        if kind >> 6 != 0b10 {
            findings.push(Rule::FastCnpAction, offset, 1);
        }
        if kind & 0x20 != 0 {
            findings.push(Rule::FastCnpChange, offset, 1);
        }
        if header == Layer::HopByHop {
            findings.push(Rule::FastCnpHopByHop, offset, 1);
        }
        let data_at = offset + 2;
        let option = match parsed {
            Ok(option) => option,
            Err(_) if kind == profile.fast_cnp_option1 => {
                findings.push(Rule::FastCnpLength1, offset + 1, 1);
                return;
            }
            Err(_) => {
                findings.push(Rule::FastCnpMalformed, offset + 1, 1);
                return;
            }
        };
        let (multiple, rest) = option.align();
        if offset % multiple != rest {
            findings.push(Rule::FastCnpAlignment, offset, 1);
        }
        match option {
            Self::Option1 { .. } if data.len() != OPTION1_LEN => {
                findings.push(Rule::FastCnpLength1, offset + 1, 1);
            }
            Self::Option1 { .. } => {}
            Self::Option2 { ioam, .. } => {
                if ioam.reserved != 0 {
                    findings.push(Rule::FastCnpReserved, data_at, 1);
                }
                match ioam.trace() {
                    None => findings.push(Rule::FastCnpIoamType, data_at + 1, 1),
                    Some(Ok(trace)) => {
                        findings.within(data_at + OPTION_PREFIX_LEN, |f| trace.check(f));
                    }
                    Some(Err(e)) => findings.push(Rule::IoamMalformed, data_at + e.offset, 1),
                }
            }
        }
        if !is_node_address(option.original_destination().into()) {
            findings.push(
                Rule::FastCnpOriginal,
                data_at + option.address_at(data.len()),
                ADDRESS_LEN,
            );
        }
    }

    /// Returns the option for a data packet to `original_destination`: option 2 with the packet's
    /// trace if there is one that fits, otherwise option 1. The second value is true if a trace had
    /// to be left out.
    #[must_use]
    pub fn for_data_packet(
        original_destination: Ipv6Addr,
        trace: Option<Trace<'a>>,
    ) -> (Self, bool) {
        let fits = |trace: &Trace<'_>| trace.bytes().len() <= MAX_TRACE_LEN;
        let option = match trace.filter(fits) {
            Some(trace) => Self::Option2 {
                ioam: IoamOption {
                    reserved: 0,
                    opt_type: trace.opt_type(),
                    body: trace.bytes(),
                },
                original_destination,
            },
            None => Self::Option1 {
                original_destination,
            },
        };
        (option, trace.is_some() && option.number() == 1)
    }

    /// Returns Opt Data Len.
    #[must_use]
    pub const fn data_len(&self) -> usize {
        match self {
            Self::Option1 { .. } => OPTION1_LEN,
            Self::Option2 { ioam, .. } => OPTION_PREFIX_LEN + ioam.body.len() + ADDRESS_LEN,
        }
    }

    /// Returns the length in octets of a Destination Options header that holds only this option.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        let (multiple, rest) = self.align();
        let lead = if rest >= 2 { rest } else { rest + multiple };
        (lead + 2 + self.data_len()).div_ceil(8) * 8
    }

    const fn align(&self) -> (usize, usize) {
        match self {
            Self::Option1 { .. } => OPTION1_ALIGN,
            Self::Option2 { .. } => OPTION2_ALIGN,
        }
    }

    /// Appends the option, aligned, to the header that `writer` writes.
    ///
    /// # Errors
    /// Fails if the buffer is too small or the trace is longer than [`MAX_TRACE_LEN`].
    pub fn emit(&self, profile: &Profile, writer: &mut OptionsWriter<'_>) -> Result<()> {
        let (align, address) = (self.align(), self.original_destination().octets());
        match self {
            Self::Option1 { .. } => writer.option(align, profile.fast_cnp_option1, &[&address]),
            Self::Option2 { ioam, .. } => {
                let parts = [&ioam.prefix()[..], ioam.body, &address];
                writer.option(align, profile.fast_cnp_option2, &parts)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ioam::OptType;
    use crate::ipv6_ext::Options;
    use proptest::prelude::*;

    const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 0, 0, 0, 0x10);

    fn header(repr: &FastCnpRepr<'_>) -> Vec<u8> {
        let mut out = vec![0; repr.header_len()];
        let mut writer = OptionsWriter::new(Layer::DestinationOptions, &mut out);
        repr.emit(&Profile::DEFAULT, &mut writer).unwrap();
        assert_eq!(writer.finish(17).unwrap(), out.len());
        out
    }

    fn rules(header: &[u8], layer: Layer) -> Vec<Rule> {
        let mut findings = Findings::new();
        for option in Options::new(layer, header).flatten() {
            FastCnpRepr::check(&option, layer, &Profile::DEFAULT, &mut findings);
        }
        findings.into_iter().map(|f| f.rule).collect()
    }

    #[test]
    fn option_1_matches_the_figure() {
        let out = header(&FastCnpRepr::Option1 {
            original_destination: RECEIVER,
        });
        assert_eq!((out.len(), &out[..4]), (24, &[17u8, 2, 0x9E, 16][..]));
        assert_eq!(out[4..20], RECEIVER.octets());
        assert_eq!(out[20..], [1, 2, 0, 0]);
        assert_eq!(rules(&out, Layer::DestinationOptions), []);
    }

    #[test]
    fn option_2_starts_at_4n_and_ends_with_the_address() {
        let trace = [
            0, 7, 0x18, 0, 0xC2, 0, 0, 0, 64, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 0,
        ];
        let repr = FastCnpRepr::Option2 {
            ioam: IoamOption {
                reserved: 0,
                opt_type: OptType::Preallocated,
                body: &trace,
            },
            original_destination: RECEIVER,
        };
        let out = header(&repr);
        assert_eq!(out[2..8], [1, 0, 0x9F, 38, 0, 0]);
        assert_eq!(out[8..28], trace);
        assert_eq!(out[28..44], RECEIVER.octets());
        assert_eq!(rules(&out, Layer::DestinationOptions), []);
        assert_eq!(rules(&out, Layer::HopByHop), [Rule::FastCnpHopByHop]);
    }

    #[test]
    fn the_rules_are_found() {
        let good = header(&FastCnpRepr::Option1 {
            original_destination: RECEIVER,
        });
        let mut bad = good.clone();
        bad[3] = 15;
        bad[19] = 0;
        assert_eq!(
            rules(&bad, Layer::DestinationOptions),
            [Rule::FastCnpLength1]
        );
        bad = good.clone();
        bad[3] = 20;
        assert_eq!(
            rules(&bad, Layer::DestinationOptions),
            [Rule::FastCnpLength1]
        );
        bad = good.clone();
        bad[4..20].fill(0);
        assert_eq!(
            rules(&bad, Layer::DestinationOptions),
            [Rule::FastCnpOriginal]
        );
        bad = good.clone();
        bad[2] = 0x9F;
        assert_eq!(
            rules(&bad, Layer::DestinationOptions),
            [Rule::FastCnpMalformed]
        );
        let shifted = [&[17, 2, 1, 2, 0, 0][..], &good[2..20]].concat();
        assert_eq!(rules(&shifted, Layer::DestinationOptions), []);
        let shifted = [&[17, 2, 0][..], &good[2..20], &[1, 1, 0]].concat();
        assert_eq!(
            rules(&shifted, Layer::DestinationOptions),
            [Rule::FastCnpAlignment]
        );
    }

    #[test]
    fn a_forced_forbidden_code_point_is_reported() {
        let mut profile = Profile::DEFAULT;
        profile.set("force=true").unwrap();
        profile.set("fast_cnp_option1=0x3E").unwrap();
        let mut findings = Findings::new();
        let (kind, offset, data) = (0x3E, 2, &RECEIVER.octets()[..]);
        let option = Ipv6Option { kind, offset, data };
        FastCnpRepr::check(&option, Layer::DestinationOptions, &profile, &mut findings);
        assert!(findings.has(Rule::FastCnpAction) && findings.has(Rule::FastCnpChange));
    }

    #[test]
    fn an_oversized_trace_falls_back_to_option_1() {
        let long = [0; MAX_TRACE_LEN + 1];
        for (len, number, dropped) in [(MAX_TRACE_LEN, 2, false), (MAX_TRACE_LEN + 1, 1, true)] {
            let trace = Trace::new_checked(OptType::Incremental, &long[..len]).unwrap();
            let (repr, left_out) = FastCnpRepr::for_data_packet(RECEIVER, Some(trace));
            assert_eq!(left_out, dropped);
            assert_eq!(matches!(repr, FastCnpRepr::Option2 { .. }), number == 2);
            assert!(repr.data_len() <= 255);
        }
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(
            two: bool, reserved: u8, opt: u8, address: [u8; 16],
            trace in proptest::collection::vec(any::<u8>(), 0..=MAX_TRACE_LEN),
        ) {
            let original_destination = Ipv6Addr::from(address);
            let repr = if two {
                FastCnpRepr::Option2 { ioam: IoamOption { reserved, opt_type: OptType::from(opt), body: &trace }, original_destination }
            } else {
                FastCnpRepr::Option1 { original_destination }
            };
            let out = header(&repr);
            let option = Options::new(Layer::DestinationOptions, &out)
                .map(std::result::Result::unwrap)
                .find(|o| !o.is_padding())
                .unwrap();
            let parsed = FastCnpRepr::parse(option.kind, option.data, &Profile::DEFAULT).unwrap().unwrap();
            prop_assert_eq!(parsed, repr);
            prop_assert_eq!(header(&parsed), out);
        }

        #[test]
        fn any_data_are_read_or_refused(two: bool, offset in 0usize..300, data in proptest::collection::vec(any::<u8>(), 0..=255)) {
            let kind = if two { 0x9F } else { 0x9E };
            let parsed = FastCnpRepr::parse(kind, &data, &Profile::DEFAULT).unwrap();
            prop_assert_eq!(parsed.is_ok(), data.len() >= if two { 18 } else { 16 });
            let mut findings = Findings::new();
            let option = Ipv6Option { kind, offset, data: &data };
            FastCnpRepr::check(&option, Layer::DestinationOptions, &Profile::DEFAULT, &mut findings);
            for finding in &findings {
                prop_assert!(finding.offset >= offset && finding.offset + finding.len <= offset + 2 + data.len().max(1));
            }
        }
    }
}
