//! InfiniBand management datagrams (MADs): their common header, read and written.
//!
//! What the data behind the header says lives with each class (`rdma_cm.rs`); the BTH and DETH before it in `bth.rs`.
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
use crate::fields::{Values, described, values};
use crate::layer::Layer;

/// Octets of a MAD: a fixed size, whatever the class (InfiniBand volume 1 section 13.4.1).
pub const MAD_LEN: usize = 256;
/// Octets of the common MAD header (section 13.4.2).
pub const MAD_HEADER_LEN: usize = 24;
/// Octets behind the common header.
pub const MAD_DATA_LEN: usize = MAD_LEN - MAD_HEADER_LEN;
/// The Q_Key of the general services interface (section 10.2.4).
pub const GSI_Q_KEY: u32 = 0x8001_0000;
/// Base version of every MAD of 256 octets.
pub const BASE_VERSION: u8 = 1;

/// Management class of communication management (section 13.4.4).
pub const CLASS_COMMUNICATION: u8 = 0x07;
/// Method Send (section 13.4.5): a datagram that needs no response of the class's own.
pub const METHOD_SEND: u8 = 0x03;

/// View of a MAD.
///
/// Accessors never panic: [`new_checked`](Self::new_checked) has checked that the header is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mad<'a> {
    bytes: &'a [u8],
}

impl<'a> Mad<'a> {
    /// Views `bytes`, which begin with the MAD header; octets behind the 256th are not the MAD's and left out.
    ///
    /// A capture may have cut the data behind the header: see [`is_whole`](Self::is_whole).
    ///
    /// # Errors
    /// The header is not whole.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < MAD_HEADER_LEN {
            return Err(Error::short(Layer::Mad, MAD_HEADER_LEN, bytes.len()));
        }
        Ok(Self {
            bytes: bytes.get(..MAD_LEN).unwrap_or(bytes),
        })
    }

    /// Whether all 256 octets are there.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.bytes.len() == MAD_LEN
    }

    /// The MAD's octets, header included.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What is there behind the header: 232 octets of a whole MAD.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.bytes.get(MAD_HEADER_LEN..).unwrap_or_default()
    }
}

described! {
    Mad by as_bytes,
    /// The values of a MAD header.
    MadRepr [MAD_HEADER_LEN] {
        /// Base version: 1.
        base_version: u8 = "Base Version", [(0, 0, 8)];
        /// Management class, [`CLASS_COMMUNICATION`] for one.
        class: u8 = "Management Class", [(1, 0, 8)];
        /// Version of the class's formats.
        class_version: u8 = "Class Version", [(2, 0, 8)];
        /// Method with its response bit, [`METHOD_SEND`] for one.
        method: u8 = "Method", [(3, 0, 8)];
        /// Status: 0 where all is well.
        status: u16 = "Status", [(4, 0, 16)];
        /// The two octets that a class may use as it likes.
        class_specific: u16 = "Class Specific", [(6, 0, 16)];
        /// Transaction ID.
        transaction_id: u64 = "Transaction ID", [(8, 0, 64)];
        /// Attribute ID: within a class, which message it is.
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
