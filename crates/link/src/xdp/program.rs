//! The XDP program, and attaching it. It passes every frame on: several drivers send nothing from AF_XDP sockets before some
//! program is attached.
//!
//! The kernel removes it when its descriptor is closed, however the process ends.

use super::socket::{Step, XdpError};
use super::sys::bpf;
use serde::Serialize;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Where frames meet the XDP program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramMode {
    /// In the driver.
    Driver,
    /// In the kernel's generic code behind the driver.
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
    mode: ProgramMode,
    why_not_driver: Option<String>,
}

impl Program {
    /// Loads the program and attaches it to interface number `index`.
    ///
    /// # Errors
    /// Rights are missing, another program is attached, or the kernel is older than Linux 5.9.
    pub fn attach(interface: &str, index: u32) -> Result<Self, XdpError> {
        let fail = |step| {
            move |error| XdpError {
                interface: interface.to_owned(),
                queue: 0,
                step,
                error,
            }
        };
        // Without it a program cannot be attached where frames are longer than a page; before Linux 5.18 it is not known.
        let program = bpf::load(&PASS, true)
            .or_else(|_| bpf::load(&PASS, false))
            .map_err(fail(Step::LoadProgram))?;
        let (link, mode, why_not_driver) = match bpf::attach(program.as_fd(), index, DRIVER) {
            Ok(link) => (link, ProgramMode::Driver, None),
            // Something else is attached: generic mode would only say so less clearly.
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
            mode,
            why_not_driver,
        })
    }

    /// Where frames meet it.
    #[must_use]
    pub const fn mode(&self) -> ProgramMode {
        self.mode
    }

    /// Why that is not the driver.
    #[must_use]
    pub fn why_not_driver(&self) -> Option<&str> {
        self.why_not_driver.as_deref()
    }
}

fn taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// `return XDP_PASS`: an instruction is its operation, registers, offset, and from bit 32 on an immediate value.
const PASS: [u64; 2] = {
    const MOVE_TO_RESULT: u64 = 0xB7;
    const EXIT: u64 = 0x95;
    const XDP_PASS: u64 = 2;
    [MOVE_TO_RESULT | XDP_PASS << 32, EXIT]
};
