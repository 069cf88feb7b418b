//! `twill report` as a user runs it: pages of what is searched for, of files and of folders; and what it refuses.

use crate::common::{root, stderr, stdout, twill};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const FORWARD: &str = "examples/attention_forward.ttir";

/// The data of a page, and the exit code.
fn data(arguments: &[&str]) -> (i32, Value) {
    let output = twill(&[&["report", "-q", "--format", "json"], arguments].concat());
    let code = output.status.code().unwrap();
    assert!(code != 1, "{}", stderr(&output));
    (code, serde_json::from_str(&stdout(&output)).unwrap())
}

/// What `twill schedule` says of the same.
fn schedule(arguments: &[&str]) -> Value {
    let output = twill(&[&["schedule", "-q", "--format", "json"], arguments].concat());
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn complaint(arguments: &[&str]) -> String {
    let output = twill(&[&["report", "-q"], arguments].concat());
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stdout(&output));
    assert_eq!(stdout(&output), "", "{arguments:?}");
    stderr(&output)
}

fn write(place: &TempDir, name: &str, text: &str) -> String {
    let path = place.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A schedule without what depends on the clock.
fn timeless(mut schedule: Value) -> Value {
    schedule.as_object_mut().unwrap().remove("seconds");
    schedule
}

#[test]
fn kernels_are_scheduled_and_described() {
    for (kernel, interval) in
        [(FORWARD, 2048), ("examples/gemm_tma.ttir", 512), ("examples/attention_backward.ttir", 2560)]
    {
        let (code, page) = data(&[kernel, "--no-explain"]);
        assert_eq!(code, 0, "{kernel}");
        let [own] = page["loops"].as_array().unwrap().as_slice() else { panic!("{kernel}: one loop") };
        assert_eq!(timeless(own["schedule"].clone()), timeless(schedule(&[kernel])), "{kernel}");
        assert_eq!(own["schedule"]["initiation_interval"], interval, "{kernel}");
        assert!(
            page["headline"]
                .as_str()
                .unwrap()
                .starts_with(&format!("I = {interval} cycles (optimal in the model of h200: proved), N = "))
        );
        assert_eq!((&page["name"], &page["machine"]), (&own["schedule"]["problem"]["graph"]["name"], &"h200".into()));
        assert!(own["explanation"].is_null() && page["code"].is_null() && page["kernel"].is_null());
        check_storage(own, kernel);
    }
}

/// Registers and memory are in their limits, and the schedule's own.
fn check_storage(own: &Value, kernel: &str) {
    let number = |value: &Value| value.as_u64().unwrap();
    let groups = own["schedule"]["groups"].as_array().unwrap();
    let registers = own["registers"].as_array().unwrap();
    assert_eq!(groups.len(), registers.len(), "{kernel}");
    for (group, registers) in groups.iter().zip(registers) {
        assert_eq!((&group["id"], &group["registers_per_thread"]), (&registers["group"], &registers["granted"]));
        let most = registers["live"].as_array().unwrap().iter().map(|step| number(&step[1])).max().unwrap();
        assert!(most + number(&registers["reserve"]) <= number(&registers["granted"]), "{kernel}: {registers}");
        assert!(number(&registers["granted"]) <= number(&registers["limit"]));
    }
    let shared = &own["memories"][0];
    assert_eq!((&shared["memory"], &shared["unit"]), (&"shared_memory".into(), &"bytes".into()));
    for step in shared["live"].as_array().unwrap() {
        assert!(number(&step[1]) <= number(&shared["capacity"]), "{kernel}: {shared}");
    }
    let rings: Vec<(&Value, &Value)> = shared["buffers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|b| b["ring"] == true)
        .map(|b| (&b["operation"], &b["slots"]))
        .collect();
    let listed: Vec<(&Value, &Value)> =
        own["schedule"]["rings"].as_array().unwrap().iter().map(|r| (&r["buffer"], &r["depth"])).collect();
    assert_eq!(rings, listed, "{kernel}");
}

#[test]
fn explanations_are_those_of_twill_explain() {
    let arguments = [FORWARD, "--compute-groups", "1", "--max-interval", "2048"];
    // No limit that a slow machine would reach.
    let (code, page) = data(&[&arguments[..], &["--explain-limit", "100000"]].concat());
    assert_eq!(code, 2);
    let own = &page["loops"][0];
    let output = twill(&[&["explain", "-q", "--format", "json"], arguments.as_slice()].concat());
    let explained: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(own["explanation"], explained);
    let output = twill(&[&["explain", "-q", "--width", "100000"], arguments.as_slice()].concat());
    let text = stdout(&output);
    let rejected = own["rejected"].as_array().unwrap();
    assert!(text.contains(&format!("Why not {}\n", rejected.last().unwrap()["intervals"].as_str().unwrap())));
    for line in rejected.iter().flat_map(|one| one["why"].as_str().unwrap().lines()) {
        assert!(text.contains(line), "{line}");
    }
    let changes = own["what_ifs"].as_array().unwrap();
    assert_eq!(changes.len(), explained["what_ifs"].as_array().unwrap().len());
    for change in changes {
        assert!(text.contains(change["change"].as_str().unwrap()), "{change}");
    }
}

#[test]
fn loops_that_share_their_groups_are_one_page() {
    let kernel = "examples/attention_forward_causal.ttir";
    let (code, page) = data(&[kernel, "--no-explain"]);
    assert_eq!((code, page["loops"].as_array().unwrap().len()), (0, 2));
    let mut expected = schedule(&[kernel]);
    let loops = std::mem::replace(&mut expected["loops"], Value::Array(vec![]));
    assert_eq!(timeless(page["kernel"].clone()), timeless(expected));
    for (own, expected) in page["loops"].as_array().unwrap().iter().zip(loops.as_array().unwrap()) {
        assert_eq!(timeless(own["schedule"].clone()), timeless(expected.clone()));
        check_storage(own, kernel);
    }
    assert_eq!(page["headline"], "Sum of weight times I = 4096 cycles (optimal in the model of h200: proved).");
    let (code, page) = data(&[kernel, "--no-explain", "--separate-loops"]);
    assert_eq!((code, page["loops"].as_array().unwrap().len()), (0, 2));
    assert!(page["kernel"].is_null());
}

#[test]
fn why_there_is_no_schedule_is_a_page_too() {
    let (code, page) = data(&[FORWARD, "--max-interval", "2000"]);
    assert_eq!(code, 2);
    assert!(page["headline"].as_str().unwrap().starts_with("No schedule exists with I <= 2000 (infeasible: proved). "));
    let own = &page["loops"][0];
    assert_eq!(own["schedule"]["status"], "infeasible");
    assert_eq!(own["rejected"].as_array().unwrap().last().unwrap()["intervals"], "I = 2000");
    assert!(own["what_ifs"].as_array().unwrap().iter().any(|w| w["change"] == "tensor twice as fast"));
    assert_eq!(own["registers"], Value::Array(vec![]));
    let (code, page) =
        data(&[FORWARD, "--work-limit", "1", "--sub-tiles", "1", "--warp-assignment", "free", "--no-explain"]);
    let status = &page["loops"][0]["schedule"]["status"];
    assert!(code == 3 && (status == "unknown" || status == "feasible"), "{code}: {status}");
}

#[test]
fn files_are_replayed_and_give_the_same_page() {
    let place = tempfile::tempdir().unwrap();
    for (kernel, more) in [
        (FORWARD, ["--max-interval", "2048"]),
        (FORWARD, ["--max-interval", "2000"]),
        ("examples/attention_forward_causal.ttir", ["--compute-groups", "2"]),
        ("examples/attention_forward_causal.ttir", ["--loop", "1"]),
    ] {
        let arguments = [&[kernel][..], &more].concat();
        let file = write(&place, "schedule.json", &schedule(&arguments).to_string());
        let (code, page) = data(&[&file, "--no-explain"]);
        let (_, searched) = data(&[&arguments[..], &["--no-explain"]].concat());
        assert_eq!(code, 0, "the report was written");
        assert_eq!(page["headline"], searched["headline"]);
        for (own, other) in page["loops"].as_array().unwrap().iter().zip(searched["loops"].as_array().unwrap()) {
            for part in ["bound", "rejected", "registers", "memories"] {
                assert_eq!(own[part], other[part], "{arguments:?}: {part}");
            }
        }
    }
    // Several loops, each by itself, are an array.
    let arguments = ["examples/attention_forward_causal.ttir", "--separate-loops"];
    let file = write(&place, "schedules.json", &schedule(&arguments).to_string());
    let (_, page) = data(&[&file, "--explain-limit", "1"]);
    assert_eq!(page["loops"].as_array().unwrap().len(), 2);
    assert!(page["loops"][1]["explanation"].is_object());
}

#[test]
fn a_folder_shows_its_code_next_to_its_schedule() {
    let place = tempfile::tempdir().unwrap();
    for (language, file, kernel) in
        [("gluon", "kernel.py", "examples/attention_forward_causal.ttir"), ("cuda", "kernel.cu", FORWARD)]
    {
        let folder = place.path().join(language);
        let folder = folder.to_str().unwrap();
        let compiled =
            twill(&["compile", "-q", kernel, "--machine", "h200", "--emit", language, "--no-assemble", "-o", folder]);
        assert_eq!(compiled.status.code(), Some(0), "{}", stderr(&compiled));
        let (code, page) = data(&[folder, "--no-explain"]);
        assert_eq!(code, 0);
        let text = fs::read_to_string(Path::new(folder).join(file)).unwrap();
        let shown = &page["code"];
        assert_eq!((shown["text"].as_str().unwrap(), &shown["file"]), (text.as_str(), &file.into()));
        assert_eq!(shown["language"], if language == "cuda" { "cuda" } else { "python" });
        check_lines(&page, &text);
    }
}

#[test]
fn a_folder_says_what_an_iteration_takes() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().to_str().unwrap();
    let compiled = twill(&["compile", "-q", FORWARD, "--machine", "h200", "--no-assemble", "-o", folder]);
    assert_eq!(compiled.status.code(), Some(0), "{}", stderr(&compiled));
    let mut kernel: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join("kernel.json")).unwrap()).unwrap();
    let simulated = kernel["simulated"]["iterations"][0].clone();
    let (_, page) = data(&[folder, "--no-explain"]);
    let own = &page["loops"][0];
    assert!(simulated.as_u64().unwrap() > 2048);
    assert_eq!((&own["simulated"], &own["sass_estimate"], &page["assembly"]), (&simulated, &Value::Null, &Value::Null));
    // 4 MMAs of 64x128x128 and 2 FLOP a product, for each of 2 sub-tiles; the clock of machines/h200.toml.
    assert_eq!(own["flop"], 4 * 2 * 128 * 128 * 64);
    assert_eq!(page["chip"], serde_json::json!({ "clock_mhz": 1830.0, "multiprocessors": 132 }));

    kernel["simulated"]["sass"] = serde_json::json!([2324]);
    let findings = serde_json::json!([{ "kind": "spilled", "message": "8 bytes" }]);
    let assembly = serde_json::json!({ "registers": 168, "spill_stores": 8, "spill_loads": 4, "findings": findings });
    kernel["assembly"] = assembly.clone();
    write(&place, "kernel.json", &kernel.to_string());
    let (_, page) = data(&[folder, "--no-explain"]);
    assert_eq!((&page["loops"][0]["sass_estimate"], &page["assembly"]), (&2324.into(), &assembly));

    // Of a loop that ptxas left none of, the estimate is that of its warp programs.
    kernel["simulated"]["sass"] = Value::Array(vec![simulated]);
    write(&place, "kernel.json", &kernel.to_string());
    assert_eq!(data(&[folder, "--no-explain"]).1["loops"][0]["sass_estimate"], Value::Null);
    kernel["simulated"]["sass"] = serde_json::json!([2324, 2324]);
    write(&place, "kernel.json", &kernel.to_string());
    let error = complaint(&[folder, "--no-explain"]);
    assert!(
        error.contains("kernel.json: it has simulated cycles of 2 loops, and schedule.json has 1; comp"),
        "{error}"
    );
}

/// Lines that run an operation say its cycle and name its value; no operation is without one but those that are written as
/// part of another.
fn check_lines(page: &Value, text: &str) {
    let code: Vec<&str> = text.lines().collect();
    assert!(!text.contains('\u{1f}'));
    let lines = page["code"]["lines"].as_array().unwrap();
    let mut shown = BTreeSet::new();
    for line in lines {
        let (index, name) = (line["loop"].as_u64().unwrap() as usize, line["operation"].as_str().unwrap());
        let operations = page["loops"][index]["schedule"]["operations"].as_array().unwrap();
        let operation = operations.iter().find(|o| o["name"] == name).unwrap_or_else(|| panic!("{name}"));
        let number = line["line"].as_u64().unwrap() as usize;
        let found = code[number - 1];
        if let Some(at) = found.find("cycle ") {
            let cycle = format!("cycle {}, stage {}", operation["cycle"], operation["stage"]);
            assert!(found[at..].starts_with(&cycle), "{name}: {found}");
            shown.insert((index, name));
        }
        // The value, or the buffer of what a load fills.
        let value = name.replace('.', "_");
        let own = value.rsplit_once('_').map_or(value.as_str(), |(stem, _)| stem);
        let near = code[number.saturating_sub(2)..code.len().min(number + 1)].join("\n").to_lowercase();
        assert!(near.contains(&value) || near.contains(own), "{name}: {near}");
    }
    // Every line that says a cycle is known to run an operation.
    let commented = code.iter().filter(|line| line.contains(" cycle ") && line.contains(", stage ")).count();
    let listed: BTreeSet<u64> = lines.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    let listed = listed.iter().filter(|n| code[**n as usize - 1].contains(", stage ")).count();
    assert_eq!(commented, listed);
    for (index, own) in page["loops"].as_array().unwrap().iter().enumerate() {
        for operation in own["schedule"]["operations"].as_array().unwrap() {
            let name = operation["name"].as_str().unwrap();
            if ["dot", "exp2", "load"].iter().any(|kind| operation["kind"].as_str().unwrap().contains(kind)) {
                assert!(shown.contains(&(index, name)), "{name} has no line");
            }
        }
    }
}

#[test]
fn what_was_measured_is_shown_and_must_be_of_this_schedule() {
    let place = tempfile::tempdir().unwrap();
    write(&place, "schedule.json", &schedule(&["examples/gemm_tma.ttir"]).to_string());
    let folder = place.path().to_str().unwrap();
    let time = |start: i64, end: i64| serde_json::json!({ "start": start, "end": end });
    let trace = |name: &str| {
        serde_json::json!({
            "format": "twill-trace", "version": 1, "name": "gemm_tma", "machine": "h200", "gpu": "NVIDIA H200", "date": "2026-11-22", "timestamps": "segments",
            "loops": [{ "loop": 0, "initiation_interval": { "predicted": 512.0, "measured": 540.5 },
                "operations": [{ "operation": name, "group": 1, "predicted": time(0, 256), "measured": time(0, 270) }],
                "events": [{ "operation": name, "group": 1, "iteration": 3, "start": 1536.0, "end": 1806.0 }] }]
        })
    };
    write(&place, "trace.json", &trace("acc.0").to_string());
    let (_, page) = data(&[folder, "--no-explain"]);
    assert_eq!(page["trace"]["loops"][0]["initiation_interval"]["measured"], 540.5);
    assert!(page["code"].is_null(), "there is no kernel");
    write(&place, "trace.json", &trace("other").to_string());
    let error = complaint(&[folder, "--no-explain"]);
    assert!(error.contains("trace.json: `other` of loop 0 is no operation of schedule.json; measure"), "{error}");
    write(&place, "trace.json", "{");
    assert!(complaint(&[folder, "--no-explain"]).contains("trace.json:1:"));
}

#[test]
fn graphs_without_warps_have_a_page_of_their_file() {
    let place = tempfile::tempdir().unwrap();
    let random = twill(&["gaus", "-q", "--random", "nodes=300,density=0.02", "--format", "json", "--time-limit", "2"]);
    let text = stdout(&random);
    let file = write(&place, "gaus.json", &text);
    let (code, page) = data(&[&file]);
    let expected: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &page["dataflow"]), (0, &expected));
    assert_eq!((&page["loops"], &page["machine"]), (&Value::Array(vec![]), &Value::Null));
    assert!(page["headline"].as_str().unwrap().starts_with("resources = "));
    let claim = expected["summary"]["objective"]["value"].as_i64().unwrap();
    let file =
        write(&place, "lie.json", &text.replace(&format!("\"value\": {claim}"), &format!("\"value\": {}", claim - 1)));
    assert!(complaint(&[&file]).contains("lie.json: the objective is"));
    let graph = write(&place, "graph.dot", "digraph g { a [label = mul]; b [label = add]; a -> b; }");
    let error = complaint(&[&graph]);
    assert!(error.contains("it is a graph without warps; schedule it with `twill gaus"), "{error}");
}

#[test]
fn a_page_is_written_whole_with_its_data_in_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("report.html");
    let arguments = ["report", "-q", FORWARD, "--no-explain", "-o", path.to_str().unwrap()];
    assert_eq!(twill(&arguments).status.code(), Some(0));
    let file = fs::read_to_string(&path).unwrap();
    assert!(
        file.starts_with("<!doctype html>\n<html lang=\"en\">") && file.contains("<title>attention_forward on h200")
    );
    let begin = "<script type=\"application/zlib\" id=\"data\">";
    let from = file.find(begin).unwrap() + begin.len();
    let packed = STANDARD.decode(&file[from..from + file[from..].find("</script>").unwrap()]).unwrap();
    let page: Value = serde_json::from_slice(&decompress_to_vec_zlib(&packed).unwrap()).unwrap();
    let (_, expected) = data(&[FORWARD, "--no-explain"]);
    assert_eq!(page["page"]["loops"][0]["registers"], expected["loops"][0]["registers"]);
    assert!(file.contains("Steady state, I = 2048"), "text for where scripts do not run");
    // A failure leaves the file as it was.
    assert_eq!(twill(&["report", "-q", "nowhere.ttir", "-o", path.to_str().unwrap()]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(&path).unwrap(), file);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_schedule_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let text = schedule(&[FORWARD]).to_string();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut file: Value = serde_json::from_str(&text).unwrap();
        change(&mut file);
        file.to_string()
    };
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(
        complaint(&[empty.to_str().unwrap()])
            .contains("there is no schedule.json in it; name a folder that twill compile")
    );
    // A cycle earlier than what it reads.
    let broken = write(&place, "broken.json", &with(&|file| file["operations"][9]["cycle"] = 0.into()));
    let error = complaint(&[&broken]);
    assert!(error.contains("broken.json: ") && error.contains("cycle"), "{error}");
    let mut siblings = schedule(&["examples/attention_forward_causal.ttir"]);
    siblings["groups"][1]["registers_per_thread"] = 232.into();
    let siblings = write(&place, "siblings.json", &siblings.to_string());
    let error = complaint(&[&siblings]);
    assert!(error.contains("siblings.json: ") && error.contains("registers"), "{error}");
    let other = write(&place, "other.json", &with(&|file| file["version"] = 2.into()));
    assert!(complaint(&[&other]).contains("expected format `twill-schedule` version 1"));
    let part = write(&place, "part.json", &with(&|file| file["operations"] = Value::Array(vec![])));
    assert!(complaint(&[&part]).contains("does not place every operation"));
    let array = write(&place, "array.json", &format!("[{text}, {{\"format\": \"twill-schedule\"}}]"));
    assert!(complaint(&[&array]).contains("array.json: 1"));
    let good = write(&place, "good.json", &text);
    let error = complaint(&[&good, "--machine", "h200"]);
    assert!(error.contains("it is a schedule already, and --machine is for a search"), "{error}");
    let pipeline = twill(&["schedule", "-q", FORWARD, "--swp-only", "--format", "json"]);
    let pipeline = write(&place, "pipeline.json", &stdout(&pipeline));
    assert!(complaint(&[&pipeline]).contains("without --swp-only"));
    assert!(complaint(&["no-such-thing"]).contains("neither a file nor a built-in graph"));
    let kernel = write(
        &place,
        "kernel.json",
        &serde_json::json!({
            "format": "twill-kernel", "version": 1, "lines": [{ "loop": 0, "operation": "qk.0", "line": 9 }]
        })
        .to_string(),
    );
    fs::rename(&good, place.path().join("schedule.json")).unwrap();
    write(&place, "kernel.py", "one line\n");
    let error = complaint(&[place.path().to_str().unwrap(), "--no-explain"]);
    assert!(error.contains(&kernel) && error.contains("there is no such line; compile the kernel again"), "{error}");
    assert!(root().join(FORWARD).is_file());
}

/// What a command draws.
fn drawn(command: &str, format: &str, arguments: &[&str]) -> Vec<u8> {
    let output = twill(&[&[command, "-q", "--format", format], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{command} {format} {arguments:?}: {}", stderr(&output));
    assert!(output.stdout.len() > 500, "{command} {format} {arguments:?}");
    output.stdout
}

const PICTURES: [&str; 4] = ["perfetto", "svg", "graph-svg", "dot"];

#[test]
fn pictures_are_those_of_twill_schedule() {
    let place = tempfile::tempdir().unwrap();
    for arguments in [
        &[FORWARD][..],
        &["examples/attention_forward_causal.ttir"],
        &["examples/attention_forward_causal.ttir", "--separate-loops"],
    ] {
        let file = write(&place, "schedule.json", &schedule(arguments).to_string());
        for format in PICTURES {
            let expected = drawn("schedule", format, arguments);
            assert!(drawn("report", format, &[&file]) == expected, "{format} of the file of {arguments:?}");
            assert!(drawn("report", format, arguments) == expected, "{format} of {arguments:?}");
        }
    }
    let folder = place.path().join("kernel");
    let folder = folder.to_str().unwrap();
    let kernel = ["examples/gemm_tma.ttir", "--machine", "h200"];
    let compiled = twill(&[&["compile", "-q", "--no-assemble", "-o", folder], &kernel[..]].concat());
    assert_eq!(compiled.status.code(), Some(0), "{}", stderr(&compiled));
    // A kernel that is compiled may have another schedule than the first that is found: the folder's own is drawn.
    let own = Path::new(folder).join("schedule.json");
    for format in PICTURES {
        let expected = drawn("report", format, &[own.to_str().unwrap()]);
        assert!(drawn("report", format, &[folder]) == expected, "{format} of a folder");
    }
    fs::write(&own, schedule(&kernel).to_string()).unwrap();
    for format in PICTURES {
        assert!(drawn("report", format, &[folder]) == drawn("schedule", format, &kernel), "{format} of a folder");
    }
}

#[test]
fn pictures_of_what_has_no_schedule_or_no_warps() {
    let place = tempfile::tempdir().unwrap();
    let arguments = [FORWARD, "--max-interval", "2000"];
    let file = write(&place, "none.json", &schedule(&arguments).to_string());
    let picture = place.path().join("picture.svg");
    for input in [&arguments[..], &[&file]] {
        let all = [&["report", "-q", "--format", "svg", "-o", picture.to_str().unwrap()], input].concat();
        let output = twill(&all);
        assert_eq!((output.status.code(), picture.exists()), (Some(2), false), "{}", stderr(&output));
        assert!(stderr(&output).contains("no schedule, so nothing is drawn"), "{}", stderr(&output));
    }
    assert!(!drawn("report", "dot", &[&file]).is_empty());
    let error = complaint(&[FORWARD, "--format", "svg", "--explain-limit", "3"]);
    assert!(error.contains("--explain-limit is for --format html"), "{error}");

    // Without a limit on time, the schedule of a file and of another run are the same.
    let random = ["--random", "nodes=30,density=0.1,seed=1"];
    let graph = String::from_utf8(drawn("gaus", "json", &random)).unwrap();
    let file = write(&place, "gaus.json", &graph);
    assert!(drawn("report", "perfetto", &[&file]) == drawn("gaus", "perfetto", &random));
    for format in ["svg", "graph-svg", "dot"] {
        let error = complaint(&[&file, "--format", format]);
        assert!(error.contains("gaus.json: only a schedule with warps is drawn; of a graph without"), "{error}");
        assert!(error.contains("--format is html, json or perfetto"), "{error}");
    }
}
