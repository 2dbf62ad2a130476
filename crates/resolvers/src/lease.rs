//! Leases: what an answer took, who holds it, and what becomes of it when a run ends.
//!
//! A lease is taken by a plan or a run (`leased`), and is committed or released with the run. A unit
//! has at most one live lease for a question, so asking again, in the same run or a later one, gives the
//! same answer. What a unit no longer asks for stays committed with the run that left it
//! ([`until_run`](ResolverLease::until_run)) until the unit is destroyed: a rollback may return to it, and
//! somebody else's address is nothing to return to.
//!
//! All decisions are here; files, memory and the database carry them out.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::address::AddressBlock;
use crate::definition::ResolverKind;

/// How long what a plan shows is held for it.
pub const PLAN_LEASE_SECONDS: i64 = 24 * 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseStatus {
    /// Held by a plan or a run that is not over.
    Leased,
    /// What is deployed has it.
    Committed,
    /// Given back.
    Released,
}

impl LeaseStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leased => "leased",
            Self::Committed => "committed",
            Self::Released => "released",
        }
    }
}

impl FromStr for LeaseStatus {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::Leased, Self::Committed, Self::Released];
        all.into_iter().find(|one| one.as_str() == text).ok_or(())
    }
}

/// For whom something is leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseHolder {
    /// A preview, or a run that has not begun.
    Plan,
    Run(u64),
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan => f.write_str("a plan"),
            Self::Run(run) => write!(f, "run {run}"),
        }
    }
}

/// The unit that a lease is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeaseUnit {
    pub deployment: String,
    pub environment: String,
    pub component: String,
}

impl fmt::Display for LeaseUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}-{}",
            self.deployment, self.component, self.environment
        )
    }
}

/// Something that was taken for a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolverLease {
    pub id: Uuid,
    pub unit: LeaseUnit,
    pub resolver: ResolverKind,
    /// The question that it answers, see [`key`](crate::ResolverQuestion::key).
    pub question: String,
    pub status: LeaseStatus,
    pub holder: LeaseHolder,
    /// An earlier run that left it with a unit that it did not finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_run: Option<u64>,
    /// The last run that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_run: Option<u64>,
    /// The run that committed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_run: Option<u64>,
    /// The run after which the unit no longer had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_run: Option<u64>,
    /// The pool or sequence that it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<AddressBlock>,
    /// A name that nobody else may have, with its type in front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_name: Option<String>,
    /// Without anything secret.
    pub outputs: Map<String, Value>,
    /// A secret, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<String>,
    /// Seconds since 1970.
    pub taken_at: i64,
    /// When a plan that was not carried out lets go of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

/// What became of a unit in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// It was deployed with what the run asked for.
    Deployed,
    /// It is as it was before the run: undone, or never begun.
    Undone,
    /// Nothing is left of it.
    Destroyed,
    /// It is as this earlier run left it.
    Restored { to_run: u64 },
    /// Nobody knows yet, or the run goes on later.
    Open,
}

impl ResolverLease {
    pub fn is_live(&self) -> bool {
        self.status != LeaseStatus::Released
    }

    /// Whether a plan has held it for too long.
    pub fn is_expired(&self, now: i64) -> bool {
        self.status == LeaseStatus::Leased && self.expires_at.is_some_and(|at| at <= now)
    }

    /// It is asked for again; whether anything about it changed.
    pub fn ask(&mut self, holder: LeaseHolder, now: i64) -> bool {
        let before = (
            self.holder,
            self.earlier_run,
            self.used_run,
            self.expires_at,
        );
        match (self.status, holder) {
            (LeaseStatus::Released, _) => {}
            // A look changes nothing of what somebody has, and keeps what it would show again.
            (_, LeaseHolder::Plan) => {
                if self.holder == LeaseHolder::Plan && self.status == LeaseStatus::Leased {
                    self.expires_at = Some(now + PLAN_LEASE_SECONDS);
                }
            }
            (LeaseStatus::Committed, LeaseHolder::Run(run)) => self.used_run = Some(run),
            (LeaseStatus::Leased, LeaseHolder::Run(run)) => {
                if let LeaseHolder::Run(earlier) = self.holder
                    && earlier != run
                {
                    // What that run left of the unit may have it.
                    self.earlier_run.get_or_insert(earlier);
                }
                self.holder = holder;
                self.used_run = Some(run);
                self.expires_at = None;
            }
        }
        before
            != (
                self.holder,
                self.earlier_run,
                self.used_run,
                self.expires_at,
            )
    }

    /// The run that the unit was part of is over for it; whether anything about it changed.
    pub fn settle(&mut self, run: u64, settlement: Settlement) -> bool {
        if !self.is_live() {
            return false;
        }
        let before = (self.status, self.holder, self.from_run, self.until_run);
        let used = self.used_run == Some(run);
        match (settlement, self.status) {
            (Settlement::Open, _) | (_, LeaseStatus::Released) => {}
            (Settlement::Deployed, LeaseStatus::Leased) if used => {
                self.status = LeaseStatus::Committed;
                self.from_run = Some(run);
            }
            (Settlement::Deployed, LeaseStatus::Committed) if used => self.until_run = None,
            // The unit is whole and does not have it.
            (Settlement::Deployed, LeaseStatus::Leased) => self.release(),
            (Settlement::Deployed, LeaseStatus::Committed) => {
                self.until_run.get_or_insert(run);
            }
            (Settlement::Undone, LeaseStatus::Leased) if self.holder == LeaseHolder::Run(run) => {
                match self.earlier_run {
                    // Back to what that run left, which may have it.
                    Some(earlier) => self.holder = LeaseHolder::Run(earlier),
                    None => self.release(),
                }
            }
            (Settlement::Undone, LeaseStatus::Leased | LeaseStatus::Committed) => {}
            (Settlement::Destroyed, LeaseStatus::Leased | LeaseStatus::Committed) => self.release(),
            (Settlement::Restored { .. }, LeaseStatus::Leased) => {
                // Somebody's preview is not about what is there now.
                if self.holder != LeaseHolder::Plan {
                    self.release();
                }
            }
            (Settlement::Restored { to_run }, LeaseStatus::Committed) => {
                let had = self.from_run.is_none_or(|from| from <= to_run)
                    && self.until_run.is_none_or(|until| to_run < until);
                if had {
                    self.until_run = None;
                } else {
                    self.until_run.get_or_insert(run);
                }
            }
        }
        before != (self.status, self.holder, self.from_run, self.until_run)
    }

    /// Gives it back.
    pub fn release(&mut self) {
        self.status = LeaseStatus::Released;
        self.expires_at = None;
        // Nobody needs a secret that nobody has.
        self.sealed = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(status: LeaseStatus, holder: LeaseHolder) -> ResolverLease {
        ResolverLease {
            id: Uuid::nil(),
            unit: LeaseUnit {
                deployment: "D1".into(),
                environment: "dev".into(),
                component: "app".into(),
            },
            resolver: ResolverKind::Ipam,
            question: "ipam()".into(),
            status,
            holder,
            earlier_run: None,
            used_run: None,
            from_run: None,
            until_run: None,
            space: None,
            block: None,
            unique_name: None,
            outputs: Map::new(),
            sealed: None,
            taken_at: 0,
            expires_at: None,
        }
    }

    /// What becomes of a lease that this run asked for, or did not.
    fn after(mut one: ResolverLease, asked: bool, settlement: Settlement) -> ResolverLease {
        if asked {
            one.ask(LeaseHolder::Run(5), 0);
        }
        one.settle(5, settlement);
        one
    }

    #[test]
    fn what_becomes_of_a_lease_by_what_became_of_its_unit() {
        use LeaseHolder::{Plan, Run};
        use LeaseStatus::{Committed, Leased, Released};
        use Settlement::{Deployed, Destroyed, Open, Undone};
        for (status, holder, asked, settlement, becomes) in [
            (Leased, Plan, true, Deployed, Committed),
            (Leased, Plan, true, Undone, Released),
            (Leased, Plan, true, Open, Leased),
            (Leased, Plan, false, Undone, Leased),
            (Leased, Plan, false, Deployed, Released),
            (Leased, Plan, false, Destroyed, Released),
            (Leased, Run(5), true, Deployed, Committed),
            (Leased, Run(5), true, Undone, Released),
            (Leased, Run(5), true, Open, Leased),
            (Leased, Run(4), false, Deployed, Released),
            (Leased, Run(4), true, Deployed, Committed),
            (Leased, Run(4), true, Undone, Leased),
            (Leased, Run(4), false, Undone, Leased),
            (Committed, Run(3), true, Deployed, Committed),
            (Committed, Run(3), false, Deployed, Committed),
            (Committed, Run(3), true, Undone, Committed),
            (Committed, Run(3), false, Undone, Committed),
            (Committed, Run(3), false, Destroyed, Released),
            (Committed, Run(3), true, Open, Committed),
            (Released, Run(3), true, Deployed, Released),
        ] {
            let one = after(lease(status, holder), asked, settlement);
            assert_eq!(
                one.status, becomes,
                "{status:?} {holder:?} {asked} {settlement:?}"
            );
            let again = after(one.clone(), asked, settlement);
            assert_eq!(again, one, "twice is once: {settlement:?}");
        }
    }

    #[test]
    fn an_undone_run_gives_a_lease_back_to_the_run_that_left_it() {
        let mut one = lease(LeaseStatus::Leased, LeaseHolder::Run(2));
        one.ask(LeaseHolder::Run(5), 0);
        one.settle(5, Settlement::Undone);
        assert_eq!(
            (one.status, one.holder),
            (LeaseStatus::Leased, LeaseHolder::Run(2))
        );
    }

    #[test]
    fn what_a_version_had_is_its_own_again_after_a_rollback() {
        // Version of run 1 had A, version of run 2 has B instead.
        let mut a = lease(LeaseStatus::Leased, LeaseHolder::Plan);
        a.ask(LeaseHolder::Run(1), 0);
        a.settle(1, Settlement::Deployed);
        let mut b = lease(LeaseStatus::Leased, LeaseHolder::Plan);
        b.ask(LeaseHolder::Run(2), 0);
        a.settle(2, Settlement::Deployed);
        b.settle(2, Settlement::Deployed);
        assert_eq!((a.status, a.until_run), (LeaseStatus::Committed, Some(2)));
        for one in [&mut a, &mut b] {
            one.settle(3, Settlement::Restored { to_run: 1 });
        }
        assert_eq!((a.until_run, b.until_run), (None, Some(3)));
        assert!(b.is_live(), "a rollback to version 2 must find it");
        for one in [&mut a, &mut b] {
            one.settle(4, Settlement::Restored { to_run: 2 });
        }
        assert_eq!(b.until_run, None);
        for one in [&mut a, &mut b] {
            one.settle(5, Settlement::Destroyed);
            assert_eq!(one.status, LeaseStatus::Released);
        }
    }

    #[test]
    fn a_plan_holds_for_a_while_and_takes_nothing_from_a_run() {
        let mut plan = lease(LeaseStatus::Leased, LeaseHolder::Plan);
        plan.ask(LeaseHolder::Plan, 100);
        assert!(!plan.is_expired(100 + PLAN_LEASE_SECONDS - 1));
        assert!(plan.is_expired(100 + PLAN_LEASE_SECONDS));
        let mut run = lease(LeaseStatus::Leased, LeaseHolder::Run(1));
        assert!(!run.ask(LeaseHolder::Plan, 100));
        assert!(
            !run.is_expired(i64::MAX),
            "a run's lease has no end of its own"
        );
        plan.ask(LeaseHolder::Run(2), 200);
        assert!(!plan.is_expired(i64::MAX));
    }
}
