//! InfiniBand management datagrams (MADs): their common header, parsed and written.
//!
//! The data after the header is handled by each class's module (`rdma_cm.rs`), the preceding BTH
//! and DETH by `bth.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | Base Version  |  Mgmt. Class  | Class Version |R|   Method    |   0
//! |            Status             |        Class Specific         |   4
//! |                      Transaction ID (64)                      |   8
//! |         Attribute ID          |           Reserved            |  16
//! |                      Attribute Modifier                       |  20
//! |                          Data (1856)                          |  24
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::mad::{BASE_VERSION, CLASS_COMMUNICATION, MAD_LEN, METHOD_SEND, Mad, MadRepr};
//!
//! let header = MadRepr {
//!     base_version: BASE_VERSION,
//!     class: CLASS_COMMUNICATION,
//!     class_version: 2,
//!     method: METHOD_SEND,
//!     status: 0,
//!     class_specific: 0,
//!     transaction_id: 7,
//!     attribute_id: 0x10,
//!     attribute_modifier: 0,
//! };
//! let bytes = header.to_bytes();
//! let mad = Mad::new_checked(&bytes)?;
//! assert!(!mad.is_whole() && mad.transaction_id() == 7);
//! assert_eq!(MadRepr::parse(&mad), header);
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::fields::{Values, values, view_fields};
use crate::layer::Layer;

/// Length of a MAD in octets: fixed, for every class (InfiniBand volume 1 section 13.4.1).
pub const MAD_LEN: usize = 256;
/// Length of the common MAD header in octets (section 13.4.2).
pub const MAD_HEADER_LEN: usize = 24;
/// Number of octets after the common header.
pub const MAD_DATA_LEN: usize = MAD_LEN - MAD_HEADER_LEN;
/// Q_Key of the general services interface (section 10.2.4).
pub const GSI_Q_KEY: u32 = 0x8001_0000;
/// Base version of every MAD of 256 octets.
pub const BASE_VERSION: u8 = 1;

/// Management class of communication management (section 13.4.4).
pub const CLASS_COMMUNICATION: u8 = 0x07;
/// Method Send (section 13.4.5): a datagram without a response defined by the class.
pub const METHOD_SEND: u8 = 0x03;

/// View of a MAD.
///
/// Accessors never panic: [`new_checked`](Self::new_checked) has verified that the header is
/// present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad<'a> {
    bytes: &'a [u8],
}

impl<'a> Mad<'a> {
    /// Returns a view of `bytes`, which begin with the MAD header; octets after the 256th do not
    /// belong to the MAD and are ignored.
    ///
    /// The data after the header may be cut by the capture: see [`is_whole`](Self::is_whole).
    ///
    /// # Errors
    /// Fails if the header is incomplete.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < MAD_HEADER_LEN {
            return Err(Error::short(Layer::Mad, MAD_HEADER_LEN, bytes.len()));
        }
        Ok(Self {
            bytes: bytes.get(..MAD_LEN).unwrap_or(bytes),
        })
    }

    /// Returns true if all 256 octets are present.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.bytes.len() == MAD_LEN
    }

    /// Returns the MAD's octets, including the header.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the octets present after the header: 232 of a complete MAD.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.bytes.get(MAD_HEADER_LEN..).unwrap_or_default()
    }
}

view_fields! {
    Mad by as_bytes,
    /// Values of a MAD header.
    MadRepr [MAD_HEADER_LEN] {
        /// Base version: 1.
        base_version: u8 = "Base Version", [(0, 0, 8)];
        /// Management class, such as [`CLASS_COMMUNICATION`].
        class: u8 = "Management Class", [(1, 0, 8)];
        /// Version of the class's formats.
        class_version: u8 = "Class Version", [(2, 0, 8)];
        /// Method with its response bit, such as [`METHOD_SEND`].
        method: u8 = "Method", [(3, 0, 8)];
        /// Status: 0 means success.
        status: u16 = "Status", [(4, 0, 16)];
        /// Two octets for use by the class.
        class_specific: u16 = "Class Specific", [(6, 0, 16)];
        /// Transaction ID.
        transaction_id: u64 = "Transaction ID", [(8, 0, 64)];
        /// Attribute ID: the message type within a class.
        attribute_id: u16 = "Attribute ID", [(16, 0, 16)];
        /// Attribute modifier.
        attribute_modifier: u32 = "Attribute Modifier", [(20, 0, 32)];
    } and {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_after_parse_gives_back_the_octets(mut bytes in proptest::array::uniform24(any::<u8>())) {
            bytes[18..20].fill(0);
            prop_assert_eq!(MadRepr::parse(&Mad::new_checked(&bytes).unwrap()).to_bytes(), bytes);
        }
    }

    #[test]
    fn fields_are_where_the_standard_draws_them() {
        let bytes: Vec<u8> = (0..=255).chain([9, 9]).collect();
        let mad = Mad::new_checked(&bytes).unwrap();
        assert_eq!(
            MadRepr::parse(&mad),
            MadRepr {
                base_version: 0,
                class: 1,
                class_version: 2,
                method: 3,
                status: 0x0405,
                class_specific: 0x0607,
                transaction_id: 0x0809_0A0B_0C0D_0E0F,
                attribute_id: 0x1011,
                attribute_modifier: 0x1415_1617,
            }
        );
        assert!(mad.is_whole());
        assert_eq!(mad.as_bytes().len(), MAD_LEN);
        assert_eq!(mad.data(), &bytes[24..256]);
    }

    #[test]
    fn every_truncation_is_said() {
        let bytes = [1; MAD_LEN];
        for len in 0..MAD_HEADER_LEN {
            assert_eq!(
                Mad::new_checked(&bytes[..len]),
                Err(Error::short(Layer::Mad, MAD_HEADER_LEN, len))
            );
        }
        for len in MAD_HEADER_LEN..MAD_LEN {
            let mad = Mad::new_checked(&bytes[..len]).unwrap();
            assert!(!mad.is_whole());
            assert_eq!(mad.data().len(), len - MAD_HEADER_LEN);
        }
    }
}
