//! The memory at Wireshark's side: hands it each frame once, asks it what is known, and clears it for another file. What
//! is remembered is `crate::memory`'s business.

use super::compat::{self, BoolPreference};
use super::packet::{Packet, Tvb};
use super::{PerFile, guard, preferences};
use crate::memory::{Context, Limits, Memory, Seen, Settings};
use crate::plan::ColumnText;
use core::ffi::{CStr, c_char};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use fcn_observe::rules::FLOW_RATE;
use fcn_observe::sightings::Place;
use fcn_observe::{FlowKey, RowKey, access};
use fcn_wire::notification::Notification;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Frame, LinkType};

static MEMORY: PerFile<Memory> = PerFile::new();

/// Preferences, which Wireshark writes between packets.
pub static CORRELATE: BoolPreference = compat::preference(true);
pub static TRUSTED: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
pub static ABLE: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
pub static DOMAIN: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
pub static FLOW_RATE_LIMIT: AtomicU32 = AtomicU32::new(FLOW_RATE);
/// In microseconds.
pub static WINDOW: AtomicU32 = AtomicU32::new(DEFAULT_WINDOW);
const DEFAULT_WINDOW: u32 = 1000;
/// What a window's steps hold is counted in 32 bits: at 400 Gbit/s, that of a second and no more.
const LONGEST_WINDOW: u32 = 1_000_000;

/// Whether frames are remembered.
pub fn is_on() -> bool {
    compat::is_on(&CORRELATE)
}

/// Wireshark's own account of the frame, if this is the first time that it is dissected.
pub fn first_visit(tvb: Tvb<'_>, packet: Packet<'_>) -> Option<Seen> {
    (is_on() && !packet.is_visited()).then(|| Seen {
        frame: packet.number(),
        at: packet.time(),
        place: place(tvb, packet),
    })
}

/// Where the frame was captured.
fn place(tvb: Tvb<'_>, packet: Packet<'_>) -> Place {
    match packet.link_type() {
        Some(link @ LinkType::LinuxCooked2) => {
            Place::of(packet.interface(), link, tvb.source().0.bytes())
        }
        _ => Place::new(packet.interface()),
    }
}

/// Takes in a notification.
pub fn notified(seen: Seen, gist: &Notification, port: u16, payload: &[u8]) {
    with(|memory| memory.notified(seen, gist, port, payload));
}

/// Takes in a packet that is no notification.
pub fn passed(seen: Seen, frame: &Frame<'_>) {
    with(|memory| memory.passed(seen, frame));
}

/// Calls no C: for use within [`guard`].
fn with(work: impl FnOnce(&mut Memory)) {
    let mut memory = MEMORY.locked();
    let memory = memory.get_or_insert_with(|| Box::new(Memory::new(settings().0, Limits::DEFAULT)));
    work(memory);
}

/// What is known about a frame. Calls no C: for use within [`guard`].
pub fn context(frame: u32) -> Option<Context> {
    if !is_on() {
        return None;
    }
    MEMORY.locked().as_ref()?.context(frame)
}

/// The flow that a notification is about, by what is known now. Calls no C: for use within [`guard`].
pub fn flow_of(gist: &Notification) -> Option<FlowKey> {
    MEMORY
        .locked()
        .as_ref()?
        .flow_of(&RowKey::of(gist, None), gist)
}

/// Forgets everything: another file, or new preferences.
pub fn forget() {
    MEMORY.forget();
}

/// Settings by the preferences, and what is wrong with those.
fn settings() -> (Settings, Option<ColumnText>) {
    let mut wrong = None;
    let mut list = |name: &str, preference: &AtomicPtr<c_char>| {
        let text = preference.load(Ordering::Relaxed);
        if text.is_null() {
            return Vec::new();
        }
        // SAFETY: Wireshark keeps a preference's text, with a NUL behind it, until it is changed between packets.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        prefixes(&text).unwrap_or_else(|part| {
            wrong = Some(ColumnText::new(format_args!(
                "FCN preference \"{name}\": \"{part}\" is no prefix, so the list is not used. \
                 Write 10.0.0.0/8, fd00::/16 or one address, separated by commas."
            )));
            Vec::new()
        })
    };
    let (trusted, able) = (list("trusted", &TRUSTED), list("able", &ABLE));
    let domain = list("domain", &DOMAIN);
    let asked = WINDOW.load(Ordering::Relaxed);
    let is_allowed = (1..=LONGEST_WINDOW).contains(&asked);
    let window = if is_allowed { asked } else { DEFAULT_WINDOW };
    if !is_allowed {
        wrong = Some(ColumnText::new(format_args!(
            "FCN preference \"rate_window\": {asked} is refused: 1 to {LONGEST_WINDOW} microseconds. The default, \
             {DEFAULT_WINDOW}, is used."
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

/// The prefixes of a list with commas.
///
/// # Errors
/// The part that is none; all of it, where there is something but no prefix.
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
        .map(|part| access::prefix(part).ok_or_else(|| part.to_owned()))
        .collect()
}

/// Says what is wrong with new preferences. Called by Wireshark.
pub unsafe extern "C" fn applied() {
    // All that is owned is dropped in there.
    if let Some(text) = guard(|| settings().1).flatten() {
        preferences::say(text.as_c_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_the_part_that_is_wrong_is_named() {
        assert_eq!(prefixes("").unwrap(), []);
        assert_eq!(prefixes(" 10.0.0.0/8 ,, 2001:db8::1,").unwrap().len(), 2);
        assert_eq!(prefixes("10.0.0.0/8, x y").unwrap_err(), "x y");
        assert_eq!(prefixes(",").unwrap_err(), ",");
    }

    #[test]
    fn a_panic_leaves_a_memory_that_works() {
        let seen = Seen {
            frame: 1,
            at: Some(1),
            place: Place::default(),
        };
        assert!(guard(|| with(|_| panic!("on purpose"))).is_none());
        let profile = fcn_wire::Profile::DEFAULT;
        let frame = Frame::parse(&[], 0, LinkType::Ethernet, &profile);
        assert!(guard(|| passed(seen, &frame)).is_some());
        assert_eq!(guard(|| context(1)), Some(None));
    }
}
