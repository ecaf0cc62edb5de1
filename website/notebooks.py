"""Convert notebooks to pages; `python website/notebooks.py` runs them and updates their output.

Notebooks are stored with their output. This module runs them as Jupyter would, but without Jupyter:
it executes the cells in order in one namespace, and keeps printed text, the value of the last
expression, as text and as HTML, and matplotlib figures.
"""

import ast
import base64
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
DPI = 80


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """Execute a notebook and return it with its new outputs."""
    import matplotlib

    matplotlib.use("Agg")
    space: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            shown = {"execution_count": count, "outputs": _outputs(cell, count, space)}
            cells.append({**cell, **shown})
        else:
            cells.append(cell)
    return {**notebook, "cells": cells}


def texts(notebook: dict[str, Any]) -> list[str]:
    """Return the text output of each cell."""
    return ["".join(map(_text, cell.get("outputs", ()))) for cell in notebook["cells"]]


def pages(path: Path) -> dict[str, str | bytes]:
    """Return the page of a notebook and its pictures, by their names on the site."""
    notebook, made, parts = read(path), {}, []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            table, text = output.get("data", {}).get("text/html"), _text(output)
            if table:
                # the site has a style of its own for tables, which pandas would override
                parts.append("".join(table).replace(' border="1" class="dataframe"', ""))
            elif text:
                parts.append(f"```text\n{text.rstrip()}\n```")
        for picture in _pictures(cell):
            name = f"{path.stem}-{number}.png"
            made[f"notebooks/{name}"] = picture
            parts.append(f"![]({name})")
    parts.append(f"[Download this page as a notebook]({path.name})")
    return {f"notebooks/{path.stem}.md": "\n\n".join(parts), **made}


def read(path: Path) -> dict[str, Any]:
    """Read a notebook."""
    return json.loads(path.read_text())


def write(path: Path, notebook: dict[str, Any]) -> None:
    """Write a notebook in Jupyter's format."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def _outputs(cell: dict[str, Any], count: int, space: dict[str, Any]) -> list[dict[str, Any]]:
    from matplotlib import pyplot

    printed, made = io.StringIO(), []
    with redirect_stdout(printed):
        value = _execute("".join(cell["source"]), space)
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        made.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        result = {"data": data, "execution_count": count, "metadata": {}}
        made.append({**result, "output_type": "execute_result"})
    for number in pyplot.get_fignums():
        data = {"image/png": _png(pyplot.figure(number))}
        made.append({"data": data, "metadata": {}, "output_type": "display_data"})
    pyplot.close("all")
    return made


def _execute(source: str, space: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last expression, if it ends in one."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<cell>", "exec"), space)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), space) if last else None


def _png(figure: Any) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI, bbox_inches="tight", metadata={"Software": None})
    return base64.b64encode(file.getvalue()).decode() + "\n"


def _text(output: dict[str, Any]) -> str:
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", ()))


def _pictures(cell: dict[str, Any]) -> list[bytes]:
    found = (output.get("data", {}).get("image/png") for output in cell.get("outputs", ()))
    return [base64.b64decode("".join(picture)) for picture in found if picture]


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or sorted(FOLDER.glob("*.ipynb"))):
        print(path.name)
        write(path, run(read(path)))
