"""A test that needs pytest-asyncio, beside ours that don't."""

import asyncio

import pytest

pytest.importorskip("pytest_asyncio")


@pytest.mark.asyncio
async def test_in_a_loop():
    await asyncio.sleep(0)
