//! A mail relay that takes part in a real conversation and keeps what it was given.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::tcp::TestAuthority;

/// A mail as it came.
#[derive(Clone, Debug)]
pub struct TestMail {
    pub from: String,
    pub to: String,
    /// Headers and text, as they were sent.
    pub text: String,
    /// Whether the way was encrypted.
    pub encrypted: bool,
    /// User and password, with a NUL before each, if they were given.
    pub proof: Option<String>,
}

#[derive(Default)]
struct RelayState {
    mails: Mutex<Vec<TestMail>>,
    refusals: Mutex<VecDeque<String>>,
}

/// Listens on this machine until the process ends.
pub struct TestMailServer {
    pub port: u16,
    /// Who vouches for it.
    pub authority: TestAuthority,
    state: Arc<RelayState>,
}

impl TestMailServer {
    /// Offers encryption to those who begin in the clear, if asked to.
    ///
    /// # Panics
    /// If nobody can listen.
    pub fn start(encrypts: bool) -> Self {
        let authority = TestAuthority::default();
        let (certificate, key) = authority.vouch("localhost");
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions that there are")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("they belong together");
        let tls = encrypts.then(|| Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let state = Arc::new(RelayState::default());
        let listening = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, tls) = (Arc::clone(&listening), tls.clone());
                // Whoever hangs up has said all that there is.
                thread::spawn(move || drop(converse(stream, tls, &state)));
            }
        });
        Self {
            port,
            authority,
            state,
        }
    }

    /// Answers the next recipient with this instead of taking them.
    pub fn refuse_next(&self, answer: &str) {
        self.state.refusals.lock().push_back(answer.to_owned());
    }

    /// What was taken so far.
    pub fn mails(&self) -> Vec<TestMail> {
        self.state.mails.lock().clone()
    }
}

trait Conversation: Read + Write {}
impl<T: Read + Write> Conversation for T {}

fn converse(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    state: &RelayState,
) -> std::io::Result<()> {
    let mut plain = stream.try_clone()?;
    let mut way: Box<dyn Conversation> = Box::new(stream);
    let mut encrypted = false;
    let (mut from, mut to, mut proof) = (String::new(), String::new(), None);
    say(&mut *way, "220 test")?;
    loop {
        let line = hear(&mut *way)?;
        let (word, rest) = line.split_at(line.find([' ', ':']).unwrap_or(line.len()));
        let rest = rest.trim_start_matches([' ', ':']);
        match word.to_ascii_uppercase().as_str() {
            "EHLO" => {
                let offers = match (&tls, encrypted) {
                    (Some(_), false) => "250-STARTTLS\r\n",
                    _ => "",
                };
                say(&mut *way, &format!("250-test\r\n{offers}250 AUTH PLAIN"))?;
            }
            "STARTTLS" => {
                let Some(tls) = &tls else {
                    say(&mut *way, "502 no")?;
                    continue;
                };
                say(&mut plain, "220 go")?;
                let connection = ServerConnection::new(Arc::clone(tls));
                let connection = connection.map_err(std::io::Error::other)?;
                way = Box::new(StreamOwned::new(connection, plain.try_clone()?));
                encrypted = true;
            }
            "AUTH" => {
                let given = rest.rsplit(' ').next().unwrap_or_default();
                let given = STANDARD.decode(given).unwrap_or_default();
                proof = Some(String::from_utf8_lossy(&given).into_owned());
                say(&mut *way, "235 known")?;
            }
            "MAIL" => {
                from = address(rest);
                say(&mut *way, "250 ok")?;
            }
            "RCPT" => {
                to = address(rest);
                let refusal = state.refusals.lock().pop_front();
                say(&mut *way, refusal.as_deref().unwrap_or("250 ok"))?;
            }
            "DATA" => {
                say(&mut *way, "354 go on")?;
                let mut text = String::new();
                loop {
                    let line = hear(&mut *way)?;
                    if line == "." {
                        break;
                    }
                    text.push_str(&line);
                    text.push('\n');
                }
                state.mails.lock().push(TestMail {
                    from: from.clone(),
                    to: to.clone(),
                    text,
                    encrypted,
                    proof: proof.clone(),
                });
                say(&mut *way, "250 taken")?;
            }
            "QUIT" => return say(&mut *way, "221 bye"),
            _ => say(&mut *way, "250 ok")?,
        }
    }
}

/// What is between `<` and `>`.
fn address(text: &str) -> String {
    let inside = text.split('<').nth(1).unwrap_or_default();
    inside.split('>').next().unwrap_or_default().to_owned()
}

fn say(way: &mut (impl Conversation + ?Sized), text: &str) -> std::io::Result<()> {
    way.write_all(format!("{text}\r\n").as_bytes())?;
    way.flush()
}

/// A line without its end. One byte at a time: what comes after `STARTTLS` is for somebody else to read.
fn hear(way: &mut (impl Conversation + ?Sized)) -> std::io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        if way.read(&mut byte)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        line.push(byte[0]);
    }
    line.truncate(line.len() - 2);
    Ok(String::from_utf8_lossy(&line).into_owned())
}
