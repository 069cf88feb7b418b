//! `twill report --open`: the page on loopback, and nothing else.

use crate::common::{root, stderr, stdout, twill};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A server that is ended with the test.
struct Served {
    child: Child,
    host: String,
}

impl Served {
    fn new(arguments: &[&str]) -> Served {
        let mut command = crate::common::command();
        command.args(["report", "-q", "--open", "--no-browser"]).args(arguments).current_dir(root());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let host = address.trim().strip_prefix("http://").unwrap().strip_suffix('/').unwrap().to_owned();
        assert!(host.starts_with("127.0.0.1:"), "{host}");
        Served { child, host }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_kernel_is_drawn_and_served() {
    let served = Served::new(&["examples/gemm_tma.ttir", "--no-explain"]);
    let host = &served.host;
    let page = served.ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"), "{page}");
    assert!(page.contains("<title>gemm_tma on h200 - Twill</title>"));
    let elsewhere = served.ask(&format!("GET /Cargo.toml HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert!(elsewhere.starts_with("HTTP/1.1 404 "), "{elsewhere}");
    let rebound = served.ask("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    assert!(rebound.starts_with("HTTP/1.1 403 ") && !rebound.contains("html"), "{rebound}");
}

#[test]
fn a_page_that_was_written_is_served_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("report.html");
    let name = path.to_str().unwrap();
    assert_eq!(twill(&["report", "-q", "examples/gemm_tma.ttir", "--no-explain", "-o", name]).status.code(), Some(0));
    let served = Served::new(&[name]);
    let page = served.ask(&format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", served.host));
    assert_eq!(page.split_once("\r\n\r\n").unwrap().1, fs::read_to_string(&path).unwrap());
    // The port is taken now.
    let port = served.host.rsplit(':').next().unwrap();
    let taken = twill(&["report", "-q", "--open", "--no-browser", name, "--port", port]);
    assert_eq!((taken.status.code(), stdout(&taken).as_str()), (Some(1), ""));
    assert!(stderr(&taken).contains(&format!("cannot serve on port {port}")), "{}", stderr(&taken));
}

#[test]
fn other_pages_are_not_served() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mine.html");
    fs::write(&path, "<!doctype html><title>mine</title>").unwrap();
    let refused = twill(&["report", "--open", "--no-browser", path.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("it is no page that twill report wrote"), "{}", stderr(&refused));
}

#[test]
fn options_mean_nothing_to_a_page_that_is_there() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("report.html");
    let name = path.to_str().unwrap();
    assert_eq!(twill(&["report", "-q", "examples/gemm_tma.ttir", "--no-explain", "-o", name]).status.code(), Some(0));
    for option in [&["--machine", "h200"][..], &["--time-limit", "5"], &["--no-explain"], &["--explain-limit", "5"]] {
        let refused = twill(&[&["report", "--open", "--no-browser", name], option].concat());
        assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(1), ""), "{option:?}");
        let says = format!("report.html: it is a page already, and is served as it is; leave {} out", option[0]);
        assert!(stderr(&refused).contains(&says), "{}", stderr(&refused));
    }
}

/// The kernel comes through a pipe, so that it is known when the command is there to be interrupted.
#[cfg(unix)]
#[test]
fn ctrl_c_while_it_searches_serves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("kernel.ttir");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let kernel = fs::read(root().join("examples/attention_forward.ttir")).unwrap();
    let mut command = crate::common::command();
    command.args(["report", "--open", "--no-browser", "--no-cache", "--sub-tiles", "1"]).arg(&pipe);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    writer.write_all(&kernel).unwrap();
    drop(writer);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), stdout(&ended).as_str()), (Some(3), ""), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("stopped: nothing is served"), "{}", stderr(&ended));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it() {
    let mut served = Served::new(&["examples/gemm_tma.ttir", "--no-explain"]);
    let interrupted = Command::new("kill").args(["-INT", &served.child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}
