# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The explorer as a marimo notebook: `farfield explore` runs it, `farfield explore --edit` opens a
copy of it."""

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
    mine = style.replace(":root {", ".farfield {").replace("\nbody {", "\n.none {")
    own = ".explored { background: var(--paper); color: var(--ink); padding: .2rem 1rem; "
    own += "font-family: system-ui, sans-serif; }"
    heading = '<h1 style="padding-right:2.5rem">How far does a positional encoding see?</h1>'
    mo.Html(f"<style>{math_font()}{stylesheet()}{mine}{own}</style>{heading}")
    return mo, state, threading


@app.cell
def _(mo, state):
    # What the address says, else what the command said.
    given = mo.query_params().get("formulas") or mo.cli_args().get("formulas") or state.START
    chosen, choose = mo.state(str(given))
    examples = [
        mo.ui.button(label=name, on_click=lambda _, formula=formula: choose(formula))
        for name, formula in state.EXAMPLES.items()
    ]
    mo.hstack(examples, justify="start", wrap=True)
    return (chosen,)


@app.cell
def _(chosen, mo, state):
    typed = mo.ui.text_area(
        value=chosen(),
        full_width=True,
        rows=3,
        debounce=True,
        label="Formulas in n, or names of the catalogue, one a line",
    )
    session = state.Explorer()
    typed
    return session, typed


@app.cell
def _(mo, session, state, typed):
    asked = session.read(typed.value)
    domains = {s.name: s for q in asked.questions for s in q.sliders}
    moved = mo.ui.dictionary(
        {
            name: mo.ui.slider(
                steps=[float(v) for v in s.steps],
                value=float(s.nearest(mo.query_params().get(name))),
                label=f"{name} ({s.domain})",
                include_input=True,
                debounce=False,
                full_width=True,
            )
            for name, s in domains.items()
        }
    )
    trouble = [
        mo.callout(f"{line}. The answer below is the one before.", kind="warn")
        for line in asked.trouble
    ]
    mo.vstack([*trouble, mo.hstack(moved.elements.values(), widths="equal", wrap=True)])
    return asked, moved


@app.cell
def _(mo, moved, state, typed):
    values = state.values_of(moved.value)
    _told = {"formulas": typed.value, **values}  # the address
    for _key in {*mo.query_params().to_dict()} - {*_told}:
        mo.query_params().remove(_key)
    for _key, _value in _told.items():
        mo.query_params()[_key] = str(_value)
    return (values,)


@app.cell
def _(asked, mo, state, threading, values):
    # Beside the notebook, so that a new input withdraws the question and need not wait for it.
    answered = threading.Event()

    def answer():
        asking = mo.current_thread()
        for shown in asked.answers(values, lambda: asking.should_exit):
            mo.output.replace(mo.Html(state.html(shown)))
            answered.set()

    mo.Thread(target=answer).start()
    _ = answered.wait(2 * state.FIRST)
    return


@app.cell
def _(asked, mo, state, values):
    told = "\n\n".join(
        f"```python\n{state.commands(q, values)['python']}\n```\n\n"
        f"```sh\n{state.commands(q, values)['trf']}\n```"
        for q in asked.questions
    )
    mo.accordion(
        {
            "Copy as Python, as a command": mo.md(told),
            "Keep this state as a page": mo.download(
                lambda: state.export(asked, values).encode(),
                filename="farfield.html",
                mimetype="text/html",
                label="farfield.html",
            ),
        }
    )
    return


if __name__ == "__main__":
    app.run()
