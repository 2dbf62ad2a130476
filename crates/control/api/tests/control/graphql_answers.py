"""What the fuzzer of APIs has to be told about GraphQL as it is spoken here.

Its own check takes every error of a field for a failure of the server. Here an error says in its extensions whose fault
it is: only what the server blames itself for is a finding, and an error that does not say it.
"""

import json

import schemathesis
from hypothesis import strategies as st
from schemathesis.graphql import nodes

schemathesis.graphql.scalar("DateTime", st.datetimes().map(lambda at: nodes.String(at.isoformat() + "Z")))
schemathesis.graphql.scalar(
    "JSON",
    st.one_of(
        st.text(max_size=20).map(nodes.String),
        st.integers(min_value=-(2**53), max_value=2**53).map(nodes.Int),
        st.booleans().map(nodes.Boolean),
    ),
)


@schemathesis.check
def no_failure_of_the_server(ctx, response, case):
    assert response.status_code < 500, f"status {response.status_code}"
    answer = json.loads(response.content)
    assert isinstance(answer, dict), "the answer is no object"
    for error in answer.get("errors", []):
        code = error.get("extensions", {}).get("code")
        assert code is not None, f"nobody is blamed for: {error}"
        assert code != "INTERNAL", f"the server blames itself for: {error}"
