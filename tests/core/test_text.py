from kernelwright.core.text import one_line, printable


def test_what_a_terminal_would_obey_is_spelled_out() -> None:
    assert printable("a\x1b[31m\u202e\u0000é\udcff") == "a\\x1b[31m\\u202e\\x00é\\udcff"
    assert one_line(" a\r\n\tb \x85c ") == "a b c"
