//! Judges a notification as a packet: what every receiver or router on its way needs, whatever its
//! kind.

use super::judge::{DeviceFrame, Ledger};
use super::statements::Statement;
use fcn_wire::bth::Bth;
use fcn_wire::{Kind, Layer, Message};

/// Hop limit with which a notification reaches no more than a neighbour.
const NEIGHBOURS_ONLY: u8 = 1;

/// The statements judged here.
pub const STATEMENTS: [Statement; 7] = [
    Statement::NotificationHops,
    Statement::NotificationNotCe,
    Statement::NotificationMac,
    Statement::NotificationHeaders,
    Statement::NotificationChecksum,
    Statement::NotificationPkey,
    Statement::NotificationReserved,
];

/// Judges a frame that the device generated, if it is a notification.
pub fn judge(own: &DeviceFrame<'_>, ledger: &mut Ledger) {
    use Statement as S;
    let is_notification = [Kind::Cnp, Kind::FastCnp1, Kind::ProxyCn, Kind::WanFcn]
        .into_iter()
        .any(|kind| own.is_of(kind));
    let (true, Some(ip)) = (is_notification, own.parsed.ip()) else {
        return;
    };
    let shows = &[own.index];
    let hops = ip.hop_limit;
    let why = || format!("the hop limit is {hops}: it reaches no node beyond the neighbour");
    ledger.holds(S::NotificationHops, hops > NEIGHBOURS_ONLY, why, shows);
    let why = || "its own ECN field is 11 (CE)".to_owned();
    ledger.holds(S::NotificationNotCe, ip.ecn() != 3, why, shows);

    let bytes = own.parsed.bytes();
    let groups = [("destination", 0), ("source", 6)].into_iter();
    let mut groups = groups.filter(|(_, at)| bytes.get(*at).is_some_and(|first| first & 1 == 1));
    let group = groups.next();
    let why = || {
        let field = group.map_or("", |(field, _)| field);
        format!("the {field} MAC address is a group address")
    };
    ledger.holds(S::NotificationMac, group.is_none(), why, shows);

    let excess = excess(own);
    let why = || format!("it has {}", excess.clone().unwrap_or_default());
    ledger.holds(S::NotificationHeaders, excess.is_none(), why, shows);

    // The other two kinds have rules of their own about the checksum, and no BTH.
    if !own.is_of(Kind::Cnp) && !own.is_of(Kind::FastCnp1) {
        return;
    }
    let Some(datagram) = own.parsed.datagram() else {
        return;
    };
    // RoCEv2 may send 0, over IPv6 too.
    let bad = datagram.checksum != 0 && datagram.has_bad_checksum();
    let why = || format!("the UDP checksum {:#06x} is wrong", datagram.checksum);
    ledger.holds(S::NotificationChecksum, !bad, why, shows);
    let Ok(bth) = Bth::new_checked(datagram.payload) else {
        return;
    };
    let why = || format!("the P_Key is {:#06x}, which is in no partition", bth.pkey());
    ledger.holds(S::NotificationPkey, bth.pkey() & 0x7FFF != 0, why, shows);
    let reserved = (bth.reserved6(), bth.reserved7());
    let why = || {
        format!(
            "reserved bits: {:#x} after BECN, {:#x} before the PSN",
            reserved.0, reserved.1
        )
    };
    ledger.holds(S::NotificationReserved, reserved == (0, 0), why, shows);
}

/// Returns a header or an option of a notification that its draft does not have.
fn excess(own: &DeviceFrame<'_>) -> Option<String> {
    let is_fast = matches!(own.parsed.message(), Message::FastCnp(_));
    for span in own.parsed.spans() {
        let header = match span.layer {
            Layer::Routing => "a Routing header",
            Layer::Fragment => "a Fragment header",
            Layer::Authentication => "an Authentication header",
            // An option that ought to be in the other header has a rule of its own.
            Layer::HopByHop if !is_fast => "a Hop-by-Hop Options header",
            Layer::DestinationOptions if !is_fast => "a Destination Options header",
            _ => continue,
        };
        return Some(header.to_owned());
    }
    let profile = own.parsed.profile();
    own.parsed.options_headers().find_map(|header| {
        let is_other = |kind: u8| !profile.is_fast_cnp(kind);
        let mut options = header.readable();
        let other = options.find(|option| !option.is_padding() && is_other(option.kind))?;
        Some(format!("another option, of type {:#04x}", other.kind))
    })
}
