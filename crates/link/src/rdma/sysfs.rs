//! Ports and their counters as files: `/sys/class/infiniband/<device>/ports/<number>/`.

use super::{COUNTERS, NAME};
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

/// Folder in which the kernel shows RDMA devices.
pub const CLASS: &str = "/sys/class/infiniband";

/// Maximum number of ports of all devices.
const PORTS: usize = 256;
/// Maximum number of entries read of a port's GID table.
const GIDS: usize = 1_024;
/// Maximum length read of a file, in octets; each contains a number or a name.
const TEXT: u64 = 256;

/// A port of an RDMA device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Name of the device, such as `mlx5_0`.
    pub device: String,
    /// Port number, from 1.
    pub number: u32,
    /// Driver to which the device is bound, such as `mlx5_core`; `rxe` for Soft RoCE. `None` if
    /// unknown.
    pub driver: Option<String>,
    /// Network interface of the port: that of its first GID, in whatever network namespace it is
    /// ([`keep_own_interfaces`](super::keep_own_interfaces)). `None` if unknown.
    pub interface: Option<String>,
    /// Addresses of its RoCEv2 GIDs.
    pub addresses: Vec<IpAddr>,
}

/// Returns the ports of all devices below `class` ([`CLASS`], except in tests), sorted by name and
/// number. Without such a folder there are none.
///
/// # Errors
/// The folder exists and cannot be read.
pub fn ports(class: &Path) -> io::Result<Vec<Port>> {
    let mut found = Vec::new();
    for device in names(class)? {
        let folder = class.join(&device);
        let driver = driver(&folder);
        for name in names(&folder.join("ports")).unwrap_or_default() {
            let Ok(number) = name.parse() else { continue };
            let folder = folder.join("ports").join(&name);
            let (interface, addresses) = gids(&folder);
            found.push(Port {
                device: device.clone(),
                number,
                driver: driver.clone(),
                interface,
                addresses,
            });
        }
    }
    found.sort_by(|a, b| (&a.device, a.number).cmp(&(&b.device, b.number)));
    found.truncate(PORTS);
    Ok(found)
}

impl Port {
    /// Returns the driver's counters (`hw_counters`) and those of every InfiniBand port
    /// (`counters`) that can be read, sorted by name. Files that contain anything other than a
    /// number are omitted.
    #[must_use]
    pub fn counters(&self, class: &Path) -> Vec<(String, u64)> {
        let port = class.join(&self.device).join("ports");
        let port = port.join(self.number.to_string());
        let mut found = Vec::new();
        for folder in ["hw_counters", "counters"].map(|name| port.join(name)) {
            for name in names(&folder).unwrap_or_default() {
                // A setting, not a counter: the time for which the kernel caches a reading, in
                // milliseconds.
                if name == "lifespan" || name.len() > NAME || found.len() >= COUNTERS {
                    continue;
                }
                let value = text(&folder.join(&name)).and_then(|text| text.parse().ok());
                found.extend(value.map(|value| (name, value)));
            }
        }
        found.sort();
        found.dedup_by(|a, b| a.0 == b.0);
        found
    }
}

/// Returns the driver of a device, from the target of its link.
fn driver(device: &Path) -> Option<String> {
    if let Ok(driver) = fs::read_link(device.join("device/driver")) {
        return Some(driver.file_name()?.to_string_lossy().into_owned());
    }
    // Devices on top of a network interface: Soft RoCE is a channel adapter, Soft iWARP is not.
    let is_soft = device.join("parent").exists();
    let is_adapter = text(&device.join("node_type")).is_some_and(|kind| kind.starts_with('1'));
    (is_soft && is_adapter).then(|| "rxe".to_owned())
}

/// Returns the interface of a port's first GID, and the addresses of its RoCEv2 GIDs. Empty entries
/// cannot be read.
fn gids(port: &Path) -> (Option<String>, Vec<IpAddr>) {
    let (mut interface, mut addresses) = (None, Vec::new());
    let attributes = port.join("gid_attrs");
    let mut entries: Vec<u32> = names(&attributes.join("types"))
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    entries.sort_unstable();
    for entry in entries.into_iter().take(GIDS) {
        let entry = entry.to_string();
        let Some(kind) = text(&attributes.join("types").join(&entry)) else {
            continue;
        };
        if interface.is_none() {
            interface =
                text(&attributes.join("ndevs").join(&entry)).filter(|name| !name.is_empty());
        }
        let gid = text(&port.join("gids").join(&entry)).and_then(|text| text.parse().ok());
        if let Some(gid) = gid.filter(|gid: &Ipv6Addr| kind == "RoCE v2" && !gid.is_unspecified()) {
            // The GID of an IPv4 address is the mapped address.
            let address = gid.to_ipv4_mapped().map_or(IpAddr::V6(gid), IpAddr::V4);
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    (interface, addresses)
}

/// Returns the sorted names in a folder; none if there is no folder.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.take(GIDS).collect();
    names.sort_unstable();
    Ok(names)
}

/// Returns the contents of a file without the end of line; `None` if it is longer than any of them
/// should be. Does not block on a pipe.
fn text(file: &Path) -> Option<String> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let read = File::open(file)
        .ok()?
        .take(TEXT)
        .read_to_string(&mut text)
        .ok()?;
    (read < TEXT as usize).then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Creates files with contents below a folder.
    fn tree(root: &Path, files: &[(&str, &str)]) {
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    #[test]
    fn missing_folder_means_no_devices() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(ports(&root.path().join("infiniband")).unwrap(), []);
        assert_eq!(ports(root.path()).unwrap(), []);
    }

    #[test]
    fn ports_have_driver_interface_and_addresses() {
        let root = tempfile::tempdir().unwrap();
        let port = "mlx5_0/ports/1";
        let gids = [
            (
                "0",
                "fe80:0000:0000:0000:0e42:a1ff:fe00:0001",
                "IB/RoCE v1",
                "eth1",
            ),
            (
                "1",
                "fe80:0000:0000:0000:0e42:a1ff:fe00:0001",
                "RoCE v2",
                "eth1",
            ),
            (
                "3",
                "0000:0000:0000:0000:0000:ffff:c000:0201",
                "RoCE v2",
                "eth1.5",
            ),
            (
                "10",
                "2001:0db8:0000:0000:0000:0000:0000:0001",
                "RoCE v2",
                "eth1",
            ),
        ];
        for (entry, gid, kind, interface) in gids {
            tree(
                root.path(),
                &[
                    (&format!("{port}/gids/{entry}"), &format!("{gid}\n")),
                    (
                        &format!("{port}/gid_attrs/types/{entry}"),
                        &format!("{kind}\n"),
                    ),
                    (
                        &format!("{port}/gid_attrs/ndevs/{entry}"),
                        &format!("{interface}\n"),
                    ),
                ],
            );
        }
        tree(
            root.path(),
            &[
                ("rxe0/ports/1/state", "4: ACTIVE\n"),
                ("rxe0/parent", "lo\n"),
            ],
        );
        tree(
            root.path(),
            &[("rxe0/node_type", "1: CA\n"), ("siw0/parent", "lo\n")],
        );
        tree(
            root.path(),
            &[("siw0/node_type", "4: RNIC\n"), ("siw0/ports/1/state", "")],
        );
        fs::create_dir_all(root.path().join("mlx5_0/device")).unwrap();
        symlink(
            "../../bus/pci/drivers/mlx5_core",
            root.path().join("mlx5_0/device/driver"),
        )
        .unwrap();
        let found = ports(root.path()).unwrap();
        let drivers: Vec<_> = found
            .iter()
            .map(|p| (&*p.device, p.driver.as_deref()))
            .collect();
        assert_eq!(
            drivers,
            [
                ("mlx5_0", Some("mlx5_core")),
                ("rxe0", Some("rxe")),
                ("siw0", None)
            ]
        );
        assert_eq!(found[0].interface.as_deref(), Some("eth1"));
        let addresses = ["fe80::e42:a1ff:fe00:1", "192.0.2.1", "2001:db8::1"];
        assert_eq!(
            found[0].addresses,
            addresses.map(|a| a.parse::<IpAddr>().unwrap())
        );
        assert_eq!((&found[1].interface, found[1].addresses.len()), (&None, 0));
    }

    #[test]
    fn only_numbers_are_counters() {
        let root = tempfile::tempdir().unwrap();
        let long = format!("p/ports/1/hw_counters/{}", "n".repeat(NAME + 1));
        tree(
            root.path(),
            &[
                (
                    "p/ports/1/hw_counters/np_cnp_sent",
                    "18446744073709551615\n",
                ),
                ("p/ports/1/hw_counters/Rcvd Out of order packets", "7\n"),
                ("p/ports/1/hw_counters/lifespan", "10\n"),
                ("p/ports/1/hw_counters/over", "18446744073709551616\n"),
                ("p/ports/1/hw_counters/minus", "-1\n"),
                ("p/ports/1/hw_counters/words", "N/A (no PMA)\n"),
                ("p/ports/1/hw_counters/empty", ""),
                ("p/ports/1/hw_counters/huge", &"1".repeat(5_000)),
                ("p/ports/1/hw_counters/\u{1b}[2J", "5\n"),
                ("p/ports/1/counters/port_xmit_wait", "3\n"),
                (&long, "1\n"),
            ],
        );
        fs::write(
            root.path().join("p/ports/1/hw_counters/binary"),
            [0xff, 0xfe],
        )
        .unwrap();
        fs::create_dir_all(root.path().join("p/ports/1/hw_counters/folder")).unwrap();
        // The pipe has no writer, so that opening it blocks.
        let pipe = root.path().join("p/ports/1/hw_counters/pipe");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let port = ports(root.path()).unwrap().remove(0);
        let found = port.counters(root.path());
        let expected = [
            ("\u{1b}[2J", 5),
            ("Rcvd Out of order packets", 7),
            ("np_cnp_sent", u64::MAX),
            ("port_xmit_wait", 3),
        ];
        assert_eq!(
            found,
            expected.map(|(name, value)| (name.to_owned(), value))
        );
    }
}
