//! The numbers that Wireshark gives to protocols, fields and expert infos while it starts, and whether anybody asks for them.

use super::{compat, sys};
use crate::names::{F, Node, P, expert_protocol};
use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use fcn_wire::finding::Rule;

const PROTOCOLS: usize = P::ALL.len();
const FIELDS: usize = F::ALL.len();
const RULES: usize = Rule::ALL.len();
const NODES: usize = Node::ALL.len();

/// Numbers that Wireshark writes once, while it starts, and reads afterwards.
pub(super) static PROTOCOL_IDS: [AtomicI32; PROTOCOLS] = [const { AtomicI32::new(-1) }; PROTOCOLS];
pub(super) static FIELD_IDS: [AtomicI32; FIELDS] = [const { AtomicI32::new(-1) }; FIELDS];
pub(super) static FIELD_ETTS: [AtomicI32; FIELDS] = [const { AtomicI32::new(-1) }; FIELDS];
pub(super) static PROTOCOL_ETTS: [AtomicI32; PROTOCOLS] = [const { AtomicI32::new(-1) }; PROTOCOLS];
static NODE_IDS: [[AtomicI32; SAME_NODE]; NODES] =
    [const { [const { AtomicI32::new(-1) }; SAME_NODE] }; NODES];
/// Wireshark's own protocols that tell what carries a packet, and that nobody took it.
pub(super) static SFLOW: AtomicI32 = AtomicI32::new(-1);
pub(super) static UDP: AtomicI32 = AtomicI32::new(-1);
pub(super) static UDP_LITE: AtomicI32 = AtomicI32::new(-1);
pub(super) static DATA: AtomicI32 = AtomicI32::new(-1);
pub(super) static EXPERT_TAP: AtomicI32 = AtomicI32::new(-1);
pub(super) static EXPERT_PROTOCOL: AtomicI32 = AtomicI32::new(-1);

/// The rules' identifiers, as C has them.
pub(super) static RULE_IDS: [AtomicPtr<c_char>; RULES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; RULES];

struct ExpertIds([UnsafeCell<sys::expert_field>; RULES]);

// SAFETY: written by Wireshark while it starts, on its one thread, and only read by it afterwards; Rust code hands out
// the address alone.
unsafe impl Sync for ExpertIds {}

static EXPERT_IDS: ExpertIds =
    ExpertIds([const { UnsafeCell::new(sys::expert_field { ei: -1, hf: -1 }) }; RULES]);

/// Most fields of Wireshark's that one [`Node`] has.
const SAME_NODE: usize = 3;

/// Wireshark's number of a protocol.
pub fn protocol(protocol: P) -> c_int {
    PROTOCOL_IDS[protocol as usize].load(Ordering::Relaxed)
}

/// A protocol's short name, as C has it.
pub fn short_name(protocol: P) -> *const c_char {
    // SAFETY: asks by the number that Wireshark gave.
    unsafe {
        sys::proto_get_protocol_short_name(sys::find_protocol_by_id(self::protocol(protocol)))
    }
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

/// Wireshark's numbers of a node; -1 for those that are not there.
pub fn node(node: Node) -> [c_int; SAME_NODE] {
    NODE_IDS[node as usize]
        .each_ref()
        .map(|id| id.load(Ordering::Relaxed))
}

/// Looks Wireshark's own protocols and the nodes up, once all are registered.
pub(super) fn find() {
    for (place, name) in [
        (&UDP, c"udp"),
        (&UDP_LITE, c"udplite"),
        (&DATA, c"data"),
        (&SFLOW, c"sflow"),
    ] {
        // SAFETY: a lookup by a text that ends with a NUL.
        let id = unsafe { sys::proto_get_id_by_filter_name(name.as_ptr()) };
        place.store(id, Ordering::Relaxed);
    }
    for (node, names) in Node::ALL {
        for (place, name) in NODE_IDS[*node as usize].iter().zip(*names) {
            // SAFETY: a lookup by a text that ends with a NUL.
            let id = unsafe { sys::proto_registrar_get_id_byname(name.as_ptr()) };
            place.store(id, Ordering::Relaxed);
        }
    }
}

/// Wireshark's place for the expert info of a rule.
pub fn expert(rule: Rule) -> *mut sys::expert_field {
    EXPERT_IDS.0[rule as usize].get()
}

/// The identifier of a rule, as C has it.
pub fn rule_id(rule: Rule) -> *const c_char {
    RULE_IDS[rule as usize].load(Ordering::Relaxed)
}

/// Whether anyone collects expert infos.
pub fn has_expert_listener() -> bool {
    // SAFETY: asks by the number that Wireshark gave.
    compat::is_true(unsafe { sys::have_tap_listener(EXPERT_TAP.load(Ordering::Relaxed)) })
}

/// Wireshark's numbers of what a filter may refer to beside what every notification has: the other protocols of ours, expert
/// info, and the fields of [`P::Fcn`] that other packets have, too.
pub fn of_other_packets() -> impl Iterator<Item = c_int> {
    const FIELDS: [F; 5] = [
        F::FcnDataNode,
        F::FcnNotifiedBy,
        F::FcnFinding,
        F::FcnFindingLeftOut,
        F::FcnFindingSeverity,
    ];
    let others = P::ALL.iter().filter(|protocol| **protocol != P::Fcn);
    let others = others.map(|other| protocol(*other));
    let infos = core::iter::once(EXPERT_PROTOCOL.load(Ordering::Relaxed));
    // From 4.4 on, a filter for an expert info does not refer to expert info as such.
    let rules = Rule::ALL
        .iter()
        .filter(|rule| expert_protocol(**rule) == P::Fcn);
    // SAFETY: written by Wireshark alone, as it registers them.
    let rules = rules.map(|rule| unsafe { (*expert(*rule)).hf });
    others.chain(infos).chain(FIELDS.map(field)).chain(rules)
}
