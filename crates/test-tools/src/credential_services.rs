//! Everybody who gives AWS credentials besides files: the metadata services of instances and of
//! containers, single sign-on, and the service that lends keys; and one that says whose keys signed.
//!
//! moto has no metadata service and no single sign-on. Whoever does not bring the token that the real
//! service asks for is refused here as there.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// A server on this machine; it lives as long as the process.
#[derive(Clone, Copy, Debug)]
pub struct CredentialServices {
    address: SocketAddr,
}

/// What a request says that matters here.
struct CredentialRequest {
    /// Method and path.
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl CredentialServices {
    /// The token that a container presents.
    pub const CONTAINER_TOKEN: &'static str = "token-of-the-container";
    /// The token that signing in left behind.
    pub const SIGNED_IN: &'static str = "token-of-the-session";

    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let address = listener.local_addr().expect("it has an address");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || serve(stream));
            }
        });
        Self { address }
    }

    pub fn url(self) -> String {
        format!("http://{}", self.address)
    }
}

fn serve(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    while let Some(heard) = hear(&mut reader) {
        let (status, body) = answer(&heard);
        let text = format!(
            "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nx-aws-ec2-metadata-token-ttl-seconds: 600\r\n\r\n{body}",
            body.len()
        );
        if reader.get_mut().write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn hear(reader: &mut BufReader<TcpStream>) -> Option<CredentialRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(CredentialRequest {
        line,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

fn answer(heard: &CredentialRequest) -> (u16, String) {
    let has = |name: &str, wanted: &str| {
        let mut headers = heard.headers.iter();
        headers.any(|(header, value)| header == name && value.contains(wanted))
    };
    let asks = |start: &str| heard.line.starts_with(start);
    const ROLES: &str = "GET /latest/meta-data/iam/security-credentials/";
    const METADATA_TOKEN: &str = "token-of-the-instance";
    if asks("PUT /latest/api/token ") {
        return (200, METADATA_TOKEN.to_owned());
    }
    if asks(ROLES) {
        return match has("x-aws-ec2-metadata-token", METADATA_TOKEN) {
            false => (401, String::new()),
            true if asks(&format!("{ROLES} ")) => (200, "worker".to_owned()),
            true => (200, lent_as_json("INSTANCE")),
        };
    }
    if asks("GET /container ") {
        return match has("authorization", CredentialServices::CONTAINER_TOKEN) {
            true => (200, lent_as_json("CONTAINER")),
            false => (401, String::new()),
        };
    }
    if asks("GET /federation/credentials?") {
        let signed_in = has("x-amz-sso_bearer_token", CredentialServices::SIGNED_IN);
        let asked = ["account_id=123456789012", "role_name=Deployer"];
        return match signed_in && asked.iter().all(|part| heard.line.contains(part)) {
            true => (
                200,
                r#"{"roleCredentials": {"accessKeyId": "SSO", "secretAccessKey": "hush", "sessionToken": "lent", "expiration": 4102444800000}}"#
                    .to_owned(),
            ),
            false => (401, r#"{"message": "Session token not found or invalid"}"#.to_owned()),
        };
    }
    if heard.body.contains("Action=AssumeRoleWithWebIdentity") {
        let token = heard.body.contains("WebIdentityToken=a.web.token");
        return match token {
            true => (200, lent_as_xml("AssumeRoleWithWebIdentity", "WEB")),
            false => (400, refused("InvalidIdentityToken")),
        };
    }
    if heard.body.contains("Action=AssumeRole") {
        return match has("authorization", "Credential=BASE/") {
            true => (200, lent_as_xml("AssumeRole", "ROLE")),
            false => (403, refused("AccessDenied")),
        };
    }
    if heard.body.contains("Action=DescribeAvailabilityZones") {
        return (200, ZONES.to_owned());
    }
    (200, whose_keys(heard))
}

const ZONES: &str = "<DescribeAvailabilityZonesResponse><availabilityZoneInfo><item>\
    <zoneName>eu-west-1a</zoneName></item></availabilityZoneInfo></DescribeAvailabilityZonesResponse>";

fn lent_as_json(key: &str) -> String {
    format!(
        r#"{{"Code": "Success", "AccessKeyId": "{key}", "SecretAccessKey": "hush", "Token": "lent", "Expiration": "2099-01-01T00:00:00Z"}}"#
    )
}

fn lent_as_xml(action: &str, key: &str) -> String {
    format!(
        "<{action}Response><{action}Result><Credentials><AccessKeyId>{key}</AccessKeyId>\
         <SecretAccessKey>hush</SecretAccessKey><SessionToken>lent</SessionToken>\
         <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>\
         <AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/r/s</Arn>\
         <AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser></{action}Result></{action}Response>"
    )
}

fn refused(code: &str) -> String {
    format!(
        "<ErrorResponse><Error><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
    )
}

/// The answer to `GetCallerIdentity`: a user who is called like the key.
fn whose_keys(heard: &CredentialRequest) -> String {
    let signed = heard
        .headers
        .iter()
        .find(|(name, _)| name == "authorization");
    let key = signed
        .and_then(|(_, value)| value.split_once("Credential="))
        .and_then(|(_, rest)| rest.split_once('/'))
        .map_or("nobody", |(key, _)| key);
    format!(
        "<GetCallerIdentityResponse><GetCallerIdentityResult>\
         <Arn>arn:aws:iam::123456789012:user/{key}</Arn><UserId>U</UserId>\
         <Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
    )
}
