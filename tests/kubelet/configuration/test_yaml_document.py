"""How deep a document may be, whatever it is made of."""

import pytest

from rollout.kubelet.configuration.yaml_document import DocumentError, read


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "{a: " * 5_000, "{ " * 5_000, "? " * 5_000, "[? {" * 5_000, "- " * 5_000]
)
def test_a_document_that_is_too_deep_is_an_error(text: str) -> None:
    with pytest.raises(DocumentError, match=r"too large or too deep|yaml"):
        read(text.encode())
