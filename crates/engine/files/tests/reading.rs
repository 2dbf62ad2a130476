//! What is read for a stranger's project, and what is not, by every road that links offer.
#![cfg(target_os = "linux")]

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nimbus_engine_files::{ProjectFiles, RootsError, is_outside};
use proptest::prelude::*;
use tempfile::TempDir;

const SECRET: &str = "secret of somebody else";

struct Scene {
    folder: TempDir,
    files: ProjectFiles,
}

impl Scene {
    /// A project, a root of the operator and somebody else's folder.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for (path, text) in [
            ("project/a", "own"),
            ("project/folder/b", "own"),
            ("shared/package/index.js", "shared"),
            ("stranger/secret", SECRET),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            fs::write(path, text).expect("a file");
        }
        let project = folder.path().join("project");
        let files = ProjectFiles::beneath(&project, &[folder.path().join("shared")]);
        Self {
            files: files.expect("a kernel with openat2"),
            folder,
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn link(&self, link: &str, target: impl AsRef<Path>) {
        symlink(target, self.path(link)).expect("a link");
    }

    fn read(&self, path: &str) -> io::Result<String> {
        self.files.read_to_string(&self.path(path))
    }

    fn assert_outside(&self, path: &str) {
        let refused = self.read(path).expect_err(path);
        assert!(is_outside(&refused), "{path}: {refused}");
        assert!(
            refused.to_string().contains("engine.sandbox_roots"),
            "{refused}"
        );
        let path = self.path(path);
        assert!(self.files.metadata(&path).is_err(), "{path:?} is seen");
        assert!(self.files.canonicalize(&path).is_err(), "{path:?} is found");
        assert!(!self.files.exists(&path) && !self.files.is_file(&path));
    }
}

#[test]
fn a_projects_own_files_and_the_operators_are_read() {
    let scene = Scene::new();
    scene.link("project/link", "folder/b");
    scene.link("project/up", "folder/../a");
    scene.link("project/absolute", scene.path("project/a"));
    scene.link("project/out-and-in", "../project/folder/b");
    for own in [
        "a",
        "folder/b",
        "folder/../a",
        "link",
        "up",
        "absolute",
        "out-and-in",
    ] {
        let read = scene.read(&format!("project/{own}"));
        assert_eq!(read.expect(own), "own", "{own}");
    }
    scene.link("project/package", scene.path("shared/package"));
    scene.link("project/relative", "../shared/package");
    for shared in ["project/package/index.js", "project/relative/index.js"] {
        assert_eq!(scene.read(shared).expect(shared), "shared");
        let real = scene.files.canonicalize(&scene.path(shared));
        let expected = scene.path("shared/package/index.js").canonicalize();
        assert_eq!(real.expect(shared), expected.expect("it is there"));
    }
    assert_eq!(scene.files.read(Path::new("a")).expect("relative"), b"own");
}

#[test]
fn nothing_of_others_is_read_by_any_road() {
    let scene = Scene::new();
    scene.link("project/file", scene.path("stranger/secret"));
    scene.link("project/relative", "../stranger/secret");
    scene.link("project/directory", scene.path("stranger"));
    scene.link("project/chain", "directory/secret");
    scene.link("project/magic", "/proc/self/root/etc/passwd");
    scene.link("project/descriptor", "/proc/self/cwd");
    scene.link("shared/out", scene.path("stranger"));
    scene.link("project/by-root", "../shared/out/secret");
    for foreign in [
        "project/file",
        "project/relative",
        "project/directory/secret",
        "project/chain",
        "project/magic",
        "project/descriptor",
        "project/by-root",
        "project/../stranger/secret",
        "project/folder/../../stranger/secret",
        "stranger/secret",
    ] {
        scene.assert_outside(foreign);
    }
    assert!(is_outside(
        &scene
            .files
            .read(Path::new("/etc/passwd"))
            .expect_err("outside")
    ));
    // The way to the project is not the project.
    let above = scene
        .files
        .entries(scene.folder.path())
        .expect_err("outside");
    assert!(is_outside(&above), "{above}");
}

#[test]
fn links_in_circles_end() {
    let scene = Scene::new();
    scene.link("project/one", "two");
    scene.link("project/two", "one");
    scene.link("project/far", scene.path("project/near"));
    scene.link("project/near", scene.path("project/far"));
    scene.link("project/folder/up", "..");
    for circle in ["project/one", "project/far"] {
        assert!(scene.read(circle).is_err(), "{circle}");
    }
    scene
        .files
        .check_links(&scene.path("project/folder/up/folder"))
        .expect_err("circles");
    fs::remove_file(scene.path("project/one")).expect("a link");
    fs::remove_file(scene.path("project/two")).expect("a link");
    fs::remove_file(scene.path("project/far")).expect("a link");
    fs::remove_file(scene.path("project/near")).expect("a link");
    scene
        .files
        .check_links(&scene.path("project/folder/up/folder"))
        .expect("its own");
}

#[test]
fn a_folder_that_is_given_away_leads_nowhere_else() {
    let scene = Scene::new();
    let names = |folder: &str| -> io::Result<Vec<String>> {
        let skips = |path: &Path| path.ends_with("skipped");
        let tree = scene.files.tree(&scene.path(folder), skips)?;
        let name = |file: nimbus_engine_files::TreeFile| file.name.display().to_string();
        Ok(tree.into_iter().map(name).collect())
    };
    scene.link("project/folder/link", "../a");
    fs::create_dir(scene.path("project/folder/skipped")).expect("a folder");
    scene.link("project/folder/skipped/out", scene.path("stranger"));
    assert_eq!(names("project/folder").expect("its own"), ["b", "link"]);
    fs::create_dir(scene.path("project/folder/deep")).expect("a folder");
    // The folder is not walked into, but whoever gets the tree might.
    scene.link("project/folder/deep/way", scene.path("project/ways"));
    fs::create_dir(scene.path("project/ways")).expect("a folder");
    assert_eq!(names("project/folder").expect("its own"), ["b", "link"]);
    scene.link("project/ways/out", scene.path("stranger"));
    assert!(is_outside(
        &names("project/folder").expect_err("it leads out")
    ));
}

#[test]
fn pipes_are_not_waited_for_and_endless_files_not_read() {
    let scene = Scene::new();
    let pipe = scene.path("project/pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    scene.files.read(&pipe).expect_err("it is no file");
    let endless = fs::File::create(scene.path("project/endless")).expect("a file");
    endless.set_len(1 << 40).expect("a file with a hole");
    let refused = scene.read("project/endless").expect_err("too much");
    assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn a_root_is_a_folder_and_not_everything() {
    let scene = Scene::new();
    let project = scene.path("project");
    let with = |root: &str| ProjectFiles::beneath(&project, &[root.into()]);
    assert!(matches!(with("/"), Err(RootsError::TooWide { .. })));
    for root in ["relative", "/no/such/folder"] {
        assert!(matches!(with(root), Err(RootsError::Root { .. })), "{root}");
    }
    let file = scene.path("project/a");
    assert!(ProjectFiles::beneath(&file, &[]).is_err());
}

/// A check that is made first and a file that is opened later would lose this race.
#[test]
fn nobody_is_fast_enough_to_put_a_link_in_the_way() {
    const ROUNDS: usize = 2000;
    let scene = Scene::new();
    let (way, aside) = (scene.path("project/way"), scene.path("aside"));
    fs::create_dir(&way).expect("a folder");
    fs::write(way.join("secret"), "own").expect("a file");
    symlink(scene.path("stranger"), &aside).expect("a link");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let kept = scene.path("kept");
            while !done.load(Ordering::Relaxed) {
                fs::rename(&way, &kept).expect("it moves");
                fs::rename(&aside, &way).expect("it moves");
                fs::rename(&way, &aside).expect("it moves");
                fs::rename(&kept, &way).expect("it moves");
            }
        });
        for _ in 0..ROUNDS {
            if let Ok(read) = scene.read("project/way/secret") {
                assert_eq!(read, "own");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[derive(Clone, Debug)]
struct Link {
    name: String,
    target: String,
}

fn links() -> impl Strategy<Value = Vec<Link>> {
    let name = "project/(folder/)?[xyz]";
    let target = prop_oneof![
        "(\\.\\./){0,3}[xyz]",
        "(\\.\\./){0,3}(stranger|shared|project)(/secret|/[xyz])?",
        "(\\./)?folder/[xyz]",
        "@(stranger|shared|project)/(secret|[xyz]|folder/[xyz])",
        Just("/".to_owned()),
    ];
    let link = (name, target).prop_map(|(name, target)| Link { name, target });
    proptest::collection::vec(link, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// However links are laid: what is read is what the whole path leads to, and never a stranger's.
    #[test]
    fn no_arrangement_of_links_leads_out(
        links in links(),
        path in "(folder/)?[xyz](/[xyz]|/secret|/\\.\\./[xyz]|/\\.\\./\\.\\./stranger/secret){0,2}",
    ) {
        let scene = Scene::new();
        for link in links {
            let target = match link.target.strip_prefix('@') {
                Some(rest) => scene.path(rest),
                None => PathBuf::from(&link.target),
            };
            // The second of a name is not laid.
            let _ = symlink(target, scene.path(&link.name));
        }
        let path = scene.path("project").join(path);
        let truth = fs::canonicalize(&path);
        match scene.files.canonicalize(&path) {
            Ok(found) => {
                prop_assert_eq!(&found, &truth.expect("it exists"));
                let own = ["project", "shared"].map(|root| scene.path(root).canonicalize().expect("a root"));
                prop_assert!(own.iter().any(|root| found.starts_with(root)), "{:?}", found);
            }
            Err(refused) if is_outside(&refused) => {}
            Err(_) => prop_assert!(truth.is_err(), "{:?} is there", path),
        }
        if let Ok(text) = scene.files.read(&path) {
            prop_assert_ne!(text, SECRET.as_bytes());
        }
    }
}

/// A refusal has the words of whoever wrote the project, and nothing that only the operator knows.
#[test]
fn a_refusal_tells_nothing_of_the_operators_links() {
    let scene = Scene::new();
    scene.link("shared/way", scene.path("stranger"));
    for (link, target) in [
        ("project/absolute", scene.path("shared/way/secret")),
        ("project/relative", "../shared/way/secret".into()),
        (
            "project/folder/gone",
            "../../shared/way/nothing/at/all".into(),
        ),
    ] {
        scene.link(link, &target);
        scene.assert_outside(link);
        let refused = scene.read(link).expect_err(link).to_string();
        assert!(!refused.contains("stranger"), "{refused}");
        assert!(refused.contains(&target.display().to_string()), "{refused}");
    }
    // Also where the operator called the project by a link of his own.
    let folder = tempfile::tempdir().expect("a temporary directory");
    let named = folder.path().join("called");
    symlink(scene.path("project"), &named).expect("a link");
    let files = ProjectFiles::beneath(&named, &[]).expect("a kernel with openat2");
    scene.link("project/out", "../stranger/secret");
    let refused = files.read(&named.join("out")).expect_err("out").to_string();
    let hidden = scene.folder.path().display().to_string();
    assert!(!refused.contains(&hidden), "{refused}");
}

#[test]
fn a_reader_of_ones_own_files_knows_no_root_and_a_narrow_one_a_part_of_it() {
    let scene = Scene::new();
    scene.link("project/way", scene.path("shared/package/index.js"));
    scene.link("project/other", scene.path("shared/other/key"));
    fs::create_dir(scene.path("shared/other")).expect("a folder");
    fs::write(scene.path("shared/other/key"), SECRET).expect("a file");
    let (way, other) = (scene.path("project/way"), scene.path("project/other"));
    assert!(scene.files.read(&way).is_ok() && scene.files.read(&other).is_ok());
    let own = scene.files.own();
    assert!(own.read(&scene.path("project/a")).is_ok());
    assert!(is_outside(&own.read(&way).expect_err("a root")));
    let narrow = scene.files.only(&[scene.path("shared/package")]);
    assert_eq!(narrow.read(&way).expect("shown"), b"shared");
    assert!(is_outside(&narrow.read(&other).expect_err("not shown")));
    // Nothing is added by narrowing.
    let wider = scene.files.only(&[scene.path("stranger")]);
    assert!(wider.read(&scene.path("stranger/secret")).is_err());
}
