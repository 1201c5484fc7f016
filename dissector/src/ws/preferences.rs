//! Code points and switches as preferences.

use super::compat::{self, BoolPreference};
use super::handles::{Handle, ROCE_PORT, UDP_PORT};
use super::wrappers::ROCE;
use super::{ids, sys};
use crate::names::P;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use fcn_wire::Profile;
use fcn_wire::profile::{ProfileError, VXLAN_PORT};
use std::ffi::CString;

/// Preferences, which Wireshark writes between packets.
static OPTION1: AtomicU32 = AtomicU32::new(Profile::DEFAULT.fast_cnp_option1 as u32);
static OPTION2: AtomicU32 = AtomicU32::new(Profile::DEFAULT.fast_cnp_option2 as u32);
static PROXY_OPTION: AtomicU32 = AtomicU32::new(Profile::DEFAULT.proxy_address_option as u32);
static CHARACTERISTIC: AtomicU32 = AtomicU32::new(Profile::DEFAULT.bgp_pnc_characteristic as u32);
static CHECK_ICRC: BoolPreference = compat::preference(true);
static FORCE: BoolPreference = compat::preference(false);

/// The code points by which a message of `protocol` is read that came by `port`, wherever Decode As has brought it from:
/// nothing else of ours has that port then.
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

/// The code points by the preferences, at the default ports.
pub fn profile() -> Profile {
    // What is out of range was refused when it was set.
    let octet = |preference: &AtomicU32, default| {
        u8::try_from(preference.load(Ordering::Relaxed)).unwrap_or(default)
    };
    Profile {
        fast_cnp_option1: octet(&OPTION1, Profile::DEFAULT.fast_cnp_option1),
        fast_cnp_option2: octet(&OPTION2, Profile::DEFAULT.fast_cnp_option2),
        proxy_address_option: octet(&PROXY_OPTION, Profile::DEFAULT.proxy_address_option),
        bgp_pnc_characteristic: u16::try_from(CHARACTERISTIC.load(Ordering::Relaxed))
            .unwrap_or(Profile::DEFAULT.bgp_pnc_characteristic),
        ..Profile::DEFAULT
    }
}

/// Whether ICRCs are to be verified.
pub fn checks_icrc() -> bool {
    compat::is_on(&CHECK_ICRC)
}

/// A code point's name as a preference and in a profile, where it is kept, and its default.
type CodePoint = (&'static str, &'static str, &'static AtomicU32, u32);

const CODE_POINTS: [CodePoint; 4] = [
    (
        "fastcnp.option1_type",
        "fast_cnp_option1",
        &OPTION1,
        Profile::DEFAULT.fast_cnp_option1 as u32,
    ),
    (
        "fastcnp.option2_type",
        "fast_cnp_option2",
        &OPTION2,
        Profile::DEFAULT.fast_cnp_option2 as u32,
    ),
    (
        "proxycn.option_type",
        "proxy_address_option",
        &PROXY_OPTION,
        Profile::DEFAULT.proxy_address_option as u32,
    ),
    (
        "pnc.bgp_characteristic",
        "bgp_pnc_characteristic",
        &CHARACTERISTIC,
        Profile::DEFAULT.bgp_pnc_characteristic as u32,
    ),
];

/// Refuses code points that a profile refuses: says so, and takes the default. Called by Wireshark when preferences were
/// changed.
unsafe extern "C" fn applied() {
    // Each refusal sets one to its default.
    for _ in 0..=CODE_POINTS.len() {
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

fn say(text: &CStr) {
    // SAFETY: two texts that end with a NUL, as the format says.
    unsafe { sys::report_failure(c"%s".as_ptr(), text.as_ptr()) };
}

/// A message's port, which Wireshark itself keeps as a preference.
pub struct Port {
    pub protocol: P,
    module: &'static CStr,
    /// Its name in a profile.
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

/// Who has VXLAN's port.
pub static VXLAN: Handle = Handle::new(ptr::null_mut());

impl Port {
    /// Whether the preference names `port`.
    unsafe fn has(&self, port: u16) -> bool {
        // SAFETY: texts that end with a NUL; what is null is a preference that is not there yet.
        unsafe {
            let range = sys::prefs_get_range_value(self.module.as_ptr(), UDP_PORT.as_ptr());
            !range.is_null() && compat::is_true(sys::value_is_in_range(range, port.into()))
        }
    }
}

/// Says that InfiniBand's own preference has taken a port that is a message's: what goes there is shown as RoCEv2.
///
/// # Safety
/// Called between packets.
pub(super) unsafe fn check_roce_port(port: u16) {
    for theirs in &PORTS {
        // SAFETY: as asked for.
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
        "Preference infiniband.rroce.port: {port} is also {module}.udp.port. What goes there is taken for RoCEv2; set one of \
         the two to another port."
    ))
    .ok()
}

/// Gives the first port back that `of` must not have, takes the default one, and says why. Wireshark has set the
/// preference by now, as it does for all ports.
unsafe fn port_refusal(of: &Port) -> Option<CString> {
    let [proxy, wan] = &PORTS;
    let other = if of.name == wan.name { proxy } else { wan };
    // SAFETY: Wireshark keeps preferences and tables; it calls between packets.
    unsafe {
        let (port, text) = (0..=u16::MAX)
            .filter(|port| of.has(*port))
            .find_map(|port| {
                // Another than this, unless the preference says the same.
                let theirs = match other.default {
                    _ if other.has(port) => port,
                    default if default != port => default,
                    _ => 1,
                };
                let (proxy_cn_port, wan_fcn_port) = if of.name == wan.name {
                    (theirs, port)
                } else {
                    (port, theirs)
                };
                let chosen = Profile {
                    proxy_cn_port,
                    wan_fcn_port,
                    rocev2_port: ROCE_PORT.load(Ordering::Relaxed) as u16,
                    ..Profile::DEFAULT
                };
                super::guard(|| {
                    let error = (chosen.validate_ports().err())
                        .filter(|error| error.name() == Some(of.name) && !compat::is_on(&FORCE))?;
                    let (module, default) = (of.module.to_string_lossy(), of.default);
                    CString::new(format!(
                        "Preference {module}.udp.port: {error}. The default, {default}, is used."
                    ))
                    .ok()
                })
                .flatten()
                .map(|text| (port, text))
            })?;
        // Wireshark has forgotten who had it.
        let owner = match port {
            VXLAN_PORT => VXLAN.load(Ordering::Relaxed),
            _ if other.has(port) => other.handle.load(Ordering::Relaxed),
            _ if u32::from(port) == ROCE_PORT.load(Ordering::Relaxed) => ROCE.original(),
            _ => ptr::null_mut(),
        };
        sys::dissector_reset_uint(UDP_PORT.as_ptr(), port.into());
        if !owner.is_null() {
            sys::dissector_add_uint(UDP_PORT.as_ptr(), port.into(), owner);
        }
        let handle = of.handle.load(Ordering::Relaxed);
        sys::dissector_add_uint(UDP_PORT.as_ptr(), of.default.into(), handle);
        Some(text)
    }
}

/// Sets the first code point that is refused to its default, and says why.
fn refusal() -> Option<CString> {
    let reset = |(preference, _, place, default): CodePoint, error: &ProfileError| {
        place.store(default, Ordering::Relaxed);
        CString::new(format!(
            "Preference {preference}: {error}. The default, {default:#x} ({default}), is used."
        ))
        .ok()
    };
    // Whether the values agree is looked at when all of them are there.
    let mut chosen = Profile {
        force: true,
        ..Profile::DEFAULT
    };
    for point in CODE_POINTS {
        let value = point.2.load(Ordering::Relaxed);
        if let Err(error) = chosen.set(&format!("{}={value:#x}", point.1)) {
            return reset(point, &error);
        }
    }
    chosen.force = compat::is_on(&FORCE);
    let error = chosen.validate().err()?;
    let point = (CODE_POINTS.into_iter()).find(|point| Some(point.1) == error.name())?;
    reset(point, &error)
}

/// Registers them.
pub fn register() {
    type OptionPreference = (
        P,
        &'static CStr,
        &'static CStr,
        &'static CStr,
        u32,
        &'static AtomicU32,
    );
    const OPTIONS: [OptionPreference; 4] = [
        (
            P::FastCnp,
            c"option1_type",
            c"IPv6 option type of Fast CNP option 1",
            c"The option that carries the original destination alone, 0x80 to 0x9f (default 0x9e, experimental)",
            16,
            &OPTION1,
        ),
        (
            P::FastCnp,
            c"option2_type",
            c"IPv6 option type of Fast CNP option 2",
            c"The option that carries an IOAM trace as well, 0x80 to 0x9f (default 0x9f, experimental)",
            16,
            &OPTION2,
        ),
        (
            P::ProxyCn,
            c"option_type",
            c"IPv6 option type of the Proxy Network Node Address option",
            c"The option of data packets that names the proxy, 0x02 to 0x1f (default 0x1e, experimental)",
            16,
            &PROXY_OPTION,
        ),
        (
            P::Pnc,
            c"bgp_characteristic",
            c"BGP characteristic code of the proxy node capability",
            c"The code in path attribute 39, 6 to 65535 (default 65280, experimental)",
            10,
            &CHARACTERISTIC,
        ),
    ];
    let modules = [P::Roce, P::FastCnp, P::ProxyCn, P::WanFcn, P::Pnc].map(|p| {
        // SAFETY: the protocol was registered just now.
        (p, unsafe {
            sys::prefs_register_protocol(ids::protocol(p), Some(applied))
        })
    });
    for (p, name, title, description, base, place) in OPTIONS {
        for (_, module) in modules.iter().filter(|(of, _)| *of == p) {
            // SAFETY: the module was registered just now; texts and place live forever.
            unsafe {
                sys::prefs_register_uint_preference(
                    *module,
                    name.as_ptr(),
                    title.as_ptr(),
                    description.as_ptr(),
                    base,
                    place.as_ptr(),
                );
            }
        }
    }
    // SAFETY: as above.
    unsafe {
        sys::prefs_register_bool_preference(
            modules[0].1,
            c"check_icrc".as_ptr(),
            c"Verify the ICRC".as_ptr(),
            c"Whether to compute the Invariant CRC of every RoCEv2 packet and compare it with the one carried".as_ptr(),
            CHECK_ICRC.as_ptr(),
        );
        sys::prefs_register_bool_preference(
            modules[0].1,
            c"force".as_ptr(),
            c"Take code points that the drafts forbid".as_ptr(),
            c"Whether option types and the BGP characteristic may have values that the drafts forbid or that others have: for negative testing".as_ptr(),
            FORCE.as_ptr(),
        );
    }
}
