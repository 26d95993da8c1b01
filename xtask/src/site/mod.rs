// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the static site: the simulator as WebAssembly inside a script, and pages that need no
//! server. Scripts and style sheets of the report are shared.

mod docs;
mod gallery;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";
const PACKAGE: &str = "schedlab-web";

/// The whole site may have this size, each file compressed with gzip.
const BYTES_MAX: usize = 2 << 20;

/// Style sheets, in order; the last one overrides the others for phone and print.
const STYLES: [&str; 5] = [
    "crates/report/assets/page.css",
    "crates/report/assets/chart.css",
    "crates/report/assets/figures.css",
    "site/site.css",
    "crates/report/assets/media.css",
];

/// The schema of workload files, from which the playground proposes keys and values.
const SCHEMA: &str = "docs/reference/workload.schema.json";

/// The scripts of the playground, in order.
const PLAYGROUND: [&str; 12] = [
    "crates/report/assets/data.js",
    "crates/report/assets/tables.js",
    "crates/report/assets/timeline.js",
    "site/play/workload.js",
    "site/play/link.js",
    "site/play/state.js",
    "site/play/draw.js",
    "site/play/why.js",
    "site/play/measures.js",
    "site/play/complete.js",
    "site/play/form.js",
    "site/play/playground.js",
];

/// The script of the documentation's pages.
const SEARCH: &str = "site/search.js";

/// Folder of the documentation, in the repository and in the site.
const DOCS: &str = "docs";

/// The scripts of the exercises, in order.
const EXERCISES: [&str; 6] = [
    "crates/report/assets/data.js",
    "crates/report/assets/tables.js",
    "site/play/workload.js",
    "site/play/link.js",
    "site/play/state.js",
    "site/exercises.js",
];

/// A page loads the simulator's script and nothing else: no request leaves the site, and a policy
/// that came with a link reaches no server.
const POLICY: &str = "default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' \
                      blob:; worker-src blob:; style-src 'self'; img-src 'self' data: blob:; \
                      base-uri 'none'; form-action 'none'";

/// Builds the site into `target/site`. Prints the size of each file.
pub fn build(root: &Path, target: &Path) -> Result<(), String> {
    let module = simulator(root, target)?;
    let program = crate::built("schedlab")?;
    let out = target.join("site");
    match fs::remove_dir_all(&out) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("cannot remove {}: {error}", out.display()));
        }
        _ => {}
    }
    let mut site = Site { root: root.into(), out, sizes: Vec::new() };
    site.engine(&module)?;
    let styles = site.texts(&STYLES)?;
    site.write("style.css", &styles)?;
    site.page("playground.html", "Playground", &PLAYGROUND)?;
    site.page("exercises.html", "Exercises", &EXERCISES)?;
    site.page("index.html", "schedlab", &[])?;
    site.documentation(&program, &target.join("gallery"))?;
    site.write("notices.txt", &crate::notices::of(root, &[PACKAGE], TARGET)?)?;
    site.check_size()
}

/// Builds the simulator for wasm32. `wasm-opt` makes it smaller where it is installed.
fn simulator(root: &Path, target: &Path) -> Result<Vec<u8>, String> {
    let mut build = crate::cargo();
    build.args(["build", "--profile", "web", "--lib", "--target", TARGET, "--package", PACKAGE]);
    if !crate::run(&mut build) {
        return Err(format!("{PACKAGE} does not build for {TARGET}"));
    }
    let built = target.join(TARGET).join("web/schedlab_web.wasm");
    let smaller = built.with_extension("small.wasm");
    let mut shrink = Command::new("wasm-opt");
    shrink.args(["-O3", "--enable-bulk-memory", "--enable-nontrapping-float-to-int"]);
    shrink.args(["--enable-sign-ext", "--enable-mutable-globals", "--enable-multivalue"]);
    shrink.args(["--enable-reference-types"]).arg(&built).arg("-o").arg(&smaller);
    let is_smaller = shrink.current_dir(root).status().is_ok_and(|status| status.success());
    read(if is_smaller { &smaller } else { &built })
}

/// The site under construction.
struct Site {
    root: PathBuf,
    out: PathBuf,
    /// Name and compressed size of each file.
    sizes: Vec<(String, usize)>,
}

impl Site {
    /// The script with the simulator and its worker.
    fn engine(&mut self, module: &[u8]) -> Result<(), String> {
        let packed = base64::engine::general_purpose::STANDARD.encode(gzip(module)?);
        let worker = self.texts(&["crates/script/src/policy.js", "site/worker/worker.js"])?;
        let worker = serde_json::to_string(&worker).map_err(|error| error.to_string())?;
        let engine = self.text("site/engine.js")?;
        let script = format!(
            "\"use strict\";\nconst SIMULATOR = \"{packed}\";\nconst WORKER = {worker};\n{engine}"
        );
        self.write("engine.js", &script)
    }

    /// A page with its scripts. Pages with scripts load the simulator.
    fn page(&mut self, name: &str, title: &str, scripts: &[&str]) -> Result<(), String> {
        let body = self.text(&format!("site/{name}"))?.replace("{{nav}}", &nav(name, ""));
        let code = match scripts.is_empty() {
            true => String::new(),
            false => format!(
                "<script src=\"engine.js\"></script>\n<script>\n\"use strict\";\n{}{}</script>\n",
                self.schema(scripts)?,
                self.texts(scripts)?
            ),
        };
        self.write(name, &whole(title, "", &format!("{body}{code}")))
    }

    /// The schema of workload files as a constant, if one of the scripts needs it.
    fn schema(&self, scripts: &[&str]) -> Result<String, String> {
        match scripts.contains(&"site/play/complete.js") {
            true => Ok(format!("const WORKLOAD_SCHEMA = {};\n", self.text(SCHEMA)?.trim_end())),
            false => Ok(String::new()),
        }
    }

    /// The pages in docs/, the files that they show, and the index of the search.
    fn documentation(&mut self, program: &Path, work: &Path) -> Result<(), String> {
        let mut files = Vec::new();
        listed(&self.root.join(DOCS), Path::new(""), &mut files)?;
        files.sort();
        let mut sections = Vec::new();
        for path in files {
            let place = format!("{DOCS}/{path}");
            if !path.ends_with(".md") {
                let bytes = read(&self.root.join(&place))?;
                self.write_bytes(&place, &bytes)?;
                continue;
            }
            let mut text = self.text(&place)?;
            if path == gallery::PAGE {
                let made = gallery::make(&self.root, program, work, &text)?;
                for (name, bytes) in made.files {
                    self.write_bytes(&format!("{DOCS}/{name}"), &bytes)?;
                }
                text = made.text;
            }
            let page = docs::page(&path, &text);
            let up = "../".repeat(docs::depth(&page.address));
            let text = whole(&page.title, &up, &document(&page, &up));
            self.write(&format!("{DOCS}/{}", page.address), &text)?;
            sections.extend(page.sections);
        }
        let index = serde_json::to_string(&sections).map_err(|error| error.to_string())?;
        let search = self.text(SEARCH)?;
        self.write("search.js", &format!("\"use strict\";\nconst SECTIONS = {index};\n{search}"))
    }

    fn text(&self, path: &str) -> Result<String, String> {
        let bytes = read(&self.root.join(path))?;
        String::from_utf8(bytes).map_err(|error| format!("{path}: {error}"))
    }

    fn texts(&self, paths: &[&str]) -> Result<String, String> {
        paths.iter().map(|path| self.text(path)).collect()
    }

    fn write(&mut self, name: &str, text: &str) -> Result<(), String> {
        self.write_bytes(name, text.as_bytes())
    }

    fn write_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.out.join(name);
        let folder = path.parent().unwrap_or(&self.out);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        self.sizes.push((name.into(), gzip(bytes)?.len()));
        Ok(())
    }

    /// Prints the sizes. An error if they are more than a reader should wait for.
    fn check_size(&self) -> Result<(), String> {
        for (name, size) in &self.sizes {
            println!("{size:>9}  {name}");
        }
        let sum: usize = self.sizes.iter().map(|(_, size)| size).sum();
        println!("{sum:>9}  in all, compressed; at most {BYTES_MAX}");
        match sum > BYTES_MAX {
            true => Err(format!("the site has {sum} bytes, compressed: allowed are {BYTES_MAX}")),
            false => Ok(()),
        }
    }
}

/// A whole file: head and body. `up` leads from the page to the site's folder.
fn whole(title: &str, up: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <link rel=\"stylesheet\" href=\"{up}style.css\">\n</head>\n<body>\n\
         {body}</body>\n</html>\n"
    )
}

/// The body of a page of the documentation.
fn document(page: &docs::Page, up: &str) -> String {
    let link =
        |(id, text): &(String, String)| format!("<li><a href=\"#{id}\">{}</a></li>", escaped(text));
    let contents: String = page.contents.iter().map(link).collect();
    let contents = match page.contents.len() {
        0 | 1 => String::new(),
        _ => format!(
            "<nav class=\"contents\" aria-label=\"On this page\"><ul>{contents}</ul></nav>\n"
        ),
    };
    format!(
        "<header>\n{}\n<form role=\"search\" id=\"search\" data-up=\"{up}\">\n\
         <label for=\"words\">Search the documentation</label> \
         <input id=\"words\" type=\"search\" autocomplete=\"off\">\n\
         <p id=\"found\" role=\"status\"></p>\n\
         <ol id=\"places\"></ol>\n</form>\n\
         {contents}</header>\n<main class=\"document\">\n{}</main>\n\
         <script src=\"{up}search.js\"></script>\n",
        nav("docs/index.html", up),
        page.body
    )
}

/// Links to the parts of the site; the present one is marked. `up` leads to the site's folder.
fn nav(here: &str, up: &str) -> String {
    let parts = [
        ("index.html", "Home"),
        ("playground.html", "Playground"),
        ("exercises.html", "Exercises"),
        ("docs/index.html", "Documentation"),
    ];
    let links = parts.map(|(name, text)| {
        let mark = if name == here { " aria-current=\"page\"" } else { "" };
        format!("<li><a href=\"{up}{name}\"{mark}>{text}</a></li>")
    });
    format!("<nav aria-label=\"Site\"><ul>{}</ul></nav>", links.concat())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The files in `folder` and below, by their paths from there.
fn listed(folder: &Path, from: &Path, files: &mut Vec<String>) -> Result<(), String> {
    let error = |error| format!("cannot list {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        let path = from.join(entry.file_name());
        if entry.path().is_dir() {
            listed(&entry.path(), &path, files)?;
        } else {
            files.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    packed.map_err(|error| format!("cannot compress: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_page_is_marked() {
        let nav = nav("playground.html", "../");
        assert!(nav.contains("<a href=\"../playground.html\" aria-current=\"page\">"));
        assert_eq!(nav.matches("aria-current").count(), 1);
    }

    #[test]
    fn a_site_that_is_too_big_is_refused() {
        let site = |size| Site {
            root: PathBuf::new(),
            out: PathBuf::new(),
            sizes: vec![("a".into(), size), ("b".into(), 1)],
        };
        assert!(site(BYTES_MAX - 1).check_size().is_ok());
        assert!(site(BYTES_MAX).check_size().unwrap_err().contains("allowed are 2097152"));
    }

    #[test]
    fn every_script_and_style_sheet_exists() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        for path in STYLES.iter().chain(&PLAYGROUND).chain(&EXERCISES).chain([&SEARCH, &SCHEMA]) {
            assert!(root.join(path).is_file(), "{path}");
        }
    }
}
