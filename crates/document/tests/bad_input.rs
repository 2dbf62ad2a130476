//! What a person is told about files that are wrong: one golden line per case.

use std::fmt::Write as _;

use nimbus_core::{Error, ErrorCode};
use nimbus_document::{Document, DocumentFormat, DocumentLimits, Span};

/// `code line:column message (help)`.
fn describe(name: &str, bytes: &[u8], error: &Error) -> String {
    let place = error.spans().first().map_or_else(String::new, |span| {
        let text = std::str::from_utf8(bytes).expect("errors with a place are about text");
        let before = &text[..span.offset];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        assert_eq!(span.name, name);
        format!(" {line}:{column}+{} [{}]", span.length, span.label)
    });
    let help = error
        .help()
        .map_or_else(String::new, |help| format!("\n      → {help}"));
    format!("{}{place} {}{help}", error.code(), error.message())
}

fn table(name: &str, cases: &[(&str, &[u8])]) -> String {
    let mut table = String::new();
    for (title, bytes) in cases {
        let outcome = match Document::parse_bytes(name, bytes) {
            Ok(document) => format!("ACCEPTED as {:?}", document.root().kind),
            Err(error) => describe(name, bytes, &error),
        };
        writeln!(table, "{title}:\n    {outcome}").expect("a string takes any text");
    }
    table
}

#[test]
fn bad_yaml_is_explained() {
    let cases: &[(&str, &[u8])] = &[
        ("tab indentation", b"a:\n\tb: 1\n"),
        ("tab after spaces", b"a:\n  \tb: 1\n  c: 2\n"),
        ("key twice", b"name: a\nruntime: nodejs\nname: b\n"),
        ("key twice, quoted", b"a: 1\n\"a\": 2\n"),
        ("key twice in a flow mapping", b"{a: 1, a: 2}\n"),
        ("two documents", b"a: 1\n---\nb: 2\n"),
        ("unclosed quote", b"a: \"never\nb: 1\n"),
        ("unclosed bracket", b"a: [1, 2\nb: 3\n"),
        ("unclosed brace", b"a: {b: 1\n"),
        ("colon in a plain text", b"a: b: c\n"),
        ("wrong indentation", b"a:\n    b: 1\n  c: 2\n"),
        ("a line that is no key", b"a: 1\nwords\nb: 2\n"),
        ("missing anchor", b"a: *nothing\n"),
        ("alias inside itself", b"a: &a [1, *a]\n"),
        ("merge of a text", b"a: 1\n<<: text\n"),
        ("merge of a list of texts", b"<<: [a, b]\n"),
        ("mapping as key", b"{a: 1}: b\n"),
        ("list as explicit key", b"? [a, b]\n: c\n"),
        ("missing key", b": value\n"),
        ("alias of a number as key", b"a: &x 1\n*x : 2\n"),
        ("unknown escape", b"a: \"C:\\qtemp\"\n"),
        ("value that does not fit its tag", b"a: !!int many\n"),
        ("binary", b"a: !!binary aGk=\n"),
        ("tag handle without declaration", b"a: !x!y z\n"),
        ("missing value", b"a: [1,\n"),
        ("at sign", b"a: @b\n"),
        ("backtick", b"a: `b`\n"),
        ("NUL", b"a: 1\nb: \0\n"),
        ("escape character", b"a: \x1b[31mred\n"),
        ("not UTF-8", b"a: 1\nb: \xff\n"),
        ("UTF-16", b"\xff\xfea\0:\0"),
        ("byte order mark inside", "a: 1\n\u{feff}b: 2\n".as_bytes()),
        ("umlaut before the error", "\u{e4}\u{f6}: [1\n".as_bytes()),
    ];
    insta::assert_snapshot!(table("conf.yaml", cases));
}

#[test]
fn bad_json_is_explained() {
    let cases: &[(&str, &[u8])] = &[
        ("empty", b""),
        ("trailing comma in a mapping", b"{\"a\": 1,}"),
        ("trailing comma in a list", b"[1, 2,]"),
        ("missing comma", b"{\"a\": 1 \"b\": 2}"),
        ("missing colon", b"{\"a\" 1}"),
        ("plain key", b"{a: 1}"),
        ("single quotes", b"{\"a\": 'b'}"),
        ("comment", b"{\n  // why\n  \"a\": 1\n}"),
        ("word", b"{\"a\": yes}"),
        ("key twice", b"{\n  \"a\": 1,\n  \"a\": 2\n}"),
        ("leading zero", b"[01]"),
        ("plus sign", b"[+1]"),
        ("no digit after the point", b"[1.]"),
        ("no digit after the exponent", b"[1e]"),
        ("number out of range", b"[1e999]"),
        ("unclosed text", b"[\"abc]"),
        ("text over two lines", b"[\"abc\ndef\"]"),
        ("tab in a text", b"[\"a\tb\"]"),
        ("unknown escape", b"[\"C:\\temp\\q\"]"),
        ("short unicode escape", b"[\"\\u12\"]"),
        ("lone surrogate", b"[\"\\ud83d\"]"),
        ("reversed surrogates", b"[\"\\ude00\\ud83d\"]"),
        ("high surrogate twice", b"[\"\\ud83d\\ud83d\"]"),
        ("more after the end", b"{} {}"),
        ("unclosed list", b"[1"),
        ("backslash at the end", b"[\"\\"),
    ];
    insta::assert_snapshot!(table("data.json", cases));
}

/// Nine levels of nine aliases each would be 400 million values.
#[test]
fn an_alias_bomb_is_refused_before_it_grows() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let previous = format!("*a{}", level - 1);
        let list = vec![previous; 9].join(", ");
        writeln!(text, "a{level}: &a{level} [{list}]").unwrap();
    }
    let error = Document::parse("bomb.yaml", &text).unwrap_err();
    assert_eq!(error.code(), ErrorCode::DOCUMENT_LIMIT);
    assert!(
        error.message().contains("aliases expanded"),
        "{}",
        error.message()
    );
}

/// Each anchor keeps a copy of what is inside it; ninety of them around one list would keep ninety.
#[test]
fn anchors_within_anchors_do_not_multiply_for_free() {
    let open: String = (0..90).map(|level| format!("&a{level} [")).collect();
    let text = format!("{open}{}{}", "x, ".repeat(20_000), "]".repeat(90));
    let error = Document::parse("nested.yaml", &text).unwrap_err();
    assert_eq!(error.code(), ErrorCode::DOCUMENT_LIMIT, "{error}");
}

#[test]
fn depth_is_limited_in_every_form() {
    let open = "[".repeat(200_000);
    let block = (0..300).fold(String::new(), |text, depth| {
        text + &" ".repeat(depth) + "a:\n"
    });
    let dashes = "- ".repeat(5_000) + "x";
    let aliases = (1..300).fold("a0: &a0 [x]\n".to_owned(), |text, level| {
        text + &format!("a{level}: &a{level} [*a{}]\n", level - 1)
    });
    for (name, text) in [
        ("a.yaml", &open),
        ("a.json", &open),
        ("b.yaml", &block),
        ("c.yaml", &dashes),
        ("d.yaml", &aliases),
    ] {
        let error = Document::parse(name, text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DOCUMENT_LIMIT, "{name}: {error}");
        assert!(error.message().contains("100 levels"), "{name}: {error}");
    }
}

#[test]
fn the_deepest_allowed_nesting_is_read() {
    let text = "[".repeat(100) + &"]".repeat(100);
    for name in ["a.json", "a.yaml"] {
        Document::parse(name, &text).unwrap();
        assert!(Document::parse(name, &format!("[{text}]")).is_err());
    }
}

#[test]
fn size_and_number_of_values_are_limited() {
    let limits = DocumentLimits {
        bytes: 100,
        depth: 5,
        nodes: 10,
    };
    let long = "a".repeat(101);
    for format in [DocumentFormat::Yaml, DocumentFormat::Json] {
        let error = Document::parse_with("x", &long, format, &limits).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DOCUMENT_LIMIT);
        let many = format!("[{}]", ["1"; 10].join(","));
        let error = Document::parse_with("x", &many, format, &limits).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DOCUMENT_LIMIT);
        let just = format!("[{}]", ["1"; 9].join(","));
        Document::parse_with("x", &just, format, &limits).unwrap();
    }
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let missing = std::env::temp_dir().join("nimbus-document-no-such-file.yaml");
    let error = Document::read(&missing).unwrap_err();
    assert_eq!(error.code(), ErrorCode::FILE_UNREADABLE);
    assert!(
        error
            .message()
            .contains("nimbus-document-no-such-file.yaml")
    );
    let error = Document::read(&std::env::temp_dir()).unwrap_err();
    assert_eq!(
        error.code(),
        ErrorCode::FILE_UNREADABLE,
        "a directory is not a file"
    );
}

#[test]
fn typed_access_points_at_the_value() {
    let text = "name: web\nport: eighty\nlist:\n  - a\n  - 7\nflag: yes\nempty:\n";
    let document = Document::parse("p.yaml", text).unwrap();
    let view = document.view();
    let mut told = String::new();
    let mut tell = |error: Error| {
        let at = document.position(Span::at(error.spans()[0].offset));
        let label = &error.spans()[0].label;
        let help = error.help().unwrap_or("-");
        writeln!(
            told,
            "{}:{} {} [{label}] {help}",
            at.line,
            at.column,
            error.message()
        )
        .unwrap();
    };
    tell(view.required("port").unwrap().u64().unwrap_err());
    tell(view.required("flag").unwrap().bool().unwrap_err());
    tell(view.required("list").unwrap().str().unwrap_err());
    tell(
        view.required("list")
            .unwrap()
            .items()
            .unwrap()
            .nth(1)
            .unwrap()
            .str()
            .unwrap_err(),
    );
    tell(view.required("empty").unwrap_err());
    tell(view.required("name").unwrap().required("x").unwrap_err());
    tell(
        view.required("name")
            .unwrap()
            .parse::<std::net::IpAddr>()
            .unwrap_err(),
    );
    tell(
        view.only_keys(&["name", "prot", "list", "flag", "empty"])
            .unwrap_err(),
    );
    insta::assert_snapshot!(told, @"
    2:7 port must be a whole number that is not negative [this is a text] -
    6:7 flag must be true or false [this is a text] write true or false; yes and no are texts
    4:3 list must be a text [this is a list] -
    5:5 list[1] must be a text [this is a whole number] put it in quotes
    1:1 p.yaml has no `empty` [`empty` belongs here] -
    1:7 name must be a mapping [this is a text] -
    1:7 `web` in name is not valid: invalid IP address syntax [here] -
    2:1 unknown key `port` [not a known key] did you mean `prot`?
    ");
}
