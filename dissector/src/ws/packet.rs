//! Safe access to what Wireshark passes to a callback: the packet, its octets, its tree.
//!
//! The safe functions here rest on one promise, made when a [`Call`] is created: the pointers are
//! Wireshark's, for the packet that it dissects on this thread, and none of them is kept after the
//! callback ends. Some functions leave by an exception of Wireshark's (`longjmp`): those say so,
//! and frames that call them hold nothing that has to be dropped.

use super::compat::{self, is_true};
use super::handles::Wrapped;
use super::{ids, sys};
use crate::names::P;
use crate::plan::ColumnText;
use core::ffi::{CStr, c_int, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;
use fcn_wire::LinkType;
use fcn_wire::frame::MAX_LAYERS;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One call of a dissector.
#[derive(Clone, Copy)]
pub struct Call<'p> {
    /// Octets to be dissected.
    pub tvb: Tvb<'p>,
    /// Packet that they are part of.
    pub packet: Packet<'p>,
    /// Tree to show them in.
    pub tree: Tree<'p>,
    pub(super) data: *mut c_void,
}

/// Generates a callback for Wireshark from a function that takes a [`Call`] and further arguments.
macro_rules! callback {
    ($work:path $(, $more:expr)*) => {{
        unsafe extern "C" fn callback(
            tvb: *mut $crate::ws::sys::tvbuff_t,
            pinfo: *mut $crate::ws::sys::packet_info,
            tree: *mut $crate::ws::sys::proto_tree,
            data: *mut core::ffi::c_void,
        ) -> core::ffi::c_int {
            // SAFETY: Wireshark calls with live pointers, and none of them is kept.
            $work(unsafe { $crate::ws::packet::Call::new(tvb, pinfo, tree, data) } $(, $more)*)
        }
        callback
    }};
}
pub(super) use callback;

impl<'p> Call<'p> {
    /// # Safety
    /// The pointers are those that Wireshark has passed to the running callback, and `'p` ends with
    /// it.
    pub unsafe fn new(
        tvb: *mut sys::tvbuff_t,
        pinfo: *mut sys::packet_info,
        tree: *mut sys::proto_tree,
        data: *mut c_void,
    ) -> Self {
        Self {
            tvb: Tvb(tvb, PhantomData),
            packet: Packet(pinfo, PhantomData),
            tree: Tree(tree, PhantomData),
            data,
        }
    }

    /// Calls the dissector behind a wrapper, as if there were no wrapper; returns 0 if it refuses.
    /// May leave by an exception.
    pub fn original(self, wrapped: &Wrapped) -> c_int {
        let pinfo = self.packet.0;
        // SAFETY: the arguments are Wireshark's own.
        unsafe {
            // Every call decrements this; the wrapper is not to be counted.
            (*pinfo).can_desegment = (*pinfo).saved_can_desegment;
            sys::call_dissector_only(
                wrapped.original(),
                self.tvb.0,
                pinfo,
                self.tree.0,
                self.data,
            )
        }
    }

    /// Calls the dissector of UDP port `port`; returns 0 if it refuses, or if there is none. May
    /// leave by an exception.
    pub fn try_udp_port(self, port: u32) -> c_int {
        // SAFETY: a table that has existed since startup, and Wireshark's own pointers.
        unsafe {
            let table = sys::find_dissector_table(super::handles::UDP_PORT.as_ptr());
            if table.is_null() {
                return 0;
            }
            sys::dissector_try_uint(table, port, self.tvb.0, self.packet.0, self.tree.0)
        }
    }
}

/// Octets that Wireshark dissects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tvb<'p>(pub(super) *mut sys::tvbuff_t, PhantomData<&'p [u8]>);

impl<'p> Tvb<'p> {
    /// Number of octets captured.
    pub fn captured(self) -> usize {
        // SAFETY: asking a live tvbuff for its length.
        unsafe { sys::tvb_captured_length(self.0) as usize }
    }

    /// Number of octets on the wire.
    pub fn reported(self) -> usize {
        // SAFETY: as above.
        unsafe { sys::tvb_reported_length(self.0) as usize }
    }

    /// Returns the octets from its start, as far as captured.
    pub fn bytes(self) -> &'p [u8] {
        let Ok(wanted) = c_int::try_from(self.captured()) else {
            return &[];
        };
        if wanted == 0 {
            return &[];
        }
        // SAFETY: exactly the captured octets are asked for, so no exception is thrown.
        let start = unsafe { sys::tvb_get_ptr(self.0, 0, wanted) };
        if start.is_null() {
            return &[];
        }
        // SAFETY: Wireshark keeps these octets, unchanged, while the packet is being dissected.
        unsafe { core::slice::from_raw_parts(start, wanted as usize) }
    }

    /// Returns the data source, and its own offset in it.
    pub fn source(self) -> (Self, usize) {
        // SAFETY: both only read the tvbuff.
        let (ds, start) = unsafe { (sys::tvb_get_ds_tvb(self.0), sys::tvb_raw_offset(self.0)) };
        (Self(ds, PhantomData), usize::try_from(start).unwrap_or(0))
    }

    /// Returns a part of it, with these captured and on-the-wire lengths. Leaves by an exception if
    /// the part is not within it.
    pub fn part(self, start: usize, captured: usize, reported: usize) -> Self {
        let [start, captured, reported] = [start, captured, reported].map(|n| n as c_int);
        // SAFETY: a live tvbuff; Wireshark checks the numbers.
        let part = unsafe { sys::tvb_new_subset_length_caplen(self.0, start, captured, reported) };
        Self(part, PhantomData)
    }

    /// Returns everything from `start` on. Leaves by an exception if it ends before that.
    pub fn rest(self, start: usize) -> Self {
        let captured = self.captured().saturating_sub(start);
        self.part(start, captured, self.reported().saturating_sub(start))
    }

    /// Shortens it to `len` octets on the wire: the dissector around it shows the rest as padding.
    pub fn shorten(self, len: usize) {
        // SAFETY: a live tvbuff; Wireshark ignores a length that is greater than its own.
        unsafe { sys::set_actual_length(self.0, u32::try_from(len).unwrap_or(u32::MAX)) };
    }

    /// Requests octets that were not captured: Wireshark then leaves by an exception, and reports
    /// that in its own words.
    pub fn demand(self, octets: usize) {
        // SAFETY: throws, past frames with nothing to drop.
        unsafe { sys::tvb_get_ptr(self.0, 0, c_int::try_from(octets).unwrap_or(c_int::MAX)) };
    }
}

/// A packet that Wireshark dissects.
#[derive(Clone, Copy)]
pub struct Packet<'p>(pub(super) *mut sys::packet_info, PhantomData<&'p [u8]>);

impl<'p> Packet<'p> {
    /// Number of the frame.
    pub fn number(self) -> u32 {
        // SAFETY: live, as everywhere below.
        unsafe { (*self.0).num }
    }

    /// Source and destination port.
    pub fn ports(self) -> (u32, u32) {
        // SAFETY: as above.
        unsafe { ((*self.0).srcport, (*self.0).destport) }
    }

    /// Number by which the dissector was found: of the two ports, the dissector's own.
    pub fn matched(self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.0).match_uint }
    }

    /// Source and destination of the IP packet that is being dissected.
    pub fn addresses(self) -> Option<(IpAddr, IpAddr)> {
        // SAFETY: as above; the addresses live as long.
        unsafe {
            Some((
                ip_address(&(*self.0).net_src)?,
                ip_address(&(*self.0).net_dst)?,
            ))
        }
    }

    /// Destination MAC address; zeros if there is none.
    pub fn mac_destination(self) -> [u8; 6] {
        // SAFETY: as above, and an address of 6 octets has them.
        unsafe {
            let address = &(*self.0).dl_dst;
            if address.len == 6 && !address.data.is_null() {
                address.data.cast::<[u8; 6]>().read_unaligned()
            } else {
                [0; 6]
            }
        }
    }

    /// Returns true if the octets being dissected are quoted in another packet.
    pub fn is_quoted(self) -> bool {
        // SAFETY: as above.
        is_true(unsafe { (*self.0).flags.in_error_pkt() })
    }

    /// Marks everything dissected from now on as quoted, or as not quoted.
    pub fn set_quoted(self, quoted: bool) {
        // A bit of an integer or of a bool, depending on the version.
        #[allow(
            clippy::useless_conversion,
            reason = "the type differs between versions"
        )]
        // SAFETY: as above.
        unsafe {
            (*self.0).flags.set_in_error_pkt(quoted.into());
        }
    }

    /// Returns true if the frame has been dissected before.
    pub fn is_visited(self) -> bool {
        // SAFETY: as above, and so is its frame's data.
        is_true(unsafe { (*(*self.0).fd).visited() })
    }

    /// Time of the frame in nanoseconds since 1970, if it has one; earlier times count as 1970.
    pub fn time(self) -> Option<u64> {
        const SECOND: u64 = 1_000_000_000;
        // SAFETY: as above, and so is its frame's data.
        unsafe {
            if !is_true((*(*self.0).fd).has_ts()) {
                return None;
            }
            let time = (*self.0).abs_ts;
            let seconds = u64::try_from(time.secs).unwrap_or(0);
            let nanoseconds = u64::try_from(time.nsecs).unwrap_or(0);
            Some(seconds.saturating_mul(SECOND).saturating_add(nanoseconds))
        }
    }

    /// Returns the frame's own octets, as opposed to the packet's other data sources.
    pub fn frame_tvb(self) -> Option<Tvb<'p>> {
        // SAFETY: as above, and so are its sources, of which the frame is the first.
        unsafe {
            let first = (*self.0).data_src;
            (!first.is_null())
                .then(|| Tvb(sys::get_data_source_tvb((*first).data.cast()), PhantomData))
        }
    }

    /// Number of the interface that captured the frame; 0 if the file has none.
    pub fn interface(self) -> u32 {
        // SAFETY: as above, and so is its record; the flags say that the field is there.
        unsafe {
            let record = (*self.0).rec;
            if record.is_null() || (*record).presence_flags & sys::WTAP_HAS_INTERFACE_ID == 0 {
                return 0;
            }
            (*record).rec_header.packet_header.interface_id
        }
    }

    /// Link type of the frame, if `fcn-wire` can read it.
    pub fn link_type(self) -> Option<LinkType> {
        // SAFETY: as above, and so is its record; what is dissected as a frame is a packet.
        let encapsulation = unsafe {
            let record = (*self.0).rec;
            if record.is_null() {
                return None;
            }
            (*record).rec_header.packet_header.pkt_encap
        };
        match u32::try_from(encapsulation).ok()? {
            sys::WTAP_ENCAP_ETHERNET => Some(LinkType::Ethernet),
            sys::WTAP_ENCAP_RAW_IP | sys::WTAP_ENCAP_RAW_IP4 | sys::WTAP_ENCAP_RAW_IP6 => {
                Some(LinkType::RawIp)
            }
            sys::WTAP_ENCAP_SLL => Some(LinkType::LinuxCooked),
            sys::WTAP_ENCAP_SLL2 => Some(LinkType::LinuxCooked2),
            sys::WTAP_ENCAP_NULL | sys::WTAP_ENCAP_LOOP => Some(LinkType::Null),
            _ => None,
        }
    }

    /// Returns the link type of a data source, if it is the frame itself and `fcn-wire` can read
    /// it.
    pub fn link_of(self, ds: Tvb<'p>) -> Option<LinkType> {
        self.link_type().filter(|_| self.frame_tvb() == Some(ds))
    }

    /// Returns true if Wireshark shows the UDP payload as plain data, because no dissector accepted
    /// it. An accepted payload may contain data further in.
    pub fn is_plain_udp(self) -> bool {
        let [data, udp] = [&ids::DATA, &ids::UDP].map(|id| id.load(Ordering::Relaxed));
        let around = self.layers().skip(1);
        (self.layers().zip(around)).any(|(layer, around)| layer == data && around == udp)
    }

    /// Returns true if UDP-Lite (RFC 3828) carries it; Wireshark looks up its ports in the table of
    /// UDP.
    pub fn is_by_udp_lite(self) -> bool {
        let [lite, udp] = [&ids::UDP_LITE, &ids::UDP].map(|id| id.load(Ordering::Relaxed));
        self.layers().find(|layer| [lite, udp].contains(layer)) == Some(lite)
    }

    /// Returns true if it has sFlow samples: our protocols are then inside these.
    pub fn has_samples(self) -> bool {
        let sflow = ids::SFLOW.load(Ordering::Relaxed);
        self.layers().any(|layer| layer == sflow)
    }

    /// Returns Wireshark's numbers of the packet's protocols, innermost first.
    fn layers(self) -> impl Iterator<Item = c_int> + use<'p> {
        // SAFETY: the list of the packet's protocols is live, and stores their numbers in its
        // pointers.
        unsafe {
            let tail = NonNull::new(sys::wmem_list_tail((*self.0).layers));
            let before =
                |layer: &NonNull<_>| NonNull::new(sys::wmem_list_frame_prev(layer.as_ptr()));
            let number = |layer: NonNull<_>| sys::wmem_list_frame_data(layer.as_ptr()).addr();
            core::iter::successors(tail, before).map(move |layer| number(layer) as c_int)
        }
    }

    /// Returns true if there is a writable Info column.
    pub fn has_writable_info(self) -> bool {
        // SAFETY: as above.
        unsafe {
            let columns = (*self.0).cinfo;
            !columns.is_null() && is_true(sys::col_get_writable(columns, compat::COL_INFO))
        }
    }

    /// Returns the text of the Info column.
    pub fn info(self) -> Option<&'p CStr> {
        // SAFETY: as above; the text ends with a NUL.
        unsafe {
            let text = sys::col_get_text((*self.0).cinfo, compat::COL_INFO);
            (!text.is_null()).then(|| CStr::from_ptr(text))
        }
    }

    /// Sets the Protocol and Info columns.
    pub fn set_columns(self, protocol: P, info: &ColumnText) {
        // SAFETY: as above; the first text lives as long as the protocol, the other one is copied.
        unsafe {
            let name = ids::short_name(protocol);
            sys::col_set_str((*self.0).cinfo, compat::COL_PROTOCOL, name);
            sys::col_add_str((*self.0).cinfo, compat::COL_INFO, info.as_c_str().as_ptr());
        }
    }

    /// Appends to the Info column.
    pub fn append_info(self, text: &CStr) {
        // SAFETY: as above; the text is copied.
        unsafe { sys::col_append_str((*self.0).cinfo, compat::COL_INFO, text.as_ptr()) };
    }

    /// Calls the dissector `name` on the packet that is quoted at `at` of `tvb`, marked as a
    /// quotation: it then feeds no conversation, and columns and addresses stay those of the packet
    /// around it. May leave by an exception.
    pub fn dissect_quoted(self, tvb: Tvb<'p>, at: usize, tree: Tree<'p>, name: &'static CStr) {
        // SAFETY: a text that ends with a NUL.
        let handle = unsafe { sys::find_dissector(name.as_ptr()) };
        let captured = tvb.captured().saturating_sub(at);
        if handle.is_null() || captured == 0 {
            return;
        }
        let quoted = tvb.part(at, captured, tvb.reported() - at);
        let before = self.is_quoted();
        self.set_quoted(true);
        // SAFETY: a handle that Wireshark gave, and live pointers.
        unsafe { sys::call_dissector_only(handle, quoted.0, self.0, tree.0, ptr::null_mut()) };
        self.set_quoted(before);
    }

    /// Calls the dissector of the EtherType `number`, or shows plain data if there is none, or if
    /// the packet has so many layers that Wireshark would take more of them for a bug. May leave by
    /// an exception.
    pub fn dissect_ether_type(self, number: u16, tvb: Tvb<'p>, tree: Tree<'p>) {
        let table = super::handles::ETHERTYPE.as_ptr();
        // SAFETY: a table that has existed since startup, live pointers, and a handle that
        // Wireshark gave.
        unsafe {
            let table = sys::find_dissector_table(table);
            let number = number.into();
            if self.layers().nth(MAX_LAYERS).is_some()
                || table.is_null()
                || sys::dissector_try_uint(table, number, tvb.0, self.0, tree.0) == 0
            {
                let data = sys::find_dissector(c"data".as_ptr());
                if !data.is_null() {
                    sys::call_dissector_only(data, tvb.0, self.0, tree.0, ptr::null_mut());
                }
            }
        }
    }

    /// Allocates uninitialised memory for `len` values, which Wireshark frees with the packet.
    pub(super) fn scratch<T>(self, len: usize) -> &'p mut [MaybeUninit<T>] {
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the packet's pool is live; wmem aligns to at least 8, and aborts instead of
        // returning null for a length above 0.
        let start = unsafe { sys::wmem_alloc((*self.0).pool, len * size_of::<T>()) };
        const { assert!(align_of::<T>() <= 8 && !core::mem::needs_drop::<T>()) };
        // SAFETY: fresh memory of that size, for values that may be uninitialised.
        unsafe { core::slice::from_raw_parts_mut(start.cast(), len) }
    }

    /// Allocates memory for `len` values, each set to `value`, which Wireshark frees with the
    /// packet.
    pub fn room<T: Copy>(self, len: usize, value: T) -> &'p mut [T] {
        let room = self.scratch::<T>(len);
        for place in &mut *room {
            place.write(value);
        }
        // SAFETY: every element has just been written.
        unsafe { &mut *(ptr::from_mut(room) as *mut [T]) }
    }
}

/// A tree of Wireshark's, or none.
#[derive(Clone, Copy)]
pub struct Tree<'p>(
    pub(super) *mut sys::proto_tree,
    pub(super) PhantomData<&'p [u8]>,
);

impl Tree<'_> {
    /// Returns true if there is none, because nothing displays it.
    pub fn is_none(self) -> bool {
        self.0.is_null()
    }

    /// Returns which of our items are in use.
    pub fn wanted(self) -> Wanted {
        // SAFETY: the tree is null or live, and so is what it points to; Wireshark assigned the
        // numbers.
        unsafe {
            if self.0.is_null() {
                return Wanted::Nothing;
            }
            let data = (*self.0).tree_data;
            if data.is_null() || is_true((*data).visible) || !is_true((*data).fake_protocols) {
                return Wanted::Everything;
            }
            let is_referred_to = |id: c_int| {
                u32::try_from(id).is_ok_and(|id| {
                    let info = sys::proto_registrar_get_nth(id);
                    !info.is_null() && (*info).ref_type != sys::HF_REF_TYPE_NONE
                })
            };
            if ids::of_other_packets().any(is_referred_to) {
                Wanted::Everything
            } else if is_referred_to(ids::protocol(P::Fcn)) {
                Wanted::Notifications
            } else {
                Wanted::Nothing
            }
        }
    }
}

/// Parts of a packet's tree that are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// None of our items.
    Nothing,
    /// A filter, a column or a list of fields refers to the fields of every notification, and to
    /// nothing else of ours.
    Notifications,
    /// The tree is visible or requests every protocol, or a filter refers to our other protocols or
    /// to expert info.
    Everything,
}

/// Converts an address, if it is IPv4 or IPv6.
///
/// # Safety
/// `address` belongs to a live `packet_info`.
unsafe fn ip_address(address: &sys::address) -> Option<IpAddr> {
    if address.data.is_null() {
        return None;
    }
    match (address.type_, address.len) {
        (kind, 4) if kind == sys::AT_IPv4 as c_int => {
            // SAFETY: an IPv4 address has 4 octets, with any alignment.
            let octets: [u8; 4] = unsafe { address.data.cast::<[u8; 4]>().read_unaligned() };
            Some(IpAddr::V4(Ipv4Addr::from(octets)))
        }
        (kind, 16) if kind == sys::AT_IPv6 as c_int => {
            // SAFETY: an IPv6 address has 16 octets, with any alignment.
            let octets: [u8; 16] = unsafe { address.data.cast::<[u8; 16]>().read_unaligned() };
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        }
        _ => None,
    }
}
