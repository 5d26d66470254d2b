# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The explorer as a marimo notebook, which `farfield explore` runs."""

import marimo

app = marimo.App(width="full", app_title="farfield")


@app.cell
def _():
    import threading
    from importlib.resources import files

    import marimo as mo

    from farfield.figures.document import math_font
    from farfield.figures.explorer import state
    from farfield.theory.answers.writers.html import stylesheet

    style = math_font() + files("farfield.figures").joinpath("templates", "style.css").read_text(
        "utf-8"
    )
    scoped = style.replace(":root {", ".farfield {").replace("\nbody {", "\n.none {")
    around = ".explored { background: var(--paper); color: var(--ink); padding: .2rem 1rem; "
    around += "font-family: system-ui, sans-serif; }"
    heading = '<h1 style="padding-right:2.5rem">How far does a positional encoding see?</h1>'
    mo.Html(f"<style>{math_font()}{stylesheet()}{scoped}{around}</style>{heading}")
    return mo, state, threading


@app.cell
def _(mo, state):
    # What the address says, else what the command said.
    begin = mo.query_params().get("formula") or mo.cli_args().get("formula") or state.START
    chosen, choose = mo.state(str(begin))
    examples = [
        mo.ui.button(label=name, on_click=lambda _, formula=formula: choose(formula))
        for name, formula in state.EXAMPLES.items()
    ]
    mo.hstack(examples, justify="start", wrap=True)
    return (chosen,)


@app.cell
def _(chosen, mo, state):
    typed = mo.ui.text(
        value=chosen(),
        full_width=True,
        debounce=True,
        label="A formula in n, or a name of the catalogue",
    )
    session = state.Explorer()
    typed
    return session, typed


@app.cell
def _(mo, session, state, typed):
    explorer = session.read(typed.value)
    sliders = explorer.question.sliders if explorer.question else ()
    moved = mo.ui.dictionary(
        {
            s.name: mo.ui.slider(
                steps=[float(v) for v in s.steps],
                value=float(s.nearest(mo.query_params().get(s.name))),
                label=f"{s.name} ({s.domain})",
                include_input=True,
                debounce=False,
                full_width=True,
            )
            for s in sliders
        }
    )
    trouble = f"{explorer.trouble}. The answer below is the one before."
    warning = [mo.callout(trouble, kind="warn")] * bool(explorer.trouble)
    mo.vstack([*warning, mo.hstack(moved.elements.values(), widths="equal", wrap=True)])
    return explorer, moved


@app.cell
def _(mo, moved, state, typed):
    values = state.values_of(moved.value)
    _address = {"formula": typed.value, **values}
    for _key in {*mo.query_params().to_dict()} - {*_address}:
        mo.query_params().remove(_key)
    for _key, _value in _address.items():
        mo.query_params()[_key] = str(_value)
    return (values,)


@app.cell
def _(explorer, mo, state, threading, values):
    # Beside the notebook, so that a new input withdraws the question and need not wait for it.
    answered = threading.Event()

    def answer():
        thread = mo.current_thread()
        for shown in explorer.answers(values, lambda: thread.should_exit):
            mo.output.replace(mo.Html(state.html(shown)))
            answered.set()

    mo.Thread(target=answer).start()
    _ = answered.wait(2 * state.FIRST)
    return


@app.cell
def _(explorer, mo, state, values):
    commands = state.commands(explorer.question, values) if explorer.question else ("", "")
    mo.accordion(
        {
            "Copy as Python, as a command": mo.md(
                "```python\n{}\n```\n\n```sh\n{}\n```".format(*commands)
            ),
            "Keep this state as a page": mo.download(
                lambda: state.export(explorer, values).encode(),
                filename="farfield.html",
                mimetype="text/html",
                label="farfield.html",
            ),
        }
    )
    return


if __name__ == "__main__":
    app.run()
