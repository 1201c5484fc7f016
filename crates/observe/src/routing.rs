//! State of routing messages: the parameters that the OPEN messages of a BGP session settled, and
//! whether a router keeps the Proxy Node Capability (PNC) when it passes a prefix on to another
//! level or area (draft-xiao-rtgwg-proxy-congestion-notification sections 5.1.1 to 5.1.3).
//!
//! There is no LSDB. Of each router's statements about a prefix the last one counts until it is
//! purged, or until its LSP or LSA comes without it. An LSP or LSA whose sequence number is not
//! newer than the last one received is ignored: it is a repetition, or was overtaken. An
//! advertisement is judged by earlier ones, so a router is given time to learn of a new flag. The
//! content of one LSP or LSA counts as simultaneous, and a router keeps the flag if any one of its
//! current ones has it. It is not possible to wait for all: the number of fragments of a router's
//! LSP is unknown, so the flag, or at level 1 the router's own prefix, may come in a later one. The
//! text of the rule says so.
//!
//! The mark of a prefix as passed on depends on the protocol:
//!
//! - OSPF: an inter-area route type (OSPFv2) or an E-Inter-Area-Prefix-LSA (OSPFv3). A router that
//!   sends no extended LSA at all is not detected: that takes the legacy LSAs.
//! - IS-IS: the up/down bit, or the re-advertisement flag. From level 1 to level 2, routers without
//!   support for these flags do not mark it; the prefix is then inferred not to be theirs if they
//!   have an LSP at level 1 too, without the prefix.

use crate::table::Table;
use fcn_wire::frame::Frame;
use fcn_wire::pnc::bgp::{Messages, Open, Session};
use fcn_wire::pnc::ospf3::function::{INTER_AREA_PREFIX, INTRA_AREA_PREFIX};
use fcn_wire::pnc::{
    self, Advertisement, Flooding, Level, Origin, Prefix, Protocol, isis, ospf2, ospf3,
};
use fcn_wire::{Findings, Profile, Rule};
use std::net::{IpAddr, Ipv4Addr};

/// Maximum number of prefixes, of LSPs and LSAs, of level 1 routers and of BGP speakers remembered;
/// the least recently used are evicted.
const LIMIT: usize = 65_536;
/// Maximum number of statements about one prefix; those of further routers are not judged.
const STATEMENTS: usize = 16;
/// OSPF's backbone area, and IS-IS's level 2.
const BACKBONE: u32 = 0;
/// IS-IS's level 1.
const LEVEL1: u32 = 1;

/// Key of the advertisements of one prefix: in IS-IS each TLV and topology has its own flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    protocol: Protocol,
    tlv: u8,
    topology: u16,
    prefix: Prefix,
}

/// An LSP or LSA, regardless of its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    protocol: Protocol,
    /// Area or level.
    scope: u32,
    /// LSP ID; or LS type, Link State ID and advertising router.
    id: [u8; 10],
}

/// One instance of a source's advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edition {
    /// The LSP or LSA.
    pub source: Source,
    /// Greater is newer.
    pub sequence: u32,
    /// Seconds until it expires: an LSP's remaining lifetime, or the difference between an LSA's
    /// age and MaxAge. 0 withdraws the source's statements; `None`: it does not age.
    pub lifetime: Option<u16>,
}

/// A router's statement about a prefix in a level or area.
#[derive(Clone, Copy, Debug)]
struct Statement {
    /// The LSP or LSA that contains it.
    edition: Edition,
    /// System ID, or router ID.
    router: [u8; 6],
    /// Area or level.
    scope: u32,
    /// True if the prefix comes from another level or area; `None` if not indicated.
    passed_on: Option<bool>,
    pnc: bool,
}

/// State of the routing messages received.
#[derive(Debug)]
pub struct Routing {
    prefixes: Table<Key, Vec<Statement>>,
    /// The last sequence number of each source.
    sources: Table<Source, u32>,
    /// System IDs with an LSP at level 1.
    level1: Table<[u8; 6], ()>,
    /// By speaker and listener.
    opens: Table<(IpAddr, IpAddr), Open>,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            prefixes: Table::new(LIMIT),
            sources: Table::new(LIMIT),
            level1: Table::new(LIMIT),
            opens: Table::new(LIMIT),
        }
    }
}

impl Routing {
    /// Processes the routing message in `frame`, if it is one; broken rules are added to
    /// `findings`, with offsets from the start of the frame. Returns the known state of the BGP
    /// session.
    pub fn learn_frame(&mut self, frame: &Frame<'_>, findings: &mut Findings) -> Session {
        let Some((protocol, at, bytes)) = frame.routing() else {
            return Session::default();
        };
        let ends = frame.ip().map(|ip| (ip.source, ip.destination));
        findings.within(at, |findings| {
            self.learn(protocol, bytes, ends, |offset| {
                findings.push(Rule::PncNotKept, offset, 1);
            })
        })
    }

    /// Processes a message from the first to the second of `ends`; `bytes` begins as for
    /// [`pnc::walk`]. `not_kept` is called with the offset of each prefix whose PNC is missing
    /// ([`Rule::PncNotKept`]). Returns the known state of the BGP session.
    pub fn learn(
        &mut self,
        protocol: Protocol,
        bytes: &[u8],
        ends: Option<(IpAddr, IpAddr)>,
        mut not_kept: impl FnMut(usize),
    ) -> Session {
        if protocol == Protocol::Bgp {
            let Some(ends) = ends else {
                return Session::default();
            };
            for open in Messages::new(bytes).filter_map(|message| Open::parse(&message)) {
                self.opens.put(ends, open);
            }
            return self.session(ends);
        }
        // A truncated message is read as far as captured.
        each_edition(protocol, bytes, usize::MAX, |edition, found| {
            if !self.is_news(&edition) {
                return;
            }
            let without = found.filter_map(|found| {
                let (key, statement) = self.advertised(edition, &found)?;
                (!statement.pnc).then_some((key, statement, found.offset))
            });
            // All of it counts as simultaneous.
            let without: Vec<_> = without.collect();
            for (key, statement, offset) in without {
                if self.is_missing(&key, &statement) {
                    not_kept(offset);
                }
            }
        });
        Session::default()
    }

    /// Returns true if an LSP or LSA is newer than the last one received, which it then replaces.
    fn is_news(&mut self, edition: &Edition) -> bool {
        let Edition {
            source,
            sequence,
            lifetime,
        } = *edition;
        let heard = self.sources.peek(&source).copied();
        if lifetime == Some(0) {
            self.sources.remove(&source);
            return heard.is_none_or(|heard| sequence >= heard);
        }
        let newer = heard.is_none_or(|heard| sequence > heard);
        if newer {
            self.sources.put(source, sequence);
        }
        newer
    }

    /// Returns the settings of the OPEN messages for UPDATEs from the first to the second.
    #[must_use]
    pub fn session(&self, (speaker, listener): (IpAddr, IpAddr)) -> Session {
        let open = |ends| self.opens.peek(&ends);
        Session::between(open((speaker, listener)), open((listener, speaker)))
    }

    /// Processes an advertisement; returns its statement, if it counts.
    fn advertised(
        &mut self,
        edition: Edition,
        found: &Advertisement<'_>,
    ) -> Option<(Key, Statement)> {
        let (key, statement) = statement(edition, found).filter(|_| !found.ignored)?;
        if matches!(
            found.origin,
            Origin::IsIs {
                level: Level::L1,
                ..
            }
        ) {
            self.level1.put(statement.router, ());
        }
        let mut all = self.prefixes.remove(&key).unwrap_or_default();
        all.retain(|other| {
            // Its LSP or LSA may have been replaced since, perhaps without the prefix.
            let Edition {
                source, sequence, ..
            } = other.edition;
            self.sources.peek(&source) == Some(&sequence)
        });
        let counts = edition.lifetime != Some(0) && all.len() < STATEMENTS;
        if counts {
            all.push(statement);
        }
        if !all.is_empty() {
            self.prefixes.put(key, all);
        }
        counts.then_some((key, statement))
    }

    /// Returns true if a statement lacks the PNC that the prefix has in the level or area from
    /// which it was passed on. If it comes from several, all of them must have the PNC, as the one
    /// passed on is unknown.
    fn is_missing(&self, key: &Key, of: &Statement) -> bool {
        let all = self.prefixes.peek(key).map_or(&[][..], Vec::as_slice);
        let mine = |one: &Statement| one.router == of.router && one.scope == LEVEL1;
        // Only at IS-IS's level 2 this is not indicated.
        let inferred = || self.level1.peek(&of.router).is_some() && !all.iter().any(mine);
        let keeps = |one: &Statement| (one.router, one.scope) == (of.router, of.scope) && one.pnc;
        if all.iter().any(keeps) || !of.passed_on.unwrap_or_else(inferred) {
            return false;
        }
        // A prefix reaches an area from the backbone, and the backbone from the areas that it
        // belongs to.
        let of_backbone = |one: &Statement| one.scope == BACKBONE;
        let from_backbone = !of_backbone(of) && all.iter().any(of_backbone);
        let mut sources = all
            .iter()
            .filter(|one| match from_backbone {
                true => of_backbone(one),
                false => one.scope != of.scope && one.passed_on != Some(true),
            })
            .peekable();
        sources.peek().is_some() && sources.all(|one| one.pnc)
    }
}

/// Calls `learn` with each LSP or LSA of a message of IS-IS or OSPF and its advertisements, of
/// which there may be none; malformed LSAs are skipped. There were `wire_len` octets on the wire.
/// Returns true if the message could be parsed.
pub fn each_edition(
    protocol: Protocol,
    bytes: &[u8],
    wire_len: usize,
    mut learn: impl FnMut(Edition, &mut dyn Iterator<Item = Advertisement<'_>>),
) -> bool {
    // The profile has code points of BGP only.
    let mut walk = match pnc::walk(protocol, bytes, wire_len, &Profile::DEFAULT) {
        Ok(Some(walk)) => walk.peekable(),
        Ok(None) => return true,
        Err(_) => return false,
    };
    let mut lsa = |at: usize, area, header: &[u8]| {
        let ignored = (walk.peek()).is_some_and(|found| found.container == at && found.ignored);
        let mut own = core::iter::from_fn(|| walk.next_if(|found| found.container == at));
        if let Some(edition) = lsa_edition(protocol, area, header)
            && !ignored
        {
            learn(edition, &mut own);
        }
        own.for_each(drop);
    };
    match protocol {
        Protocol::Ospf2 => {
            if let Ok(update) = ospf2::LsUpdate::new_checked(bytes, wire_len) {
                (update.lsas()).for_each(|(at, header)| lsa(at, update.area(), header));
            }
        }
        Protocol::Ospf3 => {
            if let Ok(update) = ospf3::LsUpdate::new_checked(bytes, wire_len) {
                (update.lsas()).for_each(|(at, header)| lsa(at, update.area(), header));
            }
        }
        Protocol::IsIs => {
            if let Some(edition) = lsp_edition(bytes) {
                learn(edition, &mut walk);
            }
        }
        Protocol::Bgp => {}
    }
    true
}

/// Returns the edition of an LSP; `None` for anything else.
fn lsp_edition(bytes: &[u8]) -> Option<Edition> {
    let lsp = isis::Lsp::new_checked(bytes, usize::MAX).ok()?;
    let mut id = [0; 10];
    id[..8].copy_from_slice(&lsp.lsp_id());
    let scope = match lsp.level() {
        Level::L1 => LEVEL1,
        Level::L2 => BACKBONE,
    };
    Some(Edition {
        source: Source {
            protocol: Protocol::IsIs,
            scope,
            id,
        },
        sequence: lsp.sequence(),
        lifetime: Some(lsp.lifetime()),
    })
}

/// Returns the edition of the LSA with that header, flooded in an area (RFC 2328 section A.4.1, RFC
/// 5340 section A.4.2).
fn lsa_edition(protocol: Protocol, area: Ipv4Addr, header: &[u8]) -> Option<Edition> {
    const MAX_AGE: u16 = 3600;
    /// RFC 4136: with the top bit set, the LSA does not age.
    const DO_NOT_AGE: u16 = 0x8000;
    let header: &[u8; 16] = header.first_chunk()?;
    let [a, b, .., e, f, g, h] = *header;
    let mut id = [0; 10];
    id.copy_from_slice(&header[2..12]);
    let in_domain = match protocol {
        Protocol::Ospf2 => header[3] == 11,
        _ => header[2] & 0x60 == 0x40,
    };
    if protocol == Protocol::Ospf2 {
        // Options, which may change.
        id[0] = 0;
    }
    let age = u16::from_be_bytes([a, b]);
    let left = MAX_AGE.saturating_sub(age & !DO_NOT_AGE);
    Some(Edition {
        source: Source {
            protocol,
            // An LSA flooded in all areas is the same in each.
            scope: if in_domain { BACKBONE } else { area.to_bits() },
            id,
        },
        // Signed: the initial one is the least.
        sequence: u32::from_be_bytes([e, f, g, h]) ^ 1 << 31,
        lifetime: (age & DO_NOT_AGE == 0 || left == 0).then_some(left),
    })
}

/// Returns the key and the statement of an advertisement; `None` if it is neither an area's or
/// level's own nor from another one.
fn statement(edition: Edition, found: &Advertisement<'_>) -> Option<(Key, Statement)> {
    let of_router = |id: Ipv4Addr| {
        let [a, b, c, d] = id.octets();
        [a, b, c, d, 0, 0]
    };
    let key = |tlv, topology| {
        Some(Key {
            protocol: found.protocol(),
            tlv,
            topology,
            prefix: found.prefix?,
        })
    };
    let (key, router, scope, passed_on) = match found.origin {
        Origin::IsIs {
            level,
            lsp_id,
            tlv,
            topology,
            down,
        } => {
            let first = found.carrier.and_then(|carrier| carrier.octets.first());
            let again = first.is_some_and(|flags| flags & isis::FLAG_READVERTISED != 0);
            let (scope, passed_on) = match level {
                Level::L1 => (LEVEL1, Some(down || again)),
                Level::L2 => (BACKBONE, (down || again).then_some(true)),
            };
            (
                key(tlv, topology)?,
                *lsp_id.first_chunk()?,
                scope,
                passed_on,
            )
        }
        Origin::Ospf2 {
            area,
            advertising_router,
            flooding: Flooding::Area,
            route_type: route_type @ (ospf2::INTRA_AREA | ospf2::INTER_AREA),
            ..
        } => {
            let passed_on = route_type == ospf2::INTER_AREA;
            let router = of_router(advertising_router);
            (key(0, 0)?, router, area.to_bits(), Some(passed_on))
        }
        Origin::Ospf3 {
            area,
            advertising_router,
            ls_type,
            ..
        } => {
            let passed_on = match ls_type & 0x1FFF {
                INTRA_AREA_PREFIX => false,
                INTER_AREA_PREFIX => true,
                _ => return None,
            };
            let router = of_router(advertising_router);
            (key(0, 0)?, router, area.to_bits(), Some(passed_on))
        }
        _ => return None,
    };
    let statement = Statement {
        edition,
        router,
        scope,
        passed_on,
        pnc: found.pnc,
    };
    Some((key, statement))
}

#[cfg(test)]
mod tests;
