//! A server of one page, for this machine alone. It takes GET and HEAD of `/`, from a browser that names this machine as the
//! host: a page of another site whose name was made to point here (DNS rebinding) is refused.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A request's head may be so long, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;

/// A client may take so long to say what it wants, and as long to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients at a time.
const MOST_CLIENTS: usize = 64;

/// How often it is asked whether to stop.
const PULSE: Duration = Duration::from_millis(50);

/// What is sent with every answer.
const HEADERS: &str = "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: frame-ancestors 'none'\r\n";

/// A server that has its port.
pub(super) struct Server {
    listener: TcpListener,
    port: u16,
    page: Arc<String>,
}

impl Server {
    /// Takes a port of loopback; 0 is any that is free.
    pub(super) fn new(port: u16, page: String) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        listener.set_nonblocking(true)?;
        Ok(Server { listener, port, page: Arc::new(page) })
    }

    /// Where the page is.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Serves until `stop` is set.
    pub(super) fn run(&self, stop: &AtomicBool) -> io::Result<()> {
        let clients = Arc::new(AtomicUsize::new(0));
        while !stop.load(Ordering::Relaxed) {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::sleep(PULSE);
                    continue;
                }
                // A client that went away again, or a moment without file handles.
                Err(_) => {
                    thread::sleep(PULSE);
                    continue;
                }
            };
            if clients.load(Ordering::Relaxed) >= MOST_CLIENTS {
                continue;
            }
            clients.fetch_add(1, Ordering::Relaxed);
            let (page, port, clients) = (Arc::clone(&self.page), self.port, Arc::clone(&clients));
            thread::spawn(move || {
                // A client that does not take its answer is no failure.
                let _ = serve(stream, port, &page);
                clients.fetch_sub(1, Ordering::Relaxed);
            });
        }
        Ok(())
    }
}

fn serve(mut stream: TcpStream, port: u16, page: &str) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(head) = head(&mut stream)? else { return Ok(()) };
    stream.write_all(answer(&head, port, page).as_bytes())?;
    stream.flush()
}

/// What stands before the empty line; nothing where that does not come.
fn head(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let begun = Instant::now();
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    while head.len() <= LONGEST_HEAD {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let read = stream.read(&mut part)?;
        if read == 0 {
            return Ok(None);
        }
        head.extend_from_slice(&part[..read]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
    }
    Ok(None)
}

/// The answer to a request.
fn answer(head: &str, port: u16, page: &str) -> String {
    let mut lines = head.split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else { return refusal("400 Bad Request", "") };
    let fields = || lines.clone().filter_map(|line| line.split_once(':'));
    let mut hosts = fields().filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host.trim());
    let (host, another) = (hosts.next(), hosts.next());
    if !version.starts_with("HTTP/1.") || another.is_some() {
        return refusal("400 Bad Request", "");
    }
    if !host.is_some_and(|host| is_this(host, port)) {
        return refusal("403 Forbidden", "");
    }
    if method != "GET" && method != "HEAD" {
        return refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n");
    }
    if target != "/" {
        return refusal("404 Not Found", "");
    }
    let body = if method == "GET" { page } else { "" };
    let length = page.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n{HEADERS}\r\n{body}"
    )
}

/// Whether a host is this machine, by a name that cannot be made to point elsewhere.
fn is_this(host: &str, port: u16) -> bool {
    let (name, given) = host.rsplit_once(':').map_or((host, Some(80)), |(name, given)| (name, given.parse().ok()));
    (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")) && given == Some(port)
}

fn refusal(status: &str, more: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n{more}{HEADERS}\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(first: &str, fields: &str) -> String {
        answer(&format!("{first}\r\n{fields}"), 8123, "<page>")
    }

    fn status(answer: &str) -> &str {
        &answer[9..12]
    }

    #[test]
    fn the_page_and_nothing_else() {
        let page = asked("GET / HTTP/1.1", "Host: 127.0.0.1:8123");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\n<page>"), "{page}");
        assert!(page.contains("Content-Length: 6\r\n"));
        let head = asked("HEAD / HTTP/1.1", "Accept: */*\r\nhost:localhost:8123");
        assert!(head.ends_with("\r\n\r\n") && head.contains("Content-Length: 6\r\n"), "{head}");
        for target in ["/favicon.ico", "//", "/..", "/etc/passwd", "/?x", "", "http://127.0.0.1:8123/"] {
            assert_eq!(status(&asked(&format!("GET {target} HTTP/1.1"), "Host: 127.0.0.1:8123")), "404", "{target}");
        }
        for method in ["POST", "PUT", "OPTIONS", "get"] {
            assert_eq!(status(&asked(&format!("{method} / HTTP/1.1"), "Host: 127.0.0.1:8123")), "405", "{method}");
        }
    }

    #[test]
    fn only_this_machine_is_the_host() {
        for host in [
            "evil.example",
            "evil.example:8123",
            "127.0.0.1",
            "127.0.0.1:8124",
            "127.0.0.1:8123.evil.example",
            "",
            ":8123",
        ] {
            assert_eq!(status(&asked("GET / HTTP/1.1", &format!("Host: {host}"))), "403", "{host}");
        }
        assert_eq!(status(&asked("GET / HTTP/1.1", "Accept: */*")), "403");
        assert_eq!(status(&asked("GET / HTTP/1.1", "Host: 127.0.0.1:8123\r\nHost: evil.example")), "400");
        for first in ["GET /", "", "GET / HTTP/2", "GET  / HTTP/1.1", "nonsense"] {
            assert_eq!(status(&asked(first, "Host: 127.0.0.1:8123")), "400", "{first}");
        }
    }

    #[test]
    fn over_a_socket_until_it_is_told_to_stop() {
        let server = Server::new(0, "page".into()).unwrap();
        let address = server.listener.local_addr().unwrap();
        assert!(address.ip().is_loopback());
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let running = scope.spawn(|| server.run(&stop));
            let ask = |request: String| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(request.as_bytes()).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                answer
            };
            let good = ask(format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n"));
            assert!(good.ends_with("\r\n\r\npage"), "{good}");
            let rebound = ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".into());
            assert_eq!(status(&rebound), "403");
            // A head without end is not kept for ever.
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(&[b'a'; 3 * LONGEST_HEAD]);
            let mut nothing = Vec::new();
            let _ = stream.read_to_end(&mut nothing);
            assert!(nothing.is_empty());
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap();
        });
    }
}
