import pytest

from appliance.documents import GoldenAnswer
from appliance.errors import CheckFailed
from appliance.verify.golden import differences, from_response, from_stream
from appliance.verify.prompts import PROMPTS, GoldenPrompt

COMPLETION = GoldenPrompt("c", "completion", "x")
CHAT = GoldenPrompt("h", "chat", (("user", "x"),))


def answer(text="abc", token_ids=None, tokens=3, prompt="c") -> GoldenAnswer:
    return GoldenAnswer(prompt=prompt, text=text, token_ids=token_ids, completion_tokens=tokens)


def test_equal_answers_do_not_differ():
    assert differences([answer(token_ids=[1, 2, 3])], [answer(token_ids=[1, 2, 3])]) == []


@pytest.mark.parametrize(
    "found, line",
    [
        ([], "c: no answer"),
        ([answer(token_ids=[1, 9, 3])], "c: tokens differ from position 1 of 3"),
        ([answer(token_ids=[1, 2])], "c: tokens differ from position 2 of 3"),
        ([answer(text="abd")], "c: text differs from character 2 of 3"),
        ([answer(text="ab")], "c: text differs from character 2 of 3"),
        ([answer(tokens=4)], "c: 4 tokens, expected 3"),
    ],
)
def test_a_difference_is_one_line_with_its_place(found, line):
    assert differences([answer(token_ids=[1, 2, 3])], found) == [line]


def test_an_answer_that_nothing_is_compared_with_is_a_difference():
    assert differences([], [answer()]) == ["c: nothing to compare with"]


def test_whole_responses_of_both_apis():
    usage = {"completion_tokens": 3}
    completion = {"choices": [{"text": "abc", "token_ids": [1, 2, 3]}], "usage": usage}
    chat = {"choices": [{"message": {"content": "abc"}, "response_token_ids": [1, 2, 3]}], "usage": usage}
    assert from_response(COMPLETION, completion).token_ids == [1, 2, 3]
    assert from_response(CHAT, chat) == answer(token_ids=[1, 2, 3], prompt="h")


def stream(*events: str) -> list[str]:
    return [f"data: {event}" for event in events]


def test_a_stream_is_joined():
    events = stream('{"choices": [{"text": "ab"}]}', '{"choices": [{"text": "c"}], "usage": {"completion_tokens": 3}}')
    assert from_stream(COMPLETION, [*events, "", "data: [DONE]"]) == answer()


@pytest.mark.parametrize(
    "lines, problem",
    [
        ([], "the stream ended early, after 0 events"),
        (stream('{"choices": []}'), "the stream ended early, after 1 events"),
        (stream('{"error": {"message": "gone"}}', "[DONE]"), "error in the stream"),
        (stream('{"choices": []}', "[DONE]"), "the stream gave no usage"),
    ],
)
def test_a_broken_stream_is_no_answer(lines, problem):
    with pytest.raises(CheckFailed, match=problem):
        from_stream(COMPLETION, lines)


def test_the_prompts_are_what_the_check_promises():
    assert len(PROMPTS) >= 12
    assert len({prompt.name for prompt in PROMPTS}) == len(PROMPTS)
    assert {(prompt.api, prompt.stream) for prompt in PROMPTS} == {
        ("completion", False),
        ("completion", True),
        ("chat", False),
        ("chat", True),
    }
    contents = [str(prompt.content) for prompt in PROMPTS]
    assert len(set(contents)) == len(contents) - 1, "one prompt stands twice"
    assert max(map(len, contents)) > 3000, "several pages"
    assert any(not content.isascii() for content in contents)
