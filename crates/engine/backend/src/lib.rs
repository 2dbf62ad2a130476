//! Where state lives: Pulumi's self-managed layout, journal, leases, history, secrets, stack configuration.
