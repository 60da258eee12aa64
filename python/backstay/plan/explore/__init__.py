"""The planner as an interactive page that opens offline. docs/plan/explore.md.

sliders     what can be moved, and over which values
answer      what the page shows, in Python: the reference
model.js    the same in JavaScript, held against `answer` by a test in a browser
page        the HTML; needs plotly, for plotly.js
"""
