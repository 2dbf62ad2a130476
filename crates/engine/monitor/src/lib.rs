//! What a running program talks to: resource registration, invokes, transforms, and their gRPC services.
