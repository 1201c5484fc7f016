//! Opens a link for sending, after safeguards: the interface is named, up, and not used by the
//! machine's own traffic.

use super::options::{Backend, LinkOptions};
use crate::failure::{Failure, Result};
use crate::quantity::bits_per_second;
use fcn_link::backend::{self, OpenError, Options, Queue, SlotCount};
use fcn_link::file_transmit::{FileTransmit, STDOUT};
use fcn_link::interface::{self, Interface};
use fcn_link::privilege::{self, Capability};
use std::fs;
use std::io::{self, IsTerminal};

/// Length of an Ethernet header with up to two VLAN tags, in octets, which the MTU does not
/// include.
const HEADER: usize = 14 + 2 * 4;

/// An open link.
pub struct Opened {
    /// Interface; none for a capture file.
    pub interface: Option<Interface>,
    /// Queues of the link.
    pub queues: Vec<Queue>,
}

impl Opened {
    /// Describes the target in a few words.
    #[must_use]
    pub fn describe(&self) -> String {
        match (&self.interface, self.queues.first()) {
            (Some(interface), _) => describe(interface),
            (None, Some(queue)) => queue.mode().target.clone(),
            (None, None) => String::new(),
        }
    }
}

/// Describes an interface by its name and properties.
fn describe(interface: &Interface) -> String {
    let mut details = vec![interface.driver().unwrap_or("unknown driver").to_owned()];
    if let Some(mac) = interface.mac() {
        details.push(mac.map(|octet| format!("{octet:02x}")).join(":"));
    }
    details.push(format!("MTU {}", interface.mtu()));
    details.push(match interface.transmit_queues() {
        1 => "1 queue".to_owned(),
        n => format!("{n} queues"),
    });
    if let Some(speed) = interface.speed() {
        details.push(bits_per_second(f64::from(speed) * 1e6));
    }
    format!("{} ({})", interface.name(), details.join(", "))
}

/// Returns the maximum length of a frame on `interface`, in octets without FCS. The MTU does not
/// include up to two VLAN tags.
#[must_use]
pub fn longest_frame(interface: &Interface) -> usize {
    interface.mtu() as usize + HEADER
}

/// Opens the target of `options`, with room for `slots` frames of up to `longest` octets on each
/// queue. Defaults are a suitable number, and the length permitted by the interface's MTU.
/// `program` is the tool's name.
///
/// # Errors
/// There is no such interface, sending on it is refused, permissions are missing, or the file
/// cannot be written.
pub fn open(
    options: &LinkOptions,
    slots: Option<SlotCount>,
    longest: Option<usize>,
    program: &str,
) -> Result<Opened> {
    let slots = slots.unwrap_or_default();
    let Some(name) = &options.iface else {
        return to_file(options, slots, longest, program);
    };
    let interface = Interface::named(name).map_err(|error| Failure::usage(error.to_string()))?;
    interface::check_may_send(&interface, options.allow_default_route)
        .map_err(|refusal| Failure::failed(refusal.to_string()))?;
    let most = longest_frame(&interface);
    let wanted = Options {
        backend: options.backend.into(),
        queues: options.queues,
        slots,
        max_frame_len: longest.map_or(most, |longest| longest.min(most)),
    };
    match backend::open(&interface, &wanted) {
        Ok(queues) => Ok(Opened {
            interface: Some(interface),
            queues,
        }),
        Err(error) => Err(explain(&error, options.backend)),
    }
}

/// Explains the failure to open an interface. If permissions are missing, advice on how to get them
/// is more useful than the kernel's message.
#[must_use]
pub fn explain(error: &OpenError, backend: Backend) -> Failure {
    let denied = match error {
        OpenError::Queues { .. } => return Failure::usage(error.to_string()),
        OpenError::Xdp(error) => error.is_permission(),
        OpenError::PacketSocket(error) => error.is_permission(),
        _ => false,
    };
    let failure = Failure::failed(error.to_string());
    if !denied {
        return failure;
    }
    let wanted = match backend {
        Backend::Packet => Capability::AF_PACKET,
        _ => Capability::AF_XDP,
    };
    let program = std::env::current_exe().unwrap_or_default();
    match privilege::require(wanted, &program) {
        Err(missing) => failure.and(missing.to_string()),
        Ok(()) => failure,
    }
}

/// Refuses to write an endless file, which only a full disk would stop. The reader of a pipe can
/// stop it. `instead` suggests an alternative or an addition to `--forever`.
///
/// # Errors
/// `options` name a file.
pub fn refuse_endless(options: &LinkOptions, instead: &str) -> Result {
    match &options.output {
        Some(path)
            if path.as_os_str() != STDOUT
                && fs::metadata(path).map_or(true, |there| there.is_file()) =>
        {
            Err(Failure::usage("--forever")
                .and("a file written without pacing would fill the disk")
                .and(instead))
        }
        _ => Ok(()),
    }
}

fn to_file(
    options: &LinkOptions,
    slots: SlotCount,
    longest: Option<usize>,
    program: &str,
) -> Result<Opened> {
    /// Default for the maximum length: a jumbo frame.
    const LONGEST: usize = 9_000 + HEADER;
    let Some(path) = &options.output else {
        return Err(Failure::usage("nothing to send on").and("specify an interface with --iface"));
    };
    if options.queues != 1 {
        return Err(Failure::usage("--queues").and("a capture file has one queue"));
    }
    if path.as_os_str() == STDOUT && io::stdout().is_terminal() {
        return Err(Failure::usage("refusing to write a capture to a terminal")
            .and("standard output")
            .and("redirect it to a file or a program, or specify a file with -o"));
    }
    let mut file = FileTransmit::create(path, (slots.copying, longest.unwrap_or(LONGEST)), program)
        .map_err(|error| Failure::failed(error.to_string()))?;
    if options.live {
        file.set_live();
    }
    Ok(Opened {
        interface: None,
        queues: vec![Queue::File(Box::new(file))],
    })
}
