"""The example of long-term memory does what it says."""

from examples.memory import main


def test_a_visitor_is_remembered_within_a_run(capsys):
    main()
    assert capsys.readouterr().out.splitlines() == [
        "ada: nobody we know",
        "bob: nobody we know",
        "ada: reads Babbage, drinks tea",
        "known: ada, bob",
    ]


def test_a_visitor_is_remembered_in_a_file(capsys, tmp_path):
    path = str(tmp_path / "memory.db")
    main(path)
    capsys.readouterr()
    main(path)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "ada: drinks tea without sugar, reads Babbage",
        "bob: drinks coffee",
    ]
