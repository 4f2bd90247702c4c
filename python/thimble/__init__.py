"""Train tiny transformers and read what their attention heads do: the program thimble, from Python.

    import thimble
    run = thimble.train("reverse", {"model.heads": 2}, out="runs/r2")
    run.heads[0].label, run.heads[0].scores["mirror"]

Every call runs the program and reads its JSON, so results, messages and files are those of the command line. Calls may
come from several threads.
"""

import pathlib
from typing import Any, Dict, Iterable, List, Optional, Union

from . import _arguments
from ._arguments import Overrides, Path
from ._heads import Attention, Head, Heads, Score
from ._model import Cache, Model, Tokens
from ._program import InputError, NonFiniteError, ThimbleError, __version__, call, program
from ._probe import Probe, probe
from ._run import Run
from ._task import Task, settings

# Without open, which would take the place of Python's.
__all__ = ["Attention", "Cache", "Head", "Heads", "InputError", "Model", "NonFiniteError", "Probe", "Run", "Score", "Sweep",
           "Task", "ThimbleError", "Tokens", "compare", "gradcheck", "probe", "program", "sweep", "tasks", "train"]


def train(config: Union[Path, Task], overrides: Overrides = None, *, out: Optional[Path] = None, resume: bool = False,
          stop_after: Optional[int] = None, threads: Optional[int] = None) -> Run:
    """Trains a model, and shows its progress; Ctrl-C saves, and Run(directory).resume() goes on. config: a file, the name of
    a bundled config, or a Task; overrides: values by key, such as {"model.heads": 2}; out: the run's directory, by default a
    new one under runs/; threads never change the result."""
    file = config.config() if isinstance(config, Task) else config
    return Run(call(_arguments.train(file, overrides, out, resume, stop_after, threads), progress=True)["directory"])


class Sweep:
    """A grid of settings and seeds: result is what `thimble sweep --json` says, runs those that are done."""

    def __init__(self, result: Dict[str, Any]):
        self.result = result

    @property
    def runs(self) -> List[Run]:
        return [Run(run["directory"]) for setting in self.result["settings"] for run in setting["runs"]
                if run["status"] == "done"]

    def __repr__(self) -> str:
        settings = self.result["settings"]
        count = sum(len(setting["runs"]) for setting in settings)
        return f"Sweep of {len(settings)} settings: {count} runs, {self.result['failed']} failed"


def sweep(file: Union[Path, Dict[str, Any]], overrides: Overrides = None, *, out: Optional[Path] = None,
          jobs: Optional[int] = None) -> Sweep:
    """Trains the runs of a sweep file, jobs at a time (by default one for each core). file: its path, or its content, whose
    config may also be a bundled one or a Task; it becomes a file beside `out`, by default in runs/."""
    if isinstance(file, dict):
        file = settings(file, pathlib.Path(out or "runs/sweep").parent)
    return Sweep(call(_arguments.sweep(file, overrides, out, jobs), progress=True))


def open(config: Union[Path, Task, None] = None, weights: Optional[Path] = None, overrides: Overrides = None, *,
         threads: Optional[int] = None) -> Model:
    """A model of weights from elsewhere with a config, or of a checkpoint, weights=FILE, alone. Needs NumPy."""
    file = config.config() if isinstance(config, Task) else config
    file, weights = (pathlib.Path(x).absolute() if x and pathlib.Path(x).exists() else x for x in (file, weights))
    return Model(_arguments.serve(None, None, overrides, threads, weights, file))


def compare(runs: Iterable[Union[Run, Path]], sequences: Optional[int] = None) -> Dict[str, Any]:
    """Results, curves, configs and heads of runs beside each other, as `thimble compare --json` says. Of their newest
    checkpoints: raises ValueError for a Run of another one."""
    runs = list(runs)
    for run in runs:
        if isinstance(run, Run) and run.checkpoint is not None:
            raise ValueError(f"{run.directory}: compare reads the newest checkpoint, not {run.checkpoint}; give the "
                             f"run itself, thimble.Run({str(run.directory)!r})")
    return call(_arguments.compare([run.directory if isinstance(run, Run) else run for run in runs], sequences))


def gradcheck(config: Optional[Path] = None, overrides: Overrides = None, *,
              op: Optional[str] = None) -> Dict[str, Any]:
    """Compares the gradients of a config's model, of all ops or of one, with finite differences in float64. Returns
    {"passed": …, "checks": […]}, a check for each gradient, with its verdict ok, wrong or undecided."""
    return call(_arguments.gradcheck(config, overrides, op))


def tasks(name: Optional[str] = None) -> Dict[str, Any]:
    """What each task is about, by name; or all about one."""
    return call(_arguments.tasks(name))
