//! What the process may do is given up once all handles are open: capabilities, the way back to them, and under sudo the
//! identity of root.
//!
//! Capabilities belong to threads: this has to happen before any but those are started that will open an interface which
//! is not up yet.

use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use std::fmt::Display;

/// Gives up everything; says in a few words what was given up.
///
/// # Errors
/// Something could not be given up: what, and why.
pub fn drop_all() -> Result<String, String> {
    let user = behind_sudo(
        geteuid().is_root(),
        std::env::var("SUDO_UID").ok().as_deref(),
        std::env::var("SUDO_GID").ok().as_deref(),
    );
    let had = caps::read(None, CapSet::Permitted).map_err(failed("read"))?;
    if had.is_empty() && user.is_none() {
        return Ok("no privileges".to_owned());
    }
    // What may be regained by exec goes first: that takes CAP_SETPCAP, and a program started by file capabilities lacks it.
    let _ = caps::clear(None, CapSet::Bounding);
    if let Some((uid, gid)) = user {
        setgroups(&[gid]).map_err(failed("leave root's groups"))?;
        setresgid(gid, gid, gid).map_err(failed("leave root's group"))?;
        setresuid(uid, uid, uid).map_err(failed("leave root"))?;
    }
    keep_only(&CapsHashSet::new())?;
    Ok(match user {
        Some((uid, _)) => format!("privileges dropped, now user {uid}"),
        None => "privileges dropped".to_owned(),
    })
}

/// For a thread that will open a socket later: lets it keep capabilities when [`drop_all`] of another one changes the user.
/// It must not give any up before: changing the user takes the consent of all threads.
///
/// # Errors
/// It cannot.
pub fn survive() -> Result<(), String> {
    caps::securebits::set_keepcaps(true).map_err(failed("keep"))
}

/// Gives up everything in this thread but the right to open sockets for frames.
///
/// # Errors
/// Something could not be given up.
pub fn keep_sockets() -> Result<(), String> {
    let had = caps::read(None, CapSet::Permitted).map_err(failed("read"))?;
    caps::set(None, CapSet::Effective, &had).map_err(failed("keep"))?;
    let _ = caps::clear(None, CapSet::Bounding);
    let kept = CapsHashSet::from([Capability::CAP_NET_RAW]);
    keep_only(&had.intersection(&kept).copied().collect())
}

fn keep_only(kept: &CapsHashSet) -> Result<(), String> {
    // Kernels without ambient capabilities have none to give up.
    let _ = caps::clear(None, CapSet::Ambient);
    let none = CapsHashSet::new();
    caps::set(None, CapSet::Inheritable, &none).map_err(failed("drop"))?;
    caps::set(None, CapSet::Effective, kept).map_err(failed("drop"))?;
    caps::set(None, CapSet::Permitted, kept).map_err(failed("drop"))?;
    rustix::thread::set_no_new_privs(true).map_err(failed("rule out new privileges"))
}

fn failed<E: Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("cannot {what} privileges: {error}")
}

/// Who called sudo, where root runs for somebody.
fn behind_sudo(root: bool, uid: Option<&str>, gid: Option<&str>) -> Option<(Uid, Gid)> {
    if !root {
        return None;
    }
    let uid: u32 = uid?.parse().ok()?;
    let gid: u32 = gid?.parse().ok()?;
    (uid != 0).then(|| (Uid::from_raw(uid), Gid::from_raw(gid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_becomes_who_called_sudo_and_nobody_else_does() {
        let user = |root, uid, gid| behind_sudo(root, uid, gid);
        assert_eq!(
            user(true, Some("1000"), Some("100")),
            Some((Uid::from_raw(1000), Gid::from_raw(100)))
        );
        assert_eq!(user(false, Some("1000"), Some("100")), None);
        assert_eq!(user(true, Some("0"), Some("0")), None);
        assert_eq!(user(true, Some("x"), Some("100")), None);
        assert_eq!(user(true, None, None), None);
        assert_eq!(user(true, Some("1000"), None), None);
    }
}
