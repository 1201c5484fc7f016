//! The Proxy Network Node Address option (draft-xiao-rtgwg-proxy-congestion-notification section
//! 5.2), with which a data packet's sender specifies the node to be notified of congestion.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  at 4n+2
//!                                 |  Option Type  |Opt Data Len 16|
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          IPv6 address of the proxy node (128)                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::ipv6_ext::{Options, OptionsWriter, next_header};
//! use fcn_wire::proxy_address::ProxyAddress;
//! use fcn_wire::{Layer, Profile};
//!
//! let option = ProxyAddress("2001:db8::15".parse()?);
//! let mut header = [0; ProxyAddress::HEADER_LEN];
//! let mut writer = OptionsWriter::new(Layer::DestinationOptions, &mut header);
//! option.emit(&Profile::DEFAULT, &mut writer)?;
//! writer.finish(next_header::UDP)?;
//!
//! let found = Options::new(Layer::DestinationOptions, &header).next().unwrap()?;
//! assert_eq!(ProxyAddress::parse(found.kind, found.data, &Profile::DEFAULT), Some(Ok(option)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::ip::is_node_address;
use crate::ipv6_ext::{Ipv6Option, OptionsWriter};
use crate::layer::Layer;
use crate::profile::Profile;
use std::net::Ipv6Addr;

/// Opt Data Len.
pub const OPTION_LEN: usize = 16;
/// Alignment: the type octet at 4n+2, so that the address is at 4n.
pub const OPTION_ALIGN: (usize, usize) = (4, 2);

/// Value of the option: the proxy node's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyAddress(pub Ipv6Addr);

impl ProxyAddress {
    /// Length in octets of a Destination Options header that holds only this option.
    pub const HEADER_LEN: usize = (OPTION_ALIGN.1 + 2 + OPTION_LEN).next_multiple_of(8);

    /// Parses the option data `data` of an option of type `kind`; `None` if `kind` is another
    /// option.
    ///
    /// # Errors
    /// Fails if `data` is shorter than an address.
    pub fn parse(kind: u8, data: &[u8], profile: &Profile) -> Option<Result<Self>> {
        (kind == profile.proxy_address_option).then(|| {
            let (layer, field, len) = (Layer::ProxyAddress, "Opt Data Len", data.len());
            let address = data.first_chunk::<OPTION_LEN>();
            address
                .map(|address| Self(Ipv6Addr::from(*address)))
                .ok_or_else(|| Error::length(layer, 0, field, len, OPTION_LEN, OPTION_LEN))
        })
    }

    /// Adds the rules that `option`, found in an options header of kind `header`, breaks, with
    /// offsets from the start of that header.
    pub fn check(
        option: &Ipv6Option<'_>,
        header: Layer,
        profile: &Profile,
        findings: &mut Findings,
    ) {
        let Ipv6Option { kind, offset, data } = *option;
        let Some(parsed) = Self::parse(kind, data, profile) else {
            return;
        };
        if kind >> 5 != 0 {
            findings.push(Rule::ProxyAddressType, offset, 1);
        }
        if header == Layer::HopByHop {
            findings.push(Rule::ProxyAddressHopByHop, offset, 1);
        }
        if data.len() != OPTION_LEN {
            findings.push(Rule::ProxyAddressLength, offset + 1, 1);
        }
        if parsed.is_ok_and(|option| !is_node_address(option.0.into())) {
            findings.push(Rule::ProxyAddressInvalid, offset + 2, OPTION_LEN);
        }
    }

    /// Appends the option, aligned, to the header that `writer` writes.
    ///
    /// # Errors
    /// Fails if the buffer is too small.
    pub fn emit(&self, profile: &Profile, writer: &mut OptionsWriter<'_>) -> Result<()> {
        let kind = profile.proxy_address_option;
        writer.option(OPTION_ALIGN, kind, &[&self.0.octets()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv6_ext::Options;
    use proptest::prelude::*;

    const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0xf, 0, 0, 0, 1);

    #[test]
    fn the_rules_are_found() {
        let rules = |kind, data: &[u8], layer| {
            let mut profile = Profile::DEFAULT;
            profile.proxy_address_option = kind;
            let mut findings = Findings::new();
            let option = Ipv6Option {
                kind,
                offset: 2,
                data,
            };
            ProxyAddress::check(&option, layer, &profile, &mut findings);
            findings.into_iter().map(|f| f.rule).collect::<Vec<_>>()
        };
        let dst = Layer::DestinationOptions;
        assert_eq!(rules(0x1E, &PROXY.octets(), dst), []);
        assert_eq!(
            rules(0x1E, &PROXY.octets(), Layer::HopByHop),
            [Rule::ProxyAddressHopByHop]
        );
        assert_eq!(rules(0x1E, &[1; 15], dst), [Rule::ProxyAddressLength]);
        assert_eq!(rules(0x1E, &[1; 17], dst), [Rule::ProxyAddressLength]);
        assert_eq!(rules(0x3E, &PROXY.octets(), dst), [Rule::ProxyAddressType]);
        assert_eq!(rules(0x1E, &[0xFF; 16], dst), [Rule::ProxyAddressInvalid]);
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(address: [u8; 16]) {
            let mut out = [0; 24];
            let mut writer = OptionsWriter::new(Layer::DestinationOptions, &mut out);
            ProxyAddress(address.into()).emit(&Profile::DEFAULT, &mut writer).unwrap();
            prop_assert_eq!(writer.finish(17).unwrap(), 24);
            let option = Options::new(Layer::DestinationOptions, &out).next().unwrap().unwrap();
            prop_assert_eq!(option.data, address);
            let parsed = ProxyAddress::parse(option.kind, option.data, &Profile::DEFAULT).unwrap().unwrap();
            prop_assert_eq!(parsed.0.octets(), address);
        }

        #[test]
        fn any_data_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..=255)) {
            let parsed = ProxyAddress::parse(0x1E, &data, &Profile::DEFAULT).unwrap();
            prop_assert_eq!(parsed.is_ok(), data.len() >= OPTION_LEN);
        }
    }
}
