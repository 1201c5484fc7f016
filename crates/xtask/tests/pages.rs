//! Every command on a page: it runs as for a user, and prints the output that the page shows; or it
//! is listed here, with the reason why it cannot be run. `INSTA_UPDATE=always` writes the output
//! into the pages.

use clap::Parser;
use fcn_examples::page::{self, Shown};
use fcn_examples::{Shell, on_links};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use xtask::tshark::{TempDir, Tshark};
use xtask::{Cli, cargo, process, system};

/// Prefixes of commands that are not run, and the reasons.
const NOT_RUN: [(&str, &str); 5] = [
    (
        "fcn-gen check congestion-point --iface eth1 --iface eth2 --speed 0.05",
        "shows what is found of a device, as fcn-gen/tests/check.rs plays one",
    ),
    ("fcn-top --counters", "needs an RDMA device"),
    ("journalctl", "needs systemd and the package"),
    ("systemctl", "needs systemd and the package"),
    ("wireshark", "opens a window"),
];

/// Pages whose commands are run elsewhere.
const ELSEWHERE: [(&str, &str); 2] = [
    ("captures/README.md", "cargo xtask captures --check"),
    (
        "crates/xtask/src/captures/index.md",
        "of captures/README.md",
    ),
];

/// Page about tshark without the plugin.
const STOCK: &str = "docs/upstream.md";

/// Files that commands read but no earlier command has written, and the commands that create them.
const FILES: [(&str, &str); 7] = [
    ("incast.pcapng", "cp captures/incast.pcapng ."),
    ("both.pcapng", "cp captures/incast.pcapng both.pcapng"),
    ("fabric.pcapng", "cp captures/fast-cnp.pcapng fabric.pcapng"),
    (
        "prototype.pcapng",
        "cp captures/fast-cnp.pcapng prototype.pcapng",
    ),
    (
        "incast.pcapng.zst",
        "zstd -q captures/incast.pcapng -o incast.pcapng.zst",
    ),
    (
        "samples.pcapng",
        "fcn-gen write incast --quiet --mirror sflow -o samples.pcapng",
    ),
    (
        "mirror.pcapng",
        "fcn-gen write incast --quiet --mirror erspan3 -o mirror.pcapng",
    ),
];

/// Words followed by a file that a command writes.
const WRITES: [&str; 7] = [
    "-o", "--output", "--truth", "--export", "--html", "--svg", ">",
];

/// Parts of commands that take long, even if they write a file.
const LONG: [&str; 2] = ["compare ", " --live"];
/// Time after which a command that writes no file gets a Ctrl-C: it may be a screen, or send for
/// minutes.
const LONG_ENOUGH: Duration = Duration::from_millis(1500);

fn root() -> PathBuf {
    cargo::root().unwrap()
}

/// Returns the paths of all pages of the repository.
fn pages() -> Vec<String> {
    let mut git = Command::new("git");
    let listed = process::stdout(
        git.args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "*.md",
        ])
        .current_dir(root()),
    );
    let listed = listed.unwrap();
    let pages = listed.lines().filter(|page| root().join(page).is_file());
    pages.map(str::to_owned).collect()
}

/// Splits a command into words, respecting quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Environment in which the commands of a page run.
struct Desk {
    /// Kept alive with this.
    _tshark: Option<Tshark>,
    shell: Shell,
    folder: PathBuf,
    _holder: TempDir,
}

impl Desk {
    /// Creates it with the plugin, or with stock tshark.
    fn new(stock: bool) -> Self {
        let holder = TempDir::new(process::is_root()).unwrap();
        let folder = holder.path().join("desk");
        let (bin, captures) = (holder.path().join("bin"), folder.join("captures"));
        for folder in [&folder, &bin, &captures] {
            fs::create_dir(folder).unwrap();
        }
        for entry in fs::read_dir(root().join("captures")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "pcapng") {
                fs::copy(&path, captures.join(path.file_name().unwrap())).unwrap();
            }
        }
        let tools = [cargo::GENERATOR, cargo::REPLAYER, cargo::MONITOR];
        let tools = tools.map(|tool| cargo::build_tool(tool, false).unwrap());
        let tshark = process::which("tshark").map(|_| {
            let tshark = match stock {
                true => Tshark::stock(),
                false => Tshark::with_this_plugin(false),
            };
            let tshark = tshark.unwrap();
            let extcap = tshark.extcap_folder(&tools[0]).unwrap();
            wrap(&tshark, &extcap, &bin);
            tshark
        });
        let beside = tools.iter().map(|tool| tool.parent().unwrap().to_owned());
        let mut folders = vec![bin];
        folders.extend(beside);
        Self {
            _tshark: tshark,
            shell: Shell::new(folders),
            folder,
            _holder: holder,
        }
    }

    /// Provides the files that a command reads, and removes those that it writes.
    fn prepare(&self, command: &str) {
        let words = words(command);
        for (i, word) in words.iter().enumerate() {
            let path = self.folder.join(word);
            if i > 0 && WRITES.contains(&words[i - 1].as_str()) {
                // Absolute paths, such as /dev/null, do not belong to the page.
                if Path::new(word).is_absolute() {
                    continue;
                }
                let _ = fs::remove_file(&path);
                let _ = fs::remove_dir_all(&path);
            } else if let Some((_, make)) = FILES.iter().find(|(name, _)| name == word)
                && !path.exists()
            {
                let made = self.shell.output(make, &self.folder);
                assert!(made.is_none() || path.exists(), "{make}");
            }
        }
    }
}

/// Writes a program `tshark` into a folder, with the plugin and the scenarios, not run by root.
fn wrap(tshark: &Tshark, extcap: &Path, folder: &Path) {
    let mut script = "#!/bin/sh\n".to_owned();
    if process::is_root() {
        // Other users must be able to read the files that root has written in its folder.
        script += "find . -maxdepth 1 -type f -exec chmod a+r {} +\n";
    }
    script += "exec env -i";
    let command = tshark.command();
    for (name, value) in command.get_envs() {
        script += &format!(
            " {}='{}'",
            name.display(),
            value.unwrap_or_default().display()
        );
    }
    script += &format!(" WIRESHARK_EXTCAP_DIR='{}'", extcap.display());
    if process::is_root() {
        let nobody = system::NOBODY;
        script += &format!(" setpriv --reuid={nobody} --regid={nobody} --clear-groups");
    }
    script += " tshark \"$@\"\n";
    let program = folder.join("tshark");
    fs::write(&program, script).unwrap();
    process::stdout(Command::new("chmod").arg("755").arg(program)).unwrap();
}

/// Checks that cargo accepts a command's arguments.
fn understood(command: &str) {
    let words = words(command);
    let rest: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .skip_while(|word| *word != "cargo")
        .collect();
    if rest.get(1) == Some(&"xtask") {
        if let Err(error) = Cli::try_parse_from(&rest[1..]) {
            assert!(
                error.kind() == clap::error::ErrorKind::DisplayHelp,
                "{command}: {error}"
            );
        }
        return;
    }
    let metadata = cargo::command(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata = process::stdout(&mut metadata.unwrap()).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let behind = |option: &str| {
        rest.windows(2)
            .find(|pair| pair[0] == option)
            .map(|pair| pair[1])
    };
    let Some(package) = behind("-p") else {
        assert!(
            ["clippy", "deny", "fmt", "test"].contains(&rest[1]),
            "{command}"
        );
        return;
    };
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|known| known["name"] == package);
    let package = package.unwrap_or_else(|| panic!("{command}: no such package"));
    for option in ["--bench", "--example", "--test"] {
        if let Some(target) = behind(option) {
            let mut targets = package["targets"].as_array().unwrap().iter();
            assert!(
                targets.any(|known| known["name"] == target),
                "{command}: no such target"
            );
        }
    }
}

/// Treatment of a command.
enum Done {
    Run,
    Understood,
    Not(&'static str),
}

fn kind(command: &str) -> Done {
    let command = command.strip_prefix("sudo ").unwrap_or(command);
    if let Some((_, why)) = NOT_RUN.iter().find(|(begin, _)| command.starts_with(begin)) {
        return Done::Not(why);
    }
    let of_cargo = words(command).into_iter().find(|word| !word.contains('='));
    match of_cargo.as_deref() {
        Some("cargo") => Done::Understood,
        _ => Done::Run,
    }
}

/// Runs a page's commands, one after the other.
fn run(name: &str) {
    let path = root().join(name);
    let text = RefCell::new(fs::read_to_string(&path).unwrap());
    let all = page::commands(&text.borrow()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let bless = std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always");
    let desk = all
        .iter()
        .any(|shown| matches!(kind(&shown.command), Done::Run));
    let desk = desk.then(|| Desk::new(STOCK == name));
    let [mut ran, mut read] = [0, 0];
    let mut moved = 0isize;
    for shown in &all {
        let command = shown.command.replace("sudo ", "");
        let desk = match kind(&command) {
            Done::Not(why) => {
                println!("{name}:{}: not run: {command}: {why}", shown.line);
                continue;
            }
            Done::Understood => {
                understood(&command);
                read += 1;
                continue;
            }
            Done::Run => desk.as_ref().unwrap(),
        };
        desk.prepare(&command);
        ran += 1;
        if shown.output.is_empty() {
            let writes = words(&command)
                .iter()
                .any(|word| WRITES.contains(&word.as_str()));
            // tshark ends with the file, but may take long on a busy machine.
            let ends = writes || command.starts_with("tshark ");
            let waits =
                ends && !on_links(&command) && !LONG.iter().any(|part| command.contains(part));
            let interrupted = (!waits).then_some(LONG_ENOUGH);
            desk.shell.run(&command, &desk.folder, interrupted);
            continue;
        }
        let Some(printed) = desk.shell.output(&command, &desk.folder) else {
            continue;
        };
        // Its current position: earlier output may have become longer.
        let at = |line: usize| line.checked_add_signed(moved).unwrap();
        let now = Shown {
            output: at(shown.output.start)..at(shown.output.end),
            ..shown.clone()
        };
        let old = text.borrow().clone();
        if page::is_shown(&now.lines(&old), &printed) {
            continue;
        }
        assert!(
            bless,
            "{name}:{}: {command} prints (INSTA_UPDATE=always writes it)\n{printed}",
            shown.line
        );
        let new = now.with(&old, &printed);
        moved += new.lines().count().cast_signed() - old.lines().count().cast_signed();
        text.replace(new);
    }
    if bless {
        fs::write(&path, text.into_inner()).unwrap();
    }
    println!(
        "{name}: {ran} commands run, {read} of cargo understood, of {}",
        all.len()
    );
}

/// Runs the pages of a folder of the repository; "" for those at the top.
fn run_those(begin: &str) {
    let pages = pages();
    let of_folder = |page: &&String| match begin {
        "" => !page.contains('/'),
        begin => page.starts_with(begin),
    };
    let not_elsewhere = |page: &&String| !ELSEWHERE.iter().any(|(other, _)| other == page);
    let mut some = false;
    for page in pages.iter().filter(of_folder).filter(not_elsewhere) {
        run(page);
        some = true;
    }
    assert!(some, "no pages in {begin}");
}

/// Folders of pages, each with a test below.
const FOLDERS: [&str; 7] = [
    "",
    "captures/",
    "crates/",
    "docs/",
    "fcn-gen/",
    "fcn-replay/",
    "fcn-top/",
];

#[test]
fn commands_of_the_readme_run() {
    run_those("");
}

#[test]
fn commands_of_the_docs_run() {
    run_those("docs/");
}

#[test]
fn commands_of_fcn_top_run() {
    run_those("fcn-top/");
}

#[test]
fn commands_of_fcn_gen_run() {
    run_those("fcn-gen/");
}

#[test]
fn commands_of_fcn_replay_run() {
    run_those("fcn-replay/");
}

#[test]
fn commands_of_crates_run() {
    run_those("crates/");
}

#[test]
fn every_page_has_a_test() {
    let mut not_run: BTreeSet<&str> = BTreeSet::new();
    for page in pages() {
        let folder = page
            .split_inclusive('/')
            .next()
            .filter(|part| part.ends_with('/'));
        assert!(FOLDERS.contains(&folder.unwrap_or("")), "{page}");
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for shown in page::commands(&text).unwrap_or_else(|error| panic!("{page}: {error}")) {
            let command = shown
                .command
                .strip_prefix("sudo ")
                .unwrap_or(&shown.command);
            not_run.extend(
                NOT_RUN
                    .iter()
                    .filter(|(begin, _)| command.starts_with(begin))
                    .map(|(begin, _)| begin),
            );
        }
    }
    let idle: Vec<_> = NOT_RUN
        .iter()
        .filter(|(begin, _)| !not_run.contains(begin))
        .collect();
    assert!(idle.is_empty(), "no page has them: {idle:?}");
}

/// Links between pages have valid targets, headings included.
#[test]
fn links_have_valid_targets() {
    let anchor = |heading: &str| -> String {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = kept
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if link.contains("://") || link.contains(['{', ' ']) {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&page),
                file => folder.join(file),
            };
            // Part of an assembled page.
            if page.ends_with("/index.md") {
                continue;
            }
            assert!(target.exists(), "{page}: {link}");
            if !heading.is_empty() {
                let other = fs::read_to_string(&target).unwrap();
                let mut headings = other
                    .lines()
                    .filter(|line| line.starts_with('#'))
                    .map(anchor);
                assert!(headings.any(|known| known == heading), "{page}: {link}");
            }
            links += 1;
        }
    }
    assert!(links > 50, "{links}");
}

#[test]
fn the_index_lists_every_page_of_the_docs() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for page in pages() {
        if let Some(name) = page.strip_prefix("docs/") {
            let listed = index.contains(&format!("]({name})"));
            assert!(listed || name == "README.md", "{name}");
        }
    }
}
