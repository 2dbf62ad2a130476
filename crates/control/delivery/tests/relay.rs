//! Mail in a real conversation with a relay: encrypted, with a proof of who sends, and never in the clear unless told so.

use nimbus_control_delivery::{Mail, MailEncryption, MailRelay, Mailer, SendVerdict};
use nimbus_control_testing::TestMailServer;

fn relay(server: &TestMailServer, encryption: MailEncryption) -> MailRelay {
    MailRelay {
        host: "localhost".to_owned(),
        port: server.port,
        user: Some("nimbus".to_owned()),
        password: Some("hush hush".to_owned().into()),
        encryption,
        authorities: Some(server.authority.certificate.clone().into_bytes()),
        from: "Nimbus <nimbus@example.com>".to_owned(),
    }
}

fn mail() -> Mail {
    Mail {
        id: "d1".to_owned(),
        to: "ana@acme.example".to_owned(),
        subject: "It waits for your decision: prüfen".to_owned(),
        text: "A line.\n.\nAnother one.".to_owned(),
    }
}

#[tokio::test]
async fn a_mail_is_encrypted_and_says_who_sends_it() {
    let server = TestMailServer::start(true);
    let relay = relay(&server, MailEncryption::StartTls);
    assert!(!format!("{relay:?}").contains("hush"));
    let mailer = Mailer::new(&relay).unwrap();
    let sent = mailer.send(&mail()).await;
    assert_eq!(
        (sent.verdict, sent.status),
        (SendVerdict::Delivered, Some(250))
    );
    let taken = server.mails();
    assert_eq!(taken.len(), 1);
    assert!(taken[0].encrypted);
    assert_eq!(taken[0].proof.as_deref(), Some("\0nimbus\0hush hush"));
    assert_eq!(
        (taken[0].to.as_str(), taken[0].from.as_str()),
        ("ana@acme.example", "nimbus@example.com")
    );
    // A line with a dot alone does not end it.
    assert!(taken[0].text.contains("Another one."), "{}", taken[0].text);
}

#[tokio::test]
async fn a_relay_that_nobody_vouches_for_or_that_does_not_encrypt_gets_nothing() {
    let server = TestMailServer::start(true);
    let mut stranger = relay(&server, MailEncryption::StartTls);
    stranger.authorities = None;
    let sent = Mailer::new(&stranger).unwrap().send(&mail()).await;
    assert_eq!(sent.verdict, SendVerdict::Retry, "{sent:?}");
    let clear = TestMailServer::start(false);
    let sent = Mailer::new(&relay(&clear, MailEncryption::StartTls))
        .unwrap()
        .send(&mail())
        .await;
    assert_eq!(sent.verdict, SendVerdict::Retry, "{sent:?}");
    assert!(server.mails().is_empty() && clear.mails().is_empty());
    // What the relay says about the address is final, and everything else is not.
    let mailer = Mailer::new(&relay(&clear, MailEncryption::None)).unwrap();
    for (answer, verdict, number) in [
        ("550 5.1.1 no such user", SendVerdict::Refused, 550),
        ("451 later", SendVerdict::Retry, 451),
        ("552 too much", SendVerdict::Retry, 552),
    ] {
        clear.refuse_next(answer);
        let sent = mailer.send(&mail()).await;
        assert_eq!(
            (sent.verdict, sent.status),
            (verdict, Some(number)),
            "{answer}"
        );
        let problem = sent.problem.unwrap();
        assert!(!problem.contains("user"), "{problem}");
    }
}
