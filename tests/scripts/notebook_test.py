"""docs/notebook.ipynb runs, draws what it says, and its report is whole; the executed notebook is left as notebook.html
beside the build. Usage: notebook_test.py THIMBLE_BINARY SOURCE_DIR"""

import os
import pathlib
import re
import sys
import tempfile

import nbclient
import nbformat

program, source = os.path.realpath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
os.environ.update(THIMBLE=program, PYTHONPATH=str(source / "python"))
notebook = nbformat.read(source / "docs" / "notebook.ipynb", as_version=4)
assert not any(cell.get("outputs") for cell in notebook.cells), "outputs belong to who runs it: clear them"
with tempfile.TemporaryDirectory() as folder:
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
text = "".join(output.get("text", "") for output in outputs)
assert re.search(r"Run runs/reverse-\S+: 3900 steps, 10314 parameters, test loss 0\.00\d\d, tokens \d+\.\d\d % of 160000", text), text
assert re.search(r"Head 0\.0: mirror: \d+ % of its attention", text), text
assert "step 3900/3900" in text and "\r" in text, text
data = [output.data for output in outputs if "data" in output]
assert sum("image/png" in each for each in data) == 2, [list(each) for each in data]
assert any("<iframe srcdoc=" in each.get("text/html", "") for each in data)
try:
    from nbconvert import HTMLExporter
except ImportError:
    pass
else:
    pathlib.Path(program).with_name("notebook.html").write_text(HTMLExporter().from_notebook_node(notebook)[0])
print("notebook_test: ok")
