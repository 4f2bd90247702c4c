"""docs/notebook.ipynb and docs/induction.ipynb run, and draw what they say; the executed notebooks are left as
notebook.html and induction.html beside the build. Usage: notebook_test.py THIMBLE_BINARY SOURCE_DIR"""

import os
import pathlib
import re
import sys
import tempfile

import nbclient
import nbformat

program, source = os.path.realpath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
os.environ.update(THIMBLE=program, PYTHONPATH=str(source / "python"))


def executed(name):
    """What a notebook printed, and the forms of what it showed."""
    notebook = nbformat.read(source / "docs" / f"{name}.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs belong to who runs it: clear them"
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    try:
        from nbconvert import HTMLExporter
    except ImportError:
        pass
    else:
        pathlib.Path(program).with_name(f"{name}.html").write_text(HTMLExporter().from_notebook_node(notebook)[0])
    assert not any("Warning" in output.get("text", "") for output in outputs), outputs
    return "".join(output.get("text", "") for output in outputs), [output.data for output in outputs if "data" in output]


text, data = executed("notebook")
assert re.search(r"Run runs/reverse-\S+: 3900 steps, 10314 parameters, test loss 0\.00\d\d, tokens \d+\.\d\d % of 160000", text), text
assert re.search(r"Head 0\.0: mirror: \d+ % of its attention", text), text
assert "step 3900/3900" in text and "\r" in text, text
assert sum("image/png" in each for each in data) == 2, [list(each) for each in data]
assert any("<svg" in each.get("text/html", "") and "<td>mirror</td>" in each["text/html"] for each in data)

text, data = executed("induction")
assert re.search(r"Run runs/induction_lengths-\S+: 1000 steps, .* tokens 4\d\.\d\d % of", text), text
assert sum("image/png" in each for each in data) == 2 and any("<td>induction</td>" in each.get("text/html", "") for each in data)
for measured in ("previous_token", "induction", "zero ablation"):  # the reader's own numbers are those of the run
    assert float(re.search(rf"[\r\n]{measured} (\S+)\n", text)[1]) < 1e-6, text
print("notebook_test: ok")
