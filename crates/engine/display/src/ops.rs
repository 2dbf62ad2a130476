//! How each kind of step is written: symbol, colour and words.

use nimbus_engine_model::StepOp;

use crate::line::Tone;

/// Two columns in front of a line.
pub(crate) fn symbol(op: StepOp) -> &'static str {
    match op {
        StepOp::Same => "  ",
        StepOp::Create => "+ ",
        StepOp::Update | StepOp::Refresh | StepOp::RemovePendingReplace => "~ ",
        StepOp::Delete => "- ",
        StepOp::Replace => "+-",
        StepOp::CreateReplacement => "++",
        StepOp::DeleteReplaced => "--",
        StepOp::Read => "> ",
        StepOp::ReadReplacement => ">>",
        StepOp::ReadDiscard => "< ",
        StepOp::DiscardReplaced => "<<",
        StepOp::Import => "= ",
        StepOp::ImportReplacement => "=>",
    }
}

pub(crate) fn tone(op: StepOp) -> Tone {
    match op {
        StepOp::Same | StepOp::RemovePendingReplace => Tone::Plain,
        StepOp::Create | StepOp::Import => Tone::Create,
        StepOp::Update | StepOp::Refresh => Tone::Update,
        StepOp::Delete | StepOp::ReadDiscard | StepOp::DiscardReplaced => Tone::Delete,
        StepOp::Replace | StepOp::ReadReplacement | StepOp::ImportReplacement => Tone::Replace,
        StepOp::CreateReplacement => Tone::CreateReplacement,
        StepOp::DeleteReplaced => Tone::DeleteReplaced,
        StepOp::Read => Tone::Read,
    }
}

/// While it happens.
pub(crate) fn doing(op: StepOp) -> &'static str {
    match op {
        StepOp::Same => "checking",
        StepOp::Create => "creating",
        StepOp::Update => "updating",
        StepOp::Delete => "deleting",
        StepOp::Replace => "replacing",
        StepOp::CreateReplacement => "creating replacement",
        StepOp::DeleteReplaced => "deleting original",
        StepOp::Read => "reading",
        StepOp::ReadReplacement => "reading for replacement",
        StepOp::Refresh => "refreshing",
        StepOp::ReadDiscard => "discarding",
        StepOp::DiscardReplaced => "discarding original",
        StepOp::RemovePendingReplace => "completing pending delete",
        StepOp::Import => "importing",
        StepOp::ImportReplacement => "importing replacement",
    }
}

/// When it has happened.
pub(crate) fn done(op: StepOp) -> &'static str {
    match op {
        StepOp::Same => "unchanged",
        StepOp::Create => "created",
        StepOp::Update => "updated",
        StepOp::Delete => "deleted",
        StepOp::Replace => "replaced",
        StepOp::CreateReplacement => "created replacement",
        StepOp::DeleteReplaced => "deleted original",
        StepOp::Read => "read",
        StepOp::ReadReplacement => "read for replacement",
        StepOp::Refresh => "refreshed",
        StepOp::ReadDiscard => "discarded",
        StepOp::DiscardReplaced => "discarded original",
        StepOp::RemovePendingReplace => "completed pending delete",
        StepOp::Import => "imported",
        StepOp::ImportReplacement => "imported replacement",
    }
}

/// What a preview says that will happen.
pub(crate) fn planned(op: StepOp) -> &'static str {
    match op {
        StepOp::Same => "unchanged",
        StepOp::Create => "create",
        StepOp::Update => "update",
        StepOp::Delete => "delete",
        StepOp::Replace => "replace",
        StepOp::CreateReplacement => "create replacement",
        StepOp::DeleteReplaced => "delete original",
        StepOp::Read => "read",
        StepOp::ReadReplacement => "read for replacement",
        StepOp::Refresh => "refresh",
        StepOp::ReadDiscard => "discard",
        StepOp::DiscardReplaced => "discard original",
        StepOp::RemovePendingReplace => "complete pending delete",
        StepOp::Import => "import",
        StepOp::ImportReplacement => "import replacement",
    }
}

/// Whether the step is a half of a replacement rather than a change of its own.
pub(crate) fn is_part_of_replacement(op: StepOp) -> bool {
    match op {
        StepOp::Replace
        | StepOp::CreateReplacement
        | StepOp::DeleteReplaced
        | StepOp::ReadReplacement
        | StepOp::DiscardReplaced
        | StepOp::RemovePendingReplace
        | StepOp::ImportReplacement => true,
        StepOp::Same
        | StepOp::Create
        | StepOp::Update
        | StepOp::Delete
        | StepOp::Read
        | StepOp::Refresh
        | StepOp::ReadDiscard
        | StepOp::Import => false,
    }
}
