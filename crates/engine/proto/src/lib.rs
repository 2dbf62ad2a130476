//! The Pulumi wire protocol: our own definitions of its messages and services, and the generated code.
