"""Where released lines go: a log that many read, a file that a shipper follows, profiles of labels.

Each outlet knows the number of the last line that it has (`last`), takes lines again without harm, and
refuses a gap. So whoever feeds it can start somewhat too early after a crash: nothing is lost or doubled.
"""
