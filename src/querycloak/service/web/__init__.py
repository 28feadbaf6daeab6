"""HTTP interface of the service: routes, tokens, limits, and the web page."""
