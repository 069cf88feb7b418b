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

/// A client may take so long to say what it wants, and as long to read the response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients at a time.
const MOST_CLIENTS: usize = 64;

/// How often it is asked whether to stop.
const PULSE: Duration = Duration::from_millis(50);

/// What is sent with every response. The page's own policy lets nothing but its own script run; this one holds for a file that only
/// looks like a page as well: it can ask for nothing.
const HEADERS: &str = "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

/// A server that has its port.
pub(super) struct Server {
    listener: TcpListener,
    port: u16,
    page: Arc<String>,
    /// [`PATIENCE`].
    patience: Duration,
}

impl Server {
    /// Takes a port of loopback; 0 is any that is free.
    pub(super) fn new(port: u16, page: String) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        listener.set_nonblocking(true)?;
        Ok(Server { listener, port, page: Arc::new(page), patience: PATIENCE })
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
            let (page, port, patience) = (Arc::clone(&self.page), self.port, self.patience);
            let client = Client::new(&clients);
            // Where there is no thread for a client, it is dropped.
            let _ = thread::Builder::new().spawn(move || {
                let _client = client;
                // One that does not take its response is no failure.
                let _ = serve(stream, port, &page, patience);
            });
        }
        Ok(())
    }
}

/// One of the clients, for as long as it lives.
struct Client(Arc<AtomicUsize>);

impl Client {
    fn new(clients: &Arc<AtomicUsize>) -> Client {
        clients.fetch_add(1, Ordering::Relaxed);
        Client(Arc::clone(clients))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(mut stream: TcpStream, port: u16, page: &str, patience: Duration) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let Some(head) = head(&mut stream, patience)? else { return Ok(()) };
    let Response { head, body } = respond(&head, port, page);
    // A client that reads a byte now and then has as long as any other.
    let begun = Instant::now();
    for mut rest in [head.as_bytes(), body.as_bytes()] {
        while !rest.is_empty() {
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            stream.set_write_timeout(Some(left))?;
            match stream.write(rest)? {
                0 => return Ok(()),
                written => rest = &rest[written..],
            }
        }
    }
    stream.flush()
}

/// What stands before the empty line; nothing where that does not come.
fn head(stream: &mut TcpStream, patience: Duration) -> io::Result<Option<String>> {
    let begun = Instant::now();
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    while head.len() <= LONGEST_HEAD {
        let left = patience.saturating_sub(begun.elapsed());
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

/// What is sent: a head, and perhaps the page.
struct Response<'a> {
    head: String,
    body: &'a str,
}

/// The response to a request.
fn respond<'a>(head: &str, port: u16, page: &'a str) -> Response<'a> {
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
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\n{HEADERS}\r\n"
    );
    Response { head, body }
}

/// Whether a host is this machine, by a name that cannot be made to point elsewhere.
fn is_this(host: &str, port: u16) -> bool {
    let (name, given) = host.rsplit_once(':').map_or((host, Some(80)), |(name, given)| (name, given.parse().ok()));
    (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")) && given == Some(port)
}

fn refusal(status: &str, more: &str) -> Response<'static> {
    Response { head: format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n{more}{HEADERS}\r\n"), body: "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(first: &str, fields: &str) -> String {
        let Response { head, body } = respond(&format!("{first}\r\n{fields}"), 8123, "<page>");
        head + body
    }

    fn status(response: &str) -> &str {
        &response[9..12]
    }

    #[test]
    fn the_page_and_nothing_else() {
        let page = requested("GET / HTTP/1.1", "Host: 127.0.0.1:8123");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\n<page>"), "{page}");
        assert!(page.contains("Content-Length: 6\r\n"));
        let head = requested("HEAD / HTTP/1.1", "Accept: */*\r\nhost:localhost:8123");
        assert!(head.ends_with("\r\n\r\n") && head.contains("Content-Length: 6\r\n"), "{head}");
        for target in ["/favicon.ico", "//", "/..", "/etc/passwd", "/?x", "", "http://127.0.0.1:8123/"] {
            assert_eq!(
                status(&requested(&format!("GET {target} HTTP/1.1"), "Host: 127.0.0.1:8123")),
                "404",
                "{target}"
            );
        }
        for method in ["POST", "PUT", "OPTIONS", "get"] {
            assert_eq!(status(&requested(&format!("{method} / HTTP/1.1"), "Host: 127.0.0.1:8123")), "405", "{method}");
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
            assert_eq!(status(&requested("GET / HTTP/1.1", &format!("Host: {host}"))), "403", "{host}");
        }
        assert_eq!(status(&requested("GET / HTTP/1.1", "Accept: */*")), "403");
        assert_eq!(status(&requested("GET / HTTP/1.1", "Host: 127.0.0.1:8123\r\nHost: evil.example")), "400");
        for first in ["GET /", "", "GET / HTTP/2", "GET  / HTTP/1.1", "nonsense"] {
            assert_eq!(status(&requested(first, "Host: 127.0.0.1:8123")), "400", "{first}");
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
                let mut response = String::new();
                stream.read_to_string(&mut response).unwrap();
                response
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

    #[test]
    fn clients_that_dawdle_are_let_go() {
        let page = "p".repeat(16 << 20);
        let server = Server { patience: Duration::from_millis(300), ..Server::new(0, page.clone()).unwrap() };
        let address = server.listener.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let running = scope.spawn(|| server.run(&stop));
            let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
            // More than there may be at a time, who say nothing, half of it, or do not read what they asked for.
            let held: Vec<TcpStream> = (0..2 * MOST_CLIENTS)
                .map(|number| {
                    let mut stream = TcpStream::connect(address).unwrap();
                    let said = &request.as_bytes()[..[0, 20, request.len()][number % 3]];
                    // It may have been let go already.
                    let _ = stream.write_all(said);
                    stream
                })
                .collect();
            // All of them are still there when somebody else is served.
            let served = || {
                let mut stream = TcpStream::connect(address).ok()?;
                stream.write_all(request.as_bytes()).ok()?;
                let mut response = String::new();
                stream.read_to_string(&mut response).ok()?;
                response.ends_with(&page).then_some(())
            };
            while served().is_none() {
                thread::yield_now();
            }
            drop(held);
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap();
        });
    }
}
