//! The main loop on a simulated wire, with a clock that advances when waited for.

use super::*;
use crate::scenario::model::{NodeId, Simulation};
use crate::scenario::{Play, Source, load};
use crate::sim::live::LiveNode;
use fcn_wire::{Frame, LinkType, Message, Profile};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A shared clock.
#[derive(Clone, Default)]
struct Hands(Rc<Cell<u64>>);

impl Clock for Hands {
    fn now(&mut self) -> u64 {
        self.0.get()
    }

    fn wait_until(&mut self, at: u64, _: &AtomicBool) -> u64 {
        self.0.set(self.0.get().max(at));
        self.0.get()
    }
}

/// Frames to receive, or frames sent: time, link and octets.
type Frames = VecDeque<(u64, usize, Vec<u8>)>;

struct Fake {
    hands: Hands,
    links: usize,
    coming: Frames,
    left: Rc<RefCell<Frames>>,
    /// Oversleep of each wait, in nanoseconds.
    oversleeps: u64,
    takes: usize,
    fails_at: u64,
}

impl Fake {
    fn new(links: usize, coming: Frames) -> Self {
        Self {
            hands: Hands::default(),
            links,
            coming,
            left: Rc::default(),
            oversleeps: 0,
            takes: usize::MAX,
            fails_at: u64::MAX,
        }
    }
}

impl Wire for Fake {
    fn links(&self) -> usize {
        self.links
    }

    fn receive(&mut self, link: usize, take: &mut dyn FnMut(&[u8])) -> Result<usize, String> {
        let now = self.hands.0.get();
        if now >= self.fails_at {
            return Err("the cable is out".to_owned());
        }
        let mut count = 0;
        while let Some((_, _, frame)) = self
            .coming
            .pop_front_if(|(at, by, _)| *at <= now && *by == link)
        {
            take(&frame);
            count += 1;
        }
        Ok(count)
    }

    fn send(&mut self, link: usize, header: &[u8], rest: &[u8]) -> Result<bool, String> {
        let frame = [header, rest].concat();
        if frame.len() > self.takes {
            return Ok(false);
        }
        let now = self.hands.0.get();
        self.left.borrow_mut().push_back((now, link, frame));
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn wait(&mut self, for_: Duration) -> Result<(), String> {
        let now = self.hands.0.get();
        let next = self.coming.front().map_or(u64::MAX, |next| next.0);
        let until = (now + for_.as_nanos() as u64).min(next.max(now));
        self.hands.0.set(until + self.oversleeps);
        Ok(())
    }

    fn tend(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn is_away(&self, _: usize) -> bool {
        false
    }
}

fn link(sets: &[&str]) -> Simulation {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let source = Source::Text {
        name: "link.toml".to_owned(),
        text: include_str!("../../device/link.toml").to_owned(),
    };
    match load(&source, &sets).unwrap().play {
        Play::Simulation(simulation) => *simulation,
        Play::Gallery(_) | Play::Stress(_) => panic!("not a simulation"),
    }
}

fn node(simulation: &Simulation, name: &str) -> NodeId {
    let mut nodes = simulation.nodes.iter();
    nodes.position(|node| node.name.starts_with(name)).unwrap()
}

/// Runs a node of `simulation`; returns the frames sent, the reason for the end, and the
/// measurements.
fn run(
    simulation: &Simulation,
    name: &str,
    mut fake: Fake,
    (for_, speed): (Duration, f64),
) -> (Frames, RunEnd, Measured) {
    let index = node(simulation, name);
    let macs = vec![[2, 0, 0, 0, 0, 9]; fake.links];
    let live = LiveNode::new(simulation, index, macs, None);
    let (left, mut hands) = (Rc::clone(&fake.left), fake.hands.clone());
    let drive = Drive::new(&mut fake, &mut hands, live, speed);
    let stop = AtomicBool::new(false);
    let (ended, _, measured) = drive.run(Some(for_), false, &stop, &mut |_, _, _| ());
    (left.take(), ended, measured)
}

/// Returns the frames that a sender without a receiver sends, at line rate: data of flows without
/// RDMA CM.
fn data(simulation: &Simulation, for_: Duration) -> Frames {
    let wire = Fake::new(1, Frames::new());
    let (left, ..) = run(simulation, "sender", wire, (for_, 1.0));
    until(left, for_)
}

/// Returns the frames sent within that time: afterwards a sender tries to close its connections.
fn until(mut frames: Frames, for_: Duration) -> Frames {
    frames.retain(|(at, ..)| *at < for_.as_nanos() as u64);
    frames
}

const MILLISECOND: Duration = Duration::from_millis(1);
/// Without RDMA CM a sender begins at once; a wide window lets it continue without
/// acknowledgements.
const UNHEARD: &[&str] = &[
    "flow.load.rdma_cm=false",
    "flow.load.window=10000",
    "queue=1MB",
];

fn kind(frame: &[u8]) -> Option<Kind> {
    let frame = Frame::parse(frame, frame.len(), LinkType::Ethernet, &Profile::DEFAULT);
    Some(fcn_wire::Notification::from_frame(&frame)?.kind)
}

#[test]
fn sender_keeps_its_rate_despite_late_wakeups() {
    let simulation = link(UNHEARD);
    let wire = |frame: &[u8]| (frame.len() + 24) as f64 * 8.0;
    for (oversleeps, speed) in [(0, 1.0), (70_000, 1.0), (0, 0.01)] {
        let mut fake = Fake::new(1, Frames::new());
        fake.oversleeps = oversleeps;
        let for_ = MILLISECOND * 20;
        let (left, ended, measured) = run(&simulation, "sender", fake, (for_, speed));
        assert_eq!(ended, RunEnd::TimeUp);
        assert_eq!(measured.traffic[0].sent, left.len() as u64);
        let left = until(left, for_);
        let bits: f64 = left.iter().map(|(.., frame)| wire(frame)).sum();
        // 1 Gbit/s, times the speed; it begins slightly later.
        let expected = for_.as_secs_f64() * 1e9 * speed;
        let share = bits / expected;
        assert!((0.95..=1.0).contains(&share), "{bits} of {expected}");
        if oversleeps == 0 {
            assert!(measured.late.max() <= 1, "{}", measured.late.max());
        } else {
            let most = measured.late.max();
            assert!((oversleeps / 2..2 * oversleeps).contains(&most), "{most}");
        }
    }
}

#[test]
fn switch_is_a_bump_in_the_wire_that_notifies_the_sender() {
    let mut simulation = link(UNHEARD);
    let coming = data(&simulation, MILLISECOND * 4);
    let sent = coming.len();
    let switch = node(&simulation, "switch");
    for enabled in [true, false] {
        if !enabled {
            let off = crate::device::Enabled::default().restrict(&mut simulation.nodes[switch]);
            assert_eq!(off.len(), 1);
        }
        let fake = Fake::new(2, coming.clone());
        let for_ = MILLISECOND * 40;
        let (left, _, measured) = run(&simulation, "switch", fake, (for_, 1.0));
        let (back, on): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, link, _)| *link == 0);
        // All of it, in order, at a fifth of the rate.
        assert_eq!(on.len(), sent);
        let mut marked = 0;
        for ((.., came), (.., went)) in coming.iter().zip(&on) {
            let frame = |bytes: &'_ [u8]| {
                let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
                let Message::Roce(bth, _) = frame.message() else {
                    panic!("not data");
                };
                (frame.ip().unwrap().ecn(), bth.dest_qp(), bth.psn())
            };
            let ((_, qp, psn), (ecn, qp_after, psn_after)) = (frame(came), frame(went));
            assert_eq!((qp, psn), (qp_after, psn_after));
            marked += usize::from(ecn == 3);
            let mut unmarked = went.clone();
            unmarked[15] = came[15];
            assert_eq!(unmarked, *came, "but for the mark");
        }
        let lasted = on.last().unwrap().0 - on[0].0;
        let expected = coming.back().unwrap().0 * 5;
        assert!(lasted.abs_diff(expected) < expected / 50, "{lasted}");
        let kinds: Vec<_> = back.iter().map(|(.., frame)| kind(frame)).collect();
        assert!(kinds.iter().all(|kind| *kind == Some(Kind::FastCnp1)));
        // The sender is configured as able to handle them: it is notified if possible, and
        // otherwise packets are marked.
        assert_eq!((kinds.is_empty(), marked == 0), (!enabled, enabled));
        let reactions = measured.reactions.get(&Kind::FastCnp1);
        assert_eq!(reactions.map_or(0, Histogram::len), kinds.len() as u64);
        for (.., frame) in &back {
            assert_eq!(frame[..6], coming[0].2[6..12], "to whom the data came from");
            assert_eq!(frame[6..12], [2, 0, 0, 0, 0, 9]);
        }
    }
}

/// On a trunk, a switch and a receiver answer in the VLAN and with the priority of the data.
#[test]
fn tagged_data_is_answered_with_its_tag() {
    let simulation = link(UNHEARD);
    let tags = [0x88, 0xA8, 0, 7, 0x81, 0, 0x60, 5];
    for tags in [&tags[4..], &tags] {
        let mut coming = data(&simulation, MILLISECOND * 4);
        for (.., frame) in &mut coming {
            frame.splice(12..12, tags.iter().copied());
        }
        for (device, links) in [("switch", 2), ("receiver", 1)] {
            let fake = Fake::new(links, coming.clone());
            let for_ = MILLISECOND * 40;
            let (left, _, measured) = run(&simulation, device, fake, (for_, 1.0));
            let answers = left.iter().filter(|(_, link, _)| *link == 0);
            let answers: Vec<_> = answers.map(|(.., frame)| frame).collect();
            assert!(answers.len() > 5, "{device}");
            assert!(
                left.iter()
                    .all(|(.., frame)| frame[12..12 + tags.len()] == *tags)
            );
            if device == "switch" {
                assert!(
                    answers
                        .iter()
                        .all(|frame| kind(frame) == Some(Kind::FastCnp1))
                );
                assert_eq!(left.len() - answers.len(), coming.len());
                assert_eq!(measured.traffic[0].sent, answers.len() as u64);
            }
        }
    }
}

#[test]
fn non_roce_frames_are_flooded_unchanged() {
    let simulation = link(&["senders=2"]);
    let arp = [&[0xFF; 6][..], &[2; 6], &[8, 6], &[7; 46]].concat();
    let short = vec![1; 10];
    let coming = [(10, 0, arp.clone()), (20, 1, short), (30, 2, arp.clone())];
    let fake = Fake::new(3, coming.into_iter().collect());
    let (left, _, measured) = run(&simulation, "switch", fake, (MILLISECOND, 1.0));
    let mut to: Vec<_> = left.iter().map(|(_, link, _)| *link).collect();
    to.sort_unstable();
    assert_eq!(to, [0, 1, 1, 2]);
    assert!(left.iter().all(|(.., frame)| *frame == arp));
    assert_eq!(measured.traffic[1].received, 1);
}

#[test]
fn refusals_and_failures_of_links_are_reported() {
    let simulation = link(UNHEARD);
    let mut fake = Fake::new(1, Frames::new());
    fake.takes = 500;
    let (left, ended, measured) = run(&simulation, "sender", fake, (MILLISECOND, 1.0));
    assert_eq!((left.len(), ended), (0, RunEnd::TimeUp));
    assert!(measured.traffic[0].refused > 50);
    let mut fake = Fake::new(1, Frames::new());
    fake.fails_at = 500_000;
    let (.., ended, _) = run(&simulation, "sender", fake, (MILLISECOND, 1.0));
    assert_eq!(ended, RunEnd::Failed("the cable is out".to_owned()));
}

#[test]
fn stop_ends_the_run() {
    let simulation = link(&[]);
    let mut fake = Fake::new(1, Frames::new());
    let live = LiveNode::new(&simulation, node(&simulation, "sender"), vec![[2; 6]], None);
    let mut hands = fake.hands.clone();
    let drive = Drive::new(&mut fake, &mut hands, live, 1.0);
    let stop = AtomicBool::new(true);
    let (ended, _, measured) = drive.run(None, true, &stop, &mut |_, _, _| ());
    assert_eq!(ended, RunEnd::Interrupted);
    assert!(measured.ran < 1_000_000);
}
