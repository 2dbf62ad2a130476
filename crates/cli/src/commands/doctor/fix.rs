//! Commands that install a package, for the package manager that is here.

/// Package managers in the order in which they are looked for.
const MANAGERS: &[(&str, &str)] = &[
    ("apt-get", "apt-get install -y"),
    ("dnf", "dnf install -y"),
    ("apk", "apk add"),
    ("pacman", "pacman -S"),
    ("zypper", "zypper install"),
    ("brew", "brew install"),
];

/// Names of one thing in the world's package managers; `None` where it has no package.
pub(super) struct SystemPackages {
    pub(super) apt: Option<&'static str>,
    pub(super) dnf: Option<&'static str>,
    pub(super) apk: Option<&'static str>,
    pub(super) pacman: Option<&'static str>,
    pub(super) zypper: Option<&'static str>,
    pub(super) brew: Option<&'static str>,
    /// Where to get it without one.
    pub(super) page: &'static str,
}

impl SystemPackages {
    /// What to type here.
    pub(super) fn install(&self, has: impl Fn(&str) -> bool) -> String {
        let by_package =
            MANAGERS
                .iter()
                .find(|(manager, _)| has(manager))
                .and_then(|(manager, command)| {
                    let package = self.package(manager)?;
                    let sudo = if *manager == "brew" { "" } else { "sudo " };
                    Some(format!("{sudo}{command} {package}"))
                });
        by_package.unwrap_or_else(|| format!("see {}", self.page))
    }

    fn package(&self, manager: &str) -> Option<&'static str> {
        match manager {
            "apt-get" => self.apt,
            "dnf" => self.dnf,
            "apk" => self.apk,
            "pacman" => self.pacman,
            "zypper" => self.zypper,
            _ => self.brew,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: SystemPackages = SystemPackages {
        apt: Some("nodejs npm"),
        dnf: None,
        apk: None,
        pacman: None,
        zypper: None,
        brew: Some("node"),
        page: "https://nodejs.org",
    };

    #[test]
    fn the_fix_fits_the_machine() {
        assert_eq!(
            NODE.install(|name| name == "apt-get"),
            "sudo apt-get install -y nodejs npm"
        );
        assert_eq!(NODE.install(|name| name == "brew"), "brew install node");
        assert_eq!(NODE.install(|name| name == "dnf"), "see https://nodejs.org");
        assert_eq!(NODE.install(|_| false), "see https://nodejs.org");
    }
}
