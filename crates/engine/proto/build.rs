//! Compiles `proto/` with a compiler written in Rust, so that building Nimbus needs no protoc.

use std::error::Error;

const ROOT: &str = "proto";
const FILES: [&str; 6] = [
    "google/rpc/status.proto",
    "pulumi/analyzer.proto",
    "pulumi/engine.proto",
    "pulumi/errors.proto",
    "pulumi/resource.proto",
    "pulumi/resource_status.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={ROOT}");
    let descriptors = protox::compile(FILES, [ROOT])?;

    let mut config = tonic_prost_build::Config::new();
    // Error details travel as `Any`, which names its content.
    config
        .enable_type_names()
        .type_name_domain(["."], "type.googleapis.com");

    tonic_prost_build::configure()
        // Two encodings of one message must be the same bytes.
        .btree_map(".")
        // A server answers UNIMPLEMENTED for what it leaves out, as the protocol expects.
        .generate_default_stubs(true)
        .extern_path(".google.protobuf.ListValue", "crate::ListValue")
        .extern_path(".google.protobuf.Struct", "crate::Struct")
        .extern_path(".google.protobuf.Value", "crate::Value")
        .compile_fds_with_config(descriptors, config)?;
    Ok(())
}
