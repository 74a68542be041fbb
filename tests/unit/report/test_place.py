from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

import pytest
from hypothesis import given

from linkcheck.report.place import make_uri, path_below
from tests.unit.report import hostile


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("bin/runner", "bin/runner"),
        ("./bin//runner", "bin/runner"),
        ("/srv/project/lib/a.so", "lib/a.so"),
        ("/srv/project", "."),
        ("", "."),
        ("../other/a.so", None),
        ("/srv/projects/a.so", None),
        ("/usr/lib/a.so", None),
        ("bin/../../x", None),
    ],
)
def test_paths_below_the_directory_are_relative_to_it(path: str, below: str | None) -> None:
    assert path_below(path, "/srv/project") == below


def test_everything_is_below_the_root_directory() -> None:
    assert path_below("/usr/lib/a.so", "/") == "usr/lib/a.so"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("bin/my runner", "bin/my%20runner"),
        ("a:b#c?d%e", "a%3Ab%23c%3Fd%25e"),
        ("lib\udcff.so", "lib%FF.so"),
        ("名.so", "%E5%90%8D.so"),
        ("/usr/lib/a b.so", "file:///usr/lib/a%20b.so"),
        ("//usr/lib/a.so", "file:///usr/lib/a.so"),
    ],
)
def test_uris_are_percent_encoded(path: str, uri: str) -> None:
    assert make_uri(path, "/srv/project") == uri


@given(hostile.text.filter(lambda path: "\0" not in path))
def test_a_uri_leads_back_to_the_path(path: str) -> None:
    uri = make_uri(path, "/srv/project")
    assert uri.isascii()
    whole = urlsplit(urljoin("file:///srv/project/", uri))
    assert (whole.scheme, whole.netloc, whole.query, whole.fragment) == ("file", "", "", "")
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError:
        return  # a surrogate that stands for no byte: no file can be called so
    there = os.path.normpath(b"/srv/project/" + name if not name.startswith(b"/") else name)
    assert os.path.normpath(unquote_to_bytes(whole.path)) == there.replace(b"//", b"/")


def test_a_file_uri_is_the_one_pathlib_gives() -> None:
    path = "/opt/a b/é#.so"
    assert make_uri(path, "/srv") == Path(path).as_uri()
