"""Sphinx's settings; build.py passes the folder of pages that it made."""

project = "Backstay"
copyright = "the authors of Backstay, Apache-2.0"  # noqa: A001 (Sphinx's name)
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme = "furo"
html_title = "Backstay"
html_copy_source = False
html_show_sphinx = False
html_permalinks_icon = "#"
html_static_path = ["static"]
html_css_files = ["site.css"]
pygments_dark_style = "github-dark"
myst_heading_anchors = 6  # as GitHub names them
myst_enable_extensions = ["deflist", "tasklist", "strikethrough"]
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
html_show_search_summary = False  # it fetches pages, which a browser refuses for files
