//! Code points that the drafts leave to IANA, and the other numbers on which all tools must agree.
//!
//! Defaults are experimental values, so that they do not shadow assigned ones. A profile is read
//! from TOML text or changed by single `name=value` overrides, and validated against the
//! requirements of the drafts.

use crate::draft::{fast_cnp, proxy_cn, wan_fcn};
use crate::dscp_set::DscpSet;
use crate::header::ethernet;
use crate::icrc::Reading;
use core::fmt;
use serde::Deserialize;

/// UDP destination port of RoCEv2 (assigned).
pub const ROCEV2_PORT: u16 = 4791;
/// UDP destination port of VXLAN (RFC 7348).
pub const VXLAN_PORT: u16 = 4789;
/// UDP destination port of VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe).
pub const VXLAN_GPE_PORT: u16 = 4790;
/// UDP destination port of Geneve (RFC 8926).
pub const GENEVE_PORT: u16 = 6081;
/// UDP destination port of GTP-U (3GPP TS 29.281).
pub const GTP_U_PORT: u16 = 2152;
/// UDP destination port of TZSP.
pub const TZSP_PORT: u16 = 37008;
/// UDP destination port of sFlow (assigned).
pub const SFLOW_PORT: u16 = 6343;
/// IPv6 option type of IOAM in Hop-by-Hop and Destination Options headers (RFC 9486); change bit
/// set.
pub const IOAM_OPTION_MUTABLE: u8 = 0x31;

/// IPv6 option types assigned to others (IANA's registry of Destination Options and Hop-by-Hop
/// Options), among those that the drafts' rules about the top three bits allow.
const ASSIGNED_OPTIONS: [(u8, &str); 12] = [
    (0x00, "Pad1"),
    (0x01, "PadN"),
    (0x04, "Tunnel Encapsulation Limit"),
    (0x05, "Router Alert"),
    (0x07, "CALIPSO"),
    (0x08, "SMF_DPD"),
    (0x0F, "Performance and Diagnostic Metrics"),
    (0x11, "IOAM"),
    (0x12, "AltMark"),
    (0x8A, "Endpoint Identification"),
    (0x8B, "ILNP Nonce"),
    (0x8C, "Line-Identification"),
];

macro_rules! code_points {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr,)+) => {
        /// Code points in use, one value per name.
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Profile {
            $($(#[$doc])* pub $name: $type,)+
        }

        impl Profile {
            /// The project's defaults.
            pub const DEFAULT: Self = Self { $($name: $default,)+ };

            /// Names of all code points.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)+];

            /// Returns the code points by name, each with its value as [`Self::set`] takes it.
            pub fn values(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
                [$((stringify!($name), self.$name.text()),)+].into_iter()
            }

            /// Parses `text` and assigns it to the code point `name`, or returns the reason why it
            /// cannot.
            fn assign(&mut self, name: &str, text: &str) -> Result<(), String> {
                match name {
                    $(_ if name == stringify!($name) => {
                        let value = CodePoint::parse(text);
                        self.$name = value.map_err(|e| format!("{name}: `{text}` is not {e}"))?;
                    })+
                    _ => {
                        let names = Self::NAMES.join(", ");
                        return Err(format!("`{name}` is not a code point; names: {names}"));
                    }
                }
                Ok(())
            }
        }
    };
}

code_points! {
    /// IPv6 option type of Fast CNP option 1 (TBD1 of the Fast CNP draft).
    fast_cnp_option1: u8 = 0x9E,
    /// IPv6 option type of Fast CNP option 2 (TBD2 of the Fast CNP draft).
    fast_cnp_option2: u8 = 0x9F,
    /// IPv6 option type of the Proxy Network Node Address option.
    proxy_address_option: u8 = 0x1E,
    /// UDP destination port of the notification to the proxy node (TBD1 of the proxy draft).
    proxy_cn_port: u16 = 1021,
    /// UDP destination port of the FCN in the WAN (TBD1 of the WAN draft).
    wan_fcn_port: u16 = 1022,
    /// Characteristic code of PNC in BGP path attribute 39 (TBD2 of the proxy draft).
    bgp_pnc_characteristic: u16 = 65280,
    /// UDP destination port of RoCEv2.
    rocev2_port: u16 = ROCEV2_PORT,
    /// IPv6 option type of IOAM.
    ioam_option: u8 = IOAM_OPTION_MUTABLE,
    /// EtherType of the congestion signalling tag (CSIG); 0 if there is none.
    csig_ether_type: u16 = 0x9900,
    /// DSCPs of packets that switches have trimmed.
    trimmed_dscp: DscpSet = DscpSet::EMPTY,
    /// Treatment of IPv6 extension headers in the ICRC of packets that we emit.
    icrc_reading: Reading = Reading::Covered,
    /// Accept values that the drafts forbid and values that collide, for negative testing.
    force: bool = false,
}

impl Profile {
    /// Reads a profile from TOML text; names that are absent keep their defaults.
    ///
    /// # Errors
    /// Fails on invalid TOML (with its line), an unknown name, or a value that
    /// [`validate`](Self::validate) refuses.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text).map_err(|e| {
            ProfileError::of_text(format!(
                "cannot read the profile: {}",
                e.to_string().trim_end()
            ))
        })?;
        profile.validate()?;
        Ok(profile)
    }

    /// Applies one override, `name=value`, in which the value is decimal or `0x…`.
    ///
    /// # Errors
    /// Fails if the override is not of that form, has an unknown name, or a value that
    /// [`validate`](Self::validate) refuses.
    pub fn set(&mut self, assignment: &str) -> Result<(), ProfileError> {
        let (name, value) = assignment.split_once('=').ok_or_else(|| {
            ProfileError::of_text(format!(
                "`{assignment}` is not of the form name=value; names: {}",
                Self::NAMES.join(", ")
            ))
        })?;
        let mut next = self.clone();
        next.assign(name.trim(), value.trim())
            .map_err(ProfileError::of_text)?;
        next.validate()?;
        *self = next;
        Ok(())
    }

    /// Checks every value against its draft, against the other values, and against assignments to
    /// other protocols. Checks nothing if [`force`](Self::force) is set.
    ///
    /// # Errors
    /// Returns the first value that is not allowed, with the rule it breaks.
    pub fn validate(&self) -> Result<(), ProfileError> {
        const FAST: (u8, &str) = (
            0b100,
            fast_cnp!("section 4 requires the top three bits to be 100 (0x80 to 0x9f)"),
        );
        const PROXY: (u8, &str) = (
            0b000,
            proxy_cn!("section 5.2 requires the top three bits to be 000 (0x02 to 0x1f)"),
        );
        if self.force {
            return Ok(());
        }
        let usual = Self::DEFAULT;
        let mut ours = [
            (
                "fast_cnp_option1",
                self.fast_cnp_option1,
                usual.fast_cnp_option1,
                FAST,
            ),
            (
                "fast_cnp_option2",
                self.fast_cnp_option2,
                usual.fast_cnp_option2,
                FAST,
            ),
            (
                "proxy_address_option",
                self.proxy_address_option,
                usual.proxy_address_option,
                PROXY,
            ),
        ];
        // If two are equal, the one that differs from its default is refused.
        ours.sort_by_key(|(_, value, usual, _)| value != usual);
        for (i, (name, value, _, (bits, why))) in ours.into_iter().enumerate() {
            let shown = format_args!("{value:#04x}");
            if value >> 5 != bits {
                return refuse(name, &shown, why);
            }
            if let Some((_, owner)) = (ASSIGNED_OPTIONS.iter()).find(|(kind, _)| *kind == value) {
                return refuse(name, &shown, &format!("{owner} uses that option type"));
            }
            if let Some((other, ..)) = ours[..i].iter().find(|(_, kind, ..)| *kind == value) {
                return refuse(name, &shown, &format!("{other} has the same value"));
            }
        }
        let ioam = self.ioam_option;
        if ioam < 2 || ours.iter().any(|(_, kind, ..)| *kind == ioam) {
            return refuse(
                "ioam_option",
                &format_args!("{ioam:#04x}"),
                "another option has that value",
            );
        }
        if !(1..=1023).contains(&self.wan_fcn_port) {
            return refuse(
                "wan_fcn_port",
                &self.wan_fcn_port,
                wan_fcn!("section 5 requires a system port (1 to 1023)"),
            );
        }
        self.validate_ports()?;
        if (1..0x600).contains(&self.csig_ether_type)
            || ethernet::OPENED.contains(&self.csig_ether_type)
        {
            return refuse(
                "csig_ether_type",
                &format_args!("{:#06x}", self.csig_ether_type),
                "that is a length, or another protocol's EtherType",
            );
        }
        if self.bgp_pnc_characteristic <= 5 {
            return refuse(
                "bgp_pnc_characteristic",
                &self.bgp_pnc_characteristic,
                "0 is reserved and 1 to 5 are assigned to other characteristics",
            );
        }
        Ok(())
    }

    /// Checks that the ports are valid, distinct, and not used by another protocol.
    ///
    /// # Errors
    /// Returns the first port that fails, with the reason.
    pub fn validate_ports(&self) -> Result<(), ProfileError> {
        let usual = Self::DEFAULT;
        let mut ports = [
            ("rocev2_port", self.rocev2_port, usual.rocev2_port),
            ("wan_fcn_port", self.wan_fcn_port, usual.wan_fcn_port),
            ("proxy_cn_port", self.proxy_cn_port, usual.proxy_cn_port),
        ];
        // If two are equal, the one that differs from its default is refused.
        ports.sort_by_key(|(_, port, usual)| port != usual);
        for (i, (name, port, _)) in ports.iter().enumerate() {
            if *port == 0 {
                return refuse(name, port, "0 is not a port");
            }
            if *port == VXLAN_PORT {
                return refuse(name, port, "VXLAN uses that port");
            }
            if let Some((other, ..)) = ports[..i].iter().find(|(_, p, _)| p == port) {
                return refuse(name, port, &format!("{other} has the same value"));
            }
        }
        Ok(())
    }

    /// Returns true if `option_type` is one of the two Fast CNP options.
    #[inline]
    #[must_use]
    pub const fn is_fast_cnp(&self, option_type: u8) -> bool {
        option_type == self.fast_cnp_option1 || option_type == self.fast_cnp_option2
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::DEFAULT
    }
}

fn refuse(name: &'static str, value: &dyn fmt::Display, why: &str) -> Result<(), ProfileError> {
    Err(ProfileError {
        name: Some(name),
        text: format!(
            "{name} = {value} is refused: {why}; force = true accepts it, for negative testing"
        ),
    })
}

/// A value that an override can set.
trait CodePoint: Sized {
    /// Parses `text`; the error describes what was expected.
    fn parse(text: &str) -> Result<Self, &'static str>;

    /// Returns the text that [`Self::parse`] takes.
    fn text(&self) -> String;
}

impl CodePoint for u8 {
    fn parse(text: &str) -> Result<Self, &'static str> {
        number(text).ok_or("a number from 0 to 255")
    }

    fn text(&self) -> String {
        format!("{self:#04x}")
    }
}

impl CodePoint for u16 {
    fn parse(text: &str) -> Result<Self, &'static str> {
        number(text).ok_or("a number from 0 to 65535")
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl CodePoint for DscpSet {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text.parse()
            .map_err(|()| "DSCPs from 0 to 63, separated by commas")
    }

    fn text(&self) -> String {
        let dscps = (0..64).filter(|dscp| self.contains(*dscp));
        let dscps: Vec<String> = dscps.map(|dscp: u8| dscp.to_string()).collect();
        dscps.join(",")
    }
}

impl CodePoint for Reading {
    fn parse(text: &str) -> Result<Self, &'static str> {
        Self::from_name(text).ok_or("one of A, A2, B, C")
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl CodePoint for bool {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text.parse().map_err(|_| "true or false")
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

fn number<T: TryFrom<u32>>(text: &str) -> Option<T> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = match digits {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    T::try_from(number.ok()?).ok()
}

/// Reason why a profile or an override was refused; the text is meant for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ProfileError {
    name: Option<&'static str>,
    text: String,
}

impl ProfileError {
    const fn of_text(text: String) -> Self {
        Self { name: None, text }
    }

    /// Returns the name whose value [`Profile::validate`] refused.
    #[must_use]
    pub const fn name(&self) -> Option<&'static str> {
        self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_can_be_set_again() {
        let mut profile = Profile::DEFAULT;
        profile.set("trimmed_dscp=5,46").unwrap();
        let mut again = Profile::DEFAULT;
        for (name, value) in profile.values() {
            again.set(&format!("{name}={value}")).unwrap();
        }
        assert_eq!(again, profile);
        assert_eq!(profile.values().count(), Profile::NAMES.len());
    }

    #[test]
    fn defaults_are_valid_and_equal_an_empty_profile() {
        Profile::DEFAULT.validate().unwrap();
        assert_eq!(Profile::from_toml("").unwrap(), Profile::DEFAULT);
    }

    #[test]
    fn unknown_toml_names_are_refused_with_their_line() {
        let p = Profile::from_toml("fast_cnp_option1 = 0x88\nicrc_reading = \"A2\"\n").unwrap();
        assert_eq!(
            (p.fast_cnp_option1, p.icrc_reading),
            (0x88, Reading::Rewritten)
        );
        let e = Profile::from_toml("# a comment\nfast_cnp_option3 = 1\n")
            .unwrap_err()
            .to_string();
        assert!(
            e.contains("line 2") && e.contains("fast_cnp_option3"),
            "{e}"
        );
        assert!(Profile::from_toml("proxy_cn_port = 70000").is_err());
    }

    #[test]
    fn forbidden_values_are_refused_unless_forced() {
        for bad in [
            "fast_cnp_option1=0x1E",
            "fast_cnp_option1=0xBE",
            "fast_cnp_option1=0x9F",
            "fast_cnp_option2=0x9E",
            "proxy_address_option=0x3E",
            "proxy_address_option=1",
            "proxy_address_option=0x9E",
            "proxy_address_option=5",
            "fast_cnp_option1=0x8B",
            "wan_fcn_port=1024",
            "wan_fcn_port=1021",
            "proxy_cn_port=0",
            "proxy_cn_port=4791",
            "bgp_pnc_characteristic=3",
            "ioam_option=0x1E",
            "csig_ether_type=1500",
            "csig_ether_type=0x86DD",
        ] {
            let mut p = Profile::DEFAULT;
            let error = p.set(bad).unwrap_err();
            let e = error.to_string();
            assert!(
                e.contains("refused") && e.contains("force = true"),
                "{bad}: {e}"
            );
            assert_eq!(error.name(), bad.split('=').next());
            assert_eq!(p, Profile::DEFAULT);
            p.set("force=true").unwrap();
            p.set(bad).unwrap();
        }
    }

    #[test]
    fn invalid_overrides_are_refused_with_a_hint() {
        let mut p = Profile::DEFAULT;
        for (bad, part) in [
            ("fast_cnp_option1", "name=value"),
            ("fast_cnp=1", "names:"),
            ("fast_cnp_option1=256", "0 to 255"),
            ("wan_fcn_port=x", "0 to 65535"),
            ("trimmed_dscp=64", "0 to 63"),
            ("icrc_reading=D", "A, A2, B, C"),
            ("force=1", "true or false"),
        ] {
            let e = p.set(bad).unwrap_err().to_string();
            assert!(e.contains(part), "{bad}: {e}");
        }
    }
}
