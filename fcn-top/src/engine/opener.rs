//! Waits for an interface that is not up, in a separate thread, which alone keeps the privilege to
//! open it.

use super::handle::{Capturing, Handle, open};
use super::privileges;
use fcn_link::interface::Interface;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// Interval of attempts.
const RETRYING: Duration = Duration::from_millis(100);

/// A thread that waits for an interface to be up, and opens it.
pub struct Opener {
    go: SyncSender<()>,
    gone_on: Receiver<Result<(), String>>,
    handle: Receiver<Result<Handle, String>>,
    /// Dropped when no one waits any longer.
    _wanted: Arc<()>,
}

impl Opener {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// It could not keep the privilege to open the interface.
    pub fn start(name: &str, how: &Capturing) -> Result<Self, String> {
        let (name, how) = (name.to_owned(), how.clone());
        let wanted = Arc::new(());
        let still = Arc::downgrade(&wanted);
        let (go, may_go) = sync_channel(1);
        let (gone, gone_on) = sync_channel(2);
        let (opened, handle) = sync_channel(1);
        thread::spawn(move || {
            let ready = privileges::keep_capabilities();
            if gone.send(ready).is_err() || may_go.recv().is_err() {
                return;
            }
            let _ = gone.send(privileges::keep_sockets());
            if let Some(handle) = open_once_up(&name, &how, &still) {
                let _ = opened.send(handle);
            }
        });
        let opener = Self {
            go,
            gone_on,
            handle,
            _wanted: wanted,
        };
        opener.step()?;
        Ok(opener)
    }

    /// Called after privileges were dropped elsewhere: makes the thread drop all but those it
    /// needs, and begin.
    ///
    /// # Errors
    ///
    /// It could not drop them.
    pub fn begin(&self) -> Result<(), String> {
        let _ = self.go.send(());
        self.step()
    }

    /// Returns the result of the thread's next step.
    fn step(&self) -> Result<(), String> {
        self.gone_on
            .recv()
            .unwrap_or_else(|_| Err("the thread that opens interfaces ended".to_owned()))
    }

    /// Returns the handle, or why there will be none; `None` if it is not open yet.
    pub fn opened(&self) -> Option<Result<Handle, String>> {
        match self.handle.try_recv() {
            Ok(opened) => Some(opened),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                Some(Err("the thread that opens interfaces ended".to_owned()))
            }
        }
    }
}

fn open_once_up(name: &str, how: &Capturing, still: &Weak<()>) -> Option<Result<Handle, String>> {
    while still.strong_count() > 0 {
        thread::sleep(RETRYING);
        if !Interface::named(name).is_ok_and(|interface| interface.is_up()) {
            continue;
        }
        let opened = open(name, how);
        let up = Interface::named(name).is_ok_and(|interface| interface.is_up());
        // It may have gone down again in the meantime.
        if opened.is_ok() || up {
            return Some(opened);
        }
    }
    None
}
