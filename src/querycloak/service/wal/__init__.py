"""The write-ahead log: numbered frames in files, snapshots, and encryption of both."""
