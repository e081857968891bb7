"""GoldenRecord: greedy answers to fixed prompts, to be compared with later answers to the same."""

from typing import ClassVar, Literal

from appliance.documents.base import Document, Part


class GoldenAnswer(Part):
    """What came back for one golden prompt. Token ids are null where the API gives none (streamed chat)."""

    prompt: str
    """Name of the prompt in verify/prompts.py."""
    text: str
    token_ids: list[int] | None = None
    completion_tokens: int


class GoldenRecord(Document):
    KIND: ClassVar[str] = "GoldenRecord"
    kind: Literal["GoldenRecord"] = "GoldenRecord"
    date: str
    model: str
    engine_version: str
    topology: str
    answers: list[GoldenAnswer]
