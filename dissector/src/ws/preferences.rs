//! Preferences: code points and switches.

use super::compat::{self, BoolPreference};
use super::handles::{Handle, ROCE_PORT, UDP_PORT, roce_port};
use super::{ids, sys};
use crate::memory::Settings;
use crate::names::P;
use crate::plan::ColumnText;
use core::ffi::{CStr, c_char};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use fcn_observe::rules::FLOW_RATE;
use fcn_wire::pnc::Prefix;
use fcn_wire::profile::VXLAN_PORT;
use fcn_wire::{DscpSet, Profile};
use std::ffi::CString;

static OPTION1: AtomicU32 = AtomicU32::new(Profile::DEFAULT.fast_cnp_option1 as u32);
static OPTION2: AtomicU32 = AtomicU32::new(Profile::DEFAULT.fast_cnp_option2 as u32);
static PROXY_OPTION: AtomicU32 = AtomicU32::new(Profile::DEFAULT.proxy_address_option as u32);
static CHARACTERISTIC: AtomicU32 = AtomicU32::new(Profile::DEFAULT.bgp_pnc_characteristic as u32);
static CSIG: AtomicU32 = AtomicU32::new(Profile::DEFAULT.csig_ether_type as u32);
static CHECK_ICRC: BoolPreference = compat::preference(true);
static FORCE: BoolPreference = compat::preference(false);
pub static CORRELATE: BoolPreference = compat::preference(true);
static TRIMMED_DSCP: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
/// DSCPs in that preference, as [`DscpSet::bits`].
static TRIMMED: AtomicU64 = AtomicU64::new(0);
static TRUSTED: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
static ABLE: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
static DOMAIN: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
static FLOW_RATE_LIMIT: AtomicU32 = AtomicU32::new(FLOW_RATE);
/// Window in microseconds.
static WINDOW: AtomicU32 = AtomicU32::new(DEFAULT_WINDOW);
const DEFAULT_WINDOW: u32 = 1000;
/// Maximum window in microseconds. The octets of a step are counted in 32 bits, which suffices for
/// a window of one second at 400 Gbit/s and no more.
const LONGEST_WINDOW: u32 = 1_000_000;

/// A preference of ours.
struct Preference {
    protocol: P,
    name: &'static CStr,
    kind: Kind,
    title: &'static CStr,
    description: &'static CStr,
}

/// Type of a preference, and the location that Wireshark writes it to between packets.
enum Kind {
    /// A code point: location, base, name in a profile, and default.
    CodePoint(&'static AtomicU32, u32, &'static str, u32),
    Number(&'static AtomicU32),
    Switch(&'static BoolPreference),
    /// Prefixes and addresses, or DSCPs.
    List(&'static AtomicPtr<c_char>),
}

macro_rules! preferences {
    ($( $protocol:ident, $name:literal, $kind:expr, $title:literal, $description:literal; )+) => {
        static PREFERENCES: &[Preference] = &[ $( Preference {
            protocol: P::$protocol,
            name: $name,
            kind: $kind,
            title: $title,
            description: $description,
        }, )+ ];
    };
}

preferences! {
    Roce, c"check_icrc", Kind::Switch(&CHECK_ICRC), c"Verify the ICRC",
        c"Compute the Invariant CRC of every RoCEv2 packet and compare it with the one in the packet";
    Roce, c"force", Kind::Switch(&FORCE), c"Accept code points that the drafts forbid",
        c"Accept option types and a BGP characteristic code that the drafts forbid or that are assigned to others, for negative testing";
    Roce, c"trimmed_dscp", Kind::List(&TRIMMED_DSCP), c"DSCPs of trimmed packets",
        c"DSCPs, 0 to 63, separated by commas, that switches give to packets which they trim instead of dropping them; others are recognised only if their lengths show it";
    FastCnp, c"option1_type", Kind::CodePoint(&OPTION1, 16, "fast_cnp_option1", Profile::DEFAULT.fast_cnp_option1 as u32), c"IPv6 option type of Fast CNP option 1",
        c"The option that carries only the original destination, 0x80 to 0x9f (default 0x9e, experimental)";
    FastCnp, c"option2_type", Kind::CodePoint(&OPTION2, 16, "fast_cnp_option2", Profile::DEFAULT.fast_cnp_option2 as u32), c"IPv6 option type of Fast CNP option 2",
        c"The option that also carries an IOAM trace, 0x80 to 0x9f (default 0x9f, experimental)";
    ProxyCn, c"option_type", Kind::CodePoint(&PROXY_OPTION, 16, "proxy_address_option", Profile::DEFAULT.proxy_address_option as u32), c"IPv6 option type of the Proxy Network Node Address option",
        c"The option in data packets that names the proxy, 0x02 to 0x1f (default 0x1e, experimental)";
    Pnc, c"bgp_characteristic", Kind::CodePoint(&CHARACTERISTIC, 10, "bgp_pnc_characteristic", Profile::DEFAULT.bgp_pnc_characteristic as u32), c"BGP characteristic code of the proxy node capability",
        c"The code in path attribute 39, 6 to 65535 (default 65280, experimental)";
    Csig, c"ether_type", Kind::CodePoint(&CSIG, 16, "csig_ether_type", Profile::DEFAULT.csig_ether_type as u32), c"EtherType of the CSIG tag",
        c"EtherType of the compact congestion signalling tag in front of IP; 0: not decoded (default 0x9900)";
    Fcn, c"correlate", Kind::Switch(&CORRELATE), c"Link notifications to the data they are about",
        c"Track data and notifications across frames to show what each notification is about";
    Fcn, c"trusted", Kind::List(&TRUSTED), c"Trusted notifiers",
        c"Prefixes or addresses of switches, separated by commas; Fast CNPs, proxy notifications and WAN FCNs from other sources are reported. Empty: not checked";
    Fcn, c"able", Kind::List(&ABLE), c"Senders that handle Fast CNPs",
        c"Prefixes or addresses, separated by commas; a CE mark on their data in addition to a switch's Fast CNP is reported. Empty: not checked";
    Fcn, c"domain", Kind::List(&DOMAIN), c"Domain",
        c"Prefixes or addresses, separated by commas; Fast CNPs, proxy notifications and WAN FCNs that enter or leave it are reported. Empty: not checked";
    Fcn, c"flow_rate", Kind::Number(&FLOW_RATE_LIMIT), c"Notifications per second about one flow",
        c"Rate limit of one notifier's Fast CNPs, proxy notifications or WAN FCNs about one flow; notifications more than 1 ms early are reported. 0: not checked (default 20000)";
    Fcn, c"rate_window", Kind::Number(&WINDOW), c"Window for the data rate (microseconds)",
        c"Time before and after a notification over which the flow's data rate is measured, 1 to 1000000 (default 1000)";
}

/// Registers the preferences; the protocols must have been registered before.
pub fn register() {
    for protocol in [
        P::Roce,
        P::FastCnp,
        P::ProxyCn,
        P::WanFcn,
        P::Pnc,
        P::Csig,
        P::Fcn,
    ] {
        let applied = match protocol {
            P::Fcn => settings_applied,
            _ => applied,
        };
        // SAFETY: the protocol was registered; texts and locations live forever.
        unsafe {
            let module = sys::prefs_register_protocol(ids::protocol(protocol), Some(applied));
            for preference in PREFERENCES.iter().filter(|one| one.protocol == protocol) {
                preference.register(module);
            }
        }
    }
}

impl Preference {
    /// # Safety
    /// `module` is a protocol's, as returned by Wireshark.
    unsafe fn register(&self, module: *mut sys::module_t) {
        let [name, title, about] = [self.name, self.title, self.description].map(CStr::as_ptr);
        let number = |place: &AtomicU32, base| {
            let place = place.as_ptr();
            // SAFETY: as below.
            unsafe {
                sys::prefs_register_uint_preference(module, name, title, about, base, place);
            }
        };
        // SAFETY: as required by this function; texts and locations live forever.
        unsafe {
            match self.kind {
                Kind::CodePoint(place, base, ..) => number(place, base),
                Kind::Number(place) => number(place, 10),
                Kind::Switch(place) => {
                    let place = place.as_ptr();
                    sys::prefs_register_bool_preference(module, name, title, about, place);
                }
                Kind::List(place) => {
                    place.store(c"".as_ptr().cast_mut(), Ordering::Relaxed);
                    let place = place.as_ptr().cast();
                    sys::prefs_register_string_preference(module, name, title, about, place);
                }
            }
        }
    }
}

/// Returns the code points for reading a message of `protocol` that came by `port`, even if Decode
/// As assigned that port: none of our other protocols has the port then.
pub fn profile_at(protocol: P, port: u16) -> Profile {
    let mut profile = profile();
    let Profile {
        rocev2_port,
        proxy_cn_port,
        wan_fcn_port,
        ..
    } = &mut profile;
    for taken in [&mut *rocev2_port, &mut *proxy_cn_port, &mut *wan_fcn_port] {
        if *taken == port {
            *taken = 0;
        }
    }
    match protocol {
        P::ProxyCn => *proxy_cn_port = port,
        P::WanFcn => *wan_fcn_port = port,
        _ => *rocev2_port = port,
    }
    profile
}

/// Returns the code points in the preferences; RoCEv2's port comes from InfiniBand's.
pub fn profile() -> Profile {
    // Values out of range were refused when they were set.
    let octet = |preference: &AtomicU32, default| {
        u8::try_from(preference.load(Ordering::Relaxed)).unwrap_or(default)
    };
    Profile {
        fast_cnp_option1: octet(&OPTION1, Profile::DEFAULT.fast_cnp_option1),
        fast_cnp_option2: octet(&OPTION2, Profile::DEFAULT.fast_cnp_option2),
        proxy_address_option: octet(&PROXY_OPTION, Profile::DEFAULT.proxy_address_option),
        bgp_pnc_characteristic: u16::try_from(CHARACTERISTIC.load(Ordering::Relaxed))
            .unwrap_or(Profile::DEFAULT.bgp_pnc_characteristic),
        csig_ether_type: csig_ether_type(),
        trimmed_dscp: DscpSet::from_bits(TRIMMED.load(Ordering::Relaxed)),
        rocev2_port: roce_port(),
        ..Profile::DEFAULT
    }
}

/// Returns the EtherType of the CSIG tag; 0 if there is none.
pub fn csig_ether_type() -> u16 {
    u16::try_from(CSIG.load(Ordering::Relaxed)).unwrap_or(Profile::DEFAULT.csig_ether_type)
}

/// Returns true if ICRCs are to be verified.
pub fn checks_icrc() -> bool {
    compat::is_on(&CHECK_ICRC)
}

/// Returns the settings in the preferences, and an error text if they are wrong.
pub fn settings() -> (Settings, Option<ColumnText>) {
    let mut wrong = None;
    let mut list = |name: &str, preference: &AtomicPtr<c_char>| {
        let text = preference.load(Ordering::Relaxed);
        if text.is_null() {
            return Vec::new();
        }
        // SAFETY: Wireshark keeps a preference's text, with a NUL after it, until it is changed
        // between packets.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        prefixes(&text).unwrap_or_else(|part| {
            wrong = Some(ColumnText::new(format_args!(
                "FCN preference \"{name}\": \"{part}\" is not a valid prefix, so the list is not used. \
                 Write 10.0.0.0/8, fd00::/16 or one address, separated by commas."
            )));
            Vec::new()
        })
    };
    let (trusted, able) = (list("trusted", &TRUSTED), list("able", &ABLE));
    let domain = list("domain", &DOMAIN);
    let micros = WINDOW.load(Ordering::Relaxed);
    let is_allowed = (1..=LONGEST_WINDOW).contains(&micros);
    let window = if is_allowed { micros } else { DEFAULT_WINDOW };
    if !is_allowed {
        wrong = Some(ColumnText::new(format_args!(
            "FCN preference \"rate_window\": {micros} is out of range: 1 to {LONGEST_WINDOW} microseconds. The \
             default, {DEFAULT_WINDOW}, is used."
        )));
    }
    let mut settings = Settings::new(
        trusted,
        able,
        FLOW_RATE_LIMIT.load(Ordering::Relaxed),
        u64::from(window) * 1000,
    );
    settings.domain = domain;
    (settings, wrong)
}

/// Parses a comma-separated list of prefixes.
///
/// # Errors
/// Returns the part that is not a prefix, or the whole text if it is not blank but has no prefix.
fn prefixes(text: &str) -> Result<Vec<Prefix>, String> {
    let mut parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .peekable();
    if parts.peek().is_none() && !text.trim().is_empty() {
        return Err(text.to_owned());
    }
    parts
        .map(|part| part.parse().map_err(|_| part.to_owned()))
        .collect()
}

/// Reports errors in new preferences. Called by Wireshark.
unsafe extern "C" fn settings_applied() {
    // Everything owned is dropped inside the guard.
    if let Some(text) = super::guard(|| settings().1).flatten() {
        say(text.as_c_str());
    }
}

/// Number of code points.
const CODE_POINTS: usize = 5;

/// Refuses code points that a profile refuses: reports them, and restores the defaults. Called by
/// Wireshark after preferences were changed.
unsafe extern "C" fn applied() {
    if let Some(text) = super::guard(read_trimmed_dscps).flatten() {
        say(text.as_c_str());
    }
    // Each refusal resets one to its default.
    for _ in 0..=CODE_POINTS {
        let Some(text) = super::guard(refusal).flatten() else {
            break;
        };
        say(&text);
    }
    for port in &PORTS {
        // SAFETY: Wireshark calls this between packets.
        if let Some(text) = unsafe { port_refusal(port) } {
            say(&text);
        }
    }
}

/// Reads the DSCPs of trimmed packets; returns an error text if they are wrong, and uses none then.
fn read_trimmed_dscps() -> Option<ColumnText> {
    let text = TRIMMED_DSCP.load(Ordering::Relaxed);
    if text.is_null() {
        return None;
    }
    // SAFETY: as for the lists of prefixes.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let read = text.parse::<DscpSet>();
    TRIMMED.store(read.unwrap_or_default().bits(), Ordering::Relaxed);
    read.is_err().then(|| {
        ColumnText::new(format_args!(
            "Preference rocev2.trimmed_dscp: \"{text}\" is not a list of DSCPs, so none is used. \
             Write numbers from 0 to 63, separated by commas."
        ))
    })
}

/// Makes Wireshark report errors in preferences.
fn say(text: &CStr) {
    // SAFETY: two texts that end with a NUL, as the format requires.
    unsafe { sys::report_failure(c"%s".as_ptr(), text.as_ptr()) };
}

/// Port of a message, which Wireshark itself keeps as a preference.
pub struct Port {
    pub protocol: P,
    /// Name of the protocol in preferences.
    module: &'static CStr,
    /// Name of the port in a profile.
    name: &'static str,
    pub default: u16,
    pub handle: Handle,
}

pub static PORTS: [Port; 2] = [
    Port {
        protocol: P::ProxyCn,
        module: c"proxycn",
        name: "proxy_cn_port",
        default: Profile::DEFAULT.proxy_cn_port,
        handle: Handle::new(ptr::null_mut()),
    },
    Port {
        protocol: P::WanFcn,
        module: c"wanfcn",
        name: "wan_fcn_port",
        default: Profile::DEFAULT.wan_fcn_port,
        handle: Handle::new(ptr::null_mut()),
    },
];

/// Dissectors that have the ports of VXLAN and RoCEv2 without this plugin.
pub static VXLAN: Handle = Handle::new(ptr::null_mut());
pub static INFINIBAND: Handle = Handle::new(ptr::null_mut());

impl Port {
    /// Returns true if the preference contains `port`.
    unsafe fn has(&self, port: u16) -> bool {
        // SAFETY: texts that end with a NUL; null means that the preference does not exist yet.
        unsafe {
            let range = sys::prefs_get_range_value(self.module.as_ptr(), UDP_PORT.as_ptr());
            !range.is_null() && compat::is_true(sys::value_is_in_range(range, port.into()))
        }
    }
}

/// Reports that InfiniBand's own preference has taken the port of one of our messages: packets to
/// it are shown as RoCEv2.
///
/// # Safety
/// Called between packets.
pub(super) unsafe fn check_roce_port(port: u16) {
    for theirs in &PORTS {
        // SAFETY: as required by this function.
        if unsafe { theirs.has(port) }
            && let Some(text) = super::guard(|| taken_by_infiniband(theirs, port)).flatten()
        {
            say(&text);
        }
    }
}

fn taken_by_infiniband(theirs: &Port, port: u16) -> Option<CString> {
    let module = theirs.module.to_string_lossy();
    CString::new(format!(
        "Preference infiniband.rroce.port: {port} is also {module}.udp.port. Packets to it are decoded as RoCEv2; \
         change one of the two ports."
    ))
    .ok()
}

/// Gives back the first port that `own` must not have, restores the default one, and returns the
/// reason. Wireshark has set the preference by now, as it does for all ports.
unsafe fn port_refusal(own: &Port) -> Option<CString> {
    let [proxy, wan] = &PORTS;
    let other = if own.name == wan.name { proxy } else { wan };
    // SAFETY: Wireshark keeps the preferences and tables, and calls this between packets.
    unsafe {
        let (port, text) = (0..=u16::MAX)
            .filter(|port| own.has(*port))
            .find_map(|port| {
                // A different port, unless the other preference names the same one.
                let theirs = match other.default {
                    _ if other.has(port) => port,
                    default if default != port => default,
                    _ => 1,
                };
                let (proxy_cn_port, wan_fcn_port) = if own.name == wan.name {
                    (theirs, port)
                } else {
                    (port, theirs)
                };
                let chosen = Profile {
                    proxy_cn_port,
                    wan_fcn_port,
                    rocev2_port: roce_port(),
                    ..Profile::DEFAULT
                };
                super::guard(|| {
                    let error = (chosen.validate_ports().err())
                        .filter(|error| error.name() == Some(own.name) && !compat::is_on(&FORCE))?;
                    let (module, default) = (own.module.to_string_lossy(), own.default);
                    CString::new(format!(
                        "Preference {module}.udp.port: {error}. The default, {default}, is used."
                    ))
                    .ok()
                })
                .flatten()
                .map(|text| (port, text))
            })?;
        // Wireshark no longer has the previous owner.
        let owner = match port {
            VXLAN_PORT => VXLAN.load(Ordering::Relaxed),
            _ if other.has(port) => other.handle.load(Ordering::Relaxed),
            _ if u32::from(port) == ROCE_PORT.load(Ordering::Relaxed) => {
                INFINIBAND.load(Ordering::Relaxed)
            }
            _ => ptr::null_mut(),
        };
        sys::dissector_reset_uint(UDP_PORT.as_ptr(), port.into());
        if !owner.is_null() {
            sys::dissector_add_uint(UDP_PORT.as_ptr(), port.into(), owner);
        }
        let handle = own.handle.load(Ordering::Relaxed);
        sys::dissector_add_uint(UDP_PORT.as_ptr(), own.default.into(), handle);
        Some(text)
    }
}

/// Resets the first refused code point to its default, and returns the reason.
fn refusal() -> Option<CString> {
    let code_points = || {
        PREFERENCES
            .iter()
            .filter_map(|preference| match preference.kind {
                Kind::CodePoint(place, _, name, default) => {
                    Some((preference, place, name, default))
                }
                _ => None,
            })
    };
    let reset = |(preference, place, _, default): (&Preference, &AtomicU32, &str, u32), error| {
        place.store(default, Ordering::Relaxed);
        let (module, name) = (
            preference.protocol.def().filter,
            preference.name.to_string_lossy(),
        );
        CString::new(format!(
            "Preference {module}.{name}: {error}. The default, {default:#x} ({default}), is used."
        ))
        .ok()
    };
    // Consistency is checked after all values have been set.
    let mut chosen = Profile {
        force: true,
        ..Profile::DEFAULT
    };
    for point in code_points() {
        let value = point.1.load(Ordering::Relaxed);
        if let Err(error) = chosen.set(&format!("{}={value:#x}", point.2)) {
            return reset(point, error);
        }
    }
    chosen.force = compat::is_on(&FORCE);
    let error = chosen.validate().err()?;
    let point = code_points().find(|point| Some(point.2) == error.name())?;
    reset(point, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed_and_errors_name_the_wrong_part() {
        assert_eq!(prefixes("").unwrap(), []);
        assert_eq!(prefixes(" 10.0.0.0/8 ,, 2001:db8::1,").unwrap().len(), 2);
        assert_eq!(prefixes("10.0.0.0/8, x y").unwrap_err(), "x y");
        assert_eq!(prefixes(",").unwrap_err(), ",");
    }
}
