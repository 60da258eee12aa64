"""What happened to a job, from its event logs (docs/format/events.md), as one page that opens
offline. docs/guide/report.md.

logs      files of logs             events      their lines, checked, each once
nodes     what nodes are called     clocks      how far theirs are apart      membership   losses of
          nodes
history   versions, failures, restarts          times     where the time went  spread       how
          nodes differ
charts    the same as Plotly's figures          page      HTML                 as_data      for
          --json
captured_files, files_page        what programs wrote into captured files
node_charts, node_page            of several nodes                            text         times and
                                  sizes

Only `page` needs plotly, for plotly.js.
"""
