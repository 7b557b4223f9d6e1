import gzip
from pathlib import Path

import pytest

from foretell.domain.errors.command import WebBuildTooLarge
from foretell.web import build_files
from foretell.web.build_files import ASKED_AGAIN, LASTING, read_build


def test_a_folder_without_a_page_is_no_build(tmp_path: Path) -> None:
    assert read_build(tmp_path) == {}
    assert read_build(tmp_path / "missing") == {}


def test_files_of_unknown_types_are_left_out(build: Path) -> None:
    assert sorted(read_build(build)) == ["assets/index-1.js", "favicon.svg", "index.html"]


def test_a_file_whose_name_has_its_hash_is_kept_by_browsers(build: Path) -> None:
    files = read_build(build)
    assert files["assets/index-1.js"].cache_control == LASTING
    assert files["index.html"].cache_control == ASKED_AGAIN


def test_a_large_file_is_compressed_to_the_same_content(build: Path) -> None:
    script, icon = read_build(build)["assets/index-1.js"], read_build(build)["favicon.svg"]
    assert script.compressed is not None
    assert len(script.compressed) < len(script.content) // 10
    assert gzip.decompress(script.compressed) == script.content
    assert icon.compressed is None


def test_a_build_above_the_bound_is_refused(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_files, "BUILD_BYTES_MAX", 3_000)
    with pytest.raises(WebBuildTooLarge, match="at most 3000"):
        read_build(build)
