//! Whether one may send on an interface: the interlock of everything that makes traffic.

use super::{DefaultRoute, Interface, InterfaceError, link, routes};
use crate::netlink::Netlink;
use thiserror::Error;

/// Why nothing is sent on an interface: what, on which, and what to do.
#[derive(Debug, Error)]
#[error("{interface}: {}", kind.at(interface))]
pub struct Refusal {
    interface: String,
    kind: RefusalKind,
}

/// What speaks against it.
#[derive(Debug)]
#[non_exhaustive]
pub enum RefusalKind {
    /// Default routes leave by it.
    DefaultRoute(Vec<DefaultRoute>),
    /// It is not set up.
    Down,
    /// Nothing is at its other end.
    NoCarrier {
        /// Kind of a virtual interface.
        kind: Option<String>,
        /// Whether the driver says why: the interface below is down.
        lower_down: bool,
    },
    /// It does not carry Ethernet frames.
    NotEthernet,
    /// It is not there any more.
    Gone,
    /// It is not known whether a default route leaves by it.
    Unknown(InterfaceError),
}

/// Whether one may send on that interface now: not when a default route leaves by it, unless that is allowed, and not
/// when nothing would be sent anyway. It asks the kernel anew.
///
/// The loopback interface may be used; AF_XDP cannot send there ([`Interface::is_loopback`]).
///
/// # Errors
///
/// The reason why not.
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
    // What has its number now may be another one.
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
    /// What speaks against it.
    #[must_use]
    pub const fn kind(&self) -> &RefusalKind {
        &self.kind
    }
}

impl RefusalKind {
    /// What speaks against interface `name`, and what to do.
    fn at(&self, name: &str) -> String {
        match self {
            Self::DefaultRoute(routes) => {
                let routes: Vec<_> = routes.iter().map(ToString::to_string).collect();
                format!(
                    "will not send on an interface with a default route ({}): its traffic, and the networks beyond, would \
                     suffer; choose an interface of a test network, or insist with --allow-default-route",
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
                    _ => "plug in the cable, and make sure that the other side is up",
                };
                format!("no carrier: {why}")
            }
            Self::NotEthernet => "it does not carry Ethernet frames; choose one that does".to_owned(),
            Self::Gone => {
                "it is gone: deleted, unplugged, renamed or moved to another namespace (ip link shows what there is)"
                    .to_owned()
            }
            Self::Unknown(e) => format!(
                "cannot tell whether it has a default route: {e}; --allow-default-route skips this check"
            ),
        }
    }
}
