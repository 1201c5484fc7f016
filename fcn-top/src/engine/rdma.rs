//! RDMA devices: libpcap captures on them by name if built with rdmasniff, otherwise on their
//! interfaces.

use fcn_link::interface::Interface;
use fcn_link::rdma::{CLASS, Port, keep_own_interfaces, ports};
use std::path::Path;

/// Returns the interfaces of the RDMA device with that name. With a port number appended
/// (`mlx5_0:1`, `mlx5_0/1`), returns that port's interface if it is known. `None` if there is no
/// such device, or if an interface has that name.
pub(super) fn interfaces(name: &str) -> Option<Vec<String>> {
    let found = interfaces_at(Path::new(CLASS), name, keep_own_interfaces)?;
    Interface::named(name).is_err().then_some(found)
}

fn interfaces_at(root: &Path, name: &str, keep_own: fn(&mut [Port])) -> Option<Vec<String>> {
    let mut parts = name.splitn(2, [':', '/']);
    let device = parts.next()?;
    if device.is_empty() || device.starts_with('.') {
        return None;
    }
    let number: Option<u32> = parts.next().and_then(|number| number.parse().ok());
    let folder = root.join(device);
    folder.is_dir().then(|| {
        let mut ports = ports(root).unwrap_or_default();
        ports.retain(|port| port.device == device && Some(port.number) == number);
        keep_own(&mut ports);
        if let Some(name) = ports.pop().and_then(|port| port.interface) {
            return vec![name];
        }
        let entries = std::fs::read_dir(folder.join("device/net"));
        let entries = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    })
}

/// Returns advice if libpcap cannot capture on an RDMA device with those interfaces, for the reason
/// `why`.
pub(super) fn advice(interfaces: &[String], why: &str) -> String {
    let first = interfaces.first();
    let instead = match first {
        None => "it has no interface either: use a libpcap with rdmasniff, or capture on a switch's mirror".to_owned(),
        Some(first) => format!(
            "capture on its interface instead: -i {}; the device's own traffic is captured there only if its driver \
             passes it on (mlx5: ethtool --set-priv-flags {first} sniffer on), else on a switch's mirror",
            interfaces.join(" -i ")
        ),
    };
    format!(
        "it is an RDMA device, on which libpcap captures only if built with rdmasniff (tcpdump -D then lists it): {why}\n{instead}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_device_is_found_with_its_interfaces() {
        let root = tempfile::tempdir().unwrap();
        for name in ["eth3", "eth2"] {
            fs::create_dir_all(root.path().join("mlx5_0/device/net").join(name)).unwrap();
        }
        fs::create_dir(root.path().join("mlx5_1")).unwrap();
        let gid = root.path().join("mlx5_0/ports/2/gid_attrs");
        for (file, text) in [("types/0", "RoCE v2"), ("ndevs/0", "eth3")] {
            fs::create_dir_all(gid.join(file).parent().unwrap()).unwrap();
            fs::write(gid.join(file), text).unwrap();
        }
        let of = |name| interfaces_at(root.path(), name, |_| ());
        let both = vec!["eth2".to_owned(), "eth3".to_owned()];
        assert_eq!(of("mlx5_0"), Some(both.clone()));
        for name in ["mlx5_0:2", "mlx5_0/2"] {
            assert_eq!(of(name), Some(vec!["eth3".to_owned()]), "{name}");
        }
        // The port's interface is unknown, there is no such port, or it is not a port.
        for name in ["mlx5_0:1", "mlx5_0/3", "mlx5_0/device"] {
            assert_eq!(of(name), Some(both.clone()), "{name}");
        }
        let elsewhere =
            |ports: &mut [Port]| ports.iter_mut().for_each(|port| port.interface = None);
        assert_eq!(
            interfaces_at(root.path(), "mlx5_0/2", elsewhere),
            Some(both.clone())
        );
        assert_eq!(of("mlx5_1"), Some(vec![]));
        for none in ["mlx5_2", "mlx5_2/1", "", ":1", ".", "..", "../mlx5_0", "/"] {
            assert_eq!(of(none), None, "{none}");
        }
        let said = advice(&both, "No such device exists");
        for part in [
            "rdmasniff (tcpdump -D then lists it): No such device exists\n",
            "capture on its interface instead: -i eth2 -i eth3;",
            "ethtool --set-priv-flags eth2 sniffer on",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert!(advice(&[], "why").contains("why\nit has no interface either"));
    }
}
