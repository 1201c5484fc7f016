//! Permission to send on an interface: the interlock of everything that generates traffic.

use super::{DefaultRoute, Interface, InterfaceError, link, routes};
use crate::netlink::Netlink;
use thiserror::Error;

/// Reason why sending on an interface is refused: what, on which interface, and what to do about
/// it.
#[derive(Debug, Error)]
#[error("{interface}: {}", kind.at(interface))]
pub struct Refusal {
    interface: String,
    kind: RefusalKind,
}

/// The reason for a refusal.
#[derive(Debug)]
#[non_exhaustive]
pub enum RefusalKind {
    /// Default routes use the interface.
    DefaultRoute(Vec<DefaultRoute>),
    /// The interface is down.
    Down,
    /// The interface has no carrier.
    NoCarrier {
        /// Kind of a virtual interface.
        kind: Option<String>,
        /// True if the driver reports the reason: the interface below is down.
        lower_down: bool,
    },
    /// The interface does not carry Ethernet frames.
    NotEthernet,
    /// The interface no longer exists.
    Gone,
    /// The default routes of the interface are unknown.
    Unknown(InterfaceError),
}

/// Checks if sending on the interface is permitted now: not if a default route uses it, unless that
/// is allowed, and not if nothing would be sent anyway. Queries the kernel anew.
///
/// The loopback interface is permitted; AF_XDP cannot send there ([`Interface::is_loopback`]).
///
/// # Errors
///
/// The reason for the refusal.
pub fn check_may_send(interface: &Interface, allow_default_route: bool) -> Result<(), Refusal> {
    check(interface, allow_default_route).map_err(|kind| Refusal {
        interface: interface.name.clone(),
        kind,
    })
}

fn check(interface: &Interface, allow_default_route: bool) -> Result<(), RefusalKind> {
    let unknown = |e| RefusalKind::Unknown(InterfaceError::query("state", e));
    let mut netlink = Netlink::open().map_err(unknown)?;
    let now = link::by_index(&mut netlink, interface.index).map_err(unknown)?;
    // The index may have been reused by another interface.
    let now = now.filter(|link| link.name == interface.name);
    let now = now.ok_or(RefusalKind::Gone)?;
    if !interface.is_ethernet {
        return Err(RefusalKind::NotEthernet);
    }
    if !allow_default_route && !interface.is_loopback {
        let links = link::all(&mut netlink).map_err(RefusalKind::Unknown)?;
        let routes = routes::by_interface(&mut netlink, &links, interface.index);
        let routes = routes.map_err(RefusalKind::Unknown)?;
        if !routes.is_empty() {
            return Err(RefusalKind::DefaultRoute(routes));
        }
    }
    if !now.is_up() {
        return Err(RefusalKind::Down);
    }
    if !now.carrier {
        return Err(RefusalKind::NoCarrier {
            lower_down: now.lower_down,
            kind: now.kind,
        });
    }
    Ok(())
}

impl Refusal {
    /// Returns the reason for the refusal.
    #[must_use]
    pub const fn kind(&self) -> &RefusalKind {
        &self.kind
    }
}

impl RefusalKind {
    /// Describes the reason why interface `name` is refused, and what to do about it.
    fn at(&self, name: &str) -> String {
        match self {
            Self::DefaultRoute(routes) => {
                let routes: Vec<_> = routes.iter().map(ToString::to_string).collect();
                format!(
                    "refusing to send on an interface with a default route ({}): its traffic, and the networks \
                     beyond it, would suffer; use an interface of a test network, or --allow-default-route",
                    routes.join(", ")
                )
            }
            Self::Down => format!("it is down; set it up: ip link set dev {name} up"),
            Self::NoCarrier { kind, lower_down } => {
                let why = match kind.as_deref() {
                    Some("veth") => {
                        "its peer is down; set that up too (ip link set dev PEER up, in the namespace of the peer)"
                    }
                    Some("bridge" | "bond" | "team") => "none of its ports is up; set one up",
                    _ if *lower_down => "the interface below it is down; set that up",
                    Some("tun") => "no program is at its other end; start one",
                    _ => "plug in the cable, and make sure the other side is up",
                };
                format!("no carrier: {why}")
            }
            Self::NotEthernet => "it does not carry Ethernet frames; use one that does".to_owned(),
            Self::Gone => {
                "it is gone: deleted, unplugged, renamed or moved to another namespace (ip link lists interfaces)"
                    .to_owned()
            }
            Self::Unknown(e) => format!(
                "cannot determine whether it has a default route: {e}; --allow-default-route skips this check"
            ),
        }
    }
}
