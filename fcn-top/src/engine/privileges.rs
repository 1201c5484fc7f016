//! Drops privileges once all handles are open: capabilities, the means to regain them, and under
//! sudo the identity of root.
//!
//! Capabilities belong to threads: this must happen before any thread starts, except those that
//! will open an interface that is not up yet.

use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use std::fmt::Display;

/// Drops everything; returns a short description of what was dropped.
///
/// # Errors
///
/// Something could not be dropped; the text says what, and why.
pub fn drop_all() -> Result<String, String> {
    let user = behind_sudo(
        geteuid().is_root(),
        std::env::var("SUDO_UID").ok().as_deref(),
        std::env::var("SUDO_GID").ok().as_deref(),
    );
    let had = caps::read(None, CapSet::Permitted).map_err(failed("read privileges"))?;
    if had.is_empty() && user.is_none() {
        return Ok("no privileges".to_owned());
    }
    // The bounding set goes first: that takes CAP_SETPCAP, which a program started with file
    // capabilities lacks.
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

/// Lets a thread that will open a socket later keep its capabilities when [`drop_all`] in another
/// thread changes the user. The thread must not drop any before that: changing the user takes the
/// consent of all threads.
///
/// # Errors
///
/// The flag cannot be set.
pub fn keep_capabilities() -> Result<(), String> {
    caps::securebits::set_keepcaps(true).map_err(failed("keep privileges"))
}

/// Drops everything in this thread except the privilege to open packet sockets.
///
/// # Errors
///
/// Something could not be dropped.
pub fn keep_sockets() -> Result<(), String> {
    let had = caps::read(None, CapSet::Permitted).map_err(failed("read privileges"))?;
    caps::set(None, CapSet::Effective, &had).map_err(failed("keep privileges"))?;
    let _ = caps::clear(None, CapSet::Bounding);
    let kept = CapsHashSet::from([Capability::CAP_NET_RAW]);
    keep_only(&had.intersection(&kept).copied().collect())
}

fn keep_only(kept: &CapsHashSet) -> Result<(), String> {
    // Kernels without ambient capabilities have none to drop.
    let _ = caps::clear(None, CapSet::Ambient);
    let none = CapsHashSet::new();
    caps::set(None, CapSet::Inheritable, &none).map_err(failed("drop privileges"))?;
    caps::set(None, CapSet::Effective, kept).map_err(failed("drop privileges"))?;
    caps::set(None, CapSet::Permitted, kept).map_err(failed("drop privileges"))?;
    rustix::thread::set_no_new_privs(true).map_err(failed("rule out new privileges"))
}

fn failed<E: Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("cannot {what}: {error}")
}

/// Returns the user who called sudo, if root runs on a user's behalf.
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
    fn only_root_under_sudo_becomes_the_calling_user() {
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
