//! Registers protocols, fields, expert infos, preferences and handles with Wireshark, and keeps the numbers it gives.

use super::compat::{self, BoolPreference};
use super::{hooks, memory, routing, statistics, sys, tables, taps};
use crate::names::{F, Field, Kind, Link, P, expert_name, expert_protocol};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};
use fcn_wire::Profile;
use fcn_wire::finding::{Rule, Severity};
use fcn_wire::profile::{ProfileError, VXLAN_PORT};
use std::ffi::CString;

/// How many protocols there are.
pub const PROTOCOLS: usize = P::ALL.len();
const FIELDS: usize = F::ALL.len();
const RULES: usize = Rule::ALL.len();

/// Numbers that Wireshark writes once, while it starts, and reads afterwards.
static PROTOCOL_IDS: [AtomicI32; PROTOCOLS] = [const { AtomicI32::new(-1) }; PROTOCOLS];
static FIELD_IDS: [AtomicI32; FIELDS] = [const { AtomicI32::new(-1) }; FIELDS];
static FIELD_ETTS: [AtomicI32; FIELDS] = [const { AtomicI32::new(-1) }; FIELDS];
static PROTOCOL_ETTS: [AtomicI32; PROTOCOLS] = [const { AtomicI32::new(-1) }; PROTOCOLS];
static ANCHOR_IDS: [AtomicI32; ANCHORS] = [const { AtomicI32::new(-1) }; ANCHORS];
static EXPERT_TAP: AtomicI32 = AtomicI32::new(-1);
static EXPERT_PROTOCOL: AtomicI32 = AtomicI32::new(-1);

/// The rules' identifiers, as C has them.
static RULE_IDS: [AtomicPtr<c_char>; RULES] = [const { AtomicPtr::new(ptr::null_mut()) }; RULES];

struct ExpertIds([UnsafeCell<sys::expert_field>; RULES]);

// SAFETY: written by Wireshark while it starts, on its one thread, and only read by it afterwards; Rust code hands out
// the address alone.
unsafe impl Sync for ExpertIds {}

static EXPERT_IDS: ExpertIds =
    ExpertIds([const { UnsafeCell::new(sys::expert_field { ei: -1, hf: -1 }) }; RULES]);

/// Preferences, which Wireshark writes between packets.
static OPTION1: AtomicU32 = AtomicU32::new(Profile::DEFAULT.fast_cnp_option1 as u32);
static OPTION2: AtomicU32 = AtomicU32::new(Profile::DEFAULT.fast_cnp_option2 as u32);
static PROXY_OPTION: AtomicU32 = AtomicU32::new(Profile::DEFAULT.proxy_address_option as u32);
static CHECK_ICRC: BoolPreference = compat::preference(true);
static FORCE: BoolPreference = compat::preference(false);

/// Fields of Wireshark's own that ours stand beside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Anchors {
    /// One IPv6 option.
    Ipv6Option,
    /// InfiniBand's Base Transport Header.
    Bth,
    /// The InfiniBand packet.
    InfiniBand,
    /// The MAC control frame.
    MacControl,
    /// The LSP.
    IsisLsp,
    /// First field of an IS-IS prefix: its metric.
    IsisPrefix,
    /// The OSPF packet.
    Ospf,
    /// First field of an OSPFv2 Extended Prefix TLV.
    Ospf2Prefix,
    /// First field of a TLV in an extended LSA; not known to every Wireshark.
    Ospf3Prefix,
    /// Field of an OSPFv3 LSA.
    Ospf3Lsa,
    /// The BGP message.
    Bgp,
    /// One BGP path attribute.
    BgpAttribute,
    /// First field of a BGP prefix.
    BgpPrefix,
}

const ANCHORS: usize = 15;
/// Most fields of Wireshark's that one anchor has.
const SAME_ANCHOR: usize = 3;

impl Anchors {
    const ALL: [(Self, &'static CStr); ANCHORS] = [
        (Self::Ipv6Option, c"ipv6.opt"),
        (Self::Bth, c"infiniband.bth"),
        (Self::InfiniBand, c"infiniband"),
        (Self::MacControl, c"macc"),
        (Self::IsisLsp, c"isis.lsp"),
        (Self::IsisPrefix, c"isis.lsp.ext_ip_reachability.metric"),
        (Self::IsisPrefix, c"isis.lsp.ipv6_reachability.metric"),
        (Self::IsisPrefix, c"isis.lsp.srv6_locator.metric"),
        (Self::Ospf, c"ospf"),
        (Self::Ospf2Prefix, c"ospf.tlv.extpfx.tlv_type"),
        (Self::Ospf3Prefix, c"ospf.v3.elsa.tlv_type"),
        (Self::Ospf3Lsa, c"ospf.v3.lsa"),
        (Self::Bgp, c"bgp"),
        (Self::BgpAttribute, c"bgp.update.path_attribute"),
        (Self::BgpPrefix, c"bgp.prefix_length"),
    ];

    /// Whether ours stand beside it, not in it.
    pub const fn is_beside(self) -> bool {
        matches!(
            self,
            Self::IsisPrefix
                | Self::Ospf2Prefix
                | Self::Ospf3Prefix
                | Self::Ospf3Lsa
                | Self::BgpPrefix
        )
    }
}

/// Wireshark's number of a protocol.
pub fn protocol(protocol: P) -> c_int {
    PROTOCOL_IDS[protocol as usize].load(Ordering::Relaxed)
}

/// Wireshark's number of a protocol's subtree.
pub fn protocol_ett(protocol: P) -> c_int {
    PROTOCOL_ETTS[protocol as usize].load(Ordering::Relaxed)
}

/// Wireshark's number of a field.
pub fn field(field: F) -> c_int {
    FIELD_IDS[field as usize].load(Ordering::Relaxed)
}

/// Wireshark's number of a field's subtree.
pub fn field_ett(field: F) -> c_int {
    FIELD_ETTS[field as usize].load(Ordering::Relaxed)
}

/// Wireshark's numbers of an anchor; those behind the last are none.
pub fn anchor(anchor: Anchors) -> [c_int; SAME_ANCHOR] {
    let mut ids = [c_int::MIN; SAME_ANCHOR];
    let same = Anchors::ALL.iter().zip(&ANCHOR_IDS);
    let same = same.filter(|((one, _), _)| *one == anchor);
    for (place, (_, id)) in ids.iter_mut().zip(same) {
        *place = id.load(Ordering::Relaxed);
    }
    ids
}

/// Wireshark's place for the expert info of a rule.
pub fn expert(rule: Rule) -> *mut sys::expert_field {
    EXPERT_IDS.0[rule as usize].get()
}

/// The identifier of a rule, as C has it.
pub fn rule_id(rule: Rule) -> *const c_char {
    RULE_IDS[rule as usize].load(Ordering::Relaxed)
}

/// Wireshark's number of the tap that collects expert infos.
pub fn expert_tap() -> c_int {
    EXPERT_TAP.load(Ordering::Relaxed)
}

/// Wireshark's numbers of the protocols whose fields a filter may refer to: ours, and expert info.
pub fn referable() -> impl Iterator<Item = c_int> {
    PROTOCOL_IDS
        .iter()
        .chain(core::iter::once(&EXPERT_PROTOCOL))
        .map(|id| id.load(Ordering::Relaxed))
}

/// The code points by the preferences; the RoCEv2 port is the one that a packet was handed over by.
pub fn profile(rocev2_port: u16) -> Profile {
    // What is out of range was refused when it was set.
    let octet = |preference: &AtomicU32, default| {
        u8::try_from(preference.load(Ordering::Relaxed)).unwrap_or(default)
    };
    Profile {
        fast_cnp_option1: octet(&OPTION1, Profile::DEFAULT.fast_cnp_option1),
        fast_cnp_option2: octet(&OPTION2, Profile::DEFAULT.fast_cnp_option2),
        proxy_address_option: octet(&PROXY_OPTION, Profile::DEFAULT.proxy_address_option),
        rocev2_port,
        bgp_pnc_characteristic: routing::characteristic(),
        ..Profile::DEFAULT
    }
}

/// Whether ICRCs are to be verified.
pub fn checks_icrc() -> bool {
    compat::is_on(&CHECK_ICRC)
}

/// A text that Wireshark keeps for as long as it runs.
fn forever(text: &str) -> *const c_char {
    match CString::new(text) {
        Ok(text) => text.into_raw(),
        Err(_) => c"".as_ptr(),
    }
}

/// Registers the plugin; Wireshark looks it up by `plugin_register`.
pub fn plugin() {
    let plugin = Box::leak(Box::new(sys::proto_plugin {
        register_protoinfo: Some(protocols),
        register_handoff: Some(handoff),
    }));
    // SAFETY: Wireshark keeps the pointer; the structure is never freed.
    unsafe { sys::proto_register_plugin(plugin) };
}

unsafe extern "C" fn protocols() {
    for p in P::ALL {
        let def = p.def();
        // SAFETY: three texts that live forever.
        let id = unsafe {
            sys::proto_register_protocol(forever(def.name), forever(def.short), forever(def.filter))
        };
        PROTOCOL_IDS[*p as usize].store(id, Ordering::Relaxed);
    }
    for p in P::ALL {
        register_fields(*p);
        register_experts(*p);
    }
    register_subtrees();
    register_preferences();
    taps::register();
    statistics::register();
    tables::register();
    // SAFETY: Wireshark registers protocols now.
    unsafe { memory::register_preferences() };
}

fn register_fields(protocol_of: P) {
    let records: Vec<sys::hf_register_info> = F::ALL
        .iter()
        .filter(|f| f.def().protocol == protocol_of)
        .map(|f| {
            let def = f.def();
            let (type_, display) = wireshark_type(&def);
            // SAFETY: all zeros is a valid value of this C structure; what matters is set below.
            let mut info: sys::header_field_info = unsafe { core::mem::zeroed() };
            info.name = forever(def.name);
            info.abbrev = forever(def.filter);
            info.type_ = type_;
            info.display = display;
            info.strings = value_strings(&def);
            info.bitmask = def.mask;
            info.id = -1;
            info.same_name_prev_id = -1;
            sys::hf_register_info {
                p_id: FIELD_IDS[*f as usize].as_ptr(),
                hfinfo: info,
            }
        })
        .collect();
    let records = records.leak();
    // SAFETY: the records live forever, and so do the places for the numbers.
    unsafe {
        sys::proto_register_field_array(
            protocol(protocol_of),
            records.as_mut_ptr(),
            records.len() as c_int,
        );
    }
}

fn wireshark_type(def: &Field) -> (sys::ftenum, c_int) {
    let number = |bits: u8| match bits {
        8 => sys::FT_UINT8,
        16 => sys::FT_UINT16,
        24 => sys::FT_UINT24,
        56 => sys::FT_UINT56,
        64 => sys::FT_UINT64,
        _ => sys::FT_UINT32,
    };
    let (type_, display) = match def.kind {
        Kind::Node => (sys::FT_NONE, sys::BASE_NONE as c_int),
        Kind::Dec(bits) => (number(bits), sys::BASE_DEC as c_int),
        Kind::Named(bits) => (number(bits), sys::BASE_NONE as c_int),
        Kind::Hex(bits) => (number(bits), sys::BASE_HEX as c_int),
        Kind::Flag(bits) => (sys::FT_BOOLEAN, c_int::from(bits)),
        Kind::Ipv4 => (sys::FT_IPv4, sys::BASE_NONE as c_int),
        Kind::Ipv6 => (sys::FT_IPv6, sys::BASE_NONE as c_int),
        Kind::Bytes => (sys::FT_BYTES, sys::BASE_NONE as c_int),
        Kind::Text => (sys::FT_STRING, sys::BASE_NONE as c_int),
        Kind::Frame(_) => (sys::FT_FRAMENUM, sys::BASE_NONE as c_int),
        Kind::Span => (sys::FT_RELATIVE_TIME, sys::BASE_NONE as c_int),
    };
    (type_, display)
}

fn value_strings(def: &Field) -> *const c_void {
    if let Kind::Frame(link) = def.kind {
        // Here Wireshark takes a number where other fields have a list.
        let link = match link {
            Link::Cause => sys::FT_FRAMENUM_REQUEST,
            Link::Effect => sys::FT_FRAMENUM_RESPONSE,
        };
        return ptr::without_provenance(link as usize);
    }
    if def.values.is_empty() {
        return ptr::null();
    }
    let mut strings: Vec<sys::value_string> = def
        .values
        .iter()
        .map(|(value, text)| sys::value_string {
            value: *value,
            strptr: forever(text),
        })
        .collect();
    strings.push(sys::value_string {
        value: 0,
        strptr: ptr::null(),
    });
    strings.leak().as_ptr().cast()
}

fn register_experts(protocol_of: P) {
    let records: Vec<sys::ei_register_info> = Rule::ALL
        .iter()
        .filter(|rule| expert_protocol(**rule) == protocol_of)
        .map(|rule| {
            let info = rule.info();
            RULE_IDS[*rule as usize].store(forever(info.id).cast_mut(), Ordering::Relaxed);
            // SAFETY: all zeros is a valid value of this C structure; what matters is set below.
            let mut record: sys::ei_register_info = unsafe { core::mem::zeroed() };
            record.ids = expert(*rule);
            record.eiinfo.name = forever(&expert_name(*rule));
            record.eiinfo.group = group(*rule) as c_int;
            record.eiinfo.severity = match info.severity {
                Severity::Note => sys::PI_NOTE,
                Severity::Warning => sys::PI_WARN,
                Severity::Error => sys::PI_ERROR,
            } as c_int;
            record.eiinfo.summary = forever(&format!("{} [{}]", info.text, info.section));
            record.eiinfo.hf_info.hfinfo.type_ = sys::FT_NONE;
            record.eiinfo.hf_info.hfinfo.id = -1;
            record.eiinfo.hf_info.hfinfo.same_name_prev_id = -1;
            record
        })
        .collect();
    if records.is_empty() {
        return;
    }
    let records = records.leak();
    // SAFETY: the records live forever, and so do the places for the numbers.
    unsafe {
        let module = sys::expert_register_protocol(protocol(protocol_of));
        sys::expert_register_field_array(module, records.as_mut_ptr(), records.len() as c_int);
    }
}

fn group(rule: Rule) -> u32 {
    if rule == Rule::RoceIcrcBad {
        sys::PI_CHECKSUM
    } else if rule.is_malformed() {
        sys::PI_MALFORMED
    } else {
        sys::PI_PROTOCOL
    }
}

fn register_subtrees() {
    let places: Vec<*mut c_int> = PROTOCOL_ETTS
        .iter()
        .chain(&FIELD_ETTS)
        .map(AtomicI32::as_ptr)
        .collect();
    let places = places.leak();
    // SAFETY: the places live forever.
    unsafe { sys::proto_register_subtree_array(places.as_ptr(), places.len() as c_int) };
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
        &routing::CHARACTERISTIC,
        Profile::DEFAULT.bgp_pnc_characteristic as u32,
    ),
];

/// Refuses code points that a profile refuses: says so, and takes the default. Called by Wireshark when preferences were
/// changed.
pub unsafe extern "C" fn applied() {
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
struct Port {
    module: &'static CStr,
    /// Its name in a profile.
    name: &'static str,
    default: u16,
    handle: Handle,
}

static PORTS: [Port; 2] = [
    Port {
        module: c"proxycn",
        name: "proxy_cn_port",
        default: Profile::DEFAULT.proxy_cn_port,
        handle: Handle::new(ptr::null_mut()),
    },
    Port {
        module: c"wanfcn",
        name: "wan_fcn_port",
        default: Profile::DEFAULT.wan_fcn_port,
        handle: Handle::new(ptr::null_mut()),
    },
];

/// Who has VXLAN's port.
static VXLAN: Handle = Handle::new(ptr::null_mut());

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

fn register_preferences() {
    type OptionPreference = (
        P,
        &'static CStr,
        &'static CStr,
        &'static CStr,
        &'static AtomicU32,
    );
    const OPTIONS: [OptionPreference; 3] = [
        (
            P::FastCnp,
            c"option1_type",
            c"IPv6 option type of Fast CNP option 1",
            c"The option that carries the original destination alone, 0x80 to 0x9f (default 0x9e, experimental)",
            &OPTION1,
        ),
        (
            P::FastCnp,
            c"option2_type",
            c"IPv6 option type of Fast CNP option 2",
            c"The option that carries an IOAM trace as well, 0x80 to 0x9f (default 0x9f, experimental)",
            &OPTION2,
        ),
        (
            P::ProxyCn,
            c"option_type",
            c"IPv6 option type of the Proxy Network Node Address option",
            c"The option of data packets that names the proxy, 0x02 to 0x1f (default 0x1e, experimental)",
            &PROXY_OPTION,
        ),
    ];
    let modules = [P::Roce, P::FastCnp, P::ProxyCn, P::WanFcn].map(|p| {
        // SAFETY: the protocol was registered just now.
        (p, unsafe {
            sys::prefs_register_protocol(protocol(p), Some(applied))
        })
    });
    for (p, name, title, description, place) in OPTIONS {
        for (_, module) in modules.iter().filter(|(of, _)| *of == p) {
            // SAFETY: the module was registered just now; texts and place live forever.
            unsafe {
                sys::prefs_register_uint_preference(
                    *module,
                    name.as_ptr(),
                    title.as_ptr(),
                    description.as_ptr(),
                    16,
                    place.as_ptr(),
                );
            }
        }
    }
    routing::register_preferences();
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

unsafe extern "C" fn handoff() {
    for ((_, name), place) in Anchors::ALL.iter().zip(&ANCHOR_IDS) {
        // SAFETY: a lookup by a text that ends with a NUL.
        let id = unsafe { sys::proto_registrar_get_id_byname(name.as_ptr()) };
        place.store(id, Ordering::Relaxed);
    }
    // SAFETY: callbacks of the right type, protocols registered before, texts that end with a NUL.
    unsafe {
        let proxy = sys::create_dissector_handle(Some(hooks::proxy_cn), protocol(P::ProxyCn));
        let wan = sys::create_dissector_handle(Some(hooks::wan_fcn), protocol(P::WanFcn));
        let (proxy_port, wan_port) = (
            forever(&Profile::DEFAULT.proxy_cn_port.to_string()),
            forever(&Profile::DEFAULT.wan_fcn_port.to_string()),
        );
        sys::dissector_add_uint_range_with_preference(UDP_PORT.as_ptr(), proxy_port, proxy);
        sys::dissector_add_uint_range_with_preference(UDP_PORT.as_ptr(), wan_port, wan);
        let table = sys::find_dissector_table(UDP_PORT.as_ptr());
        if !table.is_null() {
            let vxlan = sys::dissector_get_uint_handle(table, VXLAN_PORT.into());
            VXLAN.store(vxlan, Ordering::Relaxed);
        }
        PORTS[0].handle.store(proxy, Ordering::Relaxed);
        PORTS[1].handle.store(wan, Ordering::Relaxed);
        let post = sys::create_dissector_handle(Some(hooks::post), protocol(P::Roce));
        sys::register_postdissector(post);
        INVOKING[0].store(sys::find_dissector(c"ip".as_ptr()), Ordering::Relaxed);
        INVOKING[1].store(sys::find_dissector(c"ipv6".as_ptr()), Ordering::Relaxed);
        hook();
        routing::hook(routing::When::Start);
        // Another file, and new preferences, may have brought InfiniBand's own handle back.
        sys::register_init_routine(Some(hook_again));
        // The same for what is remembered; and nothing need be kept of a file that is closed.
        sys::register_init_routine(Some(memory::forget));
        sys::register_cleanup_routine(Some(memory::forget));
        sys::register_init_routine(Some(routing::forget));
        sys::register_cleanup_routine(Some(routing::forget));
    }
}

const UDP_PORT: &CStr = c"udp.port";
const IP_PROTO: &CStr = c"ip.proto";
const ETHERTYPE: &CStr = c"ethertype";
type Handle = AtomicPtr<sys::dissector_handle>;

/// Dissectors for the packet that a proxy notification quotes: IPv4, IPv6.
static INVOKING: [Handle; 2] = [const { Handle::new(ptr::null_mut()) }; 2];

/// A handle of Wireshark's own that a wrapper of ours stands in front of.
pub struct Wrapped {
    ours: Handle,
    original: Handle,
}

impl Wrapped {
    pub(super) const fn new() -> Self {
        Self {
            ours: Handle::new(ptr::null_mut()),
            original: Handle::new(ptr::null_mut()),
        }
    }

    /// Wireshark's own handle.
    pub fn original(&self) -> sys::dissector_handle_t {
        self.original.load(Ordering::Relaxed)
    }

    /// Sets Wireshark's own handle.
    pub(super) fn set_original(&self, original: sys::dissector_handle_t) {
        self.original.store(original, Ordering::Relaxed);
    }

    /// The wrapper's handle, made once. Later Wiresharks complain where handles of a table have no names to tell them
    /// apart. The description names it in Decode As; a comma would break the file that keeps
    /// a user's choices.
    pub(super) unsafe fn ours(
        &self,
        callback: sys::dissector_t,
        name: &CStr,
        description: &CStr,
    ) -> sys::dissector_handle_t {
        let mut ours = self.ours.load(Ordering::Relaxed);
        if ours.is_null() {
            // No protocol: Wireshark's own handle then enters its own name into the packet's list of protocols, once.
            // SAFETY: a callback of the right type and a text that lives forever.
            ours = unsafe {
                sys::create_dissector_handle_with_name_and_description(
                    callback,
                    -1,
                    name.as_ptr(),
                    description.as_ptr(),
                )
            };
            self.ours.store(ours, Ordering::Relaxed);
        }
        ours
    }
}

/// The UDP port of InfiniBand's preference.
static ROCE_PORT: AtomicU32 = AtomicU32::new(Profile::DEFAULT.rocev2_port as u32);
/// RoCEv2 at its UDP port.
pub static ROCE: Wrapped = Wrapped::new();
/// Destination Options headers.
pub static DESTINATION_OPTIONS: Wrapped = Wrapped::new();
/// Hop-by-Hop Options headers.
pub static HOP_BY_HOP: Wrapped = Wrapped::new();
/// MAC control frames.
pub static MAC_CONTROL: Wrapped = Wrapped::new();

/// The dissector for an invoking packet.
pub fn invoking(ipv6: bool) -> sys::dissector_handle_t {
    INVOKING[usize::from(ipv6)].load(Ordering::Relaxed)
}

/// Whether Wireshark without us would ask what is at UDP port `other` before InfiniBand at port `roce`, and has not asked it
/// yet: it asks what a user has chosen first, then the lower port. Our wrapper counts as chosen.
///
/// # Safety
/// Called while a packet is dissected.
pub unsafe fn is_asked_first(other: u32, roce: u32) -> bool {
    // SAFETY: a lookup in a table that exists since start.
    let is_chosen = unsafe { is_chosen_udp_port(other) };
    roce == ROCE_PORT.load(Ordering::Relaxed) && (other < roce) != is_chosen
}

/// Has what is at UDP port `port` dissect the packet; 0 where it refuses, or nothing is there.
///
/// # Safety
/// Called while a packet is dissected, with its pointers.
pub unsafe fn try_udp_port(
    port: u32,
    tvb: *mut sys::tvbuff_t,
    pinfo: *mut sys::packet_info,
    tree: *mut sys::proto_tree,
) -> c_int {
    // SAFETY: a table that exists since start, and Wireshark's own pointers.
    unsafe {
        let table = sys::find_dissector_table(UDP_PORT.as_ptr());
        if table.is_null() {
            return 0;
        }
        sys::dissector_try_uint(table, port, tvb, pinfo, tree)
    }
}

/// Whether a user has chosen what dissects UDP port `port`, by Decode As or by a preference.
///
/// # Safety
/// Called while a packet is dissected.
pub unsafe fn is_chosen_udp_port(port: u32) -> bool {
    // SAFETY: lookups in tables that exist since start.
    unsafe {
        let table = sys::find_dissector_table(UDP_PORT.as_ptr());
        !table.is_null() && compat::is_true(sys::dissector_is_uint_changed(table, port))
    }
}

unsafe extern "C" fn hook_again() {
    // SAFETY: Wireshark calls this between packets; the tap is registered only after all handoffs.
    unsafe {
        EXPERT_TAP.store(sys::find_tap_id(c"expert".as_ptr()), Ordering::Relaxed);
        EXPERT_PROTOCOL.store(
            sys::proto_get_id_by_filter_name(c"_ws.expert".as_ptr()),
            Ordering::Relaxed,
        );
        hook();
        routing::hook(routing::When::Again);
    }
}

/// Puts the wrappers in front, where they are not there yet.
unsafe fn hook() {
    // SAFETY: tables and handles that exist since start; texts end with a NUL.
    unsafe {
        for (table_name, wrapped, callback, number, name, description) in [
            (
                IP_PROTO,
                &DESTINATION_OPTIONS,
                hooks::destination_options as Callback,
                60,
                c"fcn.ipv6.dstopts",
                c"IPv6 Destination Options with congestion notification",
            ),
            (
                IP_PROTO,
                &HOP_BY_HOP,
                hooks::hop_by_hop as Callback,
                0,
                c"fcn.ipv6.hopopts",
                c"IPv6 Hop-by-Hop Options with congestion notification",
            ),
            (
                ETHERTYPE,
                &MAC_CONTROL,
                hooks::mac_control as Callback,
                u32::from(fcn_wire::pfc::ETHERTYPE_MAC_CONTROL),
                c"fcn.macctrl",
                c"MAC control with the rules of PFC",
            ),
        ] {
            let ours = wrapped.ours(Some(callback), name, description);
            let table = sys::find_dissector_table(table_name.as_ptr());
            if table.is_null() {
                continue;
            }
            let present = sys::dissector_get_uint_handle(table, number);
            if !present.is_null() && present != ours {
                wrapped.original.store(present, Ordering::Relaxed);
                sys::dissector_add_uint(table_name.as_ptr(), number, ours);
            }
        }
        hook_roce();
    }
}

pub(super) type Callback = unsafe extern "C" fn(
    *mut sys::tvbuff_t,
    *mut sys::packet_info,
    *mut sys::proto_tree,
    *mut c_void,
) -> c_int;

/// The numbers in a dissector table at which that handle is.
///
/// # Safety
/// Called while Wireshark starts, or between packets; `table` is one of numbers.
pub(super) unsafe fn numbers_of(table: &CStr, handle: sys::dissector_handle_t) -> Vec<u32> {
    unsafe extern "C" fn collect(
        _table: *const c_char,
        _kind: sys::ftenum_t,
        key: *mut c_void,
        entry: *mut c_void,
        found: *mut c_void,
    ) {
        // SAFETY: Wireshark hands over an entry of the table and what it was given below.
        unsafe {
            let found: *mut (sys::dissector_handle_t, Vec<u32>) = found.cast();
            if sys::dtbl_entry_get_handle(entry.cast()) == (*found).0 {
                // Tables of numbers keep them in place of the key's address.
                (*found).1.push(key.addr() as u32);
            }
        }
    }
    let mut found = (handle, Vec::new());
    // SAFETY: the callback is given the address of `found`, which outlives the call.
    unsafe {
        sys::dissector_table_foreach(table.as_ptr(), Some(collect), (&raw mut found).cast());
    }
    found.1
}

/// Puts the wrapper in front of InfiniBand's handle at the port that InfiniBand's own preference names, and at those that a
/// user has chosen for it by Decode As.
///
/// It is put there the way that Decode As does, which UDP tries before a protocol that claims the other port: so
/// RoCEv2 wins over whatever is known for its source port, which RoCEv2 uses for entropy. What a user has chosen by
/// Decode As, for either port, stays.
unsafe fn hook_roce() {
    // SAFETY: as in `hook`.
    unsafe {
        let ours = ROCE.ours(
            Some(hooks::roce),
            c"fcn.rocev2",
            c"RoCEv2 with congestion notification",
        );
        let module = sys::prefs_find_module(c"infiniband".as_ptr());
        let preference = if module.is_null() {
            ptr::null_mut()
        } else {
            sys::prefs_find_preference(module, c"rroce.port".as_ptr())
        };
        let port = if preference.is_null() {
            u32::from(Profile::DEFAULT.rocev2_port)
        } else {
            compat::uint_value(preference)
        };
        ROCE_PORT.store(port, Ordering::Relaxed);
        let table = sys::find_dissector_table(UDP_PORT.as_ptr());
        if table.is_null() {
            return;
        }
        let original = ROCE.original();
        if !original.is_null() {
            for chosen in numbers_of(UDP_PORT, original) {
                sys::dissector_change_uint(UDP_PORT.as_ptr(), chosen, ours);
            }
        }
        let present = sys::dissector_get_uint_handle(table, port);
        if present.is_null() || present == ours {
            return;
        }
        let infiniband = sys::proto_get_id_by_filter_name(c"infiniband".as_ptr());
        if sys::dissector_handle_get_protocol_index(present) == infiniband {
            ROCE.original.store(present, Ordering::Relaxed);
            sys::dissector_add_for_decode_as(UDP_PORT.as_ptr(), ours);
            sys::dissector_change_uint(UDP_PORT.as_ptr(), port, ours);
        }
    }
}
