//! The monitor as programs meet it: the pipeline on its own, then over gRPC.

mod builtin;
mod callbacks;
mod construct;
mod failures;
mod grpc;
mod hooks;
mod inheritance;
mod invoke;
mod limits;
mod own_files;
mod providers;
mod register;
mod support;
mod transforms;
