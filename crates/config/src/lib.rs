//! Settings of the Nimbus binary: flags over environment over file over defaults, each with its origin.
