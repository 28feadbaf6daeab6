"""What people read: documents made of findings and certificates, as one page of HTML or as Markdown.

`document` says what a page holds, `as_html` and `as_markdown` write it, `html` has the pieces of a page.
"""
