//! The API on a real database, through its router and nothing else.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests end the test"
)]

mod administrators;
mod approval_policies;
mod approvals;
mod archive;
mod asked;
mod audit;
mod bootstrap;
mod borders;
mod canary;
mod catalog;
mod cloud_accounts;
mod cmdb;
mod cmdb_import;
mod cmdb_live;
mod delegation;
mod deliveries;
mod environments;
mod first_run;
mod fuzzed;
mod gates;
mod governance;
mod graphql;
mod graphql_events;
mod graphql_limits;
mod graphql_live;
mod graphql_loads;
mod graphql_matrix;
mod graphql_platform;
mod guessing;
mod hostile;
mod instances;
mod keys;
mod library;
mod limited;
mod live;
mod live_feed;
mod live_rooms;
mod live_wire;
mod mails;
mod matrix;
mod notifications;
mod order;
mod overload;
mod queue;
mod quotas;
mod reads;
mod recovery;
mod refreshes;
mod repeated;
mod resolvers;
mod reviews;
mod roles;
mod rollouts;
mod sessions;
mod socket_io;
mod support;
mod tenants;
mod upgrades;
mod webhook_receiver;
mod workflows;
mod workspace_names;
mod zones;
