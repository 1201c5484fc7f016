//! Where there are no files: captures are written to writers only.

use std::convert::Infallible;
use std::io::{self, Write};
use std::path::Path;

/// No file.
#[derive(Debug)]
pub struct TemporaryOutput(Infallible);

impl TemporaryOutput {
    /// Creates nothing.
    ///
    /// # Errors
    /// Always.
    pub fn create(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) const fn name(&self) -> &Path {
        match self.0 {}
    }

    pub(crate) const fn is_special(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self.0 {}
    }
}

impl Write for TemporaryOutput {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
