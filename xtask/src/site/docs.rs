// SPDX-License-Identifier: MIT OR Apache-2.0
//! The documentation of the site: the pages in docs/ as HTML, with an index that a page searches
//! without a server.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;
use std::collections::BTreeMap;

/// A part of a page: what a search finds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Section {
    /// Address of the page, from the folder of the documentation.
    pub page: String,
    /// Fragment of the heading; empty for the head of the page.
    pub id: String,
    /// Title of the page.
    pub title: String,
    /// The heading.
    pub heading: String,
    /// The text.
    pub text: String,
}

/// A page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// Address, from the folder of the documentation.
    pub address: String,
    /// Title: the first heading.
    pub title: String,
    /// The body as HTML.
    pub body: String,
    /// Headings of the second level: fragment and text.
    pub contents: Vec<(String, String)>,
    /// The parts of the page.
    pub sections: Vec<Section>,
}

/// The address of a page in docs/: `README.md` is the index.
pub fn address(path: &str) -> String {
    let path = match path.strip_suffix("README.md") {
        Some(folder) => format!("{folder}index"),
        None => path.trim_end_matches(".md").to_string(),
    };
    path + ".html"
}

/// How many folders up the site's own folder is from a page of the documentation.
pub fn depth(address: &str) -> usize {
    1 + address.matches('/').count()
}

/// Where a link of the page at `from` leads: to another page or a file; `None`: out of the
/// documentation, to files that the site does not have.
fn target(from: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") || link.starts_with('#') {
        return Some(link.into());
    }
    let (path, fragment) = match link.split_once('#') {
        Some((path, fragment)) => (path, format!("#{fragment}")),
        None => (link, String::new()),
    };
    let nr_up = path.split('/').take_while(|part| *part == "..").count();
    let leaves = nr_up > from.matches('/').count() || path.starts_with('/');
    match path.ends_with(".md") {
        _ if leaves => None,
        true => Some(address(path) + &fragment),
        false => Some(link.into()),
    }
}

/// The fragment of a heading, as GitHub makes it.
fn slug(heading: &str, taken: &mut BTreeMap<String, u32>) -> String {
    let mut made = String::new();
    for c in heading.to_lowercase().chars() {
        match c {
            ' ' | '-' => made.push('-'),
            c if c.is_alphanumeric() || c == '_' => made.push(c),
            _ => {}
        }
    }
    let count = taken.entry(made.clone()).or_insert(0);
    *count += 1;
    if *count == 1 { made } else { format!("{made}-{}", *count - 1) }
}

/// Renders the page at `path` in docs/.
pub fn page(path: &str, text: &str) -> Page {
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let mut making = Making { page: address(path), ..Making::default() };
    for (at, event) in events.iter().enumerate() {
        making.add(event.clone(), &events[at + 1..]);
    }
    making.end_section();
    let mut body = String::new();
    html::push_html(&mut body, making.out.into_iter());
    // The pages allow no styles within elements.
    let body = body
        .replace(" style=\"text-align: right\"", " class=\"num\"")
        .replace(" style=\"text-align: left\"", "")
        .replace(" style=\"text-align: center\"", "");
    Page {
        address: making.page,
        title: making.title,
        body,
        contents: making.contents,
        sections: making.sections,
    }
}

/// A page under construction.
#[derive(Default)]
struct Making<'t> {
    page: String,
    title: String,
    out: Vec<Event<'t>>,
    contents: Vec<(String, String)>,
    sections: Vec<Section>,
    taken: BTreeMap<String, u32>,
    /// The section that is being read.
    id: String,
    heading: String,
    text: String,
    /// For each open link, whether it stays.
    links: Vec<bool>,
}

impl<'t> Making<'t> {
    /// Adds an event; `next` are those after it.
    fn add(&mut self, event: Event<'t>, next: &[Event<'t>]) {
        match &event {
            Event::Text(text) | Event::Code(text) => {
                self.text.push_str(text);
            }
            Event::End(TagEnd::Link | TagEnd::Emphasis | TagEnd::Strong) => {}
            Event::SoftBreak | Event::HardBreak | Event::End(_) => self.text.push(' '),
            _ => {}
        }
        match event {
            Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                let heading = heading_text(next);
                self.begin_section(level, &heading);
                let id = Some(CowStr::from(self.id.clone()));
                self.out.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let target = target(&self.page, &dest_url);
                self.links.push(target.is_some());
                if let Some(to) = target {
                    let dest_url = CowStr::from(to);
                    self.out.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if self.links.pop().unwrap_or(true) {
                    self.out.push(event);
                }
            }
            Event::Start(Tag::Table(_)) => {
                self.out.push(Event::Html("<div class=\"scroll\">".into()));
                self.out.push(event);
            }
            Event::End(TagEnd::Table) => {
                self.out.push(event);
                self.out.push(Event::Html("</div>\n".into()));
            }
            // Pages are ours, but a browser should not read markup from them all the same.
            Event::Html(text) | Event::InlineHtml(text) => self.out.push(Event::Text(text)),
            other => self.out.push(other),
        }
    }

    fn begin_section(&mut self, level: HeadingLevel, heading: &str) {
        self.end_section();
        if level == HeadingLevel::H1 && self.title.is_empty() {
            self.title = heading.into();
        }
        self.id = slug(heading, &mut self.taken);
        self.heading = heading.into();
        if level == HeadingLevel::H2 {
            self.contents.push((self.id.clone(), heading.into()));
        }
    }

    fn end_section(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.heading.is_empty() && text.is_empty() {
            return;
        }
        self.sections.push(Section {
            page: self.page.clone(),
            id: self.id.clone(),
            title: self.title.clone(),
            heading: self.heading.clone(),
            text,
        });
    }
}

/// The text of the heading that has just begun.
fn heading_text(next: &[Event<'_>]) -> String {
    let mut text = String::new();
    for event in next {
        match event {
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(part) | Event::Code(part) => text.push_str(part),
            Event::SoftBreak => text.push(' '),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_pages_of_the_site() {
        let of = |link| target("guide/a.html", link);
        assert_eq!(of("../reference/b.md#wait").unwrap(), "../reference/b.html#wait");
        assert_eq!(of("../README.md").unwrap(), "../index.html");
        assert_eq!(of("https://kernel.org/x.md").unwrap(), "https://kernel.org/x.md");
        assert_eq!(of("../../crates/sched"), None);
        assert_eq!(of("#here").unwrap(), "#here");
        assert_eq!(target("index.html", "../README.md"), None);
    }

    #[test]
    fn headings_have_fragments_and_sections() {
        let text = "# Title\n\nHead.\n\n## `a`, b\n\nOne [two](x.md).\n\n## a b\n\n<b>x</b>\n";
        let page = page("guide/t.md", text);
        assert_eq!((page.address.as_str(), page.title.as_str()), ("guide/t.html", "Title"));
        let ids: Vec<&str> = page.contents.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["a-b", "a-b-1"]);
        assert!(page.body.contains("<h2 id=\"a-b\">"), "{}", page.body);
        assert!(page.body.contains("<a href=\"x.html\">two</a>"), "{}", page.body);
        assert!(!page.body.contains("<b>"), "{}", page.body);
        assert_eq!(page.sections[1].text, "a, b One two.");
        assert_eq!((depth("index.html"), depth("guide/t.html")), (1, 2));
    }

    #[test]
    fn tables_can_be_scrolled() {
        let page = page("t.md", "# T\n\n| a |\n| ---: |\n| 1 |\n");
        assert!(page.body.contains("<div class=\"scroll\"><table>"), "{}", page.body);
        assert!(page.body.contains("</table>\n</div>"), "{}", page.body);
        assert!(page.body.contains("<td class=\"num\">1"), "{}", page.body);
    }
}
