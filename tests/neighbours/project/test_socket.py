"""Where pytest-socket forbids sockets, it still does so for the project's own tests."""

import socket

import pytest


@pytest.mark.filterwarnings("ignore:A test tried to use socket")
def test_sockets_are_as_the_options_say(request):
    if request.config.getoption("disable_socket", False):
        with pytest.raises(RuntimeError):
            socket.socket(socket.AF_INET)
    else:
        socket.socket().close()
