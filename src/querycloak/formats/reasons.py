"""Why a row was left out: the one table that code, reports and documentation share."""

from __future__ import annotations

from typing import Final

NOT_UTF8: Final = "not UTF-8"
NUL_BYTE: Final = "NUL byte"
UNCLOSED_QUOTE: Final = "unclosed quote"
STRAY_RETURN: Final = "stray carriage return"
TOO_FEW: Final = "too few fields"
TOO_MANY: Final = "too many fields"
NOT_JSON: Final = "not JSON"
FIELD_TOO_LONG: Final = "field too long"
QUERY_TOO_LONG: Final = "query too long"
NO_USER: Final = "no user"
NO_QUERY: Final = "no query"
UNREADABLE_TIME: Final = "unreadable time"
NO_TIME: Final = "no time"
UNREADABLE_RANK: Final = "unreadable rank"
CLICK_ALONE: Final = "click without its query"

#: The longest query, and the longest field of any kind, in bytes of UTF-8.
QUERY_LIMIT: Final = 1 << 20
FIELD_LIMIT: Final = 4 << 20

#: Every reason with its explanation. A row with several faults counts under the first that applies.
REASONS: Final = {
    NOT_UTF8: "the row holds bytes, or a JSON escape, that are not valid UTF-8",
    NUL_BYTE: "a text of the row holds a NUL character",
    UNCLOSED_QUOTE: "a quoted field does not end where it should; reading resumes at the next line",
    STRAY_RETURN: "a carriage return inside a row of a format that has no quoting",
    TOO_FEW: "the row has fewer fields than the header (a blank line is such a row)",
    TOO_MANY: "the row has more fields than the header",
    NOT_JSON: "the line is not one JSON object",
    QUERY_TOO_LONG: "the query is longer than 1 MiB",
    FIELD_TOO_LONG: "a field other than the query is longer than 4 MiB",
    NO_USER: "the user is empty, or is not a text or number",
    NO_QUERY: "the query is empty, or is not a text or number",
    UNREADABLE_TIME: "the time has none of the known forms, or is no date of the calendar",
    NO_TIME: "the log has a time column, but this row's time is empty",
    UNREADABLE_RANK: "the rank is not a whole number",
    CLICK_ALONE: "a UBI click event whose query_id belongs to no query (numbered after all queries)",
}
