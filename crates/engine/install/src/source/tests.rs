use super::*;

fn release() -> Release {
    Release::from_folder("resource-aws-v7.0.0").expect("a folder")
}

fn platform() -> Platform {
    Platform {
        os: "linux".to_owned(),
        arch: "arm64".to_owned(),
    }
}

fn places(source: &DownloadSource) -> Vec<String> {
    let tokens = DownloadTokens::default();
    let candidates = source.candidates(&release(), &platform(), &tokens, "https");
    let place = |candidate| match candidate {
        Candidate::Files { archive, .. } => archive.url,
        Candidate::GithubRelease(request) => request.url,
    };
    candidates.into_iter().map(place).collect()
}

#[test]
fn without_a_word_github_is_asked_before_get_pulumi_com() {
    assert_eq!(
        places(&DownloadSource::Public),
        [
            "https://github.com/pulumi/pulumi-aws/releases/download/v7.0.0/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
            "https://get.pulumi.com/releases/plugins/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
        ]
    );
    let newest =
        DownloadSource::Public.newest(&release().name, &DownloadTokens::default(), "https");
    assert_eq!(
        newest.expect("GitHub says").url,
        "https://api.github.com/repos/pulumi/pulumi-aws/releases/latest"
    );
}

#[test]
fn servers_are_read_in_every_scheme() {
    for (text, place) in [
        (
            "https://mirror/plugins/",
            "https://mirror/plugins/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
        ),
        (
            "http://m/${NAME}/${VERSION}/${OS}-${ARCH}",
            "http://m/aws/7.0.0/linux-arm64/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
        ),
        (
            "http://m/$%7BNAME%7D",
            "http://m/aws/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
        ),
        (
            "github://api.github.com/me",
            "https://api.github.com/repos/me/pulumi-aws/releases/tags/v7.0.0",
        ),
        (
            "github://git.corp/me/mine",
            "https://git.corp/repos/me/mine/releases/tags/v7.0.0",
        ),
        (
            "gitlab://gitlab.com/42",
            "https://gitlab.com/api/v4/projects/42/releases/v7.0.0/downloads/pulumi-resource-aws-v7.0.0-linux-arm64.tar.gz",
        ),
    ] {
        let source = DownloadSource::parse(text).expect(text);
        assert_eq!(places(&source), [place], "{text}");
    }
    assert_eq!(
        DownloadSource::parse("file:///srv/plugins").expect("a folder"),
        DownloadSource::Folder("/srv/plugins".into())
    );
    for text in [
        "",
        "mirror",
        "ftp://x/y",
        "github://x",
        "github://h/a/b/c",
        "gitlab://h/a/b",
    ] {
        assert!(DownloadSource::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_token_goes_to_the_host_that_it_is_for() {
    let tokens = DownloadTokens::new(Some("hub".to_owned()), Some("lab".to_owned()));
    let sent = |text: &str, tokens: &DownloadTokens| {
        let source = DownloadSource::parse(text).expect(text);
        let mut asked = source.candidates(&release(), &platform(), tokens, "https");
        let newest = source.newest(&release().name, tokens, "https");
        let token = match asked.remove(0) {
            Candidate::Files { archive, .. } => archive.token,
            Candidate::GithubRelease(request) => request.token,
        };
        assert_eq!(newest.expect("a place").token, token);
        token
    };
    assert_eq!(
        sent("github://api.github.com/me", &tokens).as_deref(),
        Some("hub")
    );
    assert_eq!(
        sent("gitlab://gitlab.com/42", &tokens).as_deref(),
        Some("lab")
    );
    for evil in [
        "github://evil.example/me",
        "gitlab://evil.example/42",
        "github://gitlab.com/me",
        "github://api.github.com.evil.example/me",
        "github://api.github.com:8443/me",
    ] {
        assert_eq!(sent(evil, &tokens), None, "{evil}");
    }
    let own = DownloadSource::parse("github://git.corp/me").expect("a source");
    let trusting = tokens.trusting(&own);
    assert!(sent("github://git.corp/other", &trusting).is_some());

    let request = DownloadRequest {
        token: Some("hub".to_owned()),
        ..DownloadRequest::file("https://api.github.com/x".to_owned())
    };
    assert!(
        request
            .named_file("https://api.github.com/y")
            .token
            .is_some()
    );
    for elsewhere in ["https://evil.example/y", "http://api.github.com/y"] {
        assert_eq!(request.named_file(elsewhere).token, None);
    }
}

#[test]
fn a_password_is_never_shown() {
    let request = DownloadRequest::file("https://me:hunter2@mirror/x".to_owned());
    assert_eq!(request.shown(), "https://mirror/x");
    assert!(!format!("{request:?}").contains("hunter2"));
}
