//! Names of addresses: host names from reverse lookups in the background, and pseudonyms that hide
//! addresses.

use fcn_tool::clean::clean;
use lru::LruCache;
use parking_lot::Mutex;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Pseudonyms of addresses, stable for the lifetime of this value: one per address, from a keyed
/// hash with a new key for each run. Two addresses collide with a probability of 1 in 4 thousand
/// million.
#[derive(Clone, Debug, Default)]
pub struct Pseudonyms {
    key: RandomState,
}

impl Pseudonyms {
    /// Returns the pseudonym of an address: `host-1a2b3c4d`.
    pub fn pseudonym(&self, address: IpAddr) -> String {
        // Both halves of the hash are equally good.
        format!("host-{:08x}", self.key.hash_one(address) as u32)
    }

    /// Returns a text with every address in it replaced, including Ethernet addresses.
    pub fn within(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some((len, mask)) = self.beginning(rest) {
                out.push_str(&mask);
                rest = rest.get(len..).unwrap_or_default();
            } else {
                out.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
        out
    }

    /// Returns the length of the longest address that `text` starts with, and its replacement.
    fn beginning(&self, text: &str) -> Option<(usize, String)> {
        // `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`
        const LONGEST: usize = 45;
        let run = text
            .bytes()
            .take(LONGEST)
            .take_while(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.' | b'-'))
            .count();
        (2..=run).rev().find_map(|len| {
            let part = text.get(..len)?;
            let mask = match part.parse::<IpAddr>() {
                Ok(address) => self.pseudonym(address),
                Err(_) if is_ethernet(part) => {
                    format!(
                        "mac-{:08x}",
                        self.key.hash_one(part.to_lowercase().replace('-', ":")) as u32
                    )
                }
                Err(_) => return None,
            };
            Some((len, mask))
        })
    }
}

fn is_ethernet(text: &str) -> bool {
    text.len() == 17
        && text.bytes().enumerate().all(|(i, b)| match i % 3 {
            2 => matches!(b, b':' | b'-'),
            _ => b.is_ascii_hexdigit(),
        })
}

/// Maximum number of cached names, by most recent use.
const KEPT: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();

/// Maximum number of queued lookups; others are requested again when their address is drawn again.
const WAITING: usize = 256;

/// Polling interval while waiting for names.
const LOOK: Duration = Duration::from_millis(2);

/// Maximum length of a DNS name.
const LONGEST_NAME: usize = 253;

/// The name of an address.
type Lookup = Option<Arc<str>>;

/// Names from reverse lookups, one at a time in a separate thread. Queries never block; an answer
/// is cached until many others have been requested.
pub struct Names {
    known: Arc<Mutex<Known>>,
    wanted: SyncSender<IpAddr>,
    /// Number of lookups queued or in progress.
    open: Arc<AtomicUsize>,
}

/// Lookup results; `None` if an address has no name, or none yet.
type Known = LruCache<IpAddr, Lookup>;

impl Names {
    /// Uses the system's resolver.
    #[cfg(feature = "program")]
    pub fn from_resolver() -> Self {
        Self::from_lookup(|address| dns_lookup::lookup_addr(address).ok())
    }

    /// Uses another lookup function.
    pub fn from_lookup(lookup: impl Fn(&IpAddr) -> Option<String> + Send + 'static) -> Self {
        let known = Arc::new(Mutex::new(Known::new(KEPT)));
        let (wanted, requests) = sync_channel(WAITING);
        let open = Arc::new(AtomicUsize::new(0));
        let (answers, answered) = (Arc::clone(&known), Arc::clone(&open));
        // Without the thread nothing gets a name. It is never joined: a lookup can take long.
        let _ = thread::Builder::new()
            .name("names".to_owned())
            .spawn(move || answer(&requests, (&answers, &answered), lookup));
        Self {
            known,
            wanted,
            open,
        }
    }

    /// Returns the name of an address if it has been looked up; otherwise requests a lookup.
    pub fn get(&self, address: IpAddr) -> Option<Arc<str>> {
        let mut known = self.known.lock();
        if let Some(found) = known.get(&address) {
            return found.clone();
        }
        self.open.fetch_add(1, Ordering::AcqRel);
        match self.wanted.try_send(address) {
            Ok(()) => {
                known.put(address, None);
            }
            Err(_) => {
                self.open.fetch_sub(1, Ordering::AcqRel);
            }
        }
        None
    }

    /// Requests the names of these addresses and waits at most `most` for the answers. Returns true
    /// if all have arrived.
    pub fn wait(&self, addresses: impl IntoIterator<Item = IpAddr>, most: Duration) -> bool {
        let until = Instant::now() + most;
        let is_late = || Instant::now() >= until;
        for address in addresses {
            while self.known.lock().peek(&address).is_none() && self.get(address).is_none() {
                // It was requested, or has to wait for room in the queue.
                if self.known.lock().peek(&address).is_some() {
                    break;
                }
                if is_late() {
                    return false;
                }
                thread::sleep(LOOK);
            }
        }
        while self.open.load(Ordering::Acquire) > 0 {
            if is_late() {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

fn answer(
    requests: &Receiver<IpAddr>,
    (answers, open): (&Mutex<Known>, &AtomicUsize),
    lookup: impl Fn(&IpAddr) -> Option<String>,
) {
    for address in requests {
        // Anyone may answer for an address: the name is untrusted text from the network.
        let name = lookup(&address)
            .filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME)
            .map(|name| Arc::from(&*clean(&name)));
        answers.lock().put(address, name);
        open.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;
    use std::sync::mpsc::channel;

    const EXAMPLE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

    #[test]
    fn a_pseudonym_is_the_same_within_a_run_only() {
        let (one, other) = (Pseudonyms::default(), Pseudonyms::default());
        assert_eq!(one.pseudonym(EXAMPLE), one.clone().pseudonym(EXAMPLE));
        assert_ne!(
            one.pseudonym(EXAMPLE),
            one.pseudonym("192.0.2.8".parse().unwrap())
        );
        // Each collides with a probability of 1 in 2^32.
        let different = (0..4).any(|i| {
            let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, i));
            one.pseudonym(address) != other.pseudonym(address)
        });
        assert!(different);
    }

    #[test]
    fn addresses_are_found_in_texts() {
        let pseudonyms = Pseudonyms::default();
        let v4 = pseudonyms.pseudonym(EXAMPLE);
        let v6 = pseudonyms.pseudonym("2001:db8::7".parse().unwrap());
        for (text, expected) in [
            ("192.0.2.7", v4.clone()),
            ("from 192.0.2.7.", format!("from {v4}.")),
            ("192.0.2.7:4791", format!("{v4}:4791")),
            ("x192.0.2.7,192.0.2.7/24", format!("x{v4},{v4}/24")),
            (
                "[2001:db8::7]:80 → 2001:DB8:0::7;",
                format!("[{v6}]:80 → {v6};"),
            ),
            ("at 2001:db8::7: gone", format!("at {v6}: gone")),
            ("a192.0.2.7", format!("a{v4}")),
            ("08:15:03.25, 3.5 %, é", "08:15:03.25, 3.5 %, é".to_owned()),
        ] {
            assert_eq!(pseudonyms.within(text), expected, "{text}");
        }
        let masked = pseudonyms.within("frame of 02:00:00:00:00:aB or 02-00-00-00-00-Ab");
        let (one, other) = masked.split_once(" or ").unwrap();
        assert_eq!(one, format!("frame of {other}"));
        assert!(other.starts_with("mac-") && other.len() == 12, "{masked}");
    }

    #[test]
    fn names_appear_when_resolved() {
        let (go, wait) = channel::<()>();
        let names = Names::from_lookup(move |address| {
            let _ = wait.recv();
            (*address == EXAMPLE).then(|| "host\x1b[1m.example".to_owned())
        });
        let other = "192.0.2.8".parse().unwrap();
        assert_eq!(names.get(EXAMPLE), None);
        assert_eq!(names.get(EXAMPLE), None);
        assert_eq!(names.get(other), None);
        go.send(()).unwrap();
        go.send(()).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while names.get(EXAMPLE).is_none() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(
            names.get(EXAMPLE).as_deref(),
            Some("host\u{fffd}[1m.example")
        );
        assert_eq!(names.get(other), None);
    }

    #[test]
    fn waiting_returns_names_or_reports_missing_ones() {
        let address = |number| IpAddr::V4(Ipv4Addr::from_bits(number));
        let names = Names::from_lookup(|address| Some(format!("at-{address}")));
        // More than the queue holds.
        let many = 0..3 * WAITING as u32;
        assert!(names.wait(many.clone().map(address), Duration::from_secs(60)));
        for number in many {
            let name = format!("at-{}", address(number));
            assert_eq!(names.get(address(number)).as_deref(), Some(&*name));
        }
        let (go, wait) = channel::<()>();
        let names = Names::from_lookup(move |_| wait.recv().ok().map(|()| "late".to_owned()));
        assert!(!names.wait([EXAMPLE], Duration::from_millis(5)));
        go.send(()).unwrap();
        assert!(names.wait([EXAMPLE], Duration::from_secs(60)));
        assert_eq!(names.get(EXAMPLE).as_deref(), Some("late"));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let names = Names::from_lookup(|_| None);
        let kept = |number| {
            let address = IpAddr::V4(Ipv4Addr::from_bits(number));
            names.known.lock().get(&address).is_some()
        };
        for i in 0..5 * KEPT.get() as u32 {
            let address = IpAddr::V4(Ipv4Addr::from_bits(i));
            names.known.lock().put(address, None);
            // Requested all the time.
            assert!(i < 7 || kept(7));
        }
        assert_eq!(names.known.lock().len(), KEPT.get());
        assert!(!kept(8));
    }

    proptest! {
        #[test]
        fn texts_are_masked_completely(address in any::<IpAddr>(), before in "[ -~]{0,8}", behind in "\\PC{0,8}") {
            let pseudonyms = Pseudonyms::default();
            let text = format!("{before} {address} {behind}");
            let masked = pseudonyms.within(&text);
            // Short ones such as `::` occur in any text.
            if address.to_string().len() > 6 {
                prop_assert!(!masked.contains(&address.to_string()), "{} -> {}", text, masked);
            }
        }
    }
}
