"""What a project's root conftest does: fixtures for everything, arithmetic with paths."""

import os

import pytest


@pytest.fixture(autouse=True)
def _everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("PROJECT_SAYS", "set for each test")
    monkeypatch.chdir(tmp_path)
    yield
    assert os.environ["PROJECT_SAYS"]


@pytest.fixture(autouse=True, scope="session")
def _once(request):
    assert request.config.rootpath.is_dir()


def pytest_collection_modifyitems(config, items):
    for item in items:
        item.path.relative_to(config.rootpath)
        assert item.nodeid
        assert item.location


def pytest_runtest_makereport(item, call):
    assert item.path.is_relative_to(item.config.rootpath)
