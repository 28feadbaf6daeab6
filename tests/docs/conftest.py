"""Files of the examples are run by the tests of their page, not collected."""

collect_ignore = ["contributing"]
