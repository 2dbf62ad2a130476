//! Bar charts as SVG: one group of bars per case, the median wall time as length; and bars that are
//! made of parts.
//!
//! Written by hand because a dozen lines of text need no drawing library. The colours are readable
//! on light and dark pages and told apart by people who do not see all colours.

use super::report::BenchReport;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 250.0;
const BAR: f64 = 18.0;
const GAP: f64 = 14.0;
const TOP: f64 = 44.0;
const COLOURS: [&str; 4] = ["#2f7ed8", "#e08a1e", "#3aa675", "#9b6fd0"];

pub(super) fn draw(report: &BenchReport) -> String {
    let longest = lengths(report).fold(f64::MIN_POSITIVE, f64::max);
    let mut body = String::new();
    let mut y = TOP;
    for case in &report.cases {
        for (index, alternative) in case.alternatives.iter().enumerate() {
            let wall = alternative.median(|sample| sample.wall_ms);
            let length = (wall / longest * (WIDTH - LABELS - 90.0)).max(1.0);
            let label = escape(&format!("{} · {}", case.name, alternative.name));
            let middle = y + BAR * 0.75;
            body.push_str(&format!(
                "<text x=\"{}\" y=\"{middle:.0}\" text-anchor=\"end\">{label}</text>\n\
                 <rect x=\"{LABELS}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"{}\" fill=\"{}\"/>\n\
                 <text x=\"{:.1}\" y=\"{middle:.0}\">{}</text>\n",
                LABELS - 8.0,
                BAR - 3.0,
                COLOURS[index % COLOURS.len()],
                LABELS + length + 6.0,
                duration(wall),
            ));
            y += BAR;
        }
        y += GAP;
    }
    let note = format!("median wall time, shorter is better; {}", report.machine);
    page(report.title, &note, y + 4.0, &body)
}

/// Bars of the same parts, in milliseconds.
pub(super) struct StackedBars<'a> {
    pub(super) title: &'a str,
    pub(super) note: String,
    pub(super) names: Vec<&'a str>,
    pub(super) bars: Vec<(&'a str, Vec<f64>)>,
}

pub(super) fn draw_parts(chart: &StackedBars<'_>) -> String {
    let sum = |parts: &[f64]| parts.iter().sum::<f64>();
    let longest = chart.bars.iter().map(|(_, parts)| sum(parts));
    let scale = (WIDTH - LABELS - 90.0) / longest.fold(f64::MIN_POSITIVE, f64::max);
    let mut body = String::new();
    let mut y = TOP;
    for (name, parts) in &chart.bars {
        let (mut x, middle) = (LABELS, y + BAR * 0.75);
        let label = escape(name);
        body.push_str(&format!(
            "<text x=\"{}\" y=\"{middle:.0}\" text-anchor=\"end\">{label}</text>\n",
            LABELS - 8.0
        ));
        for (index, part) in parts.iter().enumerate() {
            let (length, colour) = (part * scale, COLOURS[index % COLOURS.len()]);
            body.push_str(&format!(
                "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{length:.1}\" height=\"{}\" fill=\"{colour}\"/>\n",
                BAR - 3.0
            ));
            x += length;
        }
        let whole = duration(sum(parts));
        body.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{middle:.0}\">{whole}</text>\n",
            x + 6.0
        ));
        y += BAR + GAP;
    }
    let mut x = 8.0;
    for (index, name) in chart.names.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        body.push_str(&format!(
            "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\n\
             <text x=\"{:.0}\" y=\"{:.0}\">{}</text>\n",
            x + 14.0,
            y + 9.0,
            escape(name),
        ));
        x += 34.0 + name.len() as f64 * 6.2;
    }
    page(chart.title, &chart.note, y + BAR, &body)
}

fn page(title: &str, note: &str, height: f64, body: &str) -> String {
    let (title, note) = (escape(title), escape(note));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#808080\" role=\"img\">\n\
         <title>{title}</title>\n\
         <text x=\"8\" y=\"18\" font-size=\"15\">{title}</text>\n\
         <text x=\"8\" y=\"34\" font-size=\"10\">{note}</text>\n\
         {body}</svg>\n"
    )
}

fn lengths(report: &BenchReport) -> impl Iterator<Item = f64> {
    report
        .cases
        .iter()
        .flat_map(|case| &case.alternatives)
        .map(|alternative| alternative.median(|sample| sample.wall_ms))
}

fn duration(milliseconds: f64) -> String {
    if milliseconds < 1000.0 {
        format!("{milliseconds:.1} ms")
    } else {
        format!("{:.2} s", milliseconds / 1000.0)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::example;

    #[test]
    fn each_alternative_has_a_bar_in_proportion() {
        let svg = draw(&example());
        let widths: Vec<f64> = svg
            .split("<rect ")
            .skip(1)
            .map(|rect| {
                rect.split("width=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
            })
            .map(|width| width.parse().unwrap())
            .collect();
        assert_eq!(widths.len(), 2);
        assert!((widths[1] / widths[0] - 2.0).abs() < 0.01, "{widths:?}");
    }

    #[test]
    fn parts_follow_each_other_and_fill_the_bar() {
        let svg = draw_parts(&StackedBars {
            title: "t",
            note: String::new(),
            names: vec!["one", "two"],
            bars: vec![("long", vec![30.0, 10.0]), ("short", vec![10.0, 10.0])],
        });
        let value = |rect: &str, name: &str| -> f64 {
            let text = rect.split(&format!(" {name}=\"")).nth(1).unwrap();
            text.split('"').next().unwrap().parse().unwrap()
        };
        let rects: Vec<_> = svg.split("<rect").skip(1).collect();
        assert_eq!(rects.len(), 6, "four parts and two for the legend: {svg}");
        let end = value(rects[0], "x") + value(rects[0], "width");
        assert!((end - value(rects[1], "x")).abs() < 0.2, "{svg}");
        assert!((value(rects[0], "width") / value(rects[1], "width") - 3.0).abs() < 0.01);
    }

    #[test]
    fn texts_are_escaped() {
        assert!(draw(&example()).contains("<title>A &amp; B</title>"));
    }

    #[test]
    fn long_times_are_in_seconds() {
        assert_eq!(duration(12.34), "12.3 ms");
        assert_eq!(duration(2500.0), "2.50 s");
    }
}
