//! Where there is no libpcap: every packet passes.

/// Packet filter options: none.
#[derive(Clone, Debug, Default)]
pub struct PacketFilter;

/// A compiled expression: there are none.
pub enum BpfProgram {}

impl BpfProgram {
    /// Returns true if the packet passes.
    pub const fn filter(&self, _: &[u8]) -> bool {
        match *self {}
    }
}

impl PacketFilter {
    /// Compiles the expression for packets of a file: there is none.
    ///
    /// # Errors
    ///
    /// None.
    pub const fn for_file(&self, _: u32) -> Result<Option<BpfProgram>, String> {
        Ok(None)
    }
}
