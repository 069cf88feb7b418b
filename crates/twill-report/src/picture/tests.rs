//! Pictures as XML; tests/hostile/test_graphviz.py has what Graphviz reads.

use super::*;
use crate::fixtures::{blackwell_forward, hopper, hopper_forward, parse, toy_attention};
use roxmltree::{Document, Node};
use serde_json::json;

fn operations<'a>(document: &'a Document<'_>) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.has_attribute("data-operation")).collect()
}

fn pixels(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

fn rectangle<'a>(node: Node<'a, 'a>) -> Node<'a, 'a> {
    node.children().find(|child| child.has_tag_name("rect")).unwrap()
}

#[test]
fn every_operation_stands_at_its_cycle() {
    for (problem, schedule) in [hopper_forward(), blackwell_forward(), toy_attention()] {
        let svg = timeline_svg(&problem, &schedule, TimelineOptions { iterations: Some(3), width: Some(1600) });
        let document = Document::parse(&svg).unwrap();
        let bars: Vec<_> = operations(&document);
        let starting = |cycle: i64| bars.iter().filter(move |bar| pixels(**bar, "data-cycle") as i64 == cycle);
        let left = pixels(rectangle(*starting(0).next().unwrap()), "x");
        let run = run::Run::new(&problem, &schedule, 3);
        let scale = (1600.0 - 20.0 - left) / run.end() as f64;
        let mut found: Vec<(String, u32, i64)> = Vec::new();
        for bar in bars.iter().filter(|bar| bar.attribute("class").unwrap().starts_with(['w', 'f'])) {
            let rect = rectangle(*bar);
            let cycle = pixels(*bar, "data-cycle");
            assert!((pixels(rect, "x") - left - cycle * scale).abs() < 0.02, "{bar:?}");
            let name = bar.attribute("data-operation").unwrap();
            let op = problem.graph().operation(problem.graph().find(name).unwrap());
            let cycles = if op.is_synchronous() { op.span() } else { op.completion() };
            let expected = (cycles.0 as f64 * scale).max(1.0);
            assert!((pixels(rect, "width") - expected).abs() < 0.02, "{bar:?}");
            found.push((name.to_owned(), pixels(*bar, "data-iteration") as u32, cycle as i64));
        }
        let mut expected = Vec::new();
        for op in problem.graph().op_ids() {
            let name = &problem.graph().operation(op).name;
            let at = |k: u32| schedule.placement(op).cycle.0 + i64::from(k) * schedule.interval.0;
            expected.extend((0..3).map(|k| (name.clone(), k, at(k))));
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn bars_of_a_lane_do_not_overlap_and_stay_in_the_picture() {
    let (problem, schedule) = hopper_forward();
    let svg = timeline_svg(&problem, &schedule, TimelineOptions::default());
    let document = Document::parse(&svg).unwrap();
    let mut lanes: std::collections::BTreeMap<i64, Vec<(f64, f64)>> = Default::default();
    for bar in operations(&document) {
        let rect = rectangle(bar);
        let (x, width) = (pixels(rect, "x"), pixels(rect, "width"));
        assert!(x >= 0.0 && x + width <= 1200.0);
        lanes.entry((pixels(rect, "y") * 100.0) as i64).or_default().push((x, x + width));
    }
    for mut bars in lanes.into_values() {
        bars.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(bars.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 0.02), "{bars:?}");
    }
}

#[test]
fn the_steady_state_is_marked() {
    let (problem, schedule) = hopper_forward();
    let svg = timeline_svg(&problem, &schedule, TimelineOptions { iterations: Some(4), width: None });
    let document = Document::parse(&svg).unwrap();
    let band = document.descendants().find(|node| node.attribute("class") == Some("steady")).unwrap();
    let bars = operations(&document);
    let named = problem.graph().op_ids().find(|op| schedule.placement(*op).cycle.0 == 0).unwrap();
    let name = &problem.graph().operation(named).name;
    let first = |iteration: &str| {
        let here = |bar: &&Node<'_, '_>| {
            bar.attribute("data-operation") == Some(name) && bar.attribute("data-iteration") == Some(iteration)
        };
        pixels(rectangle(*bars.iter().find(here).unwrap()), "x")
    };
    assert_eq!(schedule.stages(), 2);
    assert!((pixels(band, "x") - first("1")).abs() < 0.02);
    assert!((pixels(band, "width") - 3.0 * (first("1") - first("0"))).abs() < 0.05);
}

#[test]
fn the_graph_has_every_operation_and_every_dependence() {
    let (problem, schedule) = blackwell_forward();
    for schedule in [Some(&schedule), None] {
        let svg = graph_svg(&problem, schedule, GraphOptions::default());
        let document = Document::parse(&svg).unwrap();
        let names: Vec<_> = operations(&document).iter().map(|n| n.attribute("data-operation").unwrap()).collect();
        let expected: Vec<_> = problem.graph().operations().iter().map(|op| op.name.as_str()).collect();
        assert_eq!(names, expected);
        let edges = document.descendants().filter(|node| node.has_attribute("data-from"));
        let carried = |node: &Node<'_, '_>| node.attribute("class").unwrap().contains("carried");
        let edges: Vec<_> = edges.map(|n| (pixels(n, "data-distance") > 0.0, carried(&n))).collect();
        assert_eq!(edges.len(), problem.graph().dependences().len());
        assert!(edges.iter().all(|(between, dashed)| between == dashed) && edges.iter().any(|edge| edge.0));
    }
}

#[test]
fn boxes_do_not_overlap() {
    let (problem, schedule) = hopper_forward();
    let svg = graph_svg(&problem, Some(&schedule), GraphOptions::default());
    let document = Document::parse(&svg).unwrap();
    let boxes: Vec<_> = operations(&document).into_iter().map(rectangle).collect();
    let side = |node: &Node<'_, '_>| (pixels(*node, "x"), pixels(*node, "x") + pixels(*node, "width"));
    for (k, a) in boxes.iter().enumerate() {
        for b in &boxes[..k] {
            let apart = side(a).1 < side(b).0 || side(b).1 < side(a).0;
            assert!(apart || (pixels(*a, "y") - pixels(*b, "y")).abs() > 30.0);
        }
    }
}

/// A loop whose names are hard to write.
fn hostile() -> Problem {
    let name = "</svg><script>alert(1)</script>\" onload='x' \\N\\l & {a|b} é日本 \u{fffe}";
    let graph = json!({
        "format": "twill-graph", "version": 1, "name": name,
        "operations": [
            {"name": name, "cycles": 3, "result": {"registers": 8}, "source": {"file": "<&\".py", "line": 3}},
            {"name": "\\", "cycles": 2, "result": {"registers": 8}},
            {"name": "\"", "cycles": 2}
        ],
        "dependences": [
            {"from": name, "to": "\\"}, {"from": "\\", "to": "\""}, {"from": "\\", "to": "\\", "distance": 1},
            {"from": "\"", "to": name, "distance": 2, "value": false}
        ]
    });
    parse(&graph, hopper())
}

#[test]
fn hostile_names_stay_text() {
    let problem = hostile();
    let schedule = crate::fixtures::complete(&problem, 7, &[0, 3, 5], &[1, 1, 1]);
    let pictures = [
        timeline_svg(&problem, &schedule, TimelineOptions::default()),
        graph_svg(&problem, Some(&schedule), GraphOptions::default()),
        graph_svg(&problem, None, GraphOptions::default()),
    ];
    for svg in pictures {
        let document = Document::parse(&svg).unwrap();
        assert!(document.descendants().all(|node| !node.has_tag_name("script")));
        assert!(document.descendants().all(|node| !node.has_attribute("onload")));
        let shown = problem.graph().name().replace('\u{fffe}', "\u{fffd}");
        assert!(operations(&document).iter().any(|node| node.attribute("data-operation") == Some(shown.as_str())));
    }
}

#[test]
fn pictures_load_nothing_and_speak() {
    let (problem, schedule) = hopper_forward();
    for svg in [timeline_svg(&problem, &schedule, Default::default()), graph_svg(&problem, None, Default::default())] {
        assert_eq!(svg.matches("http").count(), 1, "the name space alone");
        assert!(!svg.contains("url(") && !svg.contains("@import") && !svg.contains("href"));
        let document = Document::parse(&svg).unwrap();
        let root = document.root_element();
        assert_eq!(root.attribute("role"), Some("img"));
        let text = |name| root.children().find(|n| n.has_tag_name(name)).and_then(|n| n.text()).unwrap().to_owned();
        assert!(text("title").contains("attention-forward-hopper"));
        let names = problem.graph().operations().iter().map(|op| op.name.as_str());
        assert!(names.into_iter().all(|name| text("desc").contains(name)));
        assert!(text("style").contains("prefers-color-scheme: dark"));
    }
}

#[test]
fn loops_stand_below_each_other() {
    let (first, second) = (hopper_forward(), blackwell_forward());
    let height = |svg: &str| pixels(Document::parse(svg).unwrap().root_element(), "height");
    let one = |(p, s): &(Problem, Schedule)| height(&timeline_svg(p, s, TimelineOptions::default()));
    let both = timelines_svg(&[(&first.0, &first.1), (&second.0, &second.1)], TimelineOptions::default());
    assert!((height(&both) - one(&first) - one(&second)).abs() < 0.05);
}

#[test]
fn schedules_that_are_compared_share_an_axis() {
    let (problem, fast) = hopper_forward();
    let slow = Schedule { interval: fast.interval * 2, ..fast.clone() };
    let compared = [("before", &problem, &slow), ("after", &problem, &fast)];
    let svg = compared_svg(&compared, TimelineOptions { iterations: Some(3), width: None });
    let document = Document::parse(&svg).unwrap();
    let parts: Vec<Node<'_, '_>> = document.root_element().children().filter(|n| n.has_tag_name("g")).collect();
    assert_eq!(parts.len(), 2);
    let begins = |part: &Node<'_, '_>, iteration: &str| {
        let bars = part.descendants().filter(|node| node.attribute("data-iteration") == Some(iteration));
        bars.map(|bar| pixels(rectangle(bar), "x")).min_by(f64::total_cmp).unwrap()
    };
    assert_eq!(begins(&parts[0], "0"), begins(&parts[1], "0"));
    let pixels_of_two = |part| begins(part, "2") - begins(part, "0");
    assert!((pixels_of_two(&parts[0]) - 2.0 * pixels_of_two(&parts[1])).abs() < 0.05);
    assert!(svg.contains(">before<") && svg.contains(">after<"));
}

#[test]
fn dot_has_every_dependence_once() {
    let schedule = |problem: &Problem| crate::fixtures::complete(problem, 7, &[0, 3, 5], &[1, 1, 1]);
    let hostile = hostile();
    let placed = schedule(&hostile);
    let (problem, found) = hopper_forward();
    for (problem, schedule) in [(&hostile, Some(&placed)), (&hostile, None), (&problem, Some(&found))] {
        let dot = graph_dot(problem, schedule);
        assert_eq!(dot.matches(" -> ").count(), problem.graph().dependences().len());
    }
}
