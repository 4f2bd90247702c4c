"""The Python package of the source with the built program, and a run: what tests that pytest runs import from here.
Usage of such a test: NAME_test.py THIMBLE_BINARY SOURCE_DIR"""

import os
import pathlib
import sys

import pytest

thimble_program, source = os.path.realpath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(source / "python"))
os.environ.update(THIMBLE=thimble_program, PYTHONPATH=str(source / "python"))
import thimble  # noqa: E402

numpy = pytest.importorskip("numpy")
SMALL = {"train.steps": 40, "train.schedule.warmup": 0, "train.batch": 32, "data.train": 500, "data.validation": 50,
         "data.test": 50}


class Known(dict):
    """Makes what is asked for the first time."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def __missing__(self, key):
        self[key] = self.make(key)
        return self[key]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    os.chdir(tmp_path_factory.mktemp("python"))


@pytest.fixture(scope="module")
def run(folder):
    return thimble.train("reverse", {**SMALL, "model.heads": 2, "model.layers": 2}, out="runs/r2")


def run_tests(file, *options):
    sys.exit(pytest.main([file, "-q", "-p", "no:cacheprovider", *options]))
