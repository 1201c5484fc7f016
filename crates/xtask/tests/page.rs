//! `fcn.html` in a browser: the same results as `fcn-top`, for every sample capture and for hostile
//! files.

use fcn_link::capture_file::{CaptureReader, CaptureWriter, Interface, Options};
use fcn_wire::LinkType;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapTsResolution, PcapWriter};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use std::{fs, thread};
use xtask::packages::{self, Use};
use xtask::page::{self, Compiler};
use xtask::{captures, cargo};

/// A file for the page: its name and octets.
type File = (String, Vec<u8>);

/// Answers of a page, by name.
type Answers = BTreeMap<String, Vec<u8>>;

const BROWSERS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

/// Maximum time in which a page opens all its files, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Opens each file, and sends what comes of it.
const SCRIPT: &str = r#"
(async () => {
  const send = (name, body) => fetch(`/${name}`, { method: "POST", body });
  const text = (id) => document.getElementById(id).textContent;
  try {
    for (const [number, name] of NAMES.entries()) {
      const file = new File([await (await fetch(`/${number}`)).blob()], name);
      const done = await fcn.open(file);
      if (done === null) {
        await send(`failure-${number}`, text("failure"));
      } else {
        await send(`json-${number}`, await fcn.json());
        const story = new DOMParser().parseFromString(document.getElementById("story").srcdoc, "text/html");
        const of = (root) => [...root.querySelectorAll("script, img, b, svg")].map(({ localName }) => localName).join(" ");
        await send(`elements-${number}`, `${of(story)}; ${of(document)}`);
      }
    }
    if (PACKETS) {
      // As a user saves the packets of the first row.
      const report = () => document.getElementById("story").contentDocument;
      while (report().documentElement.dataset.state !== "ready") await new Promise((go) => setTimeout(go, 20));
      const saved = new Promise((done) => {
        HTMLAnchorElement.prototype.click = function () { done(this); };
      });
      report().querySelector("button.more").click();
      [...report().querySelectorAll("button")].find((button) => button.textContent === "Save its packets").click();
      const { download, href } = await saved;
      await send("packets", await (await fetch(href)).blob());
      await send("name", download);
    }
  } catch (error) {
    await send("error", `${error.message} ${error.stack}`);
  }
  await send("end", "");
})();
"#;

/// A browser, and the group of its processes: what is started may be a script.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Builds the page; `None` if that, or a browser, is missing here.
fn page() -> Option<String> {
    let lacking = packages::missing(&[Use::Browser]);
    if !lacking.is_empty() {
        fcn_skip::skipped!("fcn.html needs {}", packages::describe(&lacking));
        return None;
    }
    match Compiler::ready(true) {
        Ok(compiler) => Some(page::build(&compiler, |_| {}).unwrap()),
        Err(failure) => {
            fcn_skip::skipped!("fcn.html: {failure:#}");
            None
        }
    }
}

/// Opens files in the page, and returns its answers; with `packets`, also saves those of the first
/// row of the last file.
fn browse(page: &str, files: &[File], packets: bool) -> Answers {
    // The policy of the page holds, except for the test's script and its answers.
    let policy = "default-src 'none'; script-src ";
    assert_eq!(page.matches(policy).count(), 1);
    let page = page.replace(
        policy,
        "default-src 'none'; connect-src 'self' blob:; script-src 'nonce-test' ",
    );
    // Only so that the test reaches the report.
    let sandbox = "sandbox=\"allow-scripts\"";
    assert_eq!(page.matches(sandbox).count(), 1);
    let page = match packets {
        true => page.replace(sandbox, "sandbox=\"allow-scripts allow-same-origin\""),
        false => page,
    };
    let names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
    let names = serde_json::to_string(&names)
        .unwrap()
        .replace('<', "\\u003c");
    let script = SCRIPT
        .replace("NAMES", &names)
        .replace("PACKETS", &packets.to_string());
    let end = "</body>\n</html>\n";
    let page = page.strip_suffix(end).unwrap().to_owned()
        + &format!("<script nonce=\"test\">{script}</script>\n{end}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/page", listener.local_addr().unwrap());
    let files = files.iter().map(|(_, octets)| octets.clone()).collect();
    let (sender, answers) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (page, files): (String, Vec<Vec<u8>>) = (page.clone(), Vec::clone(&files));
            let sender = sender.clone();
            thread::spawn(move || {
                // A browser closes connections that it does not need.
                let _ = stream.map(|stream| {
                    serve(&stream, &page, &files, |name, body| {
                        let _ = sender.send((name, body));
                    })
                });
            });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let browser = BROWSERS.iter().find_map(|browser| {
        Command::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            // Without a task such as this one it ends at once.
            .arg("--remote-debugging-port=0")
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .arg(&address)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .ok()
    });
    let browser = Browser(browser.expect("a browser"));
    let gathered = gather(&answers);
    drop(browser);
    gathered
}

/// Returns all answers until the end.
fn gather(answers: &Receiver<(String, Vec<u8>)>) -> Answers {
    let mut gathered = Answers::new();
    loop {
        let (name, body) = answers.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            panic!("no end after {:?}", gathered.keys().collect::<Vec<_>>());
        });
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_ne!(name, "error", "{text}");
        if name == "end" {
            return gathered;
        }
        gathered.insert(name, body);
    }
}

/// Serves the requests of a connection.
fn serve(
    stream: &TcpStream,
    page: &str,
    files: &[Vec<u8>],
    mut answer: impl FnMut(String, Vec<u8>),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let (mut line, mut length) = (String::new(), 0);
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let posts = line.starts_with("POST ");
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let path = path.trim_start_matches('/');
        let content = match path {
            "page" => page.as_bytes(),
            _ if posts => {
                answer(path.to_owned(), body);
                b""
            }
            _ => path
                .parse::<usize>()
                .ok()
                .and_then(|number| files.get(number))
                .map_or(&[][..], Vec::as_slice),
        };
        let length = content.len();
        write!(
            writer,
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n"
        )?;
        writer.write_all(content)?;
    }
}

/// Runs fcn-top on a file in a folder.
fn top(monitor: &Path, folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(monitor);
    command.current_dir(folder).args(["--no-config", "-r"]);
    command.args(words).output().unwrap()
}

/// Returns a document of a capture without packets, whose events have the time of the analysis.
fn timeless(json: &[u8]) -> Option<Value> {
    let mut document: Value = serde_json::from_slice(json).ok()?;
    if !document["started"].is_null() {
        return None;
    }
    for event in document["events"].as_array_mut()? {
        event["at"] = Value::Null;
        event["last"] = Value::Null;
    }
    Some(document)
}

/// Asserts that the page's answers about files are those of fcn-top; returns the number of files
/// that it could analyse, and of those it refused.
fn compare(files: &[File], answers: &Answers) -> (usize, usize) {
    let monitor = cargo::build_tool(cargo::MONITOR, false).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut different = String::new();
    let (mut analysed, mut refused) = (0, 0);
    for (number, (name, octets)) in files.iter().enumerate() {
        fs::write(folder.path().join(name), octets).unwrap();
        let expected = top(&monitor, folder.path(), &[name, "--json"]);
        let json = answers.get(&format!("json-{number}"));
        let failure = answers.get(&format!("failure-{number}"));
        let failure = failure.map(|text| String::from_utf8_lossy(text));
        let is_equal = match expected.stdout.is_empty() {
            false => {
                analysed += 1;
                json.is_some_and(|json| {
                    let without = timeless(json);
                    *json == expected.stdout
                        || without.is_some() && without == timeless(&expected.stdout)
                })
            }
            true => {
                refused += 1;
                // The first line: the page has no advice about other commands.
                let said = String::from_utf8_lossy(&expected.stderr);
                failure.as_deref().is_some_and(|failure| {
                    !failure.is_empty()
                        && said.contains(failure.trim_start_matches(&format!("{name}: ")))
                })
            }
        };
        if !is_equal {
            let json = json.map(Vec::len);
            let _ = writeln!(
                different,
                "{name}: {json:?} octets of JSON, {failure:?}; fcn-top: {} octets, {}",
                expected.stdout.len(),
                String::from_utf8_lossy(&expected.stderr)
            );
        }
    }
    assert!(different.is_empty(), "{different}");
    (analysed, refused)
}

/// The story's scripts are three, and its data is one; the page has one of its own, two blocks of
/// data, and that of the test.
const ELEMENTS: &str = "script script script script; script script script script";

#[test]
fn the_page_finds_in_each_sample_what_fcn_top_finds() {
    let Some(page) = page() else { return };
    let folder = captures::folder().unwrap();
    let mut names: Vec<String> = (fs::read_dir(&folder).unwrap().flatten())
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".pcapng"))
        .collect();
    names.sort();
    // Its packets are saved as well.
    names.push("receiver-cnp-ipv4.pcapng".to_owned());
    let files: Vec<File> = (names.into_iter())
        .map(|name| (name.clone(), fs::read(folder.join(name)).unwrap()))
        .collect();
    let answers = browse(&page, &files, true);
    let (analysed, refused) = compare(&files, &answers);
    assert!(analysed > 50 && refused == 0, "{analysed} {refused}");

    let monitor = cargo::build_tool(cargo::MONITOR, false).unwrap();
    let exported = tempfile::tempdir().unwrap();
    let to = exported.path().join("row.pcapng");
    let to_text = to.display().to_string();
    let words = [
        "receiver-cnp-ipv4.pcapng",
        "--export",
        &to_text,
        "--top",
        "1",
    ];
    let done = top(&monitor, &folder, &words);
    assert!(done.status.success(), "{done:?}");
    assert!(fs::read(to).unwrap() == answers["packets"]);
    assert_eq!(answers["name"], b"receiver-cnp-ipv4-row-1.pcapng");
}

/// Returns a capture with the given interface name and description, and some notifications.
fn described(name: &str, description: &str) -> Vec<u8> {
    let interface = Interface {
        name,
        description,
        link: LinkType::Ethernet,
        snap_len: 0,
    };
    let options = Options {
        comment: name,
        application: name,
    };
    let mut octets = Vec::new();
    let mut writer = CaptureWriter::to(&mut octets, &options, &[interface]).unwrap();
    each_packet(|at, bytes| {
        writer
            .packet_commented(0, at, bytes, bytes.len() as u32, name)
            .unwrap();
    });
    writer.finish().unwrap();
    octets
}

fn each_packet(mut take: impl FnMut(u64, &[u8])) {
    let sample = captures::folder().unwrap().join("attack.pcapng");
    let mut reader = CaptureReader::open(&sample).unwrap();
    while let Some(packet) = reader.next().unwrap() {
        take(packet.at, packet.bytes);
    }
}

/// Returns a pcap file with microseconds or nanoseconds.
fn pcap(resolution: PcapTsResolution) -> Vec<u8> {
    let header = PcapHeader {
        ts_resolution: resolution,
        ..PcapHeader::default()
    };
    let mut octets = Vec::new();
    let mut writer = PcapWriter::with_header(&mut octets, header).unwrap();
    each_packet(|at, bytes| {
        let packet = PcapPacket::new(Duration::from_nanos(at), bytes.len() as u32, bytes);
        writer.write_packet(&packet.unwrap()).unwrap();
    });
    octets
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip")
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(octets).unwrap());
        child.wait_with_output().unwrap().stdout
    })
}

#[test]
fn hostile_files_are_refused_in_words_or_analysed_as_far_as_they_go() {
    let Some(page) = page() else { return };
    let attack = fs::read(captures::folder().unwrap().join("attack.pcapng")).unwrap();
    let mut files: Vec<File> = Vec::new();
    let mut add = |name: &str, octets: &[u8]| files.push((name.to_owned(), octets.to_vec()));

    add("empty", b"");
    add("text.pcap", b"not a capture at all, but a text");
    add("page.html", b"<!DOCTYPE html><script>alert(1)</script>");
    add("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    add("zeros", &[0; 100_000]);
    add("zeros.gz", &gzip(&[0; 64 << 20]));
    let (micro, nano) = (
        pcap(PcapTsResolution::MicroSecond),
        pcap(PcapTsResolution::NanoSecond),
    );
    add("micro.pcap", &micro);
    add("nano.pcap", &nano);
    let packed = gzip(&attack);
    add("packed.pcapng.gz", &packed);
    add("twice.pcap.gz", &gzip(&gzip(&micro)));
    for percent in [0, 1, 10, 50, 99] {
        let len = (packed.len() * percent / 100).max(5);
        add(&format!("cut-{percent}.gz"), &packed[..len]);
    }
    // At every octet of the first blocks, and at some later ones.
    for len in (1..200).chain((200..attack.len()).step_by(attack.len() / 50)) {
        add(&format!("cut-{len}.pcapng"), &attack[..len]);
    }
    for len in (1..80).chain((80..micro.len()).step_by(micro.len() / 20)) {
        add(&format!("cut-{len}.pcap"), &micro[..len]);
    }
    // Each word of the first blocks says that something is huge.
    for at in (0..240).step_by(4) {
        for word in [u32::MAX, 0x7fff_fffc] {
            let mut octets = attack.clone();
            octets[at..at + 4].copy_from_slice(&word.to_le_bytes());
            octets.truncate(20_000);
            add(&format!("word-{at}-{word:x}.pcapng"), &octets);
        }
    }
    for at in (0..48).step_by(4) {
        let mut octets = micro[..20_000].to_vec();
        octets[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        add(&format!("word-{at}.pcap"), &octets);
    }
    let markup = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>";
    add(
        "markup.pcapng",
        &described(markup, "<svg onload=alert(1)><b>bold</b>"),
    );
    add(
        "<img src=x onerror=alert(1)>.pcapng",
        &described("<!--<script>", "&lt;b&gt; \x1b[2J"),
    );
    add("<b>not a capture<b>", b"<b>not a capture</b>");

    // The page has no decoder for it, unlike fcn-top.
    let zstd = b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00";
    files.push(("packed.zst".to_owned(), zstd.to_vec()));
    let answers = browse(&page, &files, false);
    let compared = files.len() - 1;
    let (analysed, refused) = compare(&files[..compared], &answers);
    assert!(analysed > 100 && refused > 100, "{analysed} {refused}");
    for (name, octets) in &answers {
        if name.starts_with("elements-") {
            assert_eq!(String::from_utf8_lossy(octets), ELEMENTS, "{name}");
        }
    }
    let failure = |file: &str| {
        let number = files.iter().position(|(name, _)| name == file).unwrap();
        String::from_utf8(answers[&format!("failure-{number}")].clone()).unwrap()
    };
    assert!(failure("empty").contains("it is empty"));
    assert!(failure("page.html").contains("not a capture file: it begins with 3C 21 44 4F"));
    assert!(failure("packed.zst").contains("unpack it first: zstd -d"));
}
