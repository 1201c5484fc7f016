//! What the guest boots into: an archive (cpio, "newc") with busybox, ethtool, modules, and the programs to run with
//! the shared libraries that they load.
//! Not here: the kernel (`kernel.rs`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use cpio::newc::{self, Builder};

use super::apt::Root;
use super::kernel::Module;
use crate::failure::{Failure, Outcome};
use crate::process;

/// The guest's first process.
const INIT: &str = include_str!("init.sh");

/// ethtool comes with libraries of its own, which may be newer than those of the programs under test.
const ETHTOOL: &str =
    "#!/bin/sh\nexec /lab/ethtool/loader --library-path /lab/ethtool /lab/ethtool/ethtool \"$@\"\n";

/// A file that can be run.
const EXECUTABLE: u32 = 0o100_755;

/// A folder.
const FOLDER: u32 = 0o040_755;

/// A program of this machine, for the guest's /bin.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Its name there.
    pub name: String,
    file: PathBuf,
    /// Shared libraries and the loader, where this machine has them and so the guest.
    libraries: Vec<PathBuf>,
}

impl Program {
    /// A program, and what it loads.
    pub(super) fn of(file: &Path) -> Outcome<Self> {
        let name = file.file_name().filter(|_| file.is_file());
        let name = name.ok_or_else(|| Failure::new(format!("{} is no file", file.display())))?;
        // It fails for a program that loads nothing, and for a script.
        let output = process::output(Command::new("ldd").arg(file))?;
        let libraries = loaded(&String::from_utf8_lossy(&output.stdout)).map_err(|lacking| {
            Failure::new(format!(
                "{} needs {lacking}, which is not found",
                file.display()
            ))
        })?;
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            file: file.to_path_buf(),
            libraries,
        })
    }
}

/// What the guest gets.
pub(super) struct Contents<'a> {
    /// Has busybox and ethtool.
    pub tools: &'a Root,
    /// In the order of loading.
    pub modules: &'a [Module],
    /// For /bin.
    pub programs: &'a [Program],
    /// The words to run.
    pub command: &'a [String],
    /// Variables for it and for the first process.
    pub environment: &'a [(&'a str, String)],
}

impl Contents<'_> {
    /// Writes the archive.
    pub(super) fn write(&self, archive: &Path) -> Outcome {
        let mut tree = Tree::default();
        for folder in ["dev", "proc", "sys", "tmp"] {
            tree.folder(folder);
        }
        tree.text("init", INIT);
        tree.file("bin/busybox", self.tools.file("usr/bin/busybox")?);
        self.ethtool(&mut tree)?;
        let mut names = String::new();
        for module in self.modules {
            let _ = writeln!(names, "{}", module.name);
            tree.bytes(&format!("lab/{}.ko", module.name), &module.bytes);
        }
        tree.text("lab/modules", &names);
        for program in self.programs {
            tree.file(&format!("bin/{}", program.name), program.file.clone());
            for library in &program.libraries {
                tree.file(&library.to_string_lossy(), library.clone());
            }
        }
        let words: Vec<_> = self.command.iter().map(|word| quoted(word)).collect();
        tree.text("lab/command", &format!("exec {}\n", words.join(" ")));
        let mut environment = String::new();
        for (name, value) in self.environment {
            let _ = writeln!(environment, "export {name}={}", quoted(value));
        }
        tree.text("lab/environment", &environment);
        tree.write(archive)
    }

    fn ethtool(&self, tree: &mut Tree) -> Outcome {
        let words = self.tools.start("usr/sbin/ethtool")?;
        let text = process::stdout(Command::new(&words[0]).arg("--list").args(&words[1..]))?;
        let libraries = loaded(&text).map_err(|lacking| {
            Failure::new(format!("ethtool needs {lacking}, which is not there"))
        })?;
        for library in libraries {
            let name = library.file_name().unwrap_or_default().to_string_lossy();
            tree.file(&format!("lab/ethtool/{name}"), library.clone());
        }
        tree.file("lab/ethtool/loader", self.tools.loader()?);
        tree.file("lab/ethtool/ethtool", self.tools.file("usr/sbin/ethtool")?);
        tree.text("bin/ethtool", ETHTOOL);
        Ok(())
    }
}

/// The files in what `ldd` prints; an error has the name of a library that it did not find.
fn loaded(list: &str) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for line in list.lines().map(str::trim) {
        // "libc.so.6 => /lib/libc.so.6 (0x7f…)", "/lib64/ld-linux-x86-64.so.2 (0x7f…)", "linux-vdso.so.1 (0x7f…)"
        let (name, rest) = line.split_once(" => ").unwrap_or((line, line));
        if rest == "not found" {
            return Err(name.to_owned());
        }
        let path = rest.rsplit_once(" (0x").map_or(rest, |(path, _)| path);
        if path.starts_with('/') {
            files.push(PathBuf::from(path));
        }
        // The loader is named by the path that programs have in them, and may be a link there.
        if name.starts_with('/') && name != line {
            files.push(PathBuf::from(name));
        }
    }
    Ok(files)
}

/// A word for the guest's shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What an entry of the archive holds.
enum Entry {
    Folder,
    Bytes(Vec<u8>),
    File(PathBuf),
}

/// The archive's entries by their paths, in which a folder comes before what is in it.
#[derive(Default)]
struct Tree(BTreeMap<String, Entry>);

impl Tree {
    fn add(&mut self, path: &str, entry: Entry) {
        let path = path.trim_start_matches('/');
        for (end, _) in path.match_indices('/') {
            self.0
                .entry(path[..end].to_owned())
                .or_insert(Entry::Folder);
        }
        self.0.insert(path.to_owned(), entry);
    }

    fn folder(&mut self, path: &str) {
        self.add(path, Entry::Folder);
    }

    fn text(&mut self, path: &str, text: &str) {
        self.bytes(path, text.as_bytes());
    }

    fn bytes(&mut self, path: &str, bytes: &[u8]) {
        self.add(path, Entry::Bytes(bytes.to_vec()));
    }

    fn file(&mut self, path: &str, file: PathBuf) {
        self.add(path, Entry::File(file));
    }

    fn write(&self, archive: &Path) -> Outcome {
        let unwritable = |e| Failure::io("write", archive, &e);
        let mut out = BufWriter::new(File::create(archive).map_err(unwritable)?);
        for (number, (path, entry)) in (1_u32..).zip(&self.0) {
            let builder = |mode| Builder::new(path).ino(number).mode(mode);
            out = match entry {
                Entry::Folder => put(builder(FOLDER), out, &[]),
                Entry::Bytes(bytes) => put(builder(EXECUTABLE), out, bytes),
                Entry::File(file) => {
                    let bytes = std::fs::read(file).map_err(|e| Failure::io("read", file, &e))?;
                    put(builder(EXECUTABLE), out, &bytes)
                }
            }
            .map_err(unwritable)?;
        }
        newc::trailer(out)
            .and_then(|mut out| out.flush())
            .map_err(unwritable)
    }
}

/// Writes one entry.
fn put<W: Write>(builder: Builder, out: W, bytes: &[u8]) -> io::Result<W> {
    let size = u32::try_from(bytes.len())
        .map_err(|_| io::Error::other("a file of 4 GiB or more does not fit into the archive"))?;
    let mut writer = builder.write(out, size);
    writer.write_all(bytes)?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_ldd_lists() {
        let list = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f1e)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f1f)\n";
        let files = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(loaded(list).unwrap(), files.map(PathBuf::from));
        let linked = "\t/lib64/ld-linux-x86-64.so.2 => /opt/ld.so (0x00007f1f)\n";
        let files = ["/opt/ld.so", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(loaded(linked).unwrap(), files.map(PathBuf::from));
        assert!(loaded("\tstatically linked\n").unwrap().is_empty());
        let lacking = loaded("\tlibpcap.so.0.8 => not found\n");
        assert_eq!(lacking, Err("libpcap.so.0.8".to_owned()));
    }

    #[test]
    fn folders_come_before_what_is_in_them() {
        let mut tree = Tree::default();
        tree.text("/lib/a/b.so", "x");
        tree.text("bin/sh", "y");
        let paths: Vec<_> = tree.0.keys().map(String::as_str).collect();
        assert_eq!(paths, ["bin", "bin/sh", "lib", "lib/a", "lib/a/b.so"]);
    }

    #[test]
    fn the_archive_reads_back() {
        let file = std::env::temp_dir().join(format!("fcn-lab-archive-{}", std::process::id()));
        let mut tree = Tree::default();
        tree.text("bin/one", "1\n");
        tree.file("bin/two", PathBuf::from("/no/such/file"));
        let failure = tree.write(&file).unwrap_err().to_string();
        assert!(
            failure.starts_with("cannot read /no/such/file"),
            "{failure}"
        );
        tree.text("bin/two", "");
        tree.write(&file).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let mut rest = bytes.as_slice();
        let mut found = Vec::new();
        loop {
            let reader = newc::Reader::new(rest).unwrap();
            let entry = reader.entry();
            if entry.is_trailer() {
                break;
            }
            found.push((entry.name().to_owned(), entry.mode(), entry.file_size()));
            rest = reader.finish().unwrap();
        }
        let expected = [
            ("bin".to_owned(), FOLDER, 0),
            ("bin/one".to_owned(), EXECUTABLE, 2),
            ("bin/two".to_owned(), EXECUTABLE, 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_shell_gets_words_as_they_are() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn a_program_comes_with_its_libraries() {
        let program = Program::of(Path::new("/bin/sh")).unwrap();
        assert_eq!(program.name, "sh");
        assert!(program.libraries.iter().all(|library| library.is_file()));
        assert!(Program::of(Path::new("/no/such/program")).is_err());
    }
}
