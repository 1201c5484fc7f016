//! Opens a capture file, a pipe or standard input.

use super::{Choice, FileInput, NAP, Reopen, check_link};
use fcn_link::capture_file::CaptureReader;
use fcn_tool::failure::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reads data as it arrives, until told to stop.
struct PipeReader {
    file: File,
    stops: Vec<Arc<AtomicBool>>,
}

impl Read for PipeReader {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                return Ok(0);
            }
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            let nap = Timespec {
                tv_sec: 0,
                tv_nsec: NAP.subsec_nanos().into(),
            };
            match poll(&mut fds, Some(&nap)) {
                Ok(0) | Err(Errno::INTR) => {}
                // The read reports the error, if any.
                Ok(_) | Err(_) => match self.file.read(room) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                },
            }
        }
    }
}

impl FileInput {
    /// Opens a capture; `-` is standard input. A read from a pipe is abandoned once one of `stops`
    /// is set.
    ///
    /// # Errors
    ///
    /// It cannot be read, is not a capture, or has an unsupported link type.
    pub fn open(path: &Path, choice: Choice, stops: &[Arc<AtomicBool>]) -> Result<Self, Failure> {
        let bad = || Failure::usage("cannot read the capture");
        let is_stdin = path == Path::new("-");
        let regular = !is_stdin && std::fs::metadata(path).is_ok_and(|about| about.is_file());
        let (reader, regular) = if regular {
            (CaptureReader::open(path), true)
        } else {
            let (file, name) = if is_stdin {
                let stdin = io::stdin();
                if stdin.is_terminal() {
                    return Err(bad()
                        .and("standard input is a terminal")
                        .and("pipe a capture in: tcpdump -i eth0 -U -w - | fcn-top -r -"));
                }
                let file = stdin.as_fd().try_clone_to_owned().map(File::from);
                (file, "standard input".to_owned())
            } else {
                // Opening a pipe without a writer would block uninterruptibly.
                let mut how = File::options();
                let how = how
                    .read(true)
                    .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
                (how.open(path), path.display().to_string())
            };
            let file = file.map_err(|error| bad().and(format!("{name}: {error}")))?;
            if file.metadata().is_ok_and(|about| about.is_file()) {
                (CaptureReader::from(file, &name), true)
            } else {
                let stops = stops.to_vec();
                (
                    CaptureReader::from(PipeReader { file, stops }, &name),
                    false,
                )
            }
        };
        let reader = reader.map_err(|error| {
            if stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                return Failure::interrupted("nothing was read");
            }
            bad().and(error.to_string())
        })?;
        check_link(&reader)?;
        let path = (regular && !is_stdin).then(|| path.to_path_buf());
        let again = path.map(|path| Box::new(move || CaptureReader::open(&path)) as Reopen);
        Ok(Self::new(reader, again, regular, choice, stops))
    }
}
