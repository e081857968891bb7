from appliance.bench.serve.matrix import Matrix, workloads


def words(found) -> list[str]:
    return [workload.words() for workload in found]


def test_the_matrix_is_every_length_at_every_load():
    found, left_out = workloads(Matrix(concurrencies=[4, 1], inputs=[512, 128], outputs=[32], mixes=()), 8192)
    assert words(found) == [
        "128 in, 32 out, 1 in flight",
        "128 in, 32 out, 4 in flight",
        "512 in, 32 out, 1 in flight",
        "512 in, 32 out, 4 in flight",
    ]
    assert [workload.requests for workload in found] == [4, 16, 4, 16] and left_out == []


def test_what_is_longer_than_the_context_is_left_out_and_named():
    found, left_out = workloads(Matrix(concurrencies=[1], inputs=[512, 8192], outputs=[32], mixes=()), 8192)
    assert words(found) == ["512 in, 32 out, 1 in flight"]
    assert left_out == ["input 8192: longer than the context of 8192 tokens"]


def test_prompts_of_bytes_need_twice_the_room():
    found, left_out = workloads(Matrix(concurrencies=[1], inputs=[4096], outputs=[32], mixes=()), 8192, vocabulary=258)
    assert found == [] and left_out == ["input 4096: longer than the context of 8192 tokens"]


def test_a_conversations_turns_are_whole():
    found, _ = workloads(Matrix(concurrencies=[2], inputs=[128], outputs=[32], requests_each=3), None)
    assert next(workload for workload in found if workload.name == "multi-turn").requests == 4


def test_mixes_take_the_middle_load_and_tail_isolation_the_longest_input_as_noise():
    found, _ = workloads(Matrix(concurrencies=[1, 2, 4], inputs=[128, 4096], outputs=[32]), None)
    assert words(found)[-3:] == [
        "tail isolation, 128 behind 4096 in, 32 out, 2 in flight",
        "multi-turn, 128 in, 32 out, 2 in flight, 4 turns",
        "structured output, 128 in, 32 out, 2 in flight",
    ]


def test_without_a_longer_input_there_is_no_tail_to_isolate():
    found, left_out = workloads(Matrix(inputs=[128], outputs=[32], concurrencies=[2]), None)
    assert not any(workload.name == "tail isolation" for workload in found)
    assert left_out == ["tail isolation: needs a second, longer input"]


def test_a_rate_takes_the_place_of_concurrency():
    found, _ = workloads(Matrix(request_rates=[0.5, 2.0], inputs=[128], outputs=[32], mixes=()), None)
    assert words(found) == ["128 in, 32 out, 0.5 requests/s", "128 in, 32 out, 2 requests/s"]
    assert [workload.requests for workload in found] == [20, 80]
