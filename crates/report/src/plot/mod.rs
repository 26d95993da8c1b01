// SPDX-License-Identifier: MIT OR Apache-2.0
//! Static pictures. The only place that knows the drawing library (kuva, pinned): a change of its
//! interface stops here. The same scene gives SVG and PNG.

mod axes;
mod panels;
mod scale;
mod sweep;
mod timeline;

pub use axes::{boxes_scene, curves_scene, progress_scene};
pub use panels::panels_scene;
pub use sweep::{sweep_bars_scene, sweep_lines_scene};
pub use timeline::timeline_scene;

use kuva::backend::png::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, TextAnchor};
use kuva::render::theme::Theme;

/// Where a picture will stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    /// In the HTML page: no background, and the style sheet replaces [`TEXT`], [`AXIS`] and
    /// [`GRID`] by the colours of the light or dark page.
    Inline,
    /// In a file of its own: on white.
    File,
}

/// Colour of text; the style sheet knows it.
pub const TEXT: &str = "#111110";
/// Colour of axes; the style sheet knows it.
pub const AXIS: &str = "#77746e";
/// Colour of grid lines; the style sheet knows it.
pub const GRID: &str = "#e4e1d9";

/// Fonts of pictures.
pub const FONTS: &str = "system-ui, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";

/// The look of all pictures.
pub fn theme(ink: Ink) -> Theme {
    Theme {
        background: if ink == Ink::Inline { "none".into() } else { "white".into() },
        axis_color: AXIS.into(),
        grid_color: GRID.into(),
        tick_color: AXIS.into(),
        text_color: TEXT.into(),
        legend_bg: if ink == Ink::Inline { "none".into() } else { "white".into() },
        legend_border: "none".into(),
        box_median: TEXT.into(),
        font_family: Some(FONTS.into()),
        ..Theme::light()
    }
}

/// Writes a text with its anchor at a place.
fn text(
    scene: &mut Scene,
    (x, y): (f64, f64),
    content: &str,
    size: u32,
    bold: bool,
    anchor: TextAnchor,
) {
    scene.add(Primitive::Text {
        x,
        y,
        content: literal(content),
        size,
        anchor,
        rotate: None,
        bold,
        color: Some(Color::from(TEXT)),
    });
}

/// `text` so that the library draws it as it is: it would read `$...$` as a formula.
pub fn literal(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect::<String>()
        .replace('$', "\\$")
}

/// The scene as SVG; equal scenes give equal text.
pub fn svg(scene: &Scene) -> String {
    renumber_clips(&SvgBackend::new().render_scene(scene), "plot")
}

/// The scene as SVG for the page. Pictures in one page share one space of ids, so those of clip
/// paths get `prefix`: the browser would else clip by a path of another, perhaps hidden, picture.
pub fn svg_inline(scene: &Scene, prefix: &str) -> String {
    let svg = renumber_clips(&SvgBackend::new().render_scene(scene), prefix);
    // Without it a narrower page cuts the picture off instead of shrinking it.
    let (width, height) = (scene.width, scene.height);
    svg.replacen("<svg ", &format!("<svg viewBox=\"0 0 {width} {height}\" "), 1)
}

/// Names clip paths `PREFIX-clip-0`, `PREFIX-clip-1` ... in order of appearance. The library
/// numbers them by a counter of the whole process, which would make equal scenes differ.
fn renumber_clips(svg: &str, prefix: &str) -> String {
    let mut out = String::with_capacity(svg.len());
    let mut known: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find("kuva-clip-") {
        let (before, found) = rest.split_at(at);
        let number = &found["kuva-clip-".len()..];
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(digits);
        let index = known.iter().position(|k| *k == number).unwrap_or_else(|| {
            known.push(number);
            known.len() - 1
        });
        out += before;
        out += &format!("{prefix}-clip-{index}");
        rest = after;
    }
    out + rest
}

/// The scene as PNG, two pixels for each unit.
pub fn png(scene: &Scene) -> Result<Vec<u8>, String> {
    PngBackend::new().with_scale(2.0).render_scene(scene)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clip_paths_are_named_by_place_not_by_process() {
        let svg = "<clipPath id=\"kuva-clip-17\"/><g clip-path=\"url(#kuva-clip-17)\"/>\
                   <clipPath id=\"kuva-clip-4\"/>";
        assert_eq!(
            renumber_clips(svg, "a"),
            "<clipPath id=\"a-clip-0\"/><g clip-path=\"url(#a-clip-0)\"/>\
             <clipPath id=\"a-clip-1\"/>"
        );
    }

    #[test]
    fn dollars_and_control_characters_are_drawn_not_obeyed() {
        assert_eq!(literal("a$b$\u{1}"), "a\\$b\\$\u{fffd}");
    }
}
