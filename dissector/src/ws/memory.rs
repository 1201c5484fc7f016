//! Interface to the memory: passes each frame to it once, queries it, and clears it for another
//! file. `crate::memory` decides what is remembered.

use super::packet::{Packet, Tvb};
use super::{PerFile, compat, preferences};
use crate::memory::{Context, FrameInfo, Limits, Links, Memory};
use fcn_observe::FlowKey;
use fcn_observe::correlator::NotificationPacket;
use fcn_observe::exchange::Incident;
use fcn_observe::sightings::CapturePoint;
use fcn_wire::notification::Notification;
use fcn_wire::{Frame, LinkType};

static MEMORY: PerFile<Memory> = PerFile::new();

/// Returns true if frames are remembered.
pub fn is_on() -> bool {
    compat::is_on(&preferences::CORRELATE)
}

/// Returns number, time and capture point of the frame if it is dissected for the first time and
/// frames are remembered.
pub fn first_visit(tvb: Tvb<'_>, packet: Packet<'_>) -> Option<FrameInfo> {
    (is_on() && !packet.is_visited()).then(|| FrameInfo {
        frame: packet.number(),
        at: packet.time(),
        capture_point: place(tvb, packet),
    })
}

/// Returns the capture point of the frame.
fn place(tvb: Tvb<'_>, packet: Packet<'_>) -> CapturePoint {
    match packet.link_type() {
        Some(link @ LinkType::LinuxCooked2) => {
            CapturePoint::for_packet(packet.interface(), link, tvb.source().0.bytes())
        }
        _ => CapturePoint::new(packet.interface()),
    }
}

/// Processes a notification.
pub fn notification(info: FrameInfo, notice: &NotificationPacket<'_>) {
    with(|memory| memory.notification(info, notice));
}

/// Processes a packet that is not a notification.
pub fn packet(info: FrameInfo, frame: &Frame<'_>) {
    with(|memory| memory.packet(info, frame));
}

/// Applies `work` to the memory. Calls no C: for use within [`guard`](super::guard).
fn with(work: impl FnOnce(&mut Memory)) {
    let mut memory = MEMORY.locked();
    let memory = memory
        .get_or_insert_with(|| Box::new(Memory::new(preferences::settings().0, Limits::DEFAULT)));
    work(memory);
}

/// Returns the context of a frame. Calls no C: for use within [`guard`](super::guard).
pub fn context(frame: u32) -> Option<Context> {
    if !is_on() {
        return None;
    }
    MEMORY.locked().as_ref()?.context(frame)
}

/// Returns the links of a frame to earlier ones. Calls no C: for use within
/// [`guard`](super::guard).
pub fn links(frame: u32) -> Option<Links> {
    if !is_on() {
        return None;
    }
    MEMORY.locked().as_ref()?.links(frame)
}

/// Returns what is wrong with the flow of a data packet since that frame. Calls no C: for use
/// within [`guard`](super::guard).
pub fn incident(frame: u32) -> Option<Incident> {
    if !is_on() {
        return None;
    }
    MEMORY.locked().as_ref()?.incident(frame)
}

/// Returns the flow that a notification is about, by present knowledge. Calls no C: for use within
/// [`guard`](super::guard).
pub fn flow_of(gist: &Notification) -> Option<FlowKey> {
    MEMORY.locked().as_ref()?.flow_of(gist)
}

/// Forgets everything: for another file, or for new preferences.
pub fn forget() {
    MEMORY.forget();
}

#[cfg(test)]
mod tests {
    use super::super::guard;
    use super::*;

    #[test]
    fn memory_works_after_a_panic() {
        let info = FrameInfo {
            frame: 1,
            at: Some(1),
            capture_point: CapturePoint::default(),
        };
        assert!(guard(|| with(|_| panic!("on purpose"))).is_none());
        let profile = fcn_wire::Profile::DEFAULT;
        let frame = Frame::parse(&[], 0, LinkType::Ethernet, &profile);
        assert!(guard(|| packet(info, &frame)).is_some());
        assert_eq!(guard(|| context(1)), Some(None));
    }
}
