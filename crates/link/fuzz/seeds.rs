//! Writes the seeds of the fuzz target to `corpus/`: small files of every format, byte order and
//! record type. Each run writes the same octets.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

const SECTION: u32 = 0x0A0D_0D0A;

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn half(self, half: u16) -> [u8; 2] {
        match self {
            Self::Little => half.to_le_bytes(),
            Self::Big => half.to_be_bytes(),
        }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        let octets = words.iter().flat_map(|word| match self {
            Self::Little => word.to_le_bytes(),
            Self::Big => word.to_be_bytes(),
        });
        octets.collect()
    }

    fn pcap(self, magic: u32, link: u32) -> Vec<u8> {
        let mut file = self.words(&[magic]);
        file.extend([self.half(2), self.half(4)].concat());
        file.extend(self.words(&[0, 0, 65_535, link]));
        file.extend(self.words(&[1_700_000_000, 999_999, 4, 4]));
        file.extend(b"four");
        file.extend(self.words(&[1, 2, 3, 1500]));
        file.extend(b"cut");
        file.extend(self.words(&[0, 0, 0, 0]));
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let len = padded as u32 + 12;
        let mut block = self.words(&[kind, len]);
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(self.words(&[len]));
        block
    }

    fn section(self) -> Vec<u8> {
        let mut body = self.words(&[0x1A2B_3C4D]);
        body.extend([self.half(1), self.half(0)].concat());
        body.extend([0xFF; 8]);
        self.block(SECTION, &body)
    }

    fn interface(self, link: u16, snap_len: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = [self.half(link), [0; 2]].concat();
        body.extend(self.words(&[snap_len]));
        for (code, value) in options {
            body.extend([self.half(*code), self.half(value.len() as u16)].concat());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body.extend([0; 4]);
        self.block(1, &body)
    }

    fn enhanced(self, interface: u32, stamp: [u32; 2], octets: &[u8]) -> Vec<u8> {
        let [high, low] = stamp;
        let len = octets.len() as u32;
        let mut body = self.words(&[interface, high, low, len, len + interface]);
        body.extend(octets);
        self.block(6, &body)
    }

    fn pcapng(self) -> Vec<u8> {
        let offset = match self {
            Self::Little => (-1i64).to_le_bytes(),
            Self::Big => (-1i64).to_be_bytes(),
        };
        let mut simple = self.words(&[6]);
        simple.extend(b"simple");
        let mut obsolete = [self.half(1), self.half(9)].concat();
        obsolete.extend(self.words(&[0, 4096, 3, 8]));
        obsolete.extend(b"old");
        [
            self.section(),
            self.interface(1, 0, &[(2, b"eth0"), (9, &[9])]),
            self.interface(101, 3, &[(3, b"words"), (9, &[0x8A]), (14, &offset)]),
            self.enhanced(0, [0x1795_2C73, 0x2A1B_3C4D], b"nanoseconds"),
            self.enhanced(1, [0, 5 << 10], b"parts of 2^-10"),
            self.block(0xBAD, b"nobody knows"),
            self.interface(113, 0, &[(9, &[12])]),
            self.enhanced(2, [1, 2], b"picoseconds"),
            self.block(3, &simple),
            self.block(2, &obsolete),
        ]
        .concat()
    }
}

fn gzip(octets: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::best());
    writer.write_all(octets)?;
    writer.finish()
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/capture");
    fs::create_dir_all(&folder)?;
    let (little, big) = (Order::Little.pcapng(), Order::Big.pcapng());
    let both = [little.clone(), big.clone()].concat();
    let (front, back) = both.split_at(200);
    for (name, octets) in [
        ("pcap_micro_little", Order::Little.pcap(0xA1B2_C3D4, 1)),
        ("pcap_micro_big", Order::Big.pcap(0xA1B2_C3D4, 276)),
        (
            "pcap_nano_little",
            Order::Little.pcap(0xA1B2_3C4D, 0x2400_0001),
        ),
        ("pcap_nano_big", Order::Big.pcap(0xA1B2_3C4D, 147)),
        ("pcapng_cut", little[..little.len() - 5].to_vec()),
        ("pcapng_little", little),
        ("pcapng_big", big),
        ("pcapng_sections_gzip", [gzip(front)?, gzip(back)?].concat()),
        (
            "pcapng_sections_zstd",
            [zstd::encode_all(front, 19)?, zstd::encode_all(back, 19)?].concat(),
        ),
    ] {
        fs::write(folder.join(format!("seed_{name}")), octets)?;
    }
    println!("seeds are in {}", folder.display());
    Ok(())
}
