//! The statistics tree: `tshark -z fcn,tree`, and in Wireshark's Statistics menu.

use super::{PerFile, compat, guard, sys, taps};
use crate::show::{DEEPEST_QUEUE, Group, Listed, Record};
use core::ffi::{c_int, c_void};
use std::collections::HashMap;

/// Lines of each open tree, by the tree's address.
static OPEN: PerFile<HashMap<usize, Listed>> = PerFile::new();

/// Runs `work` on the open trees. `work` calls no C: an exception would leave the lock held.
fn with_open<T>(work: impl FnOnce(&mut HashMap<usize, Listed>) -> T) -> Option<T> {
    guard(|| work(OPEN.locked().get_or_insert_default()))
}

/// Registers the tree.
pub fn register() {
    // SAFETY: callbacks of the right types, texts that end with a NUL.
    unsafe {
        sys::stats_tree_register_plugin(
            taps::NAME.as_ptr(),
            taps::NAME.as_ptr(),
            compat::STATISTICS_NAME.as_ptr(),
            0,
            Some(count),
            Some(open),
            Some(close),
        );
        // tshark does not close a tree before it exits.
        sys::register_shutdown_routine(Some(forget));
    }
}

/// Called when Wireshark exits, or is about to unload the plugin.
unsafe extern "C" fn forget() {
    guard(|| OPEN.forget());
}

/// Called when a tree is opened, or emptied to count again.
unsafe extern "C" fn open(tree: *mut sys::stats_tree) {
    with_open(|open| open.insert(tree.addr(), Listed::default()));
    for group in Group::ALL {
        // SAFETY: the tree is live; the text ends with a NUL.
        unsafe {
            sys::stats_tree_create_node(
                tree,
                group.heading().as_ptr(),
                ROOT,
                sys::STAT_DT_INT,
                compat::boolean(true),
            );
        }
    }
}

unsafe extern "C" fn close(tree: *mut sys::stats_tree) {
    with_open(|open| open.remove(&tree.addr()));
}

/// Parent node of the headings.
const ROOT: c_int = 0;

/// Counts one notification.
unsafe extern "C" fn count(
    tree: *mut sys::stats_tree,
    _pinfo: *mut sys::packet_info,
    _edt: *mut sys::epan_dissect_t,
    data: *const c_void,
    _flags: sys::tap_flags_t,
) -> sys::tap_packet_status {
    // SAFETY: the record belongs to this tap.
    let record = unsafe { taps::record(data) };
    let lines = with_open(|open| open.entry(tree.addr()).or_default().lines(&record));
    for line in lines.into_iter().flatten().flatten() {
        // SAFETY: the tree is live; both texts end with a NUL and are copied.
        unsafe {
            let heading = tick(tree, line.group.heading().as_ptr(), ROOT, true);
            tick(tree, line.text.as_c_str().as_ptr(), heading, false);
        }
    }
    if let Record::Notification(notified) = record
        && let Some(depth) = notified.gist.deepest_queue
    {
        // SAFETY: as above.
        unsafe {
            sys::stats_tree_manip_node_int(
                sys::MN_AVERAGE,
                tree,
                DEEPEST_QUEUE.as_ptr(),
                ROOT,
                compat::boolean(true),
                c_int::try_from(depth).unwrap_or(c_int::MAX),
            );
        }
    }
    sys::TAP_PACKET_REDRAW
}

/// Adds one to the node `name` below `parent`, and returns the node's number.
unsafe fn tick(
    tree: *mut sys::stats_tree,
    name: *const core::ffi::c_char,
    parent: c_int,
    is_heading: bool,
) -> c_int {
    // SAFETY: passed on.
    unsafe {
        sys::stats_tree_manip_node_int(
            sys::MN_INCREASE,
            tree,
            name,
            parent,
            compat::boolean(is_heading),
            1,
        )
    }
}
