"""The documentation site: Sphinx, built with warnings as errors and without network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import farfield

project = "farfield"
author = copyright = "The farfield authors"
release = farfield.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "pages",
]
exclude_patterns = [
    "_build",
    "gallery",
    "theory/proofs",
    "examples/*.ipynb",
    "examples/sg_execution_times.rst",
]
html_theme = "furo"
html_title = "farfield"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_extra_path = ["how-far-does-it-see.html"]
html_css_files = ["pages.css", "site.css"]
html_js_files = [("page.js", {"defer": "defer"})]
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
default_role = "code"
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Fields", "params_style")]

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "image_scrapers": (),
    "capture_repr": ("_repr_html_", "__str__"),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10_000,
    "write_computation_times": False,
}
