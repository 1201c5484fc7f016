//! Properties of an interface that only sysfs provides: driver, queues in use, speed.

use super::link::Link;
use std::fs;
use std::path::Path;

/// Properties from sysfs, each `None` if unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) driver: Option<String>,
    pub(super) tx_queues: Option<u32>,
    pub(super) rx_queues: Option<u32>,
    /// Link speed in Mbit/s.
    pub(super) speed: Option<u32>,
}

impl Attributes {
    pub(super) fn read(link: &Link) -> Self {
        // The name is safe as a path component: it comes from the kernel, which refuses "..", and
        // '/'.
        Self::read_at(Path::new("/sys/class/net"), link)
    }

    fn read_at(root: &Path, link: &Link) -> Self {
        let folder = root.join(&link.name);
        // A sysfs shows the namespace in which it was mounted, which may differ from that of this
        // thread.
        let index = text(&folder.join("ifindex")).and_then(|text| text.parse().ok());
        if index != Some(link.index) || !same_address(&folder, link.mac) {
            return Self::default();
        }
        let driver = fs::read_link(folder.join("device/driver")).ok();
        Self {
            driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
            tx_queues: queues(&folder, "tx-"),
            rx_queues: queues(&folder, "rx-"),
            speed: text(&folder.join("speed")).and_then(|text| speed(&text)),
        }
    }
}

fn same_address(folder: &Path, mac: Option<[u8; 6]>) -> bool {
    let Some(mac) = mac else { return true };
    let Some(text) = text(&folder.join("address")) else {
        return false;
    };
    text.split(':')
        .map(|octet| u8::from_str_radix(octet, 16).ok())
        .eq(mac.map(Some))
}

fn queues(folder: &Path, prefix: &str) -> Option<u32> {
    let entries = fs::read_dir(folder.join("queues")).ok()?;
    let count = entries
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(prefix.as_bytes())
        })
        .count();
    u32::try_from(count).ok().filter(|count| *count > 0)
}

/// Parses the speed. Drivers report -1, or 2^32 - 1, for "unknown", and 0 for "none".
fn speed(text: &str) -> Option<u32> {
    let speed = text.parse().ok()?;
    (speed != 0 && speed != u32::MAX).then_some(speed)
}

fn text(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_route::link::LinkAttribute;
    use std::os::unix::fs::symlink;

    #[test]
    fn speeds() {
        for (text, expected) in [
            ("100000", Some(100_000)),
            ("-1", None),
            ("4294967295", None),
            ("0", None),
            ("", None),
        ] {
            assert_eq!(speed(text), expected, "{text}");
        }
    }

    #[test]
    fn facts_of_the_right_namespace_only() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("p1");
        for queue in ["tx-0", "tx-1", "rx-0"] {
            fs::create_dir_all(folder.join("queues").join(queue)).unwrap();
        }
        fs::create_dir_all(folder.join("device")).unwrap();
        symlink("../../../bus/ice", folder.join("device/driver")).unwrap();
        for (file, text) in [
            ("ifindex", "7\n"),
            ("speed", "25000\n"),
            ("address", "02:00:00:00:00:0a\n"),
        ] {
            fs::write(folder.join(file), text).unwrap();
        }
        let link = |index, last| {
            let name = LinkAttribute::IfName("p1".into());
            let address = LinkAttribute::Address(vec![2, 0, 0, 0, 0, last]);
            super::super::link::tests::link(index, vec![name, address])
        };
        let attributes = Attributes::read_at(root.path(), &link(7, 10));
        assert_eq!(attributes.driver.as_deref(), Some("ice"));
        assert_eq!(
            (attributes.tx_queues, attributes.rx_queues),
            (Some(2), Some(1))
        );
        assert_eq!(attributes.speed, Some(25_000));
        assert_eq!(
            Attributes::read_at(root.path(), &link(8, 10)),
            Attributes::default()
        );
        assert_eq!(
            Attributes::read_at(root.path(), &link(7, 11)),
            Attributes::default()
        );
    }
}
