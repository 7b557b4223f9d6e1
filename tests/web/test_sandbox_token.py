from pathlib import Path

from foretell.web.sandbox_token import FILE, kept_token


def test_the_token_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    keys = iter([b"\x01" * 32, b"\x02" * 32])
    token = kept_token(tmp_path, lambda: next(keys))
    assert token == "01" * 32
    assert kept_token(tmp_path, lambda: next(keys)) == token
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_a_damaged_token_is_made_again(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("")
    assert kept_token(tmp_path, lambda: b"\x03" * 32) == "03" * 32
