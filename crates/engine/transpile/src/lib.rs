//! TypeScript programs as JavaScript, without a TypeScript compiler in the way.
//!
//! A program is its entry and what that reaches: own files and packages of the same workspace. Each
//! file is translated by itself and the translation is kept under a key of everything it depends
//! on, so an unchanged program costs a few reads. What cannot be translated file by file with the
//! result that the compiler has (see [`Unsupported`]) is refused as a whole: the SDK's own way of
//! running TypeScript is slower but always there. Types are not checked here.
//!
//! Reading order: `options` (what `tsconfig.json` says), `resolve` and `graph` (which files),
//! `survey` and `emit` (one file), `cache` (where it is kept), `bundle` (what a program is run from);
//! `surface` stands by itself (what a file shows without being run).

mod bundle;
mod cache;
mod emit;
mod entry;
mod fields;
mod graph;
mod options;
mod paths;
mod resolve;
mod surface;
mod survey;
mod unsupported;

pub use bundle::{Bundle, Compiled, ModuleFormat};
pub use cache::{CacheKey, TranslationCache};
pub use entry::entry_file;
pub use graph::{TranslationRequest, transpile};
pub use options::Compiler;
pub use surface::{ModuleSurface, SurfaceError, surface};
pub use unsupported::Unsupported;
