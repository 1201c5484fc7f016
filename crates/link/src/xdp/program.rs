//! The XDP program, and attaching it. It redirects a queue's frames to the AF_XDP socket of that
//! queue, if there is one, and passes all others on. Several drivers send nothing from AF_XDP
//! sockets before some program is attached.
//!
//! The kernel removes the program when its descriptor is closed, however the process ends.

use super::socket::{Step, XdpError};
use super::sys::bpf;
use serde::Serialize;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The position at which the XDP program processes frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramMode {
    /// In the driver.
    Driver,
    /// In the kernel's generic code after the driver.
    Generic,
}

impl fmt::Display for ProgramMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Driver => "driver",
            Self::Generic => "generic",
        })
    }
}

const GENERIC: u32 = 1 << 1;
const DRIVER: u32 = 1 << 2;

/// The program, attached to an interface until this value is dropped.
#[derive(Debug)]
pub struct Program {
    _link: OwnedFd,
    sockets: OwnedFd,
    mode: ProgramMode,
    why_not_driver: Option<String>,
}

impl Program {
    /// Loads the program and attaches it to the interface with index `index`, which has up to
    /// `queues` receive queues.
    ///
    /// # Errors
    /// Permissions are missing, another program is attached, or the kernel is older than Linux 5.9.
    pub fn attach(interface: &str, index: u32, queues: u32) -> Result<Self, XdpError> {
        let fail = |step| {
            move |error| XdpError {
                interface: interface.to_owned(),
                queue: 0,
                step,
                error,
            }
        };
        let sockets = bpf::socket_map(queues.max(1)).map_err(fail(Step::LoadProgram))?;
        let instructions = instructions(sockets.as_fd());
        // Without this flag a program cannot be attached if frames are longer than a page; kernels
        // before Linux 5.18 do not support it.
        let program = bpf::load(&instructions, true)
            .or_else(|_| bpf::load(&instructions, false))
            .map_err(fail(Step::LoadProgram))?;
        let (link, mode, why_not_driver) = match bpf::attach(program.as_fd(), index, DRIVER) {
            Ok(link) => (link, ProgramMode::Driver, None),
            // Another program is attached: generic mode would only report that less clearly.
            Err(error) if taken(&error) => return Err(fail(Step::AttachProgram)(error)),
            Err(error) => {
                let link = bpf::attach(program.as_fd(), index, GENERIC)
                    .map_err(fail(Step::AttachProgram))?;
                let why = format!("driver mode: {error}");
                (link, ProgramMode::Generic, Some(why))
            }
        };
        Ok(Self {
            _link: link,
            sockets,
            mode,
            why_not_driver,
        })
    }

    /// Returns the position at which the program processes frames.
    #[must_use]
    pub const fn mode(&self) -> ProgramMode {
        self.mode
    }

    /// Returns the reason why that is not the driver.
    #[must_use]
    pub fn why_not_driver(&self) -> Option<&str> {
        self.why_not_driver.as_deref()
    }

    /// Redirects frames of `queue` to `socket` from now on.
    pub(super) fn give(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        bpf::put_socket(self.sockets.as_fd(), queue, socket)
    }
}

fn taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// Verdict that passes a frame on.
const XDP_PASS: u64 = 2;
/// Number of the helper `bpf_redirect_map`.
const REDIRECT_MAP: u64 = 51;
/// Offset of `rx_queue_index` in `struct xdp_md`.
const RX_QUEUE_INDEX: u64 = 16;

/// Encodes an instruction: operation, destination and source registers, offset, immediate value.
const fn instruction(
    operation: u64,
    destination: u64,
    source: u64,
    offset: u64,
    value: u64,
) -> u64 {
    operation | destination << 8 | source << 12 | offset << 16 | (value & 0xFFFF_FFFF) << 32
}

/// Returns the program `return bpf_redirect_map(sockets, context->rx_queue_index, XDP_PASS)`.
fn instructions(sockets: BorrowedFd<'_>) -> [u64; 6] {
    const LOAD_WORD: u64 = 0x61;
    const LOAD_DOUBLE: u64 = 0x18;
    const MAP: u64 = 1;
    const MOVE: u64 = 0xB7;
    const CALL: u64 = 0x85;
    const EXIT: u64 = 0x95;
    [
        instruction(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
        instruction(LOAD_DOUBLE, 1, MAP, 0, sockets.as_raw_fd() as u64),
        0,
        instruction(MOVE, 3, 0, 0, XDP_PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}
