//! Provider and policy plugins: lookup, launch, gRPC clients and their lifetime.
