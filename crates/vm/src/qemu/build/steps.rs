// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds QEMU: fetches the source, adds schedlab's part, compiles, and puts program and firmware
//! into the cache. Nothing outside the cache changes.

use super::recipe::{Missing, Recipe};
use super::{Build, DIR, FIRMWARE, MARK, PROGRAM, write};
use crate::apt::{self, Apt};
use crate::{Cache, VmError};
use schedlab_run::sha::sha256;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What to do without the archive.
const ADVICE: &str = "QEMU's source is fetched with apt from Debian's archive";
/// The build reports each such part of its steps, in percent.
const REPORTED_PERCENT: u32 = 20;

/// A build under way.
struct Work<'a> {
    recipe: Recipe,
    /// Directory of everything temporary.
    dir: tempfile::TempDir,
    /// Where the output of all commands is kept.
    log: PathBuf,
    say: &'a dyn Fn(&str),
}

/// Builds QEMU by this program's recipe with so many compilers at a time.
pub fn build(cache: &Cache, nr_jobs: usize, say: &dyn Fn(&str)) -> Result<Build, VmError> {
    let missing = Recipe::missing();
    if missing != Missing(Vec::new()) {
        return Err(VmError::Unavailable(missing.to_string()));
    }
    let root = cache.dir(DIR)?;
    let lock = root.join("lock");
    let lock = File::create(&lock).map_err(|error| VmError::file("write", &lock, &error))?;
    lock.lock().map_err(|error| VmError::file("lock", &root, &error))?;
    let dir = tempfile::Builder::new().prefix(".work-").tempdir_in(&root);
    let dir = dir.map_err(|error| VmError::file("make a directory in", &root, &error))?;
    let log = root.join("build.log");
    File::create(&log).map_err(|error| VmError::file("write", &log, &error))?;
    let work = Work { recipe: Recipe::default(), dir, log, say };
    let build = work.build(cache, nr_jobs)?;
    let (new, place) = (work.path("new"), root.join(&build.recipe));
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|error| VmError::file("replace", &place, &error))?;
    }
    fs::rename(&new, &place).map_err(|error| VmError::file("write", &place, &error))?;
    Ok(build)
}

impl Work<'_> {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn make_dir(&self, name: &str) -> Result<PathBuf, VmError> {
        let path = self.path(name);
        fs::create_dir_all(&path).map_err(|error| VmError::file("make", &path, &error))?;
        Ok(path)
    }

    fn build(&self, cache: &Cache, nr_jobs: usize) -> Result<Build, VmError> {
        let source = self.fetch(cache)?;
        let source_sha256 = hash(&source)?;
        let new = self.make_dir("new")?;
        let mut hashes = vec![source_sha256.clone()];
        hashes.extend(self.firmware(&new)?);
        self.unpack(&source)?;
        let id = self.recipe.build_id(&hashes);
        self.compile(&id, nr_jobs)?;
        let program = new.join(PROGRAM);
        copy(&self.path("build").join(PROGRAM), &program)?;
        let version = super::Qemu::start(&program)?.version;
        if !version.contains(&format!("{MARK}{id})")) {
            return Err(VmError::System(format!(
                "the built QEMU calls itself {version:?}, without the build's hash {id}"
            )));
        }
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let build = Build {
            recipe: self.recipe.sha256(),
            version,
            source: name,
            source_sha256,
            is_current: true,
        };
        write(&new, &build)?;
        Ok(build)
    }

    /// Fetches source, tools and firmware; returns the source. Tools and firmware are unpacked.
    fn fetch(&self, cache: &Cache) -> Result<PathBuf, VmError> {
        let suite = self.recipe.suite;
        let dir = cache.dir(&format!("apt/{suite}-source"))?;
        let apt = Apt::new(dir, suite, &["deb", "deb-src"], ADVICE)?;
        apt.update(self.say)?;
        (self.say)("downloading QEMU's source (40 MB)");
        let found = apt.download_source("qemu")?;
        let is_source = |path: &&PathBuf| path.to_string_lossy().ends_with(".orig.tar.xz");
        let source = apt::files_of(found.path()).into_iter().find(|path| is_source(&path));
        let source =
            source.ok_or_else(|| apt.failed("downloading qemu", "no *.orig.tar.xz came"))?;
        let kept = self.path(&source.file_name().unwrap_or_default().to_string_lossy());
        copy(&source, &kept)?;
        let firmware = self.recipe.firmware.iter().map(|(package, _)| *package);
        let packages = self.recipe.tools.iter().copied().chain(firmware);
        let debs = apt.download(&packages.map(str::to_owned).collect::<Vec<_>>())?;
        let root = self.make_dir("packages")?;
        for deb in apt::files_of(debs.path()) {
            apt::unpack(&deb, &root, ADVICE)?;
        }
        Ok(kept)
    }

    /// Puts the firmware into the new build, and returns the hash of each file.
    fn firmware(&self, new: &Path) -> Result<Vec<String>, VmError> {
        let to = new.join(FIRMWARE);
        fs::create_dir_all(&to).map_err(|error| VmError::file("make", &to, &error))?;
        let files = self.recipe.firmware.iter().flat_map(|(_, files)| files.iter());
        let put = |file: &&str| {
            let from = self.path("packages").join(file);
            copy(&from, &to.join(from.file_name().unwrap_or_default()))?;
            hash(&from)
        };
        files.map(put).collect()
    }

    /// Unpacks the source and adds schedlab's part.
    fn unpack(&self, source: &Path) -> Result<(), VmError> {
        let dir = self.make_dir("source")?;
        let mut command = Command::new("tar");
        command.arg("-xf").arg(source).args(["--strip-components=1", "-C"]).arg(&dir);
        self.run(command, "unpacking QEMU's source")?;
        let patch = self.path("hooks.patch");
        for (path, text) in self
            .recipe
            .added
            .iter()
            .map(|(path, text)| (dir.join(path), *text))
            .chain([(patch.clone(), self.recipe.patch)])
        {
            fs::write(&path, text).map_err(|error| VmError::file("write", &path, &error))?;
        }
        let mut command = Command::new("patch");
        command.args(["-p1", "--batch", "-i"]).arg(&patch).current_dir(&dir);
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        self.run(command, &format!("patching {name} (the patch is made for QEMU 10.0)"))
    }

    fn compile(&self, id: &str, nr_jobs: usize) -> Result<(), VmError> {
        let dir = self.make_dir("build")?;
        let modules = self.path("packages/usr/lib/python3/dist-packages");
        let with_tools = |program: &str| {
            let mut command = Command::new(program);
            command.current_dir(&dir).env("PYTHONPATH", &modules);
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command
        };
        (self.say)("configuring QEMU");
        let mut command = with_tools(&self.path("source/configure").to_string_lossy());
        command.args(self.recipe.configure).arg(format!("--with-pkgversion=schedlab {id}"));
        self.run(command, "configuring QEMU")?;
        (self.say)(&format!("compiling QEMU with {nr_jobs} compilers at a time"));
        let mut command = with_tools("ninja");
        command.arg(format!("-j{nr_jobs}")).arg(PROGRAM);
        self.run(command, "compiling QEMU")
    }

    /// Runs a command with its output in the log, and reports how far a compilation is.
    fn run(&self, mut command: Command, what: &str) -> Result<(), VmError> {
        let wrong = |error: std::io::Error| VmError::System(format!("{what}: {error}"));
        let mut log = File::options().append(true).open(&self.log).map_err(wrong)?;
        let errors = log.try_clone().map_err(wrong)?;
        command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().map_err(wrong)?;
        let mut reported = 0;
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).split(b'\n'))
        {
            let line = line.map_err(wrong)?;
            log.write_all(&[&line[..], b"\n"].concat()).map_err(wrong)?;
            let percent = percent_of(&String::from_utf8_lossy(&line)).unwrap_or(0);
            if percent / REPORTED_PERCENT > reported {
                reported = percent / REPORTED_PERCENT;
                (self.say)(&format!("{what}: {percent} %"));
            }
        }
        if child.wait().map_err(wrong)?.success() {
            return Ok(());
        }
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let is_error = |line: &&str| line.to_lowercase().contains("error");
        let cause = text.lines().rev().find(is_error).or(text.lines().last()).unwrap_or_default();
        let log = self.log.display();
        Err(VmError::Unavailable(format!("{what} failed: {cause}. The output is in {log}")))
    }
}

/// Reads ninja's `[12/345] Compiling ...`.
fn percent_of(line: &str) -> Option<u32> {
    let (done, rest) = line.strip_prefix('[')?.split_once('/')?;
    let (all, _) = rest.split_once(']')?;
    let (done, all): (u32, u32) = (done.parse().ok()?, all.parse().ok()?);
    done.checked_mul(100)?.checked_div(all)
}

fn hash(path: &Path) -> Result<String, VmError> {
    let bytes = fs::read(path).map_err(|error| VmError::file("read", path, &error))?;
    Ok(sha256(&bytes))
}

fn copy(from: &Path, to: &Path) -> Result<(), VmError> {
    fs::copy(from, to).map(drop).map_err(|error| VmError::file("copy", from, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(dir: &Path) -> Work<'static> {
        let log = dir.join("build.log");
        fs::write(&log, "").unwrap();
        let recipe = Recipe::default();
        Work { recipe, dir: tempfile::tempdir_in(dir).unwrap(), log, say: &|_| () }
    }

    #[test]
    fn progress_is_read_from_ninjas_lines() {
        assert_eq!(percent_of("[650/1300] Compiling C object x.c.o"), Some(50));
        for line in ["ninja: x", "[1/0] x", "[x/2] y", "[1/2", "[4294967295/1] z"] {
            assert_eq!(percent_of(line), None, "{line}");
        }
    }

    #[test]
    fn a_failed_step_names_its_cause_and_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let work = work(dir.path());
        let sh = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            work.run(command, "trying")
        };
        assert!(sh("echo all well").is_ok());
        let text =
            sh("echo ERROR: glib is too old; echo more >&2; exit 1").unwrap_err().to_string();
        assert!(text.starts_with("trying failed: ERROR: glib is too old"), "{text}");
        assert!(text.ends_with("build.log"), "{text}");
        assert_eq!(fs::read_to_string(&work.log).unwrap().lines().next(), Some("all well"));
    }

    /// A source of another version, which the patch does not fit, is refused.
    #[test]
    fn a_source_that_the_patch_does_not_fit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let work = work(dir.path());
        let tree = dir.path().join("qemu-99");
        for (path, _) in work.recipe.added {
            fs::create_dir_all(tree.join(path).parent().unwrap()).unwrap();
        }
        fs::write(tree.join("accel/tcg/icount-common.c"), "other\n").unwrap();
        let source = dir.path().join("qemu_99.orig.tar.xz");
        let mut command = Command::new("tar");
        command.arg("-cJf").arg(&source).arg("-C").arg(dir.path()).arg("qemu-99");
        if !command.status().is_ok_and(|status| status.success()) {
            return schedlab_testing::skip("tar or xz is not installed");
        }
        let text = work.unpack(&source).unwrap_err().to_string();
        assert!(text.contains("qemu_99") && text.contains("made for QEMU 10.0"), "{text}");
        let added = work.path("source/accel/tcg/rounds.c");
        assert!(fs::read_to_string(added).unwrap().contains("rounds_run"));
    }
}
