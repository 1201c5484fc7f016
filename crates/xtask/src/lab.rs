//! `cargo xtask lab`: a program run in an emulated guest with a current kernel, whose two network interfaces are wired
//! to each other and whose drivers do AF_XDP zero copy.
//! Here: the options and the order of things. The parts are below: `apt.rs` gets what the machine lacks, `kernel.rs`
//! and `image.rs` make what the guest boots, `machine.rs` runs it.
//!
//! The emulator translates (TCG): no KVM is asked for. Nothing is installed, and no interface of this machine is used.

mod apt;
mod image;
mod kernel;
mod machine;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cargo;
use crate::failure::{Failure, Outcome};
use crate::report::{self, Step};
use crate::tally::SKIP_MARK;

use apt::Root;
use image::Program;
use kernel::Kernel;
use machine::{Emulator, Wire};

/// The package whose link check runs in the guest where no other command is named.
const CHECK_PACKAGE: &str = "fcn-link";

/// The example program of that package.
const CHECK: &str = "link_check";

/// The most queues that an interface of the guest can be given.
const MAX_QUEUES: i64 = 8;

/// What `cargo xtask lab` can be told.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The guest's interfaces; `both` boots one guest after the other
    #[arg(long, value_enum, default_value_t = Nics::Both)]
    pub nic: Nics,
    /// Queues of each interface, and so processors of the guest (at least 2)
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=MAX_QUEUES))]
    pub queues: u8,
    /// A kernel instead of Debian's newest: the .deb files that make it up, or one kernel image
    #[arg(long, value_name = "PATH", num_args = 1.., value_delimiter = ',')]
    pub kernel: Vec<PathBuf>,
    /// The folder with the modules of that kernel image (…/lib/modules/VERSION)
    #[arg(long, value_name = "DIR", requires = "kernel")]
    pub modules: Option<PathBuf>,
    /// Further programs for the guest's /bin
    #[arg(long, value_name = "PATH")]
    pub with: Vec<PathBuf>,
    /// Seconds until the program, and seconds later the guest, is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub limit: u32,
    /// Build the link check with optimisation
    #[arg(long)]
    pub release: bool,
    /// Fetch kernel, emulator and tools anew
    #[arg(long)]
    pub refresh: bool,
    /// Keep what the guest booted from, and its kernel's messages
    #[arg(long)]
    pub keep: bool,
    /// What to run in the guest, instead of the link check; a word with a slash names a program to copy there.
    /// It finds eth0 wired to eth1, and in its environment LAB_NIC and LAB_QUEUES
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// Which interfaces to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Nics {
    /// virtio-net
    Virtio,
    /// Intel 82576
    Igb,
    /// One after the other
    Both,
}

impl Nics {
    fn each(self) -> &'static [Nic] {
        match self {
            Self::Virtio => &[Nic::Virtio],
            Self::Igb => &[Nic::Igb],
            Self::Both => &[Nic::Virtio, Nic::Igb],
        }
    }
}

/// A kind of interface that the emulator offers and whose driver can do zero copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nic {
    /// virtio-net
    Virtio,
    /// Intel 82576
    Igb,
}

impl Nic {
    /// Its name in options and in the guest's `LAB_NIC`.
    const fn name(self) -> &'static str {
        match self {
            Self::Virtio => "virtio",
            Self::Igb => "igb",
        }
    }

    /// What qemu calls it.
    const fn device(self) -> &'static str {
        match self {
            Self::Virtio => "virtio-net-pci",
            Self::Igb => "igb",
        }
    }

    /// The modules that drive it, where they are not built in.
    const fn modules(self) -> &'static [&'static str] {
        match self {
            Self::Virtio => &["virtio_pci", "virtio_net"],
            Self::Igb => &["igb"],
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Virtio => "Guest with virtio-net",
            Self::Igb => "Guest with igb",
        }
    }
}

/// What every guest needs.
struct Parts {
    emulator: Emulator,
    tools: Root,
    kernel: Kernel,
}

/// Runs the command in each guest. A machine that cannot run one skips it, and says so.
///
/// # Errors
/// The program cannot be built, a guest broke, or the command failed in one.
pub fn run(options: &Options) -> Outcome<ExitCode> {
    let nics = options.nic.each();
    let of = 2 + nics.len();
    // Downloads and guests' files are kept there between runs.
    let folder = cargo::target_folder("lab")?;

    let mut parts = None;
    let mut prepare = || {
        let found = parts_of_a_guest(options, &folder);
        let text = match &found {
            Ok(parts) => format!("{}, {}", parts.kernel.describe(), parts.emulator.describe()),
            Err(_) => "cannot be had".to_owned(),
        };
        parts = Some(found);
        Ok(text)
    };
    report::step(1, of, &mut step("Kernel, emulator, tools", &mut prepare)).result?;
    let parts = match parts {
        Some(Ok(parts)) => parts,
        Some(Err(Unfit::Machine(failure))) => {
            println!("{SKIP_MARK} lab: no guest can run here: {failure}");
            return Ok(ExitCode::SUCCESS);
        }
        Some(Err(Unfit::Asked(failure))) => return Err(failure),
        None => return Err(Failure::new("the lab's parts were not looked for")),
    };

    let mut command = Vec::new();
    let mut build = || {
        command = guest_command(options)?;
        let names: Vec<_> = command.iter().filter_map(Word::program).collect();
        Ok(names.join(", "))
    };
    report::step(2, of, &mut step("Program for the guest", &mut build)).result?;

    let mut failed = Vec::new();
    for (index, nic) in nics.iter().enumerate() {
        let mut boot = || guest(options, &folder, &parts, &command, *nic);
        let done = report::step(index + 3, of, &mut step(nic.title(), &mut boot));
        if done.result.is_err() {
            failed.push(nic.name());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let failure = Failure::new(format!("failed with: {}", failed.join(", ")));
    Err(if options.keep {
        failure
    } else {
        failure
            .todo("see above; --keep leaves what the guest booted from, and its kernel's messages")
    })
}

fn step<'a>(title: &'static str, work: &'a mut dyn FnMut() -> Outcome<String>) -> Step<'a> {
    Step { title, work }
}

/// A word of the guest's command.
enum Word {
    /// As it stands.
    Plain(String),
    /// A program of this machine, to be copied.
    Program(Program),
}

impl Word {
    fn program(&self) -> Option<String> {
        match self {
            Self::Plain(_) => None,
            Self::Program(program) => Some(program.name.clone()),
        }
    }
}

/// The command, with the programs that it names; first, unless a command is named, the link check is built.
fn guest_command(options: &Options) -> Outcome<Vec<Word>> {
    if options.command.is_empty() {
        let path = cargo::build_example(CHECK_PACKAGE, CHECK, options.release)?;
        let words = ["exchange", "eth0", "eth1", "zero-copy"];
        return Ok(std::iter::once(Word::Program(Program::of(&path)?))
            .chain(words.map(|word| Word::Plain(word.to_owned())))
            .collect());
    }
    let word = |word: &String| match Path::new(word) {
        path if word.contains('/') && path.is_file() => Program::of(path).map(Word::Program),
        _ => Ok(Word::Plain(word.clone())),
    };
    options.command.iter().map(word).collect()
}

/// Why there is no guest.
enum Unfit {
    /// This machine cannot run one.
    Machine(Failure),
    /// What the options name is not there, or no good.
    Asked(Failure),
}

/// Sees to kernel, emulator and tools, from earlier runs where they are there.
fn parts_of_a_guest(options: &Options, folder: &Path) -> Result<Parts, Unfit> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Unfit::Machine(Failure::new(format!(
            "the guest is x86_64 and runs this machine's programs, which are {}",
            std::env::consts::ARCH
        ))));
    }
    // Two labs at a time would unpack into the same folders.
    let lock = folder.join("lock");
    let _held = File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|e| Unfit::Asked(Failure::io("lock", &lock, &e)))?;

    let asked = match options.kernel.as_slice() {
        [] => None,
        paths => {
            Some(Kernel::given(paths, options.modules.as_deref(), folder).map_err(Unfit::Asked)?)
        }
    };
    let devices: Vec<_> = options.nic.each().iter().map(|n| n.device()).collect();
    let installed = Emulator::installed(&devices);
    let fetched = apt::ready(
        folder,
        apt::Wanted {
            emulator: installed.is_none(),
            kernel: asked.is_none(),
            refresh: options.refresh,
        },
    )
    .map_err(Unfit::Machine)?;
    let emulator = match installed {
        Some(emulator) => emulator,
        None => Emulator::unpacked(&fetched.tools).map_err(Unfit::Machine)?,
    };
    let kernel = match asked {
        Some(kernel) => kernel,
        None => Kernel::unpacked(&fetched.kernel).map_err(Unfit::Machine)?,
    };
    Ok(Parts {
        emulator,
        tools: fetched.tools,
        kernel,
    })
}

/// Boots one guest, runs the command there, and removes what was made for it.
fn guest(
    options: &Options,
    folder: &Path,
    parts: &Parts,
    command: &[Word],
    nic: Nic,
) -> Outcome<String> {
    let files = folder.join(format!("{}-{}", nic.name(), std::process::id()));
    std::fs::create_dir_all(&files).map_err(|e| Failure::io("make", &files, &e))?;
    let result = guest_in(&files, options, parts, command, nic);
    if options.keep {
        println!("      kept: {}", files.display());
    } else if let Err(error) = std::fs::remove_dir_all(&files) {
        // The guest's result matters more than a leftover in the target folder.
        println!("      {}", Failure::io("remove", &files, &error));
    }
    result
}

fn guest_in(
    files: &Path,
    options: &Options,
    parts: &Parts,
    command: &[Word],
    nic: Nic,
) -> Outcome<String> {
    let wire = Wire::of(nic, options.queues);
    if let Wire::Hub { instead: Some(why) } = &wire {
        println!(
            "{SKIP_MARK} lab: {} queues on {}, one instead: {why}",
            options.queues,
            nic.name()
        );
    }
    let queues = wire.queues(nic, options.queues);
    let mut programs = Vec::new();
    let mut words = Vec::new();
    for word in command {
        match word {
            Word::Plain(text) => words.push(text.clone()),
            Word::Program(program) => {
                words.push(format!("/bin/{}", program.name));
                programs.push(program.clone());
            }
        }
    }
    for path in &options.with {
        programs.push(Program::of(path)?);
    }
    let image = files.join("initramfs.cpio");
    image::Contents {
        tools: &parts.tools,
        modules: &parts.kernel.modules(nic.modules())?,
        programs: &programs,
        command: &words,
        environment: &[
            ("LAB_NIC", nic.name().to_owned()),
            ("LAB_QUEUES", queues.to_string()),
            ("LAB_LIMIT", options.limit.to_string()),
        ],
    }
    .write(&image)?;
    machine::Machine {
        emulator: &parts.emulator,
        kernel: parts.kernel.image(),
        initramfs: &image,
        console: &files.join("console.log"),
        nic,
        queues,
        wire: &wire,
        limit: Duration::from_secs(u64::from(options.limit)),
    }
    .run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(words: &[&str]) -> Result<Options, clap::Error> {
        Line::try_parse_from(std::iter::once(&"lab").chain(words)).map(|line| line.options)
    }

    #[test]
    fn reads_its_options() {
        let options = parse(&["--nic", "igb", "--", "ip", "-s", "link"]).unwrap();
        assert_eq!(options.nic.each(), [Nic::Igb]);
        assert_eq!(options.command, ["ip", "-s", "link"]);
        assert_eq!(parse(&[]).unwrap().nic.each(), [Nic::Virtio, Nic::Igb]);
        assert!(parse(&["--queues", "0"]).is_err());
        assert!(parse(&["--queues", "9"]).is_err());
        assert!(parse(&["--modules", "/x"]).is_err());
    }

    #[test]
    fn a_word_with_a_slash_that_is_a_file_is_copied() {
        let options = parse(&["--", "/bin/sh", "-c", "/no/such/file", "sh"]).unwrap();
        let words = guest_command(&options).unwrap();
        let programs: Vec<_> = words.iter().map(Word::program).collect();
        assert_eq!(programs, [Some("sh".to_owned()), None, None, None]);
    }
}
