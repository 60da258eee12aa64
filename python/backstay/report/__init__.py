"""What happened to a job, from its event log (docs/format/events.md), as one page that opens offline. docs/guide/report.md.

events    the log's lines, checked          history   versions, failures, restarts
times     where the time went               charts    the same as Plotly's figures        page   HTML        text   times and sizes

Only `page` needs plotly, for plotly.js.
"""
