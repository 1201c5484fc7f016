//! Runs the program as a user does, writes captures, and reads the scenario generator's ground
//! truth.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use fcn_link::capture_file::{CaptureReader, CaptureWriter, Interface, Options};
use fcn_wire::LinkType;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Result of a finished program.
#[derive(Debug)]
pub struct Done {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Done {
    pub fn from_output(output: &Output) -> Self {
        Self {
            code: output.status.code().expect("no signal"),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns standard output as lines of JSON.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    /// Asserts the exit code.
    #[track_caller]
    pub fn with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Asserts success.
    #[track_caller]
    pub fn well(self) -> Self {
        self.with(0)
    }
}

/// Path of the program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_fcn-top");

/// Returns a command that runs the program, independent of the user's configuration.
pub fn command() -> Command {
    let mut command = Command::new(PROGRAM);
    alone(&mut command);
    command
}

/// Makes a command independent of the user's environment.
pub fn alone(command: &mut Command) {
    command
        .stdin(Stdio::null())
        .env_remove("NO_COLOR")
        .env_remove("SUDO_UID")
        .env_remove("SUDO_GID")
        .env("XDG_CONFIG_HOME", "/nonexistent");
}

/// Runs the program.
pub fn top<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Done {
    Done::from_output(&command().args(args).output().unwrap())
}

/// Runs the program with arguments separated by white space.
pub fn top_words(words: &str) -> Done {
    top(words.split_whitespace())
}

/// Returns the folder of the sample captures.
pub fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures")
}

/// Returns the path of a sample capture as a string.
pub fn capture(name: &str) -> String {
    captures().join(name).display().to_string()
}

/// A frame of a capture: interface, time, octets.
pub type Frame = (u32, u64, Vec<u8>);

/// Reads all frames of a capture, from all its interfaces.
pub fn read(path: &Path) -> Vec<Frame> {
    let mut reader = CaptureReader::open(path).unwrap_or_else(|error| panic!("{error}"));
    let mut frames = Vec::new();
    while let Some(packet) = reader.next().unwrap() {
        frames.push((packet.interface, packet.at, packet.bytes.to_vec()));
    }
    frames
}

/// Writes a pcapng file with one Ethernet interface.
pub fn write(path: &Path, frames: &[Frame]) {
    let interface = Interface {
        name: "wire",
        description: "",
        link: LinkType::Ethernet,
        snap_len: 0,
    };
    let mut writer = CaptureWriter::create(path, &Options::default(), &[interface]).unwrap();
    for (_, at, octets) in frames {
        writer.packet(0, *at, octets, octets.len() as u32).unwrap();
    }
    writer.finish().unwrap();
}

/// Writes a pcap file of a link type, with one frame per microsecond.
pub fn write_pcap(path: &Path, link: u32, frames: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, link] {
        file.extend(u32::to_le_bytes(word));
    }
    for (i, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for word in [1, i as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    fs::write(path, file).unwrap();
}

/// Key of a row: kind, notified host, the QP named by notifications, its side, flow label.
pub type Key = (String, String, Option<u64>, Option<String>, Option<u64>);

/// Returns the key of a row, for rows of the program and of the generator.
pub fn key(row: &Value) -> Key {
    let text = |name: &str| row[name].as_str().map(str::to_owned);
    let kind = text("kind").expect("a kind");
    // A row also has other identifiers of its flow, the generator only those in the packet.
    let is_row = row.get("sender_qp").is_some();
    let (qp, side) = match kind.as_str() {
        _ if !is_row => (&row["qp"], text("qp_side")),
        "cnp" => (&row["sender_qp"], Some("sender".to_owned())),
        "wan_fcn" => (&Value::Null, None),
        _ => (&row["receiver_qp"], Some("receiver".to_owned())),
    };
    let side = side.filter(|_| !qp.is_null());
    let destination = text("destination").expect("an address");
    (
        kind,
        destination,
        qp.as_u64(),
        side,
        row["flow_label"].as_u64(),
    )
}

/// Returns the number of notifications of each row; `count` names the column.
pub fn totals<'a>(rows: impl IntoIterator<Item = &'a Value>, count: &str) -> BTreeMap<Key, u64> {
    let mut totals = BTreeMap::new();
    for row in rows {
        *totals.entry(key(row)).or_default() += row[count].as_u64().expect("a count");
    }
    totals
}

/// Returns the generator's notifications with those that pass several vantage points counted once:
/// the maximum over the vantage points.
pub fn once(notifications: &[Value]) -> BTreeMap<Key, u64> {
    let mut most = BTreeMap::new();
    for row in notifications {
        let notifier = (key(row), row["notifier"].to_string());
        let most: &mut u64 = most.entry(notifier).or_default();
        *most = row["total"].as_u64().expect("a count").max(*most);
    }
    let mut totals = BTreeMap::new();
    for ((key, _), total) in most {
        *totals.entry(key).or_default() += total;
    }
    totals
}

/// The generator's ground truth about a capture: its name, and the notifications at each vantage
/// point.
pub struct Truth {
    pub name: String,
    pub capture: PathBuf,
    pub notifications: Vec<Value>,
}

/// Returns the ground truth of all captures generated from scenarios.
pub fn truths() -> Vec<Truth> {
    let mut truths: Vec<Truth> = fs::read_dir(captures())
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let name = path
                .file_name()?
                .to_str()?
                .strip_suffix(".truth.json")?
                .to_owned();
            let truth: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            Some(Truth {
                capture: captures().join(format!("{name}.pcapng")),
                notifications: truth["notifications"].as_array().expect("a list").clone(),
                name,
            })
        })
        .collect();
    truths.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(truths.len() > 10);
    truths
}
