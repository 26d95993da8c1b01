// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages: what `scripts/package.sh` makes of the built program works where it is unpacked.

use std::path::Path;
use std::process::Command;

/// Runs a command that must succeed; what it wrote to stdout.
fn run(program: &str, args: &[&str], dir: &Path) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("SCHEDLAB_PACK_LEVEL", "1")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn package(out: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/package.sh");
    let program = out.join("schedlab");
    std::fs::copy(env!("CARGO_BIN_EXE_schedlab"), &program).unwrap();
    run("strip", &["schedlab"], out);
    run(script, &["schedlab", "/bin/true", "."], out);
}

#[test]
fn packages_hold_programs_pages_and_completions() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a"), folder.path().join("b"));
    for dir in [&first, &second] {
        std::fs::create_dir(dir).unwrap();
        package(dir);
    }
    let sums = std::fs::read_to_string(first.join("SHA256SUMS")).unwrap();
    let again = std::fs::read_to_string(second.join("SHA256SUMS")).unwrap();
    assert_eq!(sums, again, "the same program gives the same bytes");

    let tarball = sums.lines().find(|line| line.ends_with(".tar.gz")).unwrap();
    let tarball = tarball.split_whitespace().nth(1).unwrap();
    run("tar", &["-xzf", tarball], &first);
    let tree = first.join(tarball.trim_end_matches(".tar.gz"));
    let program = tree.join("bin/schedlab");
    let listed = run(program.to_str().unwrap(), &["list", "schedulers"], &first);
    assert!(listed.contains("linux-6.12"), "{listed}");
    let usage = Command::new(tree.join("lab")).arg("build").output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&usage.stderr).contains("needs the source"));

    let deb = sums.lines().find(|line| line.ends_with(".deb"));
    let Some(deb) = deb.and_then(|line| line.split_whitespace().nth(1)) else {
        schedlab_testing::skip("dpkg-deb is not installed");
        return;
    };
    let contents = run("dpkg-deb", &["--contents", deb], &first);
    for file in [
        "./usr/bin/schedlab",
        "./usr/lib/schedlab/schedlab-guest",
        "./usr/share/man/man1/schedlab-sim.1.gz",
        "./usr/share/bash-completion/completions/schedlab",
        "./usr/share/zsh/vendor-completions/_schedlab",
        "./usr/share/fish/vendor_completions.d/schedlab.fish",
        "./usr/share/doc/schedlab/copyright",
    ] {
        assert!(contents.lines().any(|line| line.ends_with(file)), "{file}: {contents}");
    }
    let fields = run("dpkg-deb", &["--field", deb, "Package", "Version"], &first);
    assert!(fields.contains("Package: schedlab"), "{fields}");
}
