//! InfiniBand management datagrams (MADs): their common header, read and written.
//!
//! What the data behind the header says lives with each class (`rdma_cm.rs`); the BTH and DETH before it in `bth.rs`.

use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::octets::{put, u8_at, u16_at, u32_at, u64_at};

/// Octets of a MAD: a fixed size, whatever the class (InfiniBand volume 1 section 13.4.1).
pub const MAD_LEN: usize = 256;
/// Octets of the common MAD header (section 13.4.2).
pub const MAD_HEADER_LEN: usize = 24;
/// Octets behind the common header.
pub const MAD_DATA_LEN: usize = MAD_LEN - MAD_HEADER_LEN;
/// The queue pair of the general services interface, where communication management is spoken.
pub const GSI_QP: u32 = 1;
/// The Q_Key of the general services interface (section 10.2.4).
pub const GSI_Q_KEY: u32 = 0x8001_0000;
/// Base version of every MAD of 256 octets.
pub const BASE_VERSION: u8 = 1;

mod field {
    pub(super) const BASE_VERSION: usize = 0;
    pub(super) const CLASS: usize = 1;
    pub(super) const CLASS_VERSION: usize = 2;
    pub(super) const METHOD: usize = 3;
    pub(super) const STATUS: usize = 4;
    pub(super) const CLASS_SPECIFIC: usize = 6;
    pub(super) const TRANSACTION_ID: usize = 8;
    pub(super) const ATTRIBUTE_ID: usize = 16;
    pub(super) const RESERVED: usize = 18;
    pub(super) const ATTRIBUTE_MODIFIER: usize = 20;
}

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

    /// Base version: 1.
    #[must_use]
    pub fn base_version(&self) -> u8 {
        u8_at(self.bytes, field::BASE_VERSION)
    }

    /// Management class, [`CLASS_COMMUNICATION`] for one.
    #[must_use]
    pub fn class(&self) -> u8 {
        u8_at(self.bytes, field::CLASS)
    }

    /// Version of the class's formats.
    #[must_use]
    pub fn class_version(&self) -> u8 {
        u8_at(self.bytes, field::CLASS_VERSION)
    }

    /// Method with its response bit, [`METHOD_SEND`] for one.
    #[must_use]
    pub fn method(&self) -> u8 {
        u8_at(self.bytes, field::METHOD)
    }

    /// Status: 0 where all is well.
    #[must_use]
    pub fn status(&self) -> u16 {
        u16_at(self.bytes, field::STATUS)
    }

    /// The two octets that a class may use as it likes.
    #[must_use]
    pub fn class_specific(&self) -> u16 {
        u16_at(self.bytes, field::CLASS_SPECIFIC)
    }

    /// Transaction ID.
    #[must_use]
    pub fn transaction_id(&self) -> u64 {
        u64_at(self.bytes, field::TRANSACTION_ID)
    }

    /// Attribute ID: within a class, which message it is.
    #[must_use]
    pub fn attribute_id(&self) -> u16 {
        u16_at(self.bytes, field::ATTRIBUTE_ID)
    }

    /// Attribute modifier.
    #[must_use]
    pub fn attribute_modifier(&self) -> u32 {
        u32_at(self.bytes, field::ATTRIBUTE_MODIFIER)
    }
}

/// The values of a MAD header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MadRepr {
    /// Base version: 1.
    pub base_version: u8,
    /// Management class, [`CLASS_COMMUNICATION`] for one.
    pub class: u8,
    /// Version of the class's formats.
    pub class_version: u8,
    /// Method with its response bit, [`METHOD_SEND`] for one.
    pub method: u8,
    /// Status: 0 where all is well.
    pub status: u16,
    /// The two octets that a class may use as it likes.
    pub class_specific: u16,
    /// Transaction ID.
    pub transaction_id: u64,
    /// Attribute ID.
    pub attribute_id: u16,
    /// Attribute modifier.
    pub attribute_modifier: u32,
}

impl MadRepr {
    /// Reads a MAD header.
    ///
    /// # Errors
    /// The header is not whole.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Mad::new_checked(bytes).map(|view| Self::from(&view))
    }

    /// Writes the header to the beginning of `out` and returns its length; the reserved octets become 0.
    ///
    /// # Errors
    /// `out` has less than 24 octets.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        let have = out.len();
        let Some(out) = out.get_mut(..MAD_HEADER_LEN) else {
            return Err(Error::buffer(Layer::Mad, MAD_HEADER_LEN, have));
        };
        put(
            out,
            field::BASE_VERSION,
            &[
                self.base_version,
                self.class,
                self.class_version,
                self.method,
            ],
        );
        put(out, field::STATUS, &self.status.to_be_bytes());
        put(
            out,
            field::CLASS_SPECIFIC,
            &self.class_specific.to_be_bytes(),
        );
        put(
            out,
            field::TRANSACTION_ID,
            &self.transaction_id.to_be_bytes(),
        );
        put(out, field::ATTRIBUTE_ID, &self.attribute_id.to_be_bytes());
        put(out, field::RESERVED, &[0; 2]);
        put(
            out,
            field::ATTRIBUTE_MODIFIER,
            &self.attribute_modifier.to_be_bytes(),
        );
        Ok(MAD_HEADER_LEN)
    }
}

impl From<&Mad<'_>> for MadRepr {
    fn from(view: &Mad<'_>) -> Self {
        Self {
            base_version: view.base_version(),
            class: view.class(),
            class_version: view.class_version(),
            method: view.method(),
            status: view.status(),
            class_specific: view.class_specific(),
            transaction_id: view.transaction_id(),
            attribute_id: view.attribute_id(),
            attribute_modifier: view.attribute_modifier(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn emit_after_parse_gives_back_the_octets(mut bytes in proptest::array::uniform24(any::<u8>())) {
            bytes[18..20].fill(0);
            let mut out = [0xEE; MAD_HEADER_LEN];
            prop_assert_eq!(MadRepr::parse(&bytes).unwrap().emit(&mut out).unwrap(), MAD_HEADER_LEN);
            prop_assert_eq!(out, bytes);
        }
    }

    #[test]
    fn fields_are_where_the_standard_draws_them() {
        let bytes: Vec<u8> = (0..=255).chain([9, 9]).collect();
        let mad = Mad::new_checked(&bytes).unwrap();
        assert_eq!(
            MadRepr::from(&mad),
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
            let header = MadRepr::parse(&bytes).unwrap();
            assert_eq!(
                header.emit(&mut vec![0; len]),
                Err(Error::buffer(Layer::Mad, MAD_HEADER_LEN, len))
            );
        }
        for len in MAD_HEADER_LEN..MAD_LEN {
            let mad = Mad::new_checked(&bytes[..len]).unwrap();
            assert!(!mad.is_whole());
            assert_eq!(mad.data().len(), len - MAD_HEADER_LEN);
        }
    }
}
