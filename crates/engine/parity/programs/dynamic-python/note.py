"""What the provider does."""

import os

import pulumi
from pulumi.dynamic import (
    CheckResult,
    CheckFailure,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)


def _file(id_):
    return os.path.join(os.environ["PARITY_WORLD"], id_)


class _Provider(ResourceProvider):
    def check(self, _olds, news):
        empty = news["text"] == ""
        return CheckResult(news, [CheckFailure("text", "a note says something")] if empty else [])

    def diff(self, _id, olds, news):
        replaces = ["pinned"] if olds["pinned"] != news["pinned"] else []
        changes = olds["text"] != news["text"] or bool(replaces)
        return DiffResult(changes, replaces, [], news["pinned"] == "unique")

    def create(self, props):
        if props["text"] == "unwritable":
            raise Exception("this cannot be written")
        id_ = f"{props['pinned']}-note"
        with open(_file(id_), "w") as file:
            file.write(props["text"])
        return CreateResult(id_, {**props, "length": len(props["text"])})

    def update(self, id_, _olds, news):
        with open(_file(id_), "w") as file:
            file.write(news["text"])
        return UpdateResult({**news, "length": len(news["text"])})

    def read(self, id_, props):
        if not os.path.exists(_file(id_)):
            return ReadResult("", {})
        with open(_file(id_)) as file:
            text = file.read()
        return ReadResult(id_, {**props, "text": text, "length": len(text)})

    def delete(self, id_, _props):
        os.remove(_file(id_))


class Note(Resource):
    text: pulumi.Output[str]
    length: pulumi.Output[int]

    def __init__(self, name, text, pinned, opts=None):
        super().__init__(_Provider(), name, {"text": text, "pinned": pinned, "length": None}, opts)
