from appliance.recon.machine.remote.frame import parse

FRAME = (
    b"banner\n\nM begin 1\n\nM f /sys/a/b\none\n\nM x /sys/a/config\n 0a ff\n 00\n\nM l /sys/a/link\n/sys/c\n"
    b"\nM d /models\n4096 41ed /models/x\n10 81a4 /models/a file\n- - /models/lost\n"
    b"\nM k /models\n/dev/a 100 40 60 40% /\n"
    b"\nM n /lib\nx.dist-info\n\nM c ss\nLISTEN\n\nM r ss 0\n\nM r smi 127\n\nM c docker\ncannot\n\nM r docker 1\n"
    b"\nM h 8000 /version\n{}\n\nM v HOME\n/root\n\nM s files 0\n\nM s models 1\n\nM s processes 0\n\nM end 1\n"
)
PROGRAMS = {"ss": "ss", "smi": "nvidia-smi", "docker": "docker"}


def test_every_kind_of_record():
    source = parse(FRAME, "M", PROGRAMS)
    assert source.begun and source.whole
    assert (source.text("/sys/a/b"), source.data("/sys/a/config"), source.link("/sys/a/link")) == (
        "one",
        b"\x0a\xff\x00",
        "/sys/c",
    )
    assert source.sizes("/models") == {"x": -1, "a file": 10, "lost": None}
    assert source.space("/models") == (102400, 61440)
    assert source.names("/sys") == ["a"]
    assert source.names("/sys/a") == ["b", "config", "link"]
    assert source.names("/lib") == ["x.dist-info"]
    assert source.run("ss").text.strip() == "LISTEN"
    assert source.run("smi").problem == "nvidia-smi is not installed"
    assert source.run("docker").problem == "docker failed: cannot"
    assert source.run("other").problem == "the script did not come to it"
    assert source.answer(8000, "/version").text == "{}"
    assert source.answer(8001, "/version").text is None
    assert source.variable("HOME") == "/root"


def test_cut_off_anywhere_no_half_record_counts():
    whole = parse(FRAME, "M", PROGRAMS)
    for end in range(len(FRAME)):
        source = parse(FRAME[:end], "M", PROGRAMS)
        assert not source.whole or end >= FRAME.index(b"M end") + 5
        assert not source.files or end > FRAME.index(b"/sys/a/b\none\n")
        for path, data in source.files.items():
            assert whole.files[path] == data
        for path, sizes in source.folders.items():
            assert whole.folders[path] == sizes
        for name, output in source.outputs.items():
            assert output.text in (None, whole.outputs[name].text)


def test_a_file_that_holds_something_like_a_record_is_no_record():
    source = parse(b"\nM begin 1\n\nM f /a\nN f /b\n M f /c\n\nM s models 0\n\nM end 1\n", "M", {})
    assert list(source.files) == ["/a"]


def test_a_stage_out_of_time_gives_no_half_list():
    data = b"\nM begin 1\n\nM f /sys/bus/pci/devices/a/class\n1\n\nM f /proc/cmdline\nx\n\nM s files 124\n\nM end 1\n"
    source = parse(data, "M", {})
    assert source.names("/sys/bus/pci/devices") == []
    assert source.text("/proc/cmdline") == "x"
