//! Commands in a Markdown page, with the output that the page shows. Commands follow `$ ` in blocks
//! of the language `console`, and in indented blocks, where `$ ` is optional.

use std::ops::Range;

/// Placeholder for omitted lines, and within a line for text that differs from run to run.
const LEFT_OUT: &str = "…";

/// Programs that mark indented lines without `$ ` as commands.
const PROGRAMS: [&str; 8] = [
    "cargo",
    "fcn-gen",
    "fcn-replay",
    "fcn-top",
    "sudo",
    "systemctl",
    "tcpdump",
    "tshark",
];

/// A command of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The command, without the remark after `  #`.
    pub command: String,
    /// Its line number in the page, from 1.
    pub line: usize,
    /// Lines of the page, from 0, that show its output.
    pub output: Range<usize>,
    /// Indentation of these lines.
    pub indent: usize,
}

/// Returns the commands of a page, in order.
///
/// # Errors
/// A block has no language, or one that hides its commands from this function.
pub fn commands(page: &str) -> Result<Vec<Shown>, String> {
    let mut found: Vec<Shown> = Vec::new();
    let mut fence: Option<&str> = None;
    // True if the last line belongs to the block of the last command.
    let mut goes_on = false;
    let mut blank = true;
    for (number, line) in page.lines().enumerate() {
        let is_blank = line.trim().is_empty();
        if let Some(language) = line.strip_prefix("```") {
            (fence, goes_on) = (fence.is_none().then_some(language), false);
            if fence.is_some_and(|language| ["", "sh", "bash", "shell"].contains(&language)) {
                return Err(format!("line {}: a block without `console`", number + 1));
            }
            continue;
        }
        let indent = match fence {
            Some("console") => 0,
            None if line.starts_with("    ") && (blank || goes_on) => 4,
            _ => {
                goes_on = goes_on && fence.is_none() && is_blank;
                blank = is_blank;
                continue;
            }
        };
        let text = &line[indent..];
        let bare = indent > 0 && PROGRAMS.contains(&text.split(' ').next().unwrap_or_default());
        if let Some(command) = text.strip_prefix("$ ").or(bare.then_some(text)) {
            let command = command.split("  #").next().unwrap_or(command);
            let command = command.trim_end().to_owned();
            let (line, output) = (number + 1, number + 1..number + 1);
            found.push(Shown {
                command,
                line,
                output,
                indent,
            });
            goes_on = true;
        } else if goes_on
            && !is_blank
            && let Some(last) = found.last_mut()
        {
            last.output.end = number + 1;
        }
        // A line within an indented block, in which another command may follow.
        blank = indent > 0 || is_blank;
    }
    Ok(found)
}

impl Shown {
    /// Returns the lines of the page that show the output.
    #[must_use]
    pub fn lines<'p>(&self, page: &'p str) -> Vec<&'p str> {
        let lines = page.lines().skip(self.output.start).take(self.output.len());
        lines
            .map(|line| line.get(self.indent..).unwrap_or_default())
            .collect()
    }

    /// Returns the page with its output replaced by this one: as many lines before and after the
    /// omitted ones.
    #[must_use]
    pub fn with(&self, page: &str, output: &str) -> String {
        let shown = self.lines(page);
        let printed: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
        let new: Vec<&str> = match shown.iter().position(|line| *line == LEFT_OUT) {
            None => printed,
            Some(before) => {
                let behind = shown.len() - before - 1;
                let before = before.min(printed.len());
                let from = printed.len().saturating_sub(behind).max(before);
                let left_out = std::iter::once(LEFT_OUT);
                let head = printed[..before].iter().copied();
                head.chain(left_out)
                    .chain(printed[from..].iter().copied())
                    .collect()
            }
        };
        let indented = |line: &&str| match line.is_empty() {
            true => String::new(),
            false => format!("{}{line}", " ".repeat(self.indent)),
        };
        let lines: Vec<String> = page.lines().map(str::to_owned).collect();
        let mut all = lines[..self.output.start].to_vec();
        all.extend(new.iter().map(indented));
        all.extend_from_slice(&lines[self.output.end..]);
        all.join("\n") + "\n"
    }
}

/// True if the output shown matches the printed one, apart from omissions.
#[must_use]
pub fn is_shown(shown: &[&str], printed: &str) -> bool {
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    lines_match(shown, &printed)
}

fn lines_match(shown: &[&str], printed: &[&str]) -> bool {
    let Some((line, rest)) = shown.split_first() else {
        return printed.is_empty();
    };
    if *line == LEFT_OUT {
        return (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..]));
    }
    let Some((first, others)) = printed.split_first() else {
        return false;
    };
    line_matches(line, first) && lines_match(rest, others)
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let parts: Vec<&str> = shown.split(LEFT_OUT).collect();
    let [first, middle @ .., last] = parts.as_slice() else {
        return shown == printed;
    };
    let inner = printed
        .strip_prefix(first)
        .and_then(|rest| rest.strip_suffix(last));
    let Some(mut inner) = inner else {
        return false;
    };
    middle.iter().all(|part| match inner.find(part) {
        Some(at) => {
            inner = &inner[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Title\n\n```console\n$ one a   # said\n$ two\nfirst\n\nlast\n```\n\n    fcn-top -r x\n    $ three\n     out\n\n    more\n\n- list\n    text\n\n```text\n$ no\n```\n";

    #[test]
    fn commands_are_found_with_their_output() {
        let found = commands(PAGE).unwrap();
        let names: Vec<&str> = found.iter().map(|shown| shown.command.as_str()).collect();
        assert_eq!(names, ["one a", "two", "fcn-top -r x", "three"]);
        assert_eq!(found[1].lines(PAGE), ["first", "", "last"]);
        assert!(found[0].output.is_empty() && found[2].output.is_empty());
        assert_eq!(found[3].lines(PAGE), [" out", "", "more"]);
        assert_eq!(found[3].line, 12);
        assert!(commands("```\n$ x\n```\n").is_err());
    }

    #[test]
    fn output_is_compared_except_for_omissions() {
        assert!(is_shown(&["a", "…", "z"], "a\nb\nz\n") && is_shown(&["a", "…"], "a\n"));
        assert!(!is_shown(&["a", "…", "z"], "a\nb\n") && !is_shown(&["a"], "a\nb\n"));
        assert!(is_shown(&["took … ms, …"], "took 12 ms, or so\n"));
        assert!(is_shown(&["… and 9"], "… and 9") && !is_shown(&["a…a"], "a"));
    }

    #[test]
    fn shown_output_is_replaced_and_omissions_are_kept() {
        let found = commands(PAGE).unwrap();
        let page = found[1].with(PAGE, "x\ny\n");
        assert!(page.contains("$ two\nx\ny\n```\n"), "{page}");
        let page = found[3].with(PAGE, "1\n\n2\n");
        assert!(
            page.contains("    $ three\n    1\n\n    2\n\n- list"),
            "{page}"
        );
        let page = PAGE.replace("first\n\nlast", "first\n…\nlast");
        let page = commands(&page).unwrap()[1].with(&page, "1\n2\n3\n4\n");
        assert!(page.contains("$ two\n1\n…\n4\n```"), "{page}");
    }
}
